"""How well is interference seen: the thesis's tables, the three ways to split, and the alternatives it left as future work.

Source: "Black-boxing PMUs" (2016), sections 5.2.1 (odd and even slices), 5.2-5.3 (tables 5.2-5.13), 5.4 (unknown
applications, table 5.14) and chapter 6. Everything here predicts slices that its training did not see, and returns
margins or plain rows; nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pmutop.analysis.interference_training import LOGS, area, as_the_thesis, balanced_accuracy, fit, grouped

Fold = tuple[np.ndarray, np.ndarray]
#: Bands of the true interference factor in which yes/no is told apart from running alone.
BANDS = ((1.02, 1.05), (1.05, 1.1), (1.1, 1.2), (1.2, 1.5), (1.5, 3.0), (3.0, np.inf))


@dataclass(frozen=True, eq=False)
class Slices:
    """Labelled slices, all (slices,) but X (slices, features): y 1 or -1; `run`, `application`, `partner` ("" alone) and
    `scheme` ("base", "shared cores", ...) say where each comes from; `factor` is its run's, `number` counts in the run."""

    X: np.ndarray
    y: np.ndarray
    run: np.ndarray
    application: np.ndarray
    partner: np.ndarray
    scheme: np.ndarray
    factor: np.ndarray
    number: np.ndarray

    def only(self, rows: np.ndarray) -> Slices:
        return Slices(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


# ---- splits ---------------------------------------------------------------------------------------------------------


def odd_even(slices: Slices, seed: int = 0) -> Iterator[Fold]:
    """The thesis's sets: the odd slices (1st, 3rd ...) of every run to train, the even ones to test. Neighbours are near
    copies of each other: print it beside the papers, never judge by it."""
    yield np.flatnonzero(slices.number % 2 == 0), np.flatnonzero(slices.number % 2 == 1)


def whole_runs(slices: Slices, seed: int = 0) -> Iterator[Fold]:
    """Folds of whole runs."""
    yield from grouped(slices.y, slices.run, seed)


def unknown_applications(slices: Slices, seed: int = 0) -> Iterator[Fold]:
    """Leave one application out, as the sufferer and as the partner of another (section 5.4.1)."""
    for name in np.unique(slices.application):
        own = slices.application == name
        train = np.flatnonzero(~own & (slices.partner != name))
        if len(np.unique(slices.y[train])) == 2:
            yield train, np.flatnonzero(own)


SPLITS: dict[str, Callable[[Slices], Iterator[Fold]]] = {
    "odd/even slices": odd_even,
    "whole runs": whole_runs,
    "unknown applications": unknown_applications,
}

# ---- classifiers: (training slices, X to judge) -> margins -----------------------------------------------------------


def thesis_svm(train: Slices, X: np.ndarray, seed: int) -> np.ndarray:
    """NaN where LIBSVM finds no solution for counts as they are (billions beside fractions)."""
    try:
        return as_the_thesis(train.X, train.y).decide(X)[0]
    except ValueError:
        return np.full(len(X), np.nan)


def tuned_svm(train: Slices, X: np.ndarray, seed: int) -> np.ndarray:
    """Tuned within the training runs; of few choices, for a report tunes dozens of times."""
    tried = {
        "machines": (("nu", 0.1), ("nu", 0.3), ("C", 0.1), ("C", 1.0)),
        "preparations": tuple(("standard", log) for log in LOGS),
    }
    return fit(train.X, train.y, train.run, seed=seed, **tried).verdict.decide(X)[0]


def rbf_svm(train: Slices, X: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    model = make_pipeline(StandardScaler(), SVC(C=10.0, class_weight="balanced")).fit(train.X, train.y)
    return model.decision_function(X)


def boosting(train: Slices, X: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=seed).fit(train.X, train.y).decision_function(X)


def one_class(train: Slices, X: np.ndarray, seed: int) -> np.ndarray:
    """Learns from slices without interference only: whatever is unlike them suffers."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import OneClassSVM

    model = make_pipeline(StandardScaler(), OneClassSVM(nu=0.05)).fit(train.X[train.y < 0])
    return -model.decision_function(X)


CLASSIFIERS: dict[str, Callable[[Slices, np.ndarray, int], np.ndarray]] = {
    "linear nu-SVC (thesis)": thesis_svm,
    "linear, tuned": tuned_svm,
    "RBF": rbf_svm,
    "gradient boosting": boosting,
    "one-class": one_class,
}

# ---- reports --------------------------------------------------------------------------------------------------------


def margins(slices: Slices, classifier: str, split: str, seed: int = 0) -> np.ndarray:
    """The margin (slices,) of each slice by a classifier that did not see it; NaN where the split never tests it.

    X must be complete: a slice that lacks a feature is the caller's to drop.
    """
    found = np.full(len(slices.y), np.nan)
    for train, test in SPLITS[split](slices):
        found[test] = CLASSIFIERS[classifier](slices.only(train), slices.X[test], seed)
    return found


def compare(
    slices: Slices,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    splits: Sequence[str] = tuple(SPLITS),
    seed: int = 0,
) -> list[dict]:
    """One row per classifier and split: accuracy, balanced accuracy, AUC over the slices tested."""
    rows = []
    for split in splits:
        for classifier in classifiers:
            margin = margins(slices, classifier, split, seed)
            tested = ~np.isnan(margin)
            y, margin = slices.y[tested], margin[tested]
            scores = {
                "accuracy": float(((margin > 0) == (y > 0)).mean()),
                "balanced": balanced_accuracy(y, margin),
                "auc": area(y, margin),
            }
            rows.append({"split": split, "classifier": classifier, "slices": len(y), **scores})
    return rows


def by_single_groups(
    slices: Slices, groups: Sequence[Sequence[int]], split: str, seed: int = 0
) -> list[float]:
    """Balanced accuracy of the thesis's classifier on the events of one group at a time, in the order of `groups`."""
    scores = []
    for members in groups:
        part = Slices(**{**vars(slices), "X": slices.X[:, list(members)]})
        margin = margins(part, "linear nu-SVC (thesis)", split, seed)
        tested = ~np.isnan(margin)
        scores.append(balanced_accuracy(slices.y[tested], margin[tested]))
    return scores


def table(slices: Slices, margin: np.ndarray) -> Iterator[str]:
    """Markdown in the form of tables 5.2-5.14: a row per application, a column per scheme, accuracy and fractions."""
    right = (margin > 0) == (slices.y > 0)
    tested = ~np.isnan(margin)
    schemes = [*dict.fromkeys(slices.scheme.tolist()), "all"]
    yield "| | " + " | ".join(schemes) + " |"
    yield "|---|" + "---|" * len(schemes)
    for name in [*np.unique(slices.application).tolist(), "all"]:
        cells = []
        for scheme in schemes:
            chosen = tested & ((slices.application == name) | (name == "all"))
            chosen &= (slices.scheme == scheme) | (scheme == "all")
            hits, count = int(right[chosen].sum()), int(chosen.sum())
            cells.append(f"{100 * hits / count:.2f} % ({hits}/{count})" if count else "-")
        yield f"| {name} | " + " | ".join(cells) + " |"


def area_by_band(slices: Slices, margin: np.ndarray) -> list[tuple[float, float, int, float]]:
    """(from, to, slices, AUC) per band of the true factor, each against all slices of applications running alone."""
    tested = ~np.isnan(margin)
    alone = tested & (slices.partner == "")
    rows = []
    for low, high in BANDS:
        band = tested & (slices.partner != "") & (slices.factor >= low) & (slices.factor < high)
        sides = np.concatenate([-np.ones(alone.sum()), np.ones(band.sum())])
        found = (
            area(sides, np.concatenate([margin[alone], margin[band]]))
            if band.any() and alone.any()
            else np.nan
        )
        rows.append((low, high, int(band.sum()), found))
    return rows


def factor_errors(estimated: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """(median, 95th percentile) of the relative error of the estimated factors; abstentions (NaN) are left out."""
    known = ~np.isnan(estimated) & ~np.isnan(measured)
    error = np.abs(estimated[known] / measured[known] - 1)
    return float(np.median(error)), float(np.percentile(error, 95))
