"""How far to trust a counter: predicted against measured counts of micro-benchmarks of growing size.

Source: Korn, Teller and Castillo, "Just how accurate are performance counters?", sections 2.2, 3 and table 2. The three
micro-benchmarks are Linear (straight code), Loop (a counted loop) and Array (read, increment and write each element in
turn). Predictions assume no prefetcher, caches that are cold and lines that are fetched once; where a machine does
otherwise the verdict is "do not trust", which is the point of asking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

CLOSE, NEAR = 0.05, 0.10  # the two tolerances of table 2
SETTLED = 3  # sizes in a row, up to the largest, that must agree before an event is trusted from there on


@dataclass(frozen=True)
class Geometry:
    """Sizes of the machine in bytes (`page`, `line`, `l1d`, `l2`) and TLB entries; huge pages are taken to be off."""

    line: int = 64
    page: int = 4096
    l1d: int = 32768
    l2: int = 1048576
    tlb: int = 64


@dataclass(frozen=True)
class Accuracy:
    """One row of table 2: what one interface makes of one event.

    within_5, within_10  the smallest size from which on every size is within 5 % and 10 %; None = never
    error_low, error_high  smallest and largest |measured - predicted| / predicted over all sizes
    overhead    events that the interface itself adds, whatever the size
    slope       counts per predicted count once the overhead is gone; 1 = right
    spread      standard deviation over repetitions / mean, median over the sizes; NaN with one repetition
    verdict     "trust", "trust above N" or "do not trust", judged by 10 %
    above       that N in counts of this event (0 = trust throughout, NaN = not at all)
    corrected   the verdict once `overhead` is subtracted
    corrected_above  its N
    """

    event: str
    interface: str
    within_5: float | None
    within_10: float | None
    error_low: float
    error_high: float
    overhead: float
    slope: float
    spread: float
    verdict: str
    above: float
    corrected: str
    corrected_above: float


def predict_linear(
    code_bytes: np.ndarray, instructions: np.ndarray, geometry: Geometry
) -> dict[str, np.ndarray]:
    """Linear (2.2.1): straight code of `code_bytes` (sizes,) holding `instructions` (sizes,), run once.

    Instructions differ in length on many machines, so instruction-cache misses follow from bytes, not from a count.
    """
    lines = np.ceil(np.asarray(code_bytes, float) / geometry.line)
    return {
        "instructions": np.asarray(instructions, float),
        "l1i-misses": lines,
        "l2-misses": lines,
        "itlb-misses": np.ceil(np.asarray(code_bytes, float) / geometry.page),
    }


def predict_loop(
    iterations: np.ndarray, body: Mapping[str, float], outside: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Loop (2.2.2): each event's count is `outside` once and `body` per iteration, read off the assembler code.

    `iterations` is (sizes,); the keys are event names such as instructions, loads, stores, branches.
    """
    turns = np.asarray(iterations, float)
    return {event: outside.get(event, 0.0) + turns * body.get(event, 0.0) for event in {**outside, **body}}


def predict_array(
    elements: np.ndarray, element: int, geometry: Geometry, shuffled: bool = False, warm: bool = False
) -> dict[str, np.ndarray]:
    """Array (2.2.3): one pass over `elements` (sizes,) of `element` bytes, each read, incremented and written.

    `shuffled` visits the lines in random order (the elements of a line together), so that no prefetcher can run ahead:
    every line is still fetched once, but the page of a line is in a full TLB only with the chance entries / pages.
    `warm`: the array was walked in the same order before; what fits a level does not miss there, and of what does not
    fit an ordered walk finds nothing left (least recently used goes first), a shuffled one its share.
    Page faults are those of memory touched for the first time.
    """
    count = np.asarray(elements, float)
    size = count * element
    lines, pages = np.ceil(size / geometry.line), np.ceil(size / geometry.page)

    def absent(have: np.ndarray, capacity: float) -> np.ndarray:
        """The chance that one of `have` units is not in a level that holds `capacity`, once it is full."""
        too_much = np.maximum(have - capacity, 0.0)
        return too_much / np.maximum(have, 1.0) if shuffled else (too_much > 0).astype(float)

    misses = {
        level: lines * absent(size, capacity) if warm else lines
        for level, capacity in (("l1d-misses", geometry.l1d), ("l2-misses", geometry.l2))
    }
    visits = lines if shuffled else pages
    again = visits * absent(pages, geometry.tlb)
    return {
        "loads": count,
        "stores": count,
        **misses,
        "dtlb-misses": again if warm else np.maximum(pages, again),
        "page-faults": np.zeros_like(pages) if warm else pages,
    }


def judge(
    event: str, interface: str, sizes: np.ndarray, predicted: np.ndarray, measured: np.ndarray
) -> Accuracy:
    """Compare one event, as measured by one interface, with its prediction (section 3, table 2).

    `sizes` (sizes,) ascending, `predicted` (sizes,) counts, `measured` (repetitions, sizes) counts; repetitions are
    averaged as in the paper. A prediction under 1 is compared as if it were 1 (an absolute error then).
    """
    sizes, predicted = np.asarray(sizes, float), np.asarray(predicted, float)
    repeated = np.atleast_2d(np.asarray(measured, float))
    mean = repeated.mean(axis=0)
    error = relative_error(mean, predicted)
    overhead, slope = overhead_of(predicted, mean)
    corrected = relative_error(subtract_overhead(mean, overhead), predicted)
    if len(repeated) > 1:
        spread = float(np.median(repeated.std(axis=0, ddof=1) / np.maximum(np.abs(mean), 1.0)))
    else:
        spread = float("nan")
    verdict, above = verdict_of(error, predicted)
    corrected_verdict, corrected_above = verdict_of(corrected, predicted)
    return Accuracy(
        event,
        interface,
        size_within(sizes, error, CLOSE),
        size_within(sizes, error, NEAR),
        float(error.min()),
        float(error.max()),
        overhead,
        slope,
        spread,
        verdict,
        above,
        corrected_verdict,
        corrected_above,
    )


def relative_error(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """|measured - predicted| / predicted, (sizes,), predictions under 1 taken as 1; a missing measurement is infinite."""
    return np.nan_to_num(np.abs(measured - predicted) / np.maximum(predicted, 1.0), nan=np.inf)


def size_within(sizes: np.ndarray, error: np.ndarray, tolerance: float) -> float | None:
    """The smallest size from which on every error is within `tolerance`; None where the largest one is not."""
    outside = np.flatnonzero(error > tolerance)
    first = int(outside[-1]) + 1 if len(outside) else 0
    return float(sizes[first]) if first < len(sizes) else None


def overhead_of(predicted: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """The interface's constant part and the slope, of measured = overhead + slope x predicted.

    The slope is the median over all pairs of sizes (Theil and Sen), weighing a pair by how far apart its predictions are;
    the overhead is the median remainder at the smaller half of the sizes, where it is not lost in the count.
    """
    apart = predicted[:, None] - predicted[None, :]
    rises = (measured[:, None] - measured[None, :])[apart > 0] / apart[apart > 0]
    slope = weighted_median(rises, apart[apart > 0]) if len(rises) else 1.0
    small = predicted <= np.median(predicted)
    return float(np.median(measured[small] - slope * predicted[small])), slope


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The value at which half of the weight is reached."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def subtract_overhead(measured: np.ndarray, overhead: float) -> np.ndarray:
    """Counts without what the interface adds; never below 0."""
    return np.maximum(np.asarray(measured, float) - overhead, 0.0)


def verdict_of(error: np.ndarray, predicted: np.ndarray, tolerance: float = NEAR) -> tuple[str, float]:
    """("trust", 0), ("trust above N", N) or ("do not trust", NaN) from the errors (sizes,) at growing predictions.

    N is a count of the event, so that a reading can be judged by itself. At least the three largest sizes must agree.
    """
    outside = np.flatnonzero(error > tolerance)
    first = int(outside[-1]) + 1 if len(outside) else 0
    if len(error) - first < min(SETTLED, len(error)):
        return "do not trust", float("nan")
    if first == 0:
        return "trust", 0.0
    return f"trust above {predicted[first]:.6g}", float(predicted[first])


def trusted(reading: np.ndarray, accuracy: Accuracy) -> np.ndarray:
    """Which readings (any shape) of an event may be believed as they stand, bool."""
    return np.asarray(reading, float) >= accuracy.above  # NaN ("do not trust") compares false


def majority_error(measured: np.ndarray, predicted: np.ndarray, share: float = 0.9) -> float:
    """The error that `share` of the sizes stay within; table 2's column for the simulator."""
    return float(
        np.quantile(relative_error(np.asarray(measured, float), np.asarray(predicted, float)), share)
    )
