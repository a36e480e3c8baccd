"""Anderson-Darling and the GEV fit against SciPy, and equation 6."""

import numpy as np
import pytest

from pmutop.analysis.distribution import anderson_darling, describe, fit_gev


@pytest.mark.parametrize("seed", range(3))
def test_the_statistic_is_scipys_with_the_correction_for_the_size(seed):
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(seed).normal(7, 2, 80)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = stats.anderson(values, "norm").statistic
    assert anderson_darling(values) == pytest.approx(theirs * (1 + 0.75 / 80 + 2.25 / 80**2), rel=1e-9)


def test_gaussian_and_long_tail_are_told_apart_with_their_n():
    rng = np.random.default_rng(0)
    bell, tail = describe(rng.normal(100, 5, 500)), describe(rng.lognormal(3, 1, 500))
    assert (bell.kind, bell.n) == ("gaussian", 3) and tail.kind == "long tail" and tail.n >= 5
    assert bell.threshold == pytest.approx(115, abs=2) and min(bell.kept, tail.kept) >= 0.99


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.3])
def test_the_gev_fit_finds_the_parameters_it_was_drawn_from(shape):
    stats = pytest.importorskip("scipy.stats")
    values = stats.genextreme.rvs(shape, loc=50, scale=4, size=20000, random_state=1)
    assert fit_gev(values) == pytest.approx((50, 4, shape), rel=0.03, abs=0.03)


def test_n_rises_until_99_percent_are_kept():
    values = np.append(np.random.default_rng(0).normal(0, 1, 985), np.full(15, 1e3))
    found = describe(values)
    assert found.n > 5 and found.kept == 1.0


def test_edges():
    assert anderson_darling(np.ones(20)) == np.inf and fit_gev(np.ones(20)) == (1, 0, 0)
    assert describe(np.ones(20)).kept == 1
    with pytest.raises(ValueError, match="3 values"):
        describe([1, 2, np.nan, 3])
