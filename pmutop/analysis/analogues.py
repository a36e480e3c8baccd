"""What a value should have been, told by slices that looked alike: KNN regression in the space of the *other*
events.

CounterMiner (section III-B2) fills a hole with the mean of the five nearest values in time. On recorded
counters that is twice as wrong as a straight line, for a program does not stand still; but it comes back to
where it was, in this run or in another one. So the neighbours here are the slices, of other runs if there are
any, whose other events and whose values just before and after look most like those around the hole.

Everything is in the logarithm of a rate (count per cycle where cycles were counted): events differ by a
factor.
"""

from __future__ import annotations

import numpy as np

#: Events that count cycles, in the vocabularies of perf, the kernel's PMU names and Arm's manual.
CYCLES = (
    "cycles",
    "cpu-cycles",
    "CPU_CYCLES",
    "cpu_cycles",
    "CPU_CLK_UNHALTED.THREAD",
    "unhalted_core_cycles",
)
#: How many neighbours (CounterMiner, III-B2).
K = 5
#: An event that is visible in the slice itself weighs this much more than one that is interpolated there.
VISIBLE = 3.0
#: The step from the value before to the value behind weighs half as much as the level.
STEP = 0.5
#: How much of the difference to the neighbour's own interpolation is carried over (0 = copy the neighbour's
#: level).
CARRY = 0.3
#: One stray event must not push a slice away from all others: differences count up to this many deviations.
FARTHEST = 4.0
#: Added to the variances (which are 1) before they are inverted: a few percent of faults must not look like
#: knowledge.
RIDGE = 0.05
#: Rows of donors used at most, evenly spread, and rows compared at once; they bound memory and time.
DONOR_ROWS = 3000
CHUNK = 64


def cycles_column(events) -> int | None:
    """Where the cycles stand among `events`; None where they were not counted."""
    return next(
        (at for at, name in enumerate(events) if name in CYCLES or name.endswith("/cpu-cycles/")), None
    )


def log_rates(values, cycles: int | None) -> np.ndarray:
    """log((count + 1) / cycles), (rows, events); the cycles' own column and a table without them stay log
    counts."""
    values = np.asarray(values, float)
    logs = np.log(values + 1)
    if cycles is not None:
        others = np.arange(values.shape[1]) != cycles
        logs[:, others] -= logs[:, [cycles]]
    return logs


def counts_of(logs, cycles: int | None) -> np.ndarray:
    """The inverse of `log_rates`."""
    logs = np.array(logs, float)
    if cycles is not None:
        others = np.arange(logs.shape[1]) != cycles
        logs[:, others] += logs[:, [cycles]]
    return np.maximum(np.exp(logs) - 1, 0)


def interpolated(values) -> np.ndarray:
    """Every column (rows, events) with its NaN replaced by the straight line between what was counted;
    all-NaN stays."""
    values = np.array(values, float)
    rows = np.arange(len(values))
    for column in values.T:
        known = ~np.isnan(column)
        if known.any() and not known.all():
            column[~known] = np.interp(rows[~known], rows[known], column[known])
    return values


def around(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each cell how many rows back and on the nearest known one of its column is (the cell itself not
    counted).

    Both int (rows, events), negative before and positive behind; at an end both point to the same side.
    """
    rows = np.arange(len(known))[:, None]
    stops = np.where(known, rows, -1)
    before = np.vstack([np.full((1, known.shape[1]), -1), np.maximum.accumulate(stops, 0)[:-1]])
    stops = np.where(known, rows, len(known))[::-1]
    behind = np.vstack([np.full((1, known.shape[1]), len(known)), np.minimum.accumulate(stops, 0)[:-1]])[::-1]
    no_before, no_behind = before < 0, behind >= len(known)
    before = np.where(no_before & ~no_behind, behind, before)
    behind = np.where(no_behind & ~no_before, before, behind)
    nowhere = no_before & no_behind
    return np.where(nowhere, 0, before - rows), np.where(nowhere, 0, behind - rows)


class Analogues:
    """Slices to compare with: complete or nearly complete runs in log rates, all with the same events."""

    def __init__(self, k: int = K) -> None:
        self.k = k

    def fit(self, runs) -> Analogues:
        """`runs`: a list of log rates (rows, events). Learns the levels, and the spread of each event."""
        self.known_ = [~np.isnan(run) for run in runs]
        self.runs_ = [interpolated(run) for run in runs]
        everything = np.vstack(self.runs_)
        counted = ~np.isnan(everything).all(axis=0)
        self.spread_, self.middle_ = np.full(len(counted), 1e-3), np.zeros(len(counted))
        self.spread_[counted] += np.nanstd(everything[:, counted], axis=0)
        self.middle_[counted] = np.nanmedian(everything[:, counted], axis=0)
        each = self.standard(everything)
        moments = each.T @ each / max(len(each), 1)
        self.precision_ = np.linalg.inv(moments + RIDGE * np.eye(len(moments)))
        return self

    def standard(self, logs) -> np.ndarray:
        """Deviations from the usual level in units of the event's spread; a stray one counts no more than
        FARTHEST."""
        return np.clip(np.nan_to_num((logs - self.middle_) / self.spread_), -FARTHEST, FARTHEST)

    def linear(self, logs) -> np.ndarray:
        """Each value (rows, events) as the linear regression on all other events of its slice has it.

        All regressions at once, from the inverse of the second moments P: x_e - (P x)_e / P_ee.
        """
        each = self.standard(logs)
        return (each - each @ self.precision_ / np.diag(self.precision_)) * self.spread_ + self.middle_

    def fill(self, logs, own: bool = False) -> np.ndarray:
        """`logs` (rows, events) with every NaN replaced.

        A hole is filled with the weighted mean of its `k` analogues plus CARRY of what the straight line says
        beyond theirs. `own` tells that `logs` is one of the fitted runs: then a slice and its two neighbours
        do not vouch for themselves, and half of the straight line stays in the answer.
        """
        known = ~np.isnan(logs)
        line, out = interpolated(logs), np.array(logs, float)
        back, on = around(known)
        rows_with_holes = np.flatnonzero(~known.all(1))
        pattern = np.hstack([known, back, on])[rows_with_holes]
        _, group = np.unique(pattern, axis=0, return_inverse=True)
        for which in range(group.max() + 1 if len(group) else 0):
            rows = rows_with_holes[group.ravel() == which]
            seen, before, behind = known[rows[0]], back[rows[0]], on[rows[0]]
            here = context(line, rows, seen, before, behind)
            there, levels, straight, of_row = self.contexts(seen, before, behind)
            weight = np.where(np.tile(seen, 2), VISIBLE, 1.0) * np.repeat([1.0, STEP], len(seen))
            weight /= np.tile(self.spread_, 2)
            usable = np.isfinite(here).all(0) & np.isfinite(there).all(0)
            for part in np.array_split(np.arange(len(rows)), -(-len(rows) // CHUNK)):
                apart = squared_distance(
                    here[part][:, usable] * weight[usable], there[:, usable] * weight[usable]
                )
                if own:
                    apart[np.abs(of_row[None] - rows[part][:, None]) <= 1] = np.inf
                for event in np.flatnonzero(~seen):
                    out[rows[part], event] = self.mean_of_nearest(
                        apart, levels[:, event], straight[:, event], line[rows[part], event], own
                    )
        return out

    def mean_of_nearest(self, apart, level, straight, line, own: bool) -> np.ndarray:
        """The estimate of one event in log rates (rows,), from squared distances (rows, donor rows)."""
        vouched = np.isfinite(level) & np.isfinite(straight)
        apart = np.where(vouched[None], apart, np.inf)
        nearest = np.argpartition(apart, min(self.k, apart.shape[1] - 1), axis=1)[:, : self.k]
        distance = np.take_along_axis(apart, nearest, 1)
        weight = np.where(np.isfinite(distance), 1 / (distance + 0.1), 0.0)
        total = weight.sum(1)
        beyond = np.where(weight > 0, level[nearest] - CARRY * straight[nearest], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            analogue = (beyond * weight).sum(1) / total + CARRY * line
        analogue = np.where(total > 0, analogue, line)
        return (analogue + line) / 2 if own else analogue

    def contexts(self, seen, before, behind):
        """All donor rows, looked at through the holes of one pattern: context, levels (NaN = not counted there), line."""
        found = []
        for run, known in zip(self.runs_, self.known_, strict=True):
            rows = spread_rows(len(run), DONOR_ROWS // len(self.runs_))
            straight = between(run, rows, before, behind)
            levels = np.where(known[rows], run[rows], np.nan)
            found.append((context(run, rows, seen, before, behind), levels, straight, rows))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def expect(self, logs, smooth, own: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Between which log rates each value (rows, events) should lie, told by the other events of its
        slice.

        `smooth` is the same table through a rolling median; levels of both are compared, the value's own left
        out. The lowest and the highest of the k nearest are left out: a donor may be faulty too. `own` as in
        `fill`.
        """
        donors = [(run, rolling_median(run)) for run in self.runs_]
        kept = [spread_rows(len(run), DONOR_ROWS // len(self.runs_)) for run in self.runs_]
        level = np.vstack([np.where(known[rows], run[rows], np.nan)
                           for run, known, rows in zip(self.runs_, self.known_, kept, strict=True)])  # fmt: skip
        there = np.vstack([run[rows] for (run, _), rows in zip(donors, kept, strict=True)])
        there_smooth = np.vstack([soft[rows] for (_, soft), rows in zip(donors, kept, strict=True)])
        of_row = np.concatenate(kept)
        low, high = np.full(np.shape(logs), np.nan), np.full(np.shape(logs), np.nan)
        for part in np.array_split(np.arange(len(logs)), max(1, -(-len(logs) // CHUNK))):
            each = (np.nan_to_num(logs[part][:, None] - there[None])) / self.spread_
            each = np.clip(each, -FARTHEST, FARTHEST) ** 2
            slow = np.clip(
                np.nan_to_num(smooth[part][:, None] - there_smooth[None]) / self.spread_, -FARTHEST, FARTHEST
            )
            total = each.sum(2) + (slow**2).sum(2)
            if own:
                total[np.abs(of_row[None] - part[:, None]) <= 1] = np.inf
            for event in range(logs.shape[1]):
                apart = np.where(np.isfinite(level[:, event])[None], total - each[:, :, event], np.inf)
                nearest = np.argpartition(apart, min(self.k, apart.shape[1] - 1), axis=1)[:, : self.k]
                ordered = np.sort(level[nearest, event], axis=1)
                inner = 1 if ordered.shape[1] > 2 else 0
                low[part, event], high[part, event] = ordered[:, inner], ordered[:, -1 - inner]
        return low, high


def context(run, rows, seen, before, behind) -> np.ndarray:
    """(rows, 2 * events): levels (the straight line where not `seen`) beside the steps from before to
    behind."""
    rows = np.asarray(rows)
    level = np.where(seen[None], run[rows], between(run, rows, before, behind))
    return np.hstack([level, at(run, rows, before) - at(run, rows, behind)])


def between(run, rows, before, behind) -> np.ndarray:
    """The straight line at `rows` between the values `before` and `behind` rows away, (rows, events)."""
    span = np.abs(before) + np.abs(behind)
    share = np.where(span > 0, np.abs(behind) / np.maximum(span, 1), 1.0)
    return share * at(run, rows, before) + (1 - share) * at(run, rows, behind)


def at(run, rows, shift) -> np.ndarray:
    """run[row + shift of each event], held at the ends."""
    index = np.clip(np.asarray(rows)[:, None] + shift[None], 0, len(run) - 1)
    return np.take_along_axis(run, index, 0)


def squared_distance(here, there) -> np.ndarray:
    """Squared Euclidean distances (rows, donor rows)."""
    apart = (here**2).sum(1)[:, None] + (there**2).sum(1)[None] - 2 * here @ there.T
    return np.maximum(apart, 0)


def spread_rows(count: int, limit: int) -> np.ndarray:
    """At most `limit` row numbers below `count`, evenly spread."""
    return np.arange(count) if count <= limit else np.linspace(0, count - 1, max(limit, 1)).astype(int)


def neighbours(values, half: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The `half` values on either side of each value (rows, events), itself left out: sorted (rows, events, 2
    * half) with NaN at the end, and how many are known."""
    values = np.asarray(values, float)
    outside = np.full((half, values.shape[1]), np.nan)
    window = np.lib.stride_tricks.sliding_window_view(
        np.vstack([outside, values, outside]), 2 * half + 1, axis=0
    )
    ordered = np.sort(np.delete(window, half, axis=2), axis=2)
    return ordered, (~np.isnan(ordered)).sum(2)


def pick(ordered, index) -> np.ndarray:
    """The entry `index` (rows, events) of each sorted last axis."""
    return np.take_along_axis(ordered, np.clip(index, 0, ordered.shape[-1] - 1)[..., None], -1)[..., 0]


def median_of(ordered, count) -> np.ndarray:
    """The median of the first `count` of each sorted last axis; NaN where count is 0."""
    return np.where(count > 0, (pick(ordered, (count - 1) // 2) + pick(ordered, count // 2)) / 2, np.nan)


def rolling_median(values, half: int = 3) -> np.ndarray:
    """Median of the `half` known values (rows, events) on either side, the value itself left out; NaN where
    none is."""
    return median_of(*neighbours(values, half))
