"""Key events: which events are worth a counter, by CFS and gain ratio combined.

'Automated Fingerprinting of Performance Pathologies', section 3.1, 'Key Events Selection'. CFS after Hall, 'Correlation-
based feature selection for discrete and numeric class machine learning' (2000); events are made discrete by the minimum
description length of Fayyad and Irani (1993), at the price of the cuts that could be tried (Weka's 'better encoding').
Both measures equal Weka's CfsSubsetEval -L and GainRatioAttributeEval.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pmutop.errors import BadInput

STALE = 5  # best-first search: expansions without a better subset before it ends, and subsets kept waiting
BETTER = 1e-5  # merit that a subset must add to count as better
NOTHING = 1e-6  # a gain or a correlation below this is none


class Correlations(NamedTuple):
    """Symmetrical uncertainties, 0..1: the measurements CFS works on, taken once for any number of searches."""

    with_label: np.ndarray  # (events,)
    among: np.ndarray  # (events, events)

    def of(self, events: np.ndarray) -> "Correlations":
        return Correlations(self.with_label[events], self.among[np.ix_(events, events)])


class Subset(NamedTuple):
    """Events as column indices in the order in which the search took them, and their merit."""

    events: list[int]
    merit: float


# --- discretisation


def discretise(X: Any, y: Any) -> np.ndarray:
    """Interval of every value, int32 (rows, events) from 0, -1 where it is missing (NaN). X (rows, events), y (rows,).
    Raises BadInput where the two do not fit."""
    rows, numbers = np.asarray(X, dtype=np.float64), np.asarray(y)
    if rows.ndim != 2 or numbers.shape != rows.shape[:1] or not len(rows):
        raise BadInput(
            f"selection needs rows x events and their labels, not {rows.shape} and {numbers.shape}"
        )
    classes, labels = np.unique(numbers, return_inverse=True)
    codes = np.full(rows.shape, -1, dtype=np.int32)
    for event, values in enumerate(rows.T):
        known = ~np.isnan(values)
        cuts = cut_points(values[known], labels[known], len(classes))
        codes[known, event] = np.searchsorted(cuts, values[known])
    return codes


def cut_points(values: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Ascending cuts of one event (a value equal to a cut belongs below it). values (rows,) without NaN, labels (rows,)
    in 0..classes-1."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    before = np.zeros((len(values) + 1, classes), dtype=np.int64)  # class counts of the rows before a place
    before[np.arange(1, len(values) + 1), labels[order]] = 1
    np.cumsum(before, axis=0, out=before)
    bits = _x_log_x(np.arange(len(values) + 1))
    places = np.flatnonzero(values[:-1] < values[1:]) + 1
    found: list[float] = []
    waiting = [(0, len(values))]
    while waiting:
        first, end = waiting.pop()
        tried = places[np.searchsorted(places, first, side="right") : np.searchsorted(places, end)]
        if not len(tried):
            continue
        left, right = before[tried] - before[first], before[end] - before[tried]
        left_bits = bits[tried - first] - bits[left].sum(axis=1)  # entropy times weight
        right_bits = bits[end - tried] - bits[right].sum(axis=1)
        whole = before[end] - before[first]
        whole_bits = bits[end - first] - bits[whole].sum()
        best = int(np.argmax(left_bits + right_bits <= (left_bits + right_bits).min() + 1e-9))
        gain = (whole_bits - left_bits[best] - right_bits[best]) / (end - first)
        present = [np.count_nonzero(part) for part in (whole, left[best], right[best])]
        entropies = (
            whole_bits / (end - first),
            left_bits[best] / (tried[best] - first),
            right_bits[best] / (end - tried[best]),
        )
        delta = np.log2(3.0 ** present[0] - 2) - np.dot(np.array(present) * (1, -1, -1), entropies)
        if gain > NOTHING and gain > (np.log2(len(tried)) + delta) / (end - first):
            place = int(tried[best])
            low, high = float(values[place - 1]), float(values[place])
            middle = low / 2 + high / 2
            found.append(middle if low <= middle < high else low)
            waiting += [(first, place), (place, end)]
    return np.sort(np.array(found))


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.where(x > NOTHING, x, 1))


# --- the two measures


def gain_ratio(X: Any, y: Any) -> np.ndarray:
    """(events,): information gained about y (rows,) by knowing an event's interval, over the entropy of the intervals;
    0 where there is nothing to cut. Missing values are divided over the intervals as the known ones are."""
    codes = discretise(X, y)
    return _ratios(codes, np.unique(y, return_inverse=True)[1])


def correlations(X: Any, y: Any) -> Correlations:
    """The matrix that CFS searches on. X (rows, events) with NaN where missing, y (rows,)."""
    codes = discretise(X, y)
    return _uncertainties(codes, np.unique(y, return_inverse=True)[1])


def _ratios(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    by_label = _indicators(labels)
    ratios = np.zeros(codes.shape[1])
    for event, column in enumerate(codes.T):
        known = column >= 0
        if known.any():
            bins = _indicators(column)
            table = bins.T @ by_label
            table += np.outer(table.sum(axis=1) / known.sum(), by_label[~known].sum(axis=0))
            intervals, joint = _entropy(table.sum(axis=1)), _entropy(table)
            gain = _entropy(table.sum(axis=0)) + intervals - joint
            ratios[event] = gain / intervals if intervals > NOTHING else 0
    return ratios


def _uncertainties(codes: np.ndarray, labels: np.ndarray) -> Correlations:
    """2 (H(a) + H(b) - H(a, b)) / (H(a) + H(b)) for all pairs of columns, the label as the last one."""
    columns = np.column_stack([codes, labels])
    rows, width = columns.shape
    bins = [_indicators(column) for column in columns.T]
    starts = np.cumsum([0] + [each.shape[1] for each in bins[:-1]])
    owner = np.repeat(np.arange(width), [each.shape[1] for each in bins])
    everything = np.concatenate(bins, axis=1)
    missing = (columns < 0).astype(np.float32)
    known = np.maximum(rows - missing.sum(axis=0), 1)
    share = everything.sum(axis=0) / known[owner]  # of a column's known rows
    answer = np.ones((width, width))
    for a in range(width):
        own, own_share = bins[a], share[owner == a]
        table = (own.T @ everything).astype(np.float64)
        if missing.any():
            # a row with one value missing is divided over the intervals of that column, one with both missing over
            # the cells of the table, each time as the known rows are
            both = missing[:, a] @ missing
            either = missing[:, a].sum() + missing.sum(axis=0) - both
            scale = 1 + both / np.maximum(rows - either, 1)
            table = (
                table * scale[owner]
                + np.outer(own_share, missing[:, a] @ everything)
                + (own.T @ missing)[:, owner] * share
            )
        of_a = np.add.reduceat(table, starts, axis=1)  # (intervals of a, columns)
        h_a = (_x_log_x(of_a.sum(axis=0)) - _x_log_x(of_a).sum(axis=0)) / np.maximum(of_a.sum(axis=0), 1)
        of_b = table.sum(axis=0)
        sums = np.maximum(np.add.reduceat(of_b, starts), 1)
        h_b = (_x_log_x(sums) - np.add.reduceat(_x_log_x(of_b), starts)) / sums
        h_ab = (_x_log_x(sums) - np.add.reduceat(_x_log_x(table).sum(axis=0), starts)) / sums
        answer[a] = np.where(h_a + h_b > NOTHING, 2 * (h_a + h_b - h_ab) / np.maximum(h_a + h_b, NOTHING), 0)
    among = answer[:-1, :-1]
    # two events that share nothing, as an event that has a single interval does with all, count as the same: CFS must
    # not take an event for being unlike the others alone
    among = np.where(among < NOTHING, 1.0, among)
    np.fill_diagonal(among, 1.0)
    with_label = answer[:-1, -1]
    return Correlations(np.where(with_label < NOTHING, 0.0, with_label), among)


def _indicators(column: np.ndarray) -> np.ndarray:
    """float32 (rows, intervals): 1 where a row is in the interval; all 0 where it is missing."""
    size = max(int(column.max(initial=0)) + 1, 1)
    return (column[:, None] == np.arange(size)).astype(np.float32)


def _entropy(counts: np.ndarray) -> float:
    total = counts.sum()
    return float((_x_log_x(total) - _x_log_x(counts).sum()) / total) if total > 0 else 0.0


# --- CFS


def cfs(measured: Correlations) -> Subset:
    """The subset whose events speak of the label and not of one another: the highest sum of correlations with the
    label over the root of the sum of all correlations among them (Hall, equation 1), by best-first search forward."""
    with_label, among = measured
    best = Subset([], 0.0)
    waiting: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    seen: set[int] = set()
    stale = 0
    while stale < STALE and waiting:
        _, taken = waiting.pop(0)
        chosen = list(taken)
        mask = sum(1 << event for event in chosen)
        free = np.ones(len(with_label), dtype=bool)
        free[chosen] = False
        merits = (with_label[chosen].sum() + with_label) / np.sqrt(
            among[np.ix_(chosen, chosen)].sum() + 1 + 2 * among[chosen].sum(axis=0)
        )
        stale += 1
        fresh = []
        for event in np.flatnonzero(free).tolist():
            subset = mask | 1 << event
            if subset in seen:
                continue
            seen.add(subset)
            merit = float(merits[event])
            fresh.append((merit, (*taken, event)))
            if merit - best.merit > BETTER:
                best, stale = Subset([*taken, event], merit), 0
        waiting = sorted(waiting + fresh, key=lambda entry: -entry[0])[:STALE]
    return best


# --- both together


def key_events(X: Any, y: Any, names: Sequence[str], keep: int = 40) -> list[str]:
    """The keep events that are left when again and again the one with the worst average rank is dropped, best first.

    CFS ranks events in the order in which its search took them, gain ratio by size; events that a ranking cannot tell
    apart (all that CFS did not take; equal ratios) share the lowest of their places. CFS is run anew after each drop;
    the ratios do not change. Where averages are equal the event that CFS ranks lower goes (the paper uses it to filter
    copies of a good event), then the later column. X (rows, events) with NaN where missing, y (rows,)."""
    codes = discretise(X, y)
    if len(names) != codes.shape[1] or keep < 1:
        raise BadInput(f"{len(names)} names for {codes.shape[1]} events, of which {keep} are to be kept")
    labels = np.unique(y, return_inverse=True)[1]
    ratios, measured = _ratios(codes, labels), _uncertainties(codes, labels)
    left = np.arange(codes.shape[1])
    while True:
        subset = cfs(measured.of(left)).events
        by_cfs = np.full(len(left), len(left))
        by_cfs[subset] = np.arange(1, len(subset) + 1)
        by_ratio = np.searchsorted(np.sort(-ratios[left]), -ratios[left], side="right")
        order = np.lexsort((left, by_cfs, by_cfs + by_ratio))
        if len(left) <= keep:
            return [names[event] for event in left[order]]
        left = np.delete(left, order[-1])
