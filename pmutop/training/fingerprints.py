"""Labelled runs to a fingerprint bundle: one C4.5 tree over the features of 400 ms slices (Yoo et al., sections 3.1-3.2).

Where a tier has optional events, a row enters the training twice: as it is, under its label, and without the optional
events, under the label that /proc alone can tell (`Workload.coarse`), for users who may open no perf event.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pmutop import __version__, bundle
from pmutop.analysis.selection import key_events
from pmutop.analysis.tree import C45Tree
from pmutop.bundle import SECOND, Bundle
from pmutop.errors import PmutopError
from pmutop.pipeline.engine import LEAST_ACTIVITY, LEAST_TO_BE_STUCK
from pmutop.pipeline.features import Features
from pmutop.training import passes
from pmutop.training.collect import Examples, Rows, hashes, passes_of, rows_of
from pmutop.training.labels import Workload
from pmutop.training.tiers import BY_KIND, Tier

SEED = 20261121

#: A leaf in which less than half of the training slices agreed says nothing.
LEAST_CONFIDENCE = 0.5
#: ... and a tree without a decision would give everybody its most frequent label: no confidence reaches this.
NEVER = 2.0
WAITING = "run-delay/run-time+run-delay"
#: A healthy program that waits for a CPU this share of its time was disturbed, and is no example of health.
UNDISTURBED = 0.3


@dataclass(frozen=True)
class Dataset:
    """X float64 (rows, features), labels (rows,), run index (rows,), and the workload of each run."""

    tier: Tier
    X: np.ndarray
    y: np.ndarray
    run: np.ndarray
    workloads: list[Workload]


def dataset(tier: Tier, folder: Path, workloads: dict[str, Workload]) -> tuple[Rows, Dataset]:
    """Every judged row of the training in `folder`; where there are optional events also as without them."""
    several = [rows_of(place, lambda run: examples(workloads[run.name])) for place in passes_of(folder)]
    if not all(len(rows.counts) for rows in several):
        raise PmutopError(f"{folder} holds no finished runs", "let the training run to its end")
    names = [tier.features or passes.features(rows.header.events) for rows in several]
    tier = tier if tier.features else replace(tier, required=tuple(sum(names, ())))
    rows, X = passes.join([(rows, rows.table(own)) for rows, own in zip(several, names, strict=True)])
    each = [workloads[run.name] for run in rows.runs]
    y, run = np.array([each[run].label for run in rows.run]), rows.run
    if tier.plain:
        place = tier.features.index(tier.plain)
        counted = X[:, place] > 0
        plain = X.copy()
        plain[:, len(tier.required) :] = np.nan
        plain[:, place] = 0
        coarse = np.array([each[run].coarse or each[run].label for run in rows.run])
        X, y, run = (
            np.vstack([X[counted], plain]),
            np.concatenate([y[counted], coarse]),
            np.concatenate([run[counted], run]),
        )
        kept = (y != "N_OS") | (X[:, tier.features.index(WAITING)] < UNDISTURBED)
        X, y, run = X[kept], y[kept], run[kept]
    return rows, Dataset(tier, X, y, run, each)


def examples(workload: Workload) -> Examples:
    """The live pipeline judges with less: that is what a healthy program that mostly sleeps must teach."""
    if not workload.pathological:
        return Examples(LEAST_ACTIVITY)
    return Examples() if workload.who == "all" else Examples(LEAST_TO_BE_STUCK, main=True)


class KeyEventTree:
    """A C4.5 tree on the `keep` key events of `names` (0: on all), chosen anew from what it is fitted to.

    negligible: what is rarer per 1000 instructions or cycles is 0 to the growing tree. A gain ratio is as happy with the
    two misses in a million by which programs happen to differ as with those that slow them down; a label must not be.
    """

    def __init__(self, names: Sequence[str], keep: int, least_leaf: int, negligible: float = 0.0) -> None:
        self.all = list(names)
        self.keep = keep
        self.least_leaf = least_leaf
        self.rare = np.array([negligible if name.endswith(("/ki", "/kc")) else -np.inf for name in names])

    def fit(self, X: np.ndarray, y: np.ndarray) -> KeyEventTree:
        X = np.where(X < self.rare, 0.0, X)
        self.names = key_events(X, y, self.all, self.keep) if self.keep else self.all
        self.columns = [self.all.index(name) for name in self.names]
        self.tree = C45Tree(min_leaf=self.least_leaf, middle=True).fit(X[:, self.columns], y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.tree.predict(X[:, self.columns])


def new_tree(tier: Tier, negligible: float = 0.0) -> KeyEventTree:
    return KeyEventTree(tier.features, tier.keep, tier.least_leaf, negligible)


def kind_tree(data: Dataset, learnt: KeyEventTree) -> C45Tree | None:
    """A second tree on the same key events: which kind of pathology (array, list, pointer, branch, rs, fpu) it is; None in a
    tier that has no kinds."""
    name_of = data.tier.views.get(BY_KIND)
    if name_of is None:
        return None
    y = [
        name_of(data.workloads[run], label)
        for run, label in zip(data.run.tolist(), data.y.tolist(), strict=True)
    ]
    return C45Tree(min_leaf=learnt.least_leaf, middle=True).fit(data.X[:, learnt.columns], np.array(y))


def normal(data: Dataset, label: str, names: Sequence[str]) -> dict[str, float]:
    """Medians of the features over the healthy twins of a label's workloads: what 'normal' means beside its evidence."""
    twins = {
        workload.twin
        for workload in data.workloads
        if label in (workload.label, workload.coarse) and workload.twin
    }
    of_twin = np.array([workload.name in twins for workload in data.workloads])[data.run]
    if not of_twin.any():
        return {}
    found = data.X[of_twin][:, [data.tier.features.index(name) for name in names]]
    known = ~np.isnan(found).all(axis=0)
    return {name: round(float(np.nanmedian(found[:, at])), 6) for at, name in enumerate(names) if known[at]}


def needs(tier: Tier, label: str, workloads: list[Workload]) -> str:
    """Which privilege a label takes: none if what everybody may count was enough in training."""
    if tier.optional and any(label == (workload.coarse or workload.label) for workload in workloads):
        return "nothing but /proc"
    return tier.needs


def events_of(names: Sequence[str]) -> set[str]:
    return {event for events in Features(list(names), ()).needs for event in events}


def make_bundle(
    tier: Tier, target: Path, folder: Path, workloads: dict[str, Workload], admissions: list[dict]
) -> tuple[Bundle, str]:
    """Learn from the runs in `folder` and write the bundle; returns it and a report in Markdown."""
    from pmutop.training.fingerprints_scores import confusion, scores

    rows, data = dataset(tier, folder, workloads)
    tier = data.tier
    learnt = new_tree(tier, tier.negligible).fit(data.X, data.y)
    tree, names = learnt.tree, learnt.names
    kinds = kind_tree(data, learnt)
    found = scores(data)
    classes = [str(name) for name in tree.classes_]
    decides = len(tree.used_features) > 0
    used = sorted({*tree.used_features, *(kinds.used_features if kinds else ())})
    asked = [names[at] for at in used] or names  # a counter is not spent on what no decision reads
    required = sorted(events_of([name for name in asked if name in tier.required]))
    optional = sorted(events_of([name for name in asked if name in tier.optional]) - set(required))
    card = {
        "name": f"{tier.name}-fingerprints",
        "kind": "tree",
        "tier": tier.name,
        "features": list(names),
        "classes": classes,
        "kinds": [str(name) for name in kinds.classes_] if kinds else [],
        "least_confidence": LEAST_CONFIDENCE if decides else NEVER,
        "required": required,
        "optional": optional,
        "labels": [
            {
                "label": label,
                "text": tier.texts[label],
                "advice": tier.advice.get(label, ""),
                "needs": needs(tier, label, data.workloads),
                "normal": normal(data, label, names),
            }
            for label in classes
        ],
        "blind": list(tier.blind),
        "machine": rows.header.machine,
        "units": tier.units,
        "interval": rows.header.interval,
        "seed": SEED,
        "versions": {"pmutop": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "trained": time.strftime("%Y-%m-%d"),
        "command": f"pmutop train fingerprints --tier {tier.name} --slices {rows.runs[0].last - rows.runs[0].first + 1}",
        "recordings": hashes(folder),
        "runs": len(rows.runs),
        "rows": len(data.y),
        "scores": found,
        "admission": admissions,
    }
    arrays = tree.to_arrays() | {
        f"{SECOND}{name}": array for name, array in (kinds.to_arrays() if kinds else {}).items()
    }
    made = bundle.write(target, card, arrays)
    parts = [
        f"{len(rows.runs)} runs, {len(data.y)} rows, {len(tier.features)} features, {tree.leaves} leaves",
        "" if decides else "These counters do not tell the labels apart: every verdict will be 'unknown'.",
        "\n".join(f"- {name}: {score:.4f}" for name, score in found.items()),
        confusion(data),
        tree.rules(names),
    ]
    return made, "\n\n".join(filter(None, parts))
