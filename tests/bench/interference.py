"""The thesis's tables 5.2-5.14 for the runs of `pmutop train interference`, beside the thesis's own figures. Markdown.

    pmutop train interference --yes --fresh --runs RUNS --to models/software-interference
    python tests/bench/interference.py RUNS > tests/bench/README-interference.md      (about three minutes)

X is the matrix of section 4.1.4: a row per slice of 0.4 s, a column per event, the process's threads summed. Every event
that may be counted is in it: /proc, perf software events, the kernel's tracepoints (no PMU here). `odd/even` is the
thesis's split and flatters: neighbouring slices are near copies. `whole runs` and `unknown applications` are honest.
"""

import platform
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedGroupKFold

from pmutop.analysis import similarity
from pmutop.analysis.dimensionality import dimensionality
from pmutop.analysis.grouping import METHODS, Events, group
from pmutop.analysis.interference_report import (
    BANDS,
    CLASSIFIERS,
    SPLITS,
    Slices,
    area_by_band,
    by_single_groups,
    compare,
    factor_errors,
    margins,
    table,
)
from pmutop.analysis.interference_training import fit, fit_types, grouped
from pmutop.training import interference
from pmutop.training.collect import rows_of

THESIS = "linear nu-SVC (thesis)"
SCHEMES = {"alone": "base", "same": "shared cores", "half": "one thread's core", "apart": "shared sockets"}
#: The thesis's table and accuracy (all applications, all schemes) for each set of events.
THEIRS = {
    "all events": ("5.2", 164, 91.79),
    "correlated events": ("5.3", 124, 86.77),
    "uncorrelated events": ("5.4", 40, 80.80),
    "cc": ("5.6", 50, 88.92),
    "min-clique": ("5.7", 71, 82.63),
    "approx-min-clique": ("5.8", 71, 83.43),
    "greedy-max-clique": ("5.9", 73, 83.11),
    "kmeans-euclid, few": ("5.10", 10, 87.73),
    "kmeans-euclid, many": ("5.11", 75, 90.76),
    "kmeans-correlation, few": ("5.12", 10, 82.55),
    "kmeans-correlation, many": ("5.13", 75, 87.01),
}
#: Table 5.14: unknown applications.
THEIR_UNKNOWN = {"MM": 97.01, "SORT": 99.16, "PR": 43.27}
RANDOM_SETS = 20
FEWEST_RUNS = 4  # of a type, to be a class


def slices_of(rows) -> tuple[Slices, list[str]]:
    """Every slice with a label of its victim's whole process, and the events' names; events not always counted left out."""
    factor, label = interference.factors(rows.runs)
    victim_pid = np.array([run.pid for run in rows.runs])[rows.run]
    counted = np.isfinite(rows.counts).mean(axis=0) > 0.98
    keep = (rows.pid == victim_pid) & np.isfinite(rows.counts[:, counted]).all(axis=1)
    facts = [rows.runs[run].facts for run in rows.run[keep]]
    number = np.zeros(keep.sum(), int)
    for run in np.unique(rows.run[keep]):
        own = rows.run[keep] == run
        number[own] = np.arange(own.sum())
    found = Slices(
        X=rows.counts[keep][:, counted] * 0.4 / rows.seconds[keep][:, None],
        y=label[rows.run[keep]],
        run=rows.run[keep],
        application=np.array([one["victim"] for one in facts]),
        partner=np.array([one["partner"] for one in facts]),
        scheme=np.array([SCHEMES[one["placement"]] for one in facts]),
        factor=factor[rows.run[keep]],
        number=number,
    )
    names = [event.name for event, one in zip(rows.header.events, counted, strict=True) if one]
    return found, names


def subset(slices: Slices, columns) -> Slices:
    return Slices(**{**vars(slices), "X": slices.X[:, list(columns)]})


def accuracy(slices: Slices, columns, split: str) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # unscaled counts: the solver stops at its limit and says so every time
        margin = margins(subset(slices, columns), THESIS, split)
    tested = ~np.isnan(margin)
    return float(((margin > 0) == (slices.y > 0))[tested].mean()) if tested.any() else float("nan")


def describe(every: Slices, names: list[str]) -> tuple[Events, dict[str, list[int]]]:
    """Print the descriptive figures; return the live events and the sets of events that the tables are of."""
    events, plane = Events.of(every.X), dimensionality(every.X)
    live, alone = len(events.columns), similarity.uncorrelated(events.adjacency)
    print("## The event space (sections 4.2-4.4)\n\n| | here | thesis |\n|---|---|---|")
    print(f"| events, of which dead | {len(names)}, {len(names) - live} | 190, 26 |")
    print(f"| K for a PCA error below 10 % / 1 % | {plane.smallest(0.1)} / {plane.smallest(0.01)} | 4 / 7 |")
    print(f"| transitivity violations | {similarity.transitivity_violations(events.adjacency)} | 540 |")
    print(f"| events correlated with no other | {len(alone)} | 40 |\n")
    lonely = [int(events.columns[one]) for one in alone]
    sets = {
        "all events": events.columns.tolist(),
        "correlated events": [int(one) for one in events.columns if one not in lonely],
        "uncorrelated events": lonely,
    }
    for method in METHODS:
        if method.startswith("kmeans"):
            sets[f"{method}, few"] = list(group(events, method, k=min(10, live)).leaders)
            sets[f"{method}, many"] = list(group(events, method, k=round(live * 75 / 164)).leaders)
        else:
            sets[method] = list(group(events, method).leaders)
    return events, {name: columns for name, columns in sets.items() if columns}


def by_sets(slices: Slices, sets: dict, live: int) -> None:
    """Tables 5.2-5.13: one row per set of events, the thesis's classifier, three splits, beside random sets."""
    pool = Parallel(n_jobs=2)
    jobs = [(name, split) for name in sets for split in SPLITS]
    found = dict(zip(jobs, pool(delayed(accuracy)(slices, sets[n], s) for n, s in jobs), strict=True))
    sizes = sorted({len(columns) for columns in sets.values() if len(columns) < live})
    generator = np.random.default_rng(0)
    drawn = {
        size: [generator.choice(sets["all events"], size, replace=False) for _ in range(RANDOM_SETS)]
        for size in sizes
    }
    random = {
        size: np.array(pool(delayed(accuracy)(slices, one, "whole runs") for one in drawn[size]))
        for size in sizes
    }
    print("## All events, and what stands for them (tables 5.2-5.13: linear nu-SVC on counts as they are)\n")
    print(
        "| events | number | "
        + " | ".join(SPLITS)
        + f" | whole runs beside {RANDOM_SETS} random sets: mean, better than | thesis: table, number, odd/even |"
    )
    print("|---|---|" + "---|" * (len(SPLITS) + 2))
    for name, columns in sets.items():
        cells = " | ".join(f"{100 * found[name, split]:.1f} %" for split in SPLITS)
        chance = random.get(len(columns))
        beside = (
            f"{100 * chance.mean():.1f} %, {(chance < found[name, 'whole runs']).sum()} of {RANDOM_SETS}"
            if chance is not None
            else "-"
        )
        theirs = "{}, {}, {:.2f} %".format(*THEIRS[name])
        print(f"| {name} | {len(columns)} | {cells} | {beside} | {theirs} |", flush=True)


def by_application(slices: Slices, columns, split: str, title: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        margin = margins(subset(slices, columns), THESIS, split)
    print(f"\n## {title}\n")
    print(*table(slices, margin), sep="\n")


def single_groups(slices: Slices, events: Events, names: list[str]) -> None:
    groups = [one for one in group(events, "cc").groups if len(one) > 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = by_single_groups(slices, groups, "whole runs")
    print(
        "\n## Single groups (future work of the thesis): connected components of two and more, whole runs held out\n"
    )
    print("| events | balanced accuracy |\n|---|---|")
    for members, score in sorted(zip(groups, scores, strict=True), key=lambda pair: -pair[1]):
        shown = ", ".join(names[member] for member in members[:6]) + (", ..." if len(members) > 6 else "")
        print(f"| {len(members)}: {shown} | {100 * score:.1f} % |")


def alternatives(slices: Slices, columns) -> None:
    print("\n## Other classifiers (future work of the thesis), all live events\n")
    print("| classifier | " + " | ".join(f"{split}: balanced, AUC" for split in SPLITS) + " |")
    print("|---|" + "---|" * len(SPLITS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = Parallel(n_jobs=2)(
            delayed(compare)(subset(slices, columns), [one], [split])
            for one in CLASSIFIERS
            for split in SPLITS
        )
    found = {(row["classifier"], row["split"]): row for part in rows for row in part}
    for one in CLASSIFIERS:
        cells = (f"{100 * found[one, s]['balanced']:.1f} %, {found[one, s]['auc']:.3f}" for s in SPLITS)
        print(f"| {one} | " + " | ".join(cells) + " |")


def types(every: Slices, columns) -> None:
    """The type of interference as trained classes (future work of the thesis): one SVM a type, the largest margin says
    which, none where all are negative; whole runs held out. A slower run beside somebody on another CPU is a type, too."""
    slower = (every.y > 0) | ((every.scheme == SCHEMES["apart"]) & np.isnan(every.factor))
    kind = np.where(slower, every.scheme, "")
    known = slower | (every.y < 0)
    X, kind, runs = every.X[known][:, list(columns)], kind[known], every.run[known]
    names = [name for name in SCHEMES.values() if len(np.unique(runs[kind == name])) > FEWEST_RUNS]
    judged = np.isin(kind, ["", *names])
    X, kind, runs = X[judged], kind[judged], runs[judged]
    said = np.empty(len(kind), dtype=object)
    which = np.unique(kind, return_inverse=True)[1]
    for train, test in StratifiedGroupKFold(5, shuffle=True, random_state=0).split(X, which, runs):
        machines, prepared = [("C", 0.1), ("C", 1.0)], [("standard", "skewed")]
        found = fit_types(X[train], kind[train], runs[train], machines=machines, preparations=prepared)
        margin = np.stack([one.verdict.decide(X[test])[0] for one in found.values()], axis=1)
        best = np.array(list(found))[margin.argmax(axis=1)]
        said[test] = np.where(margin.max(axis=1) > 0, best, "")
    print(
        "\n## The type of interference as classes (future work of the thesis), all live events, whole runs held out\n"
    )
    print("| it is | slices | " + " | ".join(f"said: {name or 'none'}" for name in ["", *names]) + " |")
    print("|---|---|" + "---|" * (len(names) + 1))
    for name in ["", *names]:
        own = said[kind == name]
        cells = " | ".join(f"{100 * np.mean(own == other):.0f} %" for other in ["", *names])
        print(f"| {name or 'none'} | {len(own)} | {cells} |")


def shipped(rows) -> None:
    """The model as it ships (four features of /proc): yes/no and factor by band of the true factor, held out."""
    factor, label = interference.factors(rows.runs)
    X, y, f = rows.table(interference.FEATURES), label[rows.run], factor[rows.run]
    facts = [rows.runs[run].facts for run in rows.run]
    partner = np.array([one["partner"] for one in facts])
    print("\n## The shipped verdict, by band of the true factor\n")
    print(
        "| held out | band | slices | AUC against alone | factor off by: median, 95th percentile |\n|---|---|---|---|---|"
    )
    whole = [test for _, test in grouped(np.where(y == 0, 1, y), rows.run, 0)]
    names = np.array([one["victim"] for one in facts])
    for title, tests in {
        "whole runs": whole,
        "unknown applications": [np.flatnonzero(names == name) for name in np.unique(names)],
    }.items():
        margin, estimate = np.full(len(y), np.nan), np.full(len(y), np.nan)
        for test in tests:
            rest = np.setdiff1d(np.arange(len(y)), test)
            if title != "whole runs":
                rest = rest[partner[rest] != names[test[0]]]
            verdict = fit(
                X[rest],
                y[rest],
                rows.run[rest],
                f[rest],
                preparations=(("standard", "none"), ("standard", "skewed")),
            ).verdict
            margin[test], _, estimate[test] = verdict.decide(X[test])
        estimate = np.maximum(estimate, 1)
        empty = np.array([""] * len(y))
        here = Slices(X, y, rows.run, names, partner, empty, f, np.zeros(len(y)))
        for (low, high, count, area), _ in zip(area_by_band(here, margin), BANDS, strict=True):
            band = (f >= low) & (f < high) & (partner != "")
            off = "{:.1%}, {:.1%}".format(*factor_errors(estimate[band], f[band])) if band.any() else "-"
            print(f"| {title} | {low}-{high} | {count} | {f'{area:.3f}' if count else '-'} | {off} |")
        print(
            f"| {title} | all | {(~np.isnan(f)).sum()} | | {'{:.1%}, {:.1%}'.format(*factor_errors(estimate, f))} |"
        )


def main() -> None:
    if len(sys.argv) < 2 or not Path(sys.argv[1], "runs.jsonl").exists():
        sys.exit("name the folder of runs: pmutop train interference --yes --runs FOLDER")
    rows = rows_of(Path(sys.argv[1]))
    every, names = slices_of(rows)
    slices = every.only(every.y != 0)
    machine = rows.header.machine
    alone = interference.times_alone(rows.runs)
    spread = {
        who: statistics.stdev(times) / statistics.mean(times)
        for who, times in alone.items()
        if len(times) > 1
    }
    print("# Interference on this machine, in the thesis's tables\n")
    print(
        f"`python tests/bench/interference.py RUNS` on {time.strftime('%Y-%m-%d')}: {machine['model']}, {machine['cpus']} CPUs"
        f"{' (virtual)' if machine['virtual'] else ''}, Linux {machine['kernel']}, Python {platform.python_version()}; runs of "
        f"`pmutop train interference`: {len(rows.runs)} runs of {len({one for one, _ in alone})} applications, {len(every.y)} "
        f"slices, of which {int((slices.y > 0).sum())} suffer and {int((slices.y < 0).sum())} do not; the rest lies between "
        "the bounds, or suffered from another core, which no event here shows.\n"
    )
    print(
        f"Relative standard deviation of the time alone: largest {100 * max(spread.values()):.1f} % "
        f"({max(spread, key=spread.get)[0]}), median {100 * statistics.median(spread.values()):.1f} % (thesis: at most 0.96 %).\n"
    )
    events, sets = describe(every, names)
    by_sets(slices, sets, len(events.columns))
    by_application(
        slices, sets["all events"], "odd/even slices", "All events by application, odd/even (table 5.2)"
    )
    by_application(
        slices, sets["all events"], "unknown applications", "Unknown applications, all events (table 5.14)"
    )
    print("\nThe thesis: " + ", ".join(f"{name} {value} %" for name, value in THEIR_UNKNOWN.items()) + ".")
    single_groups(slices, events, names)
    alternatives(slices, sets["all events"])
    types(every, sets["all events"])
    shipped(rows)


if __name__ == "__main__":
    main()
