"""How the values of one event are distributed, and above which of them lie outliers (CounterMiner, III-B1,
eq. 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Stephens' 5 % point of the corrected Anderson-Darling statistic for a normal whose mean and deviation are
#: estimated.
CRITICAL = 0.752
#: n of equation 6 by kind, and the share of the data that must lie within the threshold (Table I of the
#: paper).
N = {"gaussian": 3.0, "long tail": 5.0}
KEPT = 0.99


@dataclass(frozen=True)
class Distribution:
    """What `describe` found.

    kind "gaussian" or "long tail"; `statistic` is Anderson-Darling's; `location`, `scale`, `shape` those of
    the GEV fit (shape as scipy's c, negative = heavier than exponential; None for a Gaussian); `threshold`
    that of equation 6 with `n`, within which the share `kept` of the values lies.
    """

    kind: str
    statistic: float
    location: float
    scale: float
    shape: float | None
    n: float
    threshold: float
    kept: float


def describe(values) -> Distribution:
    """The distribution of one event's known `values` (slices,); NaN are left out, fewer than 8 values are a
    ValueError.

    n starts at 3 (Gaussian) or 5 (long tail) and rises by one until 99 % of the values are kept, as the paper
    chose it.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if len(values) < 8:
        raise ValueError(f"{len(values)} values tell no distribution")
    mean, deviation = values.mean(), values.std()
    statistic = anderson_darling(values)
    kind = "gaussian" if statistic < CRITICAL else "long tail"
    location, scale, shape = (mean, deviation, None) if kind == "gaussian" else fit_gev(values)
    n = N[kind]
    while np.mean(values <= mean + n * deviation) < KEPT:
        n += 1
    threshold = mean + n * deviation
    return Distribution(
        kind, statistic, location, scale, shape, n, threshold, float(np.mean(values <= threshold))
    )


def anderson_darling(values) -> float:
    """The statistic against a normal with estimated mean and deviation, corrected for the size (Stephens
    1974).

    inf for a constant series, which is no normal.
    """
    from scipy.special import log_ndtr

    ordered = np.sort(np.asarray(values, float))
    count, deviation = len(ordered), ordered.std(ddof=1)
    if deviation == 0:
        return float("inf")
    z = (ordered - ordered.mean()) / deviation
    odd = 2 * np.arange(1, count + 1) - 1
    square = -count - np.sum(odd * (log_ndtr(z) + log_ndtr(-z[::-1]))) / count
    return float(square * (1 + 0.75 / count + 2.25 / count**2))


def fit_gev(values) -> tuple[float, float, float]:
    """Location, scale and shape of the generalised extreme value distribution by L-moments (Hosking 1985).

    Closed form, hence the same on every machine and thousands of times faster than maximum likelihood. A
    constant series has scale 0.
    """
    from scipy.special import gamma

    ordered = np.sort(np.asarray(values, float))
    count = len(ordered)
    rank = np.arange(count)
    b0 = ordered.mean()
    b1 = np.sum(rank * ordered) / (count * (count - 1))
    b2 = np.sum(rank * (rank - 1) * ordered) / (count * (count - 1) * (count - 2))
    second, third = 2 * b1 - b0, 6 * b2 - 6 * b1 + b0
    if second <= 0:
        return float(b0), 0.0, 0.0
    c = 2 / (3 + third / second) - np.log(2) / np.log(3)
    shape = 7.8590 * c + 2.9554 * c**2
    if abs(shape) < 1e-6:
        scale = second / np.log(2)
        return float(b0 - np.euler_gamma * scale), float(scale), 0.0
    scale = second * shape / ((1 - 2.0**-shape) * gamma(1 + shape))
    return float(b0 - scale * (1 - gamma(1 + shape)) / shape), float(scale), float(shape)
