"""How good a fingerprint training is: whole runs held out by what was unseen, never single slices."""

from __future__ import annotations

import numpy as np

from pmutop.training.fingerprints import SEED, Dataset, new_tree
from pmutop.training.tiers import BY_KIND

FOLDS = 10


def scores(data: Dataset) -> dict[str, float]:
    """Accuracy by what was unseen and by how finely labels are told apart; and 10-fold as the paper prints it."""
    found = {}
    for view, name_of in data.tier.views.items():
        y = np.array(
            [
                name_of(data.workloads[run], label)
                for run, label in zip(data.run.tolist(), data.y.tolist(), strict=True)
            ]
        )
        negligible = (
            0.0 if view == BY_KIND else data.tier.negligible
        )  # as `fingerprints.make_bundle` learns them
        for unseen, names_of in data.tier.groups.items():
            group = np.array(names_of(data.workloads))[data.run]
            if len(np.unique(group)) < 2:
                continue  # a training of a part only: nothing to hold out
            found[f"{view}{unseen}"] = accuracy(data, y, folds_of(group), negligible)
        fold = np.random.default_rng(SEED).integers(0, FOLDS, len(y))
        found[f"{view}10-fold over slices (near copies, for comparison with the paper only)"] = accuracy(
            data, y, fold, negligible
        )
    return found


def folds_of(group: np.ndarray) -> np.ndarray:
    """At most FOLDS folds made of whole groups: fold number (rows,)."""
    names, at = np.unique(group, return_inverse=True)
    return (np.random.default_rng(SEED).permutation(len(names)) % min(FOLDS, len(names)))[at]


def predicted(data: Dataset, y: np.ndarray, fold: np.ndarray, negligible: float = 0.0) -> np.ndarray:
    """What is said of each row by a tree that has not seen its fold."""
    found = np.empty_like(y)
    for number in np.unique(fold):
        test = fold == number
        found[test] = new_tree(data.tier, negligible).fit(data.X[~test], y[~test]).predict(data.X[test])
    return found


def accuracy(data: Dataset, y: np.ndarray, fold: np.ndarray, negligible: float) -> float:
    return round(float((predicted(data, y, fold, negligible) == y).mean()), 4)


def confusion(data: Dataset) -> str:
    """Which labels are taken for which, bodies of programs held out: a Markdown table; "" where there is but one."""
    group = np.array([f"{w.program}/{w.body}" for w in data.workloads])[data.run]
    if len(np.unique(group)) < 2:
        return ""
    said = predicted(data, data.y, folds_of(group), data.tier.negligible)
    labels = sorted(set(data.y.tolist()))
    lines = ["| true \\ judged | " + " | ".join(labels) + " |", "|---" * (len(labels) + 1) + "|"]
    for label in labels:
        counts = [int(((data.y == label) & (said == other)).sum()) for other in labels]
        lines.append(f"| {label} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)
