"""DTW against two libraries written by others, and equations 1-4 by hand."""

import numpy as np
import pytest

from pmutop.analysis.alignment import distance, multiplexing_error


def pairs():
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (1, 9), (7, 7), (40, 55), (120, 90)):
        yield rng.normal(size=n).cumsum(), rng.normal(size=m).cumsum()


@pytest.mark.parametrize("window", [None, 3, 12])
def test_absolute_cost_is_dtw_pythons_symmetric1(window):
    dtw = pytest.importorskip("dtw")
    for a, b in pairs():
        if window is not None and abs(len(a) - len(b)) > window:
            continue
        limit = (
            {} if window is None else {"window_type": "sakoechiba", "window_args": {"window_size": window}}
        )
        theirs = dtw.dtw(
            a, b, dist_method="cityblock", step_pattern="symmetric1", distance_only=True, **limit
        )
        assert distance(a, b, window) == pytest.approx(theirs.distance, rel=1e-12)


@pytest.mark.parametrize("window", [None, 3, 12])
def test_squared_cost_is_dtaidistance(window):
    dtai = pytest.importorskip("dtaidistance.dtw")
    for a, b in pairs():
        if window is not None and len(a) != len(b):
            continue  # their window is measured from the slanted diagonal, ours from the straight one
        theirs = dtai.distance(a, b, window=None if window is None else window + 1)
        assert distance(a, b, window, cost="squared") == pytest.approx(theirs, rel=1e-12)


def test_warping_is_free_and_a_window_is_not():
    slow = np.repeat([1.0, 5.0, 2.0], 4)
    assert distance([1.0, 5.0, 2.0], slow) == 0
    assert distance([1.0, 5.0, 2.0], slow, window=2) == np.inf


def test_the_error_of_equation_4():
    ocoe, other, mlpx = [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, 7.0]
    assert multiplexing_error(mlpx, ocoe, other) == pytest.approx(1 - 1 / 4)
    assert multiplexing_error(ocoe, ocoe, ocoe) == 0
    assert np.isnan(multiplexing_error(ocoe, ocoe, other))


@pytest.mark.parametrize("bad", [[], [1.0, np.nan]])
def test_nothing_and_missing_values_are_refused(bad):
    with pytest.raises(ValueError):
        distance(bad, [1.0])
    with pytest.raises(ValueError):
        distance([1.0], bad)
