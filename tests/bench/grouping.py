"""How good are group leaders as features? Service of a slice of recorded real counters, blocks of 50 slices held out.

Every grouping method's leaders stand beside 50 random event sets of the same size and all events; below, the thesis's own
descriptive figures (dead events, K of PCA, transitivity violations) for the same table, and supervised selection of a
third of the events, chosen inside the training blocks only. Prints markdown; results stand in README-grouping.md.

Usage: python tests/bench/grouping.py [SLICES-PER-SERVICE [CLASSIFIER ...]]
(default 600, all classifiers; the data is ../shared/data or $PMUTOP_DATA)
"""

import csv
import gzip
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from pmutop.analysis import similarity
from pmutop.analysis.dimensionality import dimensionality
from pmutop.analysis.grouping import METHODS, Events, group
from pmutop.analysis.selection import key_events

DATA = Path(os.environ.get("PMUTOP_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data")
MACHINES = ("AMD_Opteron_6234", "INTEL_Xeon_X5650")
NOT_HARDWARE = {"timestamp", "powerWatts", "contexts", "cpu-migrations"}
BLOCK, FOLDS, RANDOM_SETS = 50, 5, 50


def load(machine: str, most: int):
    """(X, y, block, names): whole blocks of 50 slices, spread evenly over each service's series, `most` slices of each."""
    X, y, blocks = [], [], []
    for path in sorted((DATA / "cloudsuite" / machine).glob("*.csv.gz")):
        with gzip.open(path, "rt") as stream:
            header, *rows = csv.reader(stream)
        names = [name for name in header[: header.index("Core_0")] if name not in NOT_HARDWARE]
        values = np.array(rows)[:, [header.index(name) for name in names]].astype(float)
        count = len(values) // BLOCK
        chosen = np.unique(np.linspace(0, count - 1, min(count, most // BLOCK)).astype(int))
        for number in chosen:
            X.append(values[number * BLOCK : (number + 1) * BLOCK])
            y += BLOCK * [path.name.split(".")[0]]
            blocks += BLOCK * [f"{path.name}:{number}"]
    return np.concatenate(X), np.array(y), np.array(blocks), names


def tree():
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0)


def linear():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    from sklearn.svm import LinearSVC

    return make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), LinearSVC(C=10.0, dual=False))


CLASSIFIERS = {"tree": tree, "linear SVM": linear}


def folds_of(y, blocks, count=FOLDS):
    from sklearn.model_selection import StratifiedGroupKFold

    return list(StratifiedGroupKFold(count, shuffle=True, random_state=0).split(y, y, blocks))


def accuracy(classifier, X, y, folds, sets) -> float:
    """Mean accuracy over folds; sets[i] are the columns used in fold i."""
    hits = 0
    for (train, test), columns in zip(folds, sets, strict=True):
        model = CLASSIFIERS[classifier]().fit(X[train][:, columns], y[train])
        hits += (model.predict(X[test][:, columns]) == y[test]).sum()
    return hits / len(y)


def greedy(classifier, X, y, blocks, keep: int) -> list[int]:
    """Forward selection inside one training set: each step takes the event that helps most on inner blocks held out."""
    inner, chosen = folds_of(y, blocks, 3), []
    while len(chosen) < keep:
        free = [column for column in range(X.shape[1]) if column not in chosen]
        scores = [accuracy(classifier, X, y, inner, 3 * [[*chosen, column]]) for column in free]
        chosen.append(free[int(np.argmax(scores))])
    return chosen


def leaders_per_fold(X, folds, method, k):
    return [list(group(Events.of(X[train]), method, k=k, seed=0).leaders) for train, _ in folds]


def report(machine: str, most: int) -> None:
    X, y, blocks, names = load(machine, most)
    folds, width = folds_of(y, blocks), len(names)
    third = -(-width // 3)
    events, plane = Events.of(X), dimensionality(X)
    print(
        f"\n## {machine}: {width} events, {len(X)} slices, {len(set(blocks))} blocks, {len(set(y))} services\n\n"
        f"Dead events {width - len(events.columns)}; K for a PCA error below 10 % / 1 %: {plane.smallest(0.1)} / "
        f"{plane.smallest(0.01)}; related pairs {int(events.adjacency.sum()) // 2}, transitivity violations "
        f"{similarity.transitivity_violations(events.adjacency)}, events related to no other "
        f"{len(similarity.uncorrelated(events.adjacency))}.\n"
    )
    plans = {f"{name}": leaders_per_fold(X, folds, name, third) for name in METHODS[:4]}
    for name in METHODS[4:]:
        for k in (third, 2 * third):
            plans[f"{name}, k = {k}"] = leaders_per_fold(X, folds, name, k)
    sizes = sorted({round(np.mean([len(one) for one in sets])) for sets in plans.values()})
    generator = np.random.default_rng(0)
    drawn = {
        size: [generator.choice(width, size, replace=False) for _ in range(RANDOM_SETS)] for size in sizes
    }
    print(
        "| leaders of | events | "
        + " | ".join(f"{c} | random: mean, 5-95 %, better than" for c in CLASSIFIERS)
        + " |"
    )
    print("|---|---|" + "---|---|" * len(CLASSIFIERS))
    pool = Parallel(n_jobs=2)
    chance = {
        (classifier, size): np.array(
            pool(delayed(accuracy)(classifier, X, y, folds, FOLDS * [one]) for one in drawn[size])
        )
        for classifier in CLASSIFIERS
        for size in sizes
    }
    for name, sets in plans.items():
        size = round(np.mean([len(one) for one in sets]))
        cells = []
        for classifier in CLASSIFIERS:
            reached, random = accuracy(classifier, X, y, folds, sets), chance[classifier, size]
            low, high = np.percentile(random, [5, 95])
            beaten = (random < reached).sum()
            cells.append(
                f"{reached:.3f} | {random.mean():.3f}, {low:.3f}-{high:.3f}, {beaten} of {RANDOM_SETS}"
            )
        print(f"| {name} | {size} | " + " | ".join(cells) + " |", flush=True)
    whole = {c: accuracy(c, X, y, folds, FOLDS * [list(range(width))]) for c in CLASSIFIERS}
    print(f"| all events | {width} | " + " | ".join(f"{score:.3f} | " for score in whole.values()) + " |")
    print(
        f"\n| {third} of {width} events, chosen inside the training blocks | "
        + " | ".join(CLASSIFIERS)
        + " |"
    )
    print("|---|" + "---|" * len(CLASSIFIERS))
    by_rank = pool(delayed(key_events)(X[train], y[train], names, third) for train, _ in folds)
    by_rank = [[names.index(name) for name in kept] for kept in by_rank]
    steps = {c: pool(delayed(greedy)(c, X[t], y[t], blocks[t], third) for t, _ in folds) for c in CLASSIFIERS}
    rows = {"CFS + gain ratio": {c: by_rank for c in CLASSIFIERS}, "greedy, inner folds": steps}
    for name, sets in rows.items():
        cells = []
        for classifier in CLASSIFIERS:
            reached = accuracy(classifier, X, y, folds, sets[classifier])
            cells.append(f"{reached:.3f} ({100 * (reached - whole[classifier]):+.1f} points)")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    for name in set(CLASSIFIERS) - set(sys.argv[2:] or CLASSIFIERS):
        del CLASSIFIERS[name]
    if not DATA.is_dir():
        sys.exit(f"no recorded counters at {DATA}: set PMUTOP_DATA")
    print(
        f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}; {most} slices a service"
    )
    for machine in MACHINES:
        report(machine, most)


if __name__ == "__main__":
    main()
