"""The data cleaner of CounterMiner (section III-B): outliers replaced, missing values filled, each with its
quality.

`method="paper"` is what the paper says, to the letter: `paper` below, with its own limits named there.
`method="robust"` (default) is `robust`: a value is an outlier when neither its neighbours in time nor the other events
of its slice explain it; a hole is filled from slices that looked alike in other runs. `CausalCleaner` is the
same question asked live, with nothing but the last values of the series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmutop.analysis import distribution, physics
from pmutop.analysis.analogues import (
    Analogues,
    counts_of,
    cycles_column,
    interpolated,
    log_rates,
    median_of,
    neighbours,
    pick,
    rolling_median,
)

#: Quality of a cleaned value: as counted; replaced as outlier; replaced as impossible; was missing; still
#: missing.
KEPT, OUTLIER, IMPOSSIBLE, FILLED, MISSING = range(5)
QUALITIES = ("kept", "outlier", "impossible", "filled", "missing")

#: An outlier differs by at least this factor, and by this many robust deviations of its event, from what is
#: expected.
FACTOR = 1.7
DEVIATIONS = 3.0
#: Known values among the six nearest slices without which nothing is called an outlier.
NEIGHBOURS = 4
#: Where more events than this many, and more than this share of them, leave together, the program has
#: changed.
TOGETHER = 2
TOGETHER_SHARE = 0.1
#: Slices over which a value that was not counted is drawn to its neighbours when no other run tells more
#: (III-B2).
REACH = 0.7
#: The paper's bound below which an event that is 0 at times is believed to be 0 (III-B2).
TINY = 0.01


@dataclass(frozen=True, eq=False)
class Cleaned:
    """`values` float64 (rows, events), NaN only where a whole column is missing; `quality` uint8 (rows,
    events)."""

    values: np.ndarray
    quality: np.ndarray

    def count(self, quality: int) -> int:
        return int((self.quality == quality).sum())


def clean(
    values, events, donors=(), method="robust", zeros_counted=True, width=physics.WIDTH, rules=physics.RULES
):
    """Clean one series: counts (rows, events) with NaN = not counted -> Cleaned.

    `donors`: other runs with the same events, (rows, events) each, best of the same program; without any the
    series is its own donor. `zeros_counted=False` only for imports without enabled and running times: there a
    0 may be a missing value. ValueError for another `method` or shapes that do not fit.
    """
    values = np.asarray(values, float)
    if values.ndim != 2 or values.shape[1] != len(events):
        raise ValueError(f"values {values.shape} under {len(events)} events")
    if any(np.shape(donor)[1:] != (len(events),) for donor in donors):
        raise ValueError("a donor has other events")
    if method not in METHODS:
        raise ValueError(f"method is {' or '.join(METHODS)}, not {method!r}")
    return METHODS[method](values, tuple(events), donors, zeros_counted, width, rules)


# ---- the paper, to the letter ----


def paper(values, events, donors, zeros_counted, width, rules) -> Cleaned:
    """Equations 6 and 7 and KNN in time with k = 5; donors and rules are not the paper's and not used.

    What it cannot do: equation 7's interval is one of *values*, so a lone outlier is the only one in its
    interval and is replaced by itself; and the five nearest in time may all lie on one side of a phase.
    """
    out, quality = np.array(values), np.zeros(values.shape, np.uint8)
    for column, marks in zip(out.T, quality.T, strict=True):
        known = np.isfinite(column)
        if known.sum() >= 8:
            outliers = known & (column > distribution.describe(column).threshold)
            marks[outliers] = OUTLIER
            column[outliers] = interval_medians(column[known], column[outliers])
        missing = ~known | (zero_is_missing(column) if not zeros_counted else False)
        if not missing.all():
            column[missing] = nearest_in_time(column, missing)
        marks[missing] = MISSING if missing.all() else FILLED
    return Cleaned(out, quality)


def interval_medians(series, outliers) -> np.ndarray:
    """The median of the values in each outlier's interval, which is L long and counted from the minimum (eq.
    7)."""
    low = series.min()
    length = (series.max() - low) / np.ceil(np.sqrt(len(series)))
    interval = np.floor((series - low) / length)
    return np.array([np.median(series[interval == np.floor((x - low) / length)]) for x in outliers])


def zero_is_missing(column) -> np.ndarray:
    """The paper's rule: zeros are missing values unless the event's minimum is 0 and its maximum below
    0.01."""
    return (column == 0) & ~(np.nanmax(column, initial=0) < TINY)


def nearest_in_time(column, missing, k: int = 5) -> np.ndarray:
    """The mean of the k known values nearest in time to each missing one (KNN regression of III-B2)."""
    known = np.flatnonzero(~missing)
    apart = np.abs(np.flatnonzero(missing)[:, None] - known[None])
    return column[known[np.argsort(apart, axis=1, kind="stable")[:, :k]]].mean(1)


# ---- the default ----


def robust(values, events, donors, zeros_counted, width, rules) -> Cleaned:
    """Outliers by neighbours and analogues, rules of physics, holes from analogues; all in log rates."""
    quality = np.zeros(values.shape, np.uint8)
    work = np.array(values)
    if not zeros_counted:
        work[zero_is_missing_by_level(work)] = np.nan
    missing = np.isnan(work)
    cycles = cycles_column(events)
    if cycles is not None:
        odd = odd_cycles(work, cycles)
        quality[odd, cycles] = OUTLIER
        work[odd, cycles] = np.nan
        work[:, cycles] = interpolated(work[:, [cycles]])[:, 0]
    logs = log_rates(work, cycles)
    own = not len(donors)
    analogues = Analogues().fit([logs] if own else [log_rates(donor, cycles) for donor in donors])
    outliers, low, high = unexplained(logs, analogues, own)
    outliers &= ~((work == 0) & zeros_counted)
    if cycles is not None:
        outliers[:, cycles] = False
    quality[outliers] = OUTLIER
    logs[outliers] = np.nan
    filled = np.where(np.isnan(logs), near_in_time(logs), logs) if own else analogues.fill(logs)
    filled[outliers] = np.clip(filled, low, high)[outliers]  # in keeping with the other events of the slice
    counts = counts_of(filled, cycles)
    keep = (quality == KEPT) & ~missing
    counts[keep] = values[keep]  # the very same number, not its logarithm's
    quality[missing] = FILLED
    counts, changed = physics.obey(counts, counts_of(rolling_median(filled), cycles), events, width, rules)
    quality[changed & (quality == KEPT)] = IMPOSSIBLE
    quality[np.isnan(counts)] = MISSING
    return Cleaned(counts, quality)


def unexplained(logs, analogues: Analogues, own: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values (rows, events) that lie, by FACTOR and DEVIATIONS, above both what their neighbours in time
    and what their analogues allow, or below both; and the lowest and highest log rate that the analogues
    allow.

    Neighbours and analogues allow a range without its highest and lowest value, one of which may be a fault
    itself; what the other events say by linear regression widens it. Fewer than NEIGHBOURS known neighbours
    call nothing an outlier, and in a slice where more than TOGETHER events leave at once the program has
    changed.
    """
    ordered, count = neighbours(logs)
    low, high = pick(ordered, np.ones_like(count)), pick(ordered, count - 2)
    like_low, like_high = analogues.expect(logs, median_of(ordered, count), own)
    apart = np.abs(logs - median_of(ordered, count))
    apart = np.sort(np.where(count >= NEIGHBOURS, apart, np.nan), axis=0).T
    spread = 1.4826 * median_of(apart, (~np.isnan(apart)).sum(1))
    limit = np.maximum(np.log(FACTOR), DEVIATIONS * np.nan_to_num(spread))

    def beyond(lowest, highest):
        with np.errstate(invalid="ignore"):
            off = np.maximum(logs - np.fmax(high, highest), np.fmin(low, lowest) - logs)
        return (count >= NEIGHBOURS) & (np.nan_to_num(off, nan=-1) > limit)

    changed = beyond(like_low, like_high).sum(1) > max(TOGETHER, TOGETHER_SHARE * logs.shape[1])
    linear = analogues.linear(logs)
    like_low, like_high = np.fmin(like_low, linear), np.fmax(like_high, linear)
    return beyond(like_low, like_high) & ~changed[:, None], like_low, like_high


def odd_cycles(values, cycles: int) -> np.ndarray:
    """Rows whose cycles leave their neighbourhood while the other events do not go along: the cycles are
    wrong there."""
    logs = np.log(values + 1)
    off = logs - rolling_median(logs)
    others = np.delete(off, cycles, axis=1)
    if not others.shape[1]:
        return np.zeros(len(values), bool)
    along = np.zeros(len(values))
    some = ~np.isnan(others).all(1)
    along[some] = np.nanmedian(others[some], axis=1)
    far = np.nan_to_num(np.abs(off[:, cycles])) > np.log(FACTOR)
    return far & (np.abs(along) < np.abs(off[:, cycles]) / 2)


def zero_is_missing_by_level(values) -> np.ndarray:
    """Zeros of events whose neighbours in time (median) are far from zero; an event that is often 0 is
    believed."""
    level = rolling_median(values)
    return (values == 0) & (np.nan_to_num(level) > 10)


def near_in_time(logs, reach: float = REACH) -> np.ndarray:
    """Estimates (rows, events) from the same event alone: square roots of rates, weights falling by e per
    `reach`.

    The square root makes the variance of a count independent of its size. Measured against a straight line on
    recorded counters this is a little better on every event; wider kernels are worse.
    """
    roots, out = np.exp(np.asarray(logs) / 2), np.array(logs, float)
    rows = np.arange(len(roots))
    for column, target in zip(roots.T, out.T, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        if not len(known):
            continue
        # No more than eight values on either side: exp(-8 / 0.7) is nothing.
        first = np.clip(np.searchsorted(known, rows)[:, None] + np.arange(-8, 8), 0, len(known) - 1)
        apart = np.abs(known[first] - rows[:, None]).astype(float)
        weight = np.exp(-(apart - apart.min(1, keepdims=True)) / reach)
        weight[:, 1:][first[:, 1:] == first[:, :-1]] = 0
        target[:] = 2 * np.log((weight * column[known[first]]).sum(1) / weight.sum(1))
    return out


METHODS = {"robust": robust, "paper": paper}


# ---- live ----


class CausalCleaner:
    """The robust cleaner with nothing but the past: the last `window` log rates of each (row, event), and no
    more.

    A row is a task; the caller gives rows to tasks and calls `forget` when one ends. State is rows x events x
    window float32; it grows only by `room`.
    """

    def __init__(self, rows: int, events, window: int = 9) -> None:
        self.cycles = cycles_column(events)
        self.events = tuple(events)
        self.last = np.full((rows, len(self.events), window), np.nan, np.float32)
        self.turn = np.zeros(rows, np.intp)

    def room(self, rows: int) -> None:
        """Make place for as many `rows`; what is remembered stays."""
        more = rows - len(self.last)
        if more > 0:
            self.last = np.concatenate([self.last, np.full((more, *self.last.shape[1:]), np.nan, np.float32)])
            self.turn = np.concatenate([self.turn, np.zeros(more, np.intp)])

    def forget(self, rows) -> None:
        """Begin anew with these rows: another task has them now."""
        self.last[rows] = np.nan

    def clean(
        self, values, rows=None, may=None, fill=True, width: float = physics.WIDTH, rules=physics.RULES
    ) -> Cleaned:
        """One slice: counts (rows, events), NaN = not counted -> Cleaned; a row without a past is left as it is.

        `rows` says which rows of the state these are (default: all), `may` bool (rows, events) which values may be
        called outliers at all; with `fill` a missing value becomes the median of its last ones.

        A value that leaves the median of its last ones by more than FACTOR and DEVIATIONS is replaced by that median,
        unless it is where the value before it was (two in a row are a phase, so a change costs one slice) or more than
        TOGETHER events leave at once (a fault of multiplexing strikes events one by one). The *raw* value is remembered.
        """
        values = np.asarray(values, float)
        rows = np.arange(len(values)) if rows is None else np.asarray(rows)
        logs, turn = log_rates(values, self.cycles), self.turn[rows]
        counts, quality = values.copy(), np.where(np.isnan(values), MISSING, KEPT).astype(np.uint8)
        # The dear part is for rows in which something moved, broke a rule, or is to be filled.
        moved = np.abs(logs - self.last[rows, :, turn - 1]) > np.log(FACTOR)
        odd = moved.any(1) | physics.broken(values, self.events, width, rules).any(1)
        odd = np.flatnonzero(odd | (np.isnan(values).any(1) if fill else False))
        if len(odd):
            some = np.ones((len(odd), len(self.events)), bool) if may is None else may[odd]
            counts[odd], quality[odd] = self.judge(
                values[odd], logs[odd], rows[odd], some, fill, width, rules
            )
        self.last[rows, :, turn] = np.where(np.isnan(logs), self.last[rows, :, turn], logs)
        self.turn[rows] = (turn + 1) % self.last.shape[2]
        return Cleaned(counts, quality)

    def judge(self, values, logs, rows, may, fill, width, rules) -> tuple[np.ndarray, np.ndarray]:
        """Counts and quality (rows, events) of the given rows of the state."""
        last = self.last[rows].astype(float)
        ordered = np.sort(last, axis=2)
        count = (~np.isnan(ordered)).sum(2)
        middle = median_of(ordered, count)
        spread = 1.4826 * median_of(np.sort(np.abs(last - middle[:, :, None]), axis=2), count)
        limit = np.maximum(np.log(FACTOR), DEVIATIONS * spread)
        far = (count >= 5) & (np.abs(logs - middle) > limit) & (values != 0)
        if self.cycles is not None:
            far[:, self.cycles] = False
        together = far.sum(axis=1, keepdims=True) > max(TOGETHER, TOGETHER_SHARE * len(self.events))
        before = self.last[rows, :, self.turn[rows] - 1]
        outlier = far & may & ~together & ~(np.abs(logs - before) <= limit)
        missing = np.isnan(values)
        guessed = outlier | missing if fill else outlier
        expected = np.where(guessed, middle, logs)
        if self.cycles is not None:
            lost = np.isnan(logs[:, self.cycles])
            for at in range(len(self.events)):
                if at != self.cycles:
                    expected[lost & ~missing[:, at], at] = np.nan
        counts = np.where(guessed, counts_of(expected, self.cycles), values)
        quality = np.where(outlier, OUTLIER, np.where(missing, FILLED, KEPT)).astype(np.uint8)
        counts, changed = physics.obey(counts, counts_of(middle, self.cycles), self.events, width, rules)
        quality[changed & (quality == KEPT)] = IMPOSSIBLE
        quality[np.isnan(counts)] = MISSING
        return counts, quality
