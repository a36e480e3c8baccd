"""Which events matter: stochastic gradient boosted regression trees on IPC, their importance, and its
refinement (CounterMiner, section III-C: SGBRT, equations 9-11, EIR, MAPM, equation 14).

Everything that is heavy goes through joblib and takes whatever `joblib.parallel_config` says, so a cluster
serves as well as the cores of this machine; the numbers do not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

#: The model of the paper's refinement, sized so that 229 events and 6000 slices are ranked within a minute.
TREES = 150
DEPTH = 4
LEARNING_RATE = 0.08
SUBSAMPLE = 0.7
#: The paper drops ten of 229 events a round; with fewer than this many events a tenth is dropped.
DROP = 10
MANY = 100
#: The unseen part (section V-B), and the share of it that an event must exceed to be among the one to three.
UNSEEN = 0.25


@dataclass(frozen=True, eq=False)
class Round:
    """One model of the refinement: its events (most important first), their importance in percent, its
    error."""

    events: tuple[str, ...]
    importance: np.ndarray
    error: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """What `rank` found.

    `best` is the MAPM, the most accurate of the `rounds` (first = all events). `paper` is the importance of equations
    10-11 for the same model, in the order of best.events, and `agreement` the rank correlation (Spearman) of
    the two. `baseline` is the error of always saying the median. Errors are equation 14's mean over the
    unseen slices, a share.
    """

    target: str
    best: Round
    rounds: tuple[Round, ...]
    paper: np.ndarray
    agreement: float
    baseline: float
    unseen: str
    model: object = field(repr=False, default=None)


def forest(seed: int, inputs: int, trees: int = TREES):
    """The SGBRT. With many inputs each split looks at some of them only: ten times faster, and no less
    accurate."""
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(
        n_estimators=trees,
        max_depth=DEPTH,
        learning_rate=LEARNING_RATE,
        subsample=SUBSAMPLE if inputs <= 30 else 0.5,
        min_samples_leaf=3,
        max_features=None if inputs <= 30 else max(6, int(np.sqrt(inputs))),
        random_state=seed,
    )


def error_of(measured, predicted) -> float:
    """Equation 14: the mean of |measured - predicted| / measured; where nothing was measured (0) no share
    exists."""
    measured, predicted = np.asarray(measured, float), np.asarray(predicted, float)
    some = measured != 0
    return float(np.mean(np.abs(measured[some] - predicted[some]) / np.abs(measured[some])))


def unseen_rows(runs, count: int, seed: int = 0) -> tuple[np.ndarray, str]:
    """The rows (mask) that no model may learn from, and how they were chosen.

    Where `runs` (rows,) names several runs, whole runs up to a quarter of the slices (at least one).
    Otherwise blocks of a twentieth of the series, a quarter of them: single slices would be near copies of
    their neighbours.
    """
    rng = np.random.default_rng(seed)
    if runs is not None and len(set(runs)) > 1:
        runs = np.asarray(runs)
        order = rng.permutation(sorted(set(runs)))
        chosen, rows = [order[0]], np.isin(runs, order[:1])
        for run in order[1:-1]:
            if rows.sum() + np.sum(runs == run) > UNSEEN * count:
                continue
            chosen.append(run)
            rows |= runs == run
        return rows, f"{len(chosen)} of {len(order)} runs"
    block = max(1, count // 20)
    number = np.arange(count) // block
    chosen = rng.permutation(number.max() + 1)[: max(1, round((number.max() + 1) * UNSEEN))]
    return np.isin(number, chosen), f"a quarter in blocks of {block} slices of one run"


def friedman(model) -> np.ndarray:
    """Friedman's measure: the squared error each input's splits took away, over *all* trees; percent
    (inputs,)."""
    return percent(model.feature_importances_)


def paper(model) -> np.ndarray:
    """Equations 10 and 11, literally; percent (inputs,).

    For one tree: the number of splits on the event times the sum of their squared P, P being by how much,
    relatively, a split moves the predicted target (IPC_k - IPC_(k-1)) / IPC_(k-1). Here that is the slices'
    root mean square move
    from a node's mean to its children's, over the mean of the target, for the trees of a boosted model hold
    residuals and dividing by their means divides by about 0. The average over R goes over those trees only
    that *use* the event (eq. 11), so an event that one tree used once may stand high: that is the equation's
    doing.
    """
    base = abs(float(np.ravel(model.init_.constant_)[0])) or 1.0
    total, used = np.zeros(model.n_features_in_), np.zeros(model.n_features_in_)
    for tree in (member.tree_ for member in model.estimators_.ravel()):
        inner = np.flatnonzero(tree.children_left >= 0)
        if not len(inner):
            continue
        left, right, split = tree.children_left[inner], tree.children_right[inner], tree.feature[inner]
        value, weight = tree.value[:, 0, 0], tree.weighted_n_node_samples
        move = (
            weight[left] * (value[left] - value[inner]) ** 2
            + weight[right] * (value[right] - value[inner]) ** 2
        )
        square = move / weight[inner] * (model.learning_rate / base) ** 2
        times = np.bincount(split, minlength=len(total))
        total += times * np.bincount(split, square, minlength=len(total))
        used += times > 0
    return percent(np.divide(total, used, out=np.zeros_like(total), where=used > 0))


def percent(shares) -> np.ndarray:
    """`shares` scaled to the sum of 100; all 0 where nothing is shared out."""
    total = np.sum(shares)
    return np.asarray(shares, float) * (100 / total if total > 0 else 0)


def rank(
    inputs,
    target,
    events,
    runs=None,
    drop=None,
    measure="friedman",
    seed=0,
    name="IPC",
    trees=TREES,
    unseen=None,
) -> Ranking:
    """Event importance refinement: fit, drop the `drop` least important events, fit again; the best model is
    the MAPM.

    `inputs` float (slices, events) without NaN, `target` (slices,), `runs` (slices,) names or None. `measure`
    is friedman or paper; `unseen` names the run to be judged on, instead of a drawn one. ValueError where
    there are fewer than two events, fewer than 20 slices or a constant target.
    """
    inputs, target, events = np.asarray(inputs, float), np.asarray(target, float), tuple(events)
    if inputs.shape[1] < 2 or len(target) < 20:
        raise ValueError(
            f"{inputs.shape[1]} events in {len(target)} slices rank nothing; 2 in 20 are the least"
        )
    if np.ptp(target) == 0:
        raise ValueError(f"{name} never changes, so no event can matter to it")
    measured = MEASURES[measure]
    hidden, how = (
        (np.asarray(runs) == unseen, f"run {unseen}") if unseen else unseen_rows(runs, len(target), seed)
    )
    if np.ptp(target[~hidden]) == 0:
        raise ValueError(f"{name} never changes outside the unseen part ({how})")
    left, rounds, best, best_model = np.arange(len(events)), [], None, None
    while True:
        model = forest(seed, len(left), trees).fit(inputs[~hidden][:, left], target[~hidden])
        error = error_of(target[hidden], model.predict(inputs[hidden][:, left]))
        shares = measured(model)
        order = np.argsort(-shares, kind="stable")
        this = Round(tuple(events[at] for at in left[order]), shares[order], error)
        rounds.append(this)
        if best is None or error < best.error:
            best, best_model, best_order = this, model, order
        fewer = drop or (DROP if len(events) >= MANY else max(1, len(events) // 10))
        if len(left) - fewer < 1:
            break
        left = left[np.sort(order[: len(left) - fewer])]
    literal = paper(best_model)[best_order]
    baseline = error_of(target[hidden], np.full(hidden.sum(), np.median(target[~hidden])))
    agreement = rank_correlation(friedman(best_model)[best_order], literal)
    return Ranking(name, best, tuple(rounds), literal, agreement, baseline, how, best_model)


def rank_all(series, **options) -> list[Ranking]:
    """`rank` of many processes or runs at once: `series` is a list of (inputs, target, events, runs).

    Goes through joblib: set `joblib.parallel_config(backend=...)` around it. Same order, same numbers, any backend.
    """
    from joblib import Parallel, delayed

    jobs = (delayed(rank)(inputs, target, events, runs, **options) for inputs, target, events, runs in series)
    return Parallel(n_jobs=None)(jobs)


def averaged(
    inputs, target, events, runs=None, seeds=range(10), measure="friedman", trees=TREES
) -> np.ndarray:
    """The importance in percent (events,) of a model of all slices, averaged over `seeds`; for a stable
    order."""
    from joblib import Parallel, delayed

    each = Parallel(n_jobs=None)(delayed(one_seed)(inputs, target, seed, measure, trees) for seed in seeds)
    return np.mean(each, axis=0)


def live(inputs, target, events, seed=0, name="IPC") -> Ranking:
    """A ranking for the screen, of one process from its last slices: 40 shallow-grown trees a model, three
    models.

    All events, the better half of them, and a quarter; the most accurate is shown with its error.
    """
    return rank(inputs, target, events, None, max(1, -(-len(events) // 4)), seed=seed, name=name, trees=40)


def one_seed(inputs, target, seed: int, measure: str, trees: int) -> np.ndarray:
    """The importance (events,) by one model."""
    return MEASURES[measure](forest(seed, np.shape(inputs)[1], trees).fit(inputs, target))


def rank_correlation(first, second) -> float:
    """Spearman's; nan for fewer than two values or a constant one."""
    from scipy.stats import rankdata

    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def one_to_three(importance) -> int:
    """The paper's law (section V-B): how many events are significantly more important than the rest; 0 = not one to three.

    Significantly: each at least twice the importance of the first that is not among them (the paper shows 5 %
    above 2.2 % and gives no test).
    """
    ordered = np.sort(np.asarray(importance, float))[::-1]
    for count in (1, 2, 3):
        if len(ordered) > count and ordered[count - 1] >= 2 * ordered[count] and ordered[count - 1] > 0:
            return count
    return 0


MEASURES = {"friedman": friedman, "paper": paper}
