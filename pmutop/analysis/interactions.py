"""Which pairs of events (or of event and setting) act together: CounterMiner's interaction ranker (III-D, eq.
12-13).

The paper varies two events with all others at their means and asks how badly a *linear* model of the two
describes the performance it observed there. Nobody can observe that: counters do not hold still. What is
called observed here is the boosted model's own prediction on a grid, so an interaction is one that the model
has learnt, no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

#: Points per axis, at quantiles of what was counted, so that the grid does not ask about values never seen.
GRID = 12


@dataclass(frozen=True)
class Pair:
    """Two inputs, their residual sum of squares (eq. 12) and its share of all pairs in percent (eq. 13)."""

    first: str
    second: str
    intensity: float
    share: float


def interactions(predict, inputs, names, top: int = 10, grid: int = GRID) -> list[Pair]:
    """All pairs of the first `top` columns of `inputs` (slices, inputs), the strongest first.

    `predict` maps (n, inputs) to (n,); the columns stand in order of importance. ValueError for fewer than
    two.
    """
    if min(top, inputs.shape[1]) < 2:
        raise ValueError("one event has nothing to interact with")
    return ranked(predict, inputs, names, combinations(range(min(top, inputs.shape[1])), 2), grid)


def with_settings(predict, inputs, names, settings, top: int = 10, grid: int = GRID) -> list[Pair]:
    """The case study's pairs: each of the `top` events with each configuration parameter.

    `settings` are the names, among `names`, of the columns that hold a run's `--param` values; see `numbered`
    for settings that are words. Events are all other columns, in order of importance.
    """
    parameters = [names.index(name) for name in settings]
    events = [at for at in range(len(names)) if at not in parameters][:top]
    return ranked(predict, inputs, names, product(events, parameters), grid)


def ranked(predict, inputs, names, pairs, grid: int) -> list[Pair]:
    """The given pairs of columns by residual sum of squares; equal ones in the order given."""
    found = [(names[a], names[b], residual(predict, inputs, a, b, grid)) for a, b in pairs]
    total = sum(intensity for _, _, intensity in found)
    made = [Pair(a, b, v, 100 * v / total if total > 0 else 0.0) for a, b, v in found]
    return sorted(made, key=lambda pair: -pair.intensity)


def residual(predict, inputs, first: int, second: int, grid: int = GRID) -> float:
    """Equation 12 for two columns: sum of squared differences between a plane and the model on the grid of
    the two."""
    inputs = np.asarray(inputs, float)
    axes = [levels(inputs[:, column], grid) for column in (first, second)]
    a, b = (axis.ravel() for axis in np.meshgrid(*axes))
    points = np.tile(inputs.mean(axis=0), (len(a), 1))
    points[:, first], points[:, second] = a, b
    observed = np.asarray(predict(points), float)
    plane = np.column_stack([np.ones(len(a)), a, b])
    plane = plane / np.maximum(np.abs(plane).max(axis=0), np.finfo(float).tiny)
    weights, *_ = np.linalg.lstsq(plane, observed, rcond=None)
    return float(np.sum((plane @ weights - observed) ** 2))


def levels(column, grid: int) -> np.ndarray:
    """The values at which a column is asked: its own where there are few (a setting), else `grid` of its
    quantiles."""
    own = np.unique(column)
    return own if len(own) <= grid else np.quantile(column, np.linspace(0.05, 0.95, grid))


def numbered(words) -> tuple[np.ndarray, tuple[str, ...]]:
    """A setting as numbers (rows,): its own where all are numbers, else the rank of the word; and the words
    in order."""
    try:
        return np.array([float(word) for word in words]), ()
    except ValueError:
        order = tuple(sorted(set(words)))
        return np.array([order.index(word) for word in words], float), order
