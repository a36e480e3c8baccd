"""Training of the interference verdict: linear nu-SVC and C-SVC, tuned by whole runs, and a severity regression.

Source: "Black-boxing PMUs" (2016), section 5.1 (nu-SVC, linear kernel, LIBSVM's defaults, counts as they are: here
`as_the_thesis`), and its future work: scaling and log transform, nu and C tuned, severity beside the yes/no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from pmutop.analysis.interference import LinearVerdict, transform
from pmutop.errors import BadInput

#: (center, scale) of each column of prepared values (slices, features).
SCALINGS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "none": lambda z: (np.zeros(z.shape[1]), np.ones(z.shape[1])),
    "standard": lambda z: (z.mean(axis=0), z.std(axis=0)),
    "robust": lambda z: (np.median(z, axis=0), np.subtract(*np.percentile(z, [90, 10], axis=0))),
}
#: Which columns of values (slices, features) are taken by their logarithm; never those that can be negative.
LOGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda X: np.zeros(X.shape[1], dtype=bool),
    "skewed": lambda X: (X >= 0).all(axis=0) & (skewness(X) > 1),
    "all": lambda X: (X >= 0).all(axis=0),
}
#: The SVMs tried: nu-SVC by nu, C-SVC by C.
MACHINES = (
    *(("nu", nu) for nu in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)),
    *(("C", c) for c in (0.01, 0.1, 1.0, 10.0)),
)
PREPARATIONS = tuple(product(("standard", "robust"), LOGS))  # unscaled counts are for `as_the_thesis` alone
RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
FOLDS = 5
#: libsvm needs hours where billions stand beside fractions.
MOST_ITERATIONS = 1_000_000


@dataclass(frozen=True)
class Choice:
    """One way to train: `scaling` and `log` by name, `machine` ("nu" or "C", value); `balanced` (mean of the two classes'
    accuracies) and `auc` of its margins over runs it was not trained on."""

    scaling: str
    log: str
    machine: tuple[str, float]
    balanced: float
    auc: float


@dataclass(frozen=True)
class Fitted:
    """The verdict to ship, the choice behind it, and every choice that was tried, the best first. The scores are of the
    choosing itself; for an honest one put whole runs aside before (`interference_report.compare` does)."""

    verdict: LinearVerdict
    chosen: Choice
    tried: tuple[Choice, ...]


def fit(
    X: np.ndarray,
    y: np.ndarray,
    runs: np.ndarray,
    factor: np.ndarray | None = None,
    seed: int = 0,
    machines: Iterable[tuple[str, float]] = MACHINES,
    preparations: Iterable[tuple[str, str]] = PREPARATIONS,
    jobs: int | None = None,
) -> Fitted:
    """Train on X (slices, features), y (slices,): 1 suffers, -1 does not, 0 left out (the zone between); `runs` (slices,)
    keeps the slices of a run in one fold; `factor` (slices,) is the measured interference factor of the slice's run,
    NaN where unknown, and is learnt from all slices, the zone between too.

    A feature that was never counted gets no weight; a slice that lacks another one is left out. Choices run through
    joblib (`jobs`, or whatever backend is active). Raises BadInput where a class has fewer than two runs.
    """
    from joblib import Parallel, delayed

    X, y, runs = np.asarray(X, dtype=np.float64), np.asarray(y), np.asarray(runs)
    counted = ~np.isnan(X).all(axis=0)
    whole = ~np.isnan(X[:, counted]).any(axis=1)
    judged = whole & (y != 0)
    for side in (-1, 1):
        if len(np.unique(runs[judged & (y == side)])) < 2:
            raise BadInput(
                f"fewer than two runs {'with' if side > 0 else 'without'} interference", "collect more runs"
            )
    known, sign, folds = X[judged][:, counted], y[judged], list(grouped(y[judged], runs[judged], seed))
    plans = [(prepared, machine) for prepared in preparations for machine in machines]
    margins = Parallel(n_jobs=jobs)(delayed(held_out)(known, sign, folds, *plan) for plan in plans)
    ranked = sorted(
        (
            (Choice(*prepared, machine, balanced_accuracy(sign, margin), area(sign, margin)), margin)
            for (prepared, machine), margin in zip(plans, margins, strict=True)
            if margin is not None
        ),
        key=lambda pair: (-round(pair[0].balanced, 4), -pair[0].auc),
    )
    for chosen, margin in ranked:
        bare = solved(known, sign, (chosen.scaling, chosen.log), chosen.machine)
        if bare is not None:
            break
    else:
        raise BadInput("no SVM has a solution for these slices", "collect more runs, of both kinds")
    a, b = platt(margin, sign)
    verdict = replace(bare, platt_a=a, platt_b=b)
    if factor is not None:
        rows = whole & (np.asarray(factor) > 0)
        verdict = with_severity(
            verdict, X[rows][:, counted], np.log(np.asarray(factor)[rows]), runs[rows], seed
        )
    return Fitted(widened(verdict, counted), chosen, tuple(choice for choice, _ in ranked))


def as_the_thesis(X: np.ndarray, y: np.ndarray, nu: float = 0.5) -> LinearVerdict:
    """The thesis's classifier: linear nu-SVC, LIBSVM's default nu (less where the rarer class does not
    admit it: nu is at most twice its share), counts X (slices, features) as they are."""
    nu = min(nu, 1.98 * min(np.mean(y > 0), np.mean(y < 0)))
    return linear(np.asarray(X, dtype=np.float64), np.asarray(y), ("none", "none"), ("nu", nu))


def linear(
    X: np.ndarray, y: np.ndarray, prepared: tuple[str, str], machine: tuple[str, float]
) -> LinearVerdict:
    """One linear SVM on complete rows, without probability (platt of a plain logistic) and severity."""
    from sklearn.svm import SVC, NuSVC

    scaling, log = prepared
    log_mask = LOGS[log](X)
    log_unit = smallest_usual(X)
    taken = transform(X, log_mask, log_unit)
    center, scale = SCALINGS[scaling](taken)
    scale = np.where(scale > 0, scale, 1.0)
    z = (taken - center) / scale
    kind, value = machine
    # counts as they are hold the solver up for good; scaled ones never reach the limit
    limit = MOST_ITERATIONS if scaling == "none" else -1
    common = {"kernel": "linear", "max_iter": limit, "cache_size": 500}
    svm = NuSVC(nu=value, **common) if kind == "nu" else SVC(C=value, **common)
    svm.fit(z, y)
    nothing = np.zeros(X.shape[1])
    return LinearVerdict(
        center, scale, log_mask, log_unit, svm.coef_[0], float(svm.intercept_[0]), -1.0, 0.0, nothing, np.nan
    )


def solved(X, y, prepared, machine) -> LinearVerdict | None:
    """`linear`, or None where nu has no solution: above twice the share of the rarer class, or so small for classes so
    far apart that the margin of nu-SVC vanishes (libsvm then divides by it)."""
    try:
        return linear(X, y, prepared, machine)
    except ValueError:
        return None


def held_out(X, y, folds, prepared, machine) -> np.ndarray | None:
    """The margin of each row of X by a machine that did not see its run; None where nu has no solution in a fold."""
    margins = np.empty(len(y))
    for train, test in folds:
        found = solved(X[train], y[train], prepared, machine)
        if found is None:
            return None
        margins[test] = found.decide(X[test])[0]
    return margins


def grouped(y: np.ndarray, runs: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Folds of whole runs with both classes on either side as far as the runs allow."""
    from sklearn.model_selection import StratifiedGroupKFold

    fewest = min(len(np.unique(runs[y == side])) for side in (-1, 1))
    folds = StratifiedGroupKFold(min(FOLDS, fewest), shuffle=True, random_state=seed)
    yield from folds.split(y, y, runs)


def platt(margin: np.ndarray, y: np.ndarray, rounds: int = 100) -> tuple[float, float]:
    """(a, b) of P(y = 1 | margin) = 1 / (1 + exp(a * margin + b)), by Newton's method on Platt's smoothed targets
    (Lin, Lin and Weng, "A note on Platt's probabilistic outputs", 2007)."""
    positive, negative = (y > 0).sum(), (y <= 0).sum()
    target = np.where(y > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    unit = np.abs(margin).max(initial=0.0) or 1.0
    columns = np.stack([margin / unit, np.ones(len(margin))], axis=1)

    def loss(weights: np.ndarray) -> float:
        exponent = columns @ weights
        return float((np.logaddexp(0, exponent) - (1 - target) * exponent).sum())

    weights = np.array([0.0, np.log((negative + 1) / (positive + 1))])
    for _ in range(rounds):
        probability = 1 / (1 + np.exp(np.clip(columns @ weights, -700, 700)))
        gradient = columns.T @ (target - probability)
        curvature = columns.T @ (columns * (probability * (1 - probability))[:, None]) + 1e-12 * np.eye(2)
        if np.abs(gradient).max() < 1e-6:
            break
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while size > 1e-10 and loss(weights - size * step) > loss(weights) - 1e-4 * size * gradient @ step:
            size /= 2
        weights = weights - size * step
    return float(weights[0] / unit), float(weights[1])


def with_severity(verdict: LinearVerdict, X, log_factor, runs, seed: int) -> LinearVerdict:
    """The verdict with a ridge regression of log(factor) on the same prepared features, its penalty chosen by runs."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, GroupKFold

    everything = replace(verdict, severity_coef=np.ones(X.shape[1]))  # so that `prepare` drops no feature
    z = everything.prepare(X)
    folds = GroupKFold(min(FOLDS, len(np.unique(runs))), shuffle=True, random_state=seed)
    search = GridSearchCV(Ridge(), {"alpha": RIDGES}, scoring="neg_mean_absolute_error", cv=folds)
    best = search.fit(z, log_factor, groups=runs).best_estimator_
    return replace(verdict, severity_coef=best.coef_, severity_intercept=float(best.intercept_))


def fit_types(X, types, runs, **options) -> dict[str, Fitted]:
    """A verdict per type of interference: `types` (slices,) names what a slice suffers from ("" for nothing); each type
    is trained against all else, so that two can be said at once. `options` as for `fit`."""
    types = np.asarray(types)
    return {
        str(name): fit(X, np.where(types == name, 1, -1), runs, **options)
        for name in np.unique(types)
        if name
    }


def widened(verdict: LinearVerdict, counted: np.ndarray) -> LinearVerdict:
    """The verdict over all features, with no weight on those that were not counted in training."""
    rest = {
        "center": 0.0,
        "scale": 1.0,
        "log_mask": False,
        "log_unit": 1.0,
        "coef": 0.0,
        "severity_coef": 0.0,
    }
    wide = {}
    for name, filler in rest.items():
        wide[name] = np.full(len(counted), filler)
        wide[name][counted] = getattr(verdict, name)
    return replace(verdict, **wide)


def smallest_usual(X: np.ndarray) -> np.ndarray:
    """The unit of each column's logarithm: the 5th percentile of what is not 0, so that rates of a millionth and counts
    of a billion bend alike (1 where the column is all zeros)."""
    units = np.ones(X.shape[1])
    for column in range(X.shape[1]):
        positive = X[X[:, column] > 0, column]
        if len(positive):
            units[column] = np.percentile(positive, 5)
    return units


def skewness(X: np.ndarray) -> np.ndarray:
    """The third standardized moment of each column of X (slices, features)."""
    z = X - X.mean(axis=0)
    spread = np.sqrt((z**2).mean(axis=0))
    z = np.divide(z, spread, out=np.zeros_like(z), where=spread > 0)
    return (z**3).mean(axis=0)


def balanced_accuracy(y: np.ndarray, margin: np.ndarray) -> float:
    """The mean of the accuracies of the two classes (1 and -1)."""
    return float(np.mean([((margin > 0) == (side > 0))[y == side].mean() for side in (-1, 1)]))


def area(y: np.ndarray, margin: np.ndarray) -> float:
    """Area under the ROC curve: how often a suffering slice has the larger margin than one that is not."""
    suffering, quiet = margin[y > 0], np.sort(margin[y < 0])
    below, upto = np.searchsorted(quiet, suffering, "left"), np.searchsorted(quiet, suffering, "right")
    return float((below + upto).sum() / (2 * len(suffering) * len(quiet)))
