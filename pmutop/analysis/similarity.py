"""When are two events alike: correlation and Euclidean distance between their rows of deltas, and the relation r >= c.

Source: "Black-boxing PMUs" (2016), sections 4.1.4 (dead events), 4.3 (similarity), 4.4 (correlation as a relation).
A missing cell (NaN) is left out pair by pair for the correlation and taken as the event's mean elsewhere.
"""

from __future__ import annotations

import numpy as np

#: The thesis's correlation cutoff c: events are correlated where r >= c (r, not |r|: an event that falls while another
#: rises does not stand for it).
CUTOFF = 0.9


def alive(values: np.ndarray) -> np.ndarray:
    """Which columns of values (slices, events) ever count anything; bool (events,). Section 4.1.4."""
    return (np.nan_to_num(values, nan=0.0) != 0).any(axis=0)


def centred(values: np.ndarray) -> np.ndarray:
    """values (slices, events) less each event's mean; a missing cell becomes 0, the mean itself."""
    missing = np.isnan(values)
    counted = np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, 0.0, values)
    return np.where(missing, 0.0, filled - filled.sum(axis=0) / counted)


def correlation(values: np.ndarray) -> np.ndarray:
    """Pearson's r between the columns of values (slices, events): (events, events), ones on the diagonal.

    Each pair is taken over the slices where both were counted. A pair that has no r (a constant event, fewer than two
    common slices) gets 0: uncorrelated.
    """
    missing = np.isnan(values)
    present = (~missing).astype(np.float64)
    lowest = np.where(missing, np.inf, values).min(axis=0, initial=np.inf)
    highest = np.where(missing, -np.inf, values).max(axis=0, initial=-np.inf)
    taken = centred(values)
    spread = np.sqrt((taken**2).mean(axis=0))
    # what is left of a constant after its rounded mean is rounding noise, and the r of rounding noise is anything
    taken = np.divide(taken, spread, out=np.zeros_like(taken), where=(highest > lowest) & (spread > 0))
    common = present.T @ present
    sums = taken.T @ present  # [i, j]: sum of i over the slices where j is counted too
    squares = (taken**2).T @ present
    safe = np.maximum(common, 1)
    covariance = taken.T @ taken - sums * sums.T / safe
    variance = squares - sums**2 / safe
    variance[variance <= 1e-10 * squares] = (
        0.0  # the same, for an event that is constant where the other was counted
    )
    norm = np.sqrt(variance * variance.T)
    r = np.divide(covariance, norm, out=np.zeros_like(norm), where=(norm > 0) & (common >= 2))
    r = np.clip(r, -1.0, 1.0)
    np.fill_diagonal(r, 1.0)
    return r


def euclid(values: np.ndarray) -> np.ndarray:
    """Euclidean distance between the columns of values (slices, events), in counts: (events, events). Section 4.3.1."""
    filled = filled_in(values)
    squares = (filled**2).sum(axis=0)
    distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * filled.T @ filled, 0.0))
    np.fill_diagonal(distance, 0.0)
    return distance


def filled_in(values: np.ndarray) -> np.ndarray:
    """values (slices, events) with each missing cell at its event's mean (0 where it was never counted)."""
    missing = np.isnan(values)
    counted = np.maximum((~missing).sum(axis=0), 1)
    means = np.where(missing, 0.0, values).sum(axis=0) / counted
    return np.where(missing, means, values)


def related(r: np.ndarray, cutoff: float = CUTOFF) -> np.ndarray:
    """The correlation graph's adjacency, bool (events, events), no loops: r >= cutoff. Section 4.4.1."""
    adjacency = r >= cutoff
    np.fill_diagonal(adjacency, False)
    return adjacency


def transitivity_violations(adjacency: np.ndarray) -> int:
    """How many unordered pairs {i, k} are not related though both are related to some j. Section 4.4."""
    counts = adjacency.astype(np.float64)
    through = (counts @ counts > 0) & ~adjacency
    return int(np.triu(through, 1).sum())


def uncorrelated(adjacency: np.ndarray) -> np.ndarray:
    """Indices of the events that are related to no other (degree 0 in table 4.2)."""
    return np.flatnonzero(~adjacency.any(axis=1))
