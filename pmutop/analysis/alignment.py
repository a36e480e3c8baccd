"""How far a multiplexed series is from one counted without sharing: CounterMiner's error (section II-B, eq.
1-4).

Two runs of a program never have the same length, so series are compared by dynamic time warping (DTW).
"""

from __future__ import annotations

import numpy as np

from pmutop import _dtw


def distance(first, second, window: int | None = None, cost: str = "absolute") -> float:
    """DTW(S1, S2), eq. 1: the cheapest warping of `first` (n,) onto `second` (m,), steps all of weight one.

    `cost="absolute"` sums |a - b| (dtw-python's symmetric1); `cost="squared"` is the root of the summed squares
    (dtaidistance). `window` is the largest |i - j| allowed, None = any. ValueError on an empty series or a NaN: align
    what was counted, or clean it first. inf where the window is too narrow for the difference in length.
    """
    if cost not in ("absolute", "squared"):
        raise ValueError(f"cost is absolute or squared, not {cost!r}")
    series = [np.ascontiguousarray(values, float) for values in (first, second)]
    if any(np.isnan(values).any() for values in series):
        raise ValueError("a series with missing values has no alignment")
    total = _dtw.distance(*series, -1 if window is None else window, cost == "squared")
    return float(np.sqrt(total)) if cost == "squared" else total


def multiplexing_error(multiplexed, reference, other_reference, window: int | None = None) -> float:
    """Equation 4: |1 - dist_ref / dist_mea|, a share (the paper prints it as percent).

    dist_ref (eq. 2) lies between two runs counted one counter one event, dist_mea (eq. 3) between the
    multiplexed run and the first of them. Beware: it is 0 where the multiplexed run is as far away as another
    run is, and it *rises* when a series comes closer than that; print it beside an error that rewards being
    right. nan where dist_mea is 0 and dist_ref is not; 0 where both are.
    """
    between = distance(reference, other_reference, window)
    measured = distance(multiplexed, reference, window)
    if measured == 0:
        return 0.0 if between == 0 else float("nan")
    return abs(1 - between / measured)
