"""Predictions against a cache that is stepped through access by access, and verdicts on counters of known faults."""

import numpy as np
import pytest

from pmutop.analysis.accuracy import (
    Geometry,
    judge,
    majority_error,
    predict_array,
    predict_linear,
    predict_loop,
    subtract_overhead,
    trusted,
)

SIZES = np.unique(np.geomspace(100, 1e6, 25).astype(int)).astype(float)
RNG = np.random.default_rng(0)


def measured(predicted, overhead=0.0, slope=1.0, noise=0.0, repetitions=100):
    return overhead + slope * predicted * (1 + noise * RNG.normal(size=(repetitions, len(predicted))))


class Lru:
    """Fully associative, least recently used goes first: the independent witness for predicted misses."""

    def __init__(self, entries):
        self.entries, self.held, self.misses = entries, {}, 0

    def touch(self, key):
        if key in self.held:
            del self.held[key]
        else:
            self.misses += 1
            if len(self.held) == self.entries:
                del self.held[next(iter(self.held))]
        self.held[key] = True


def walk(elements, geometry, shuffled=False, warm=False):
    per_line = geometry.line // 4
    lines = list(range(-(-elements // per_line)))
    if shuffled:
        np.random.default_rng(1).shuffle(lines)
    levels = {
        "l1d-misses": (Lru(geometry.l1d // geometry.line), geometry.line),
        "l2-misses": (Lru(geometry.l2 // geometry.line), geometry.line),
        "dtlb-misses": (Lru(geometry.tlb), geometry.page),
    }
    for turn in range(2 if warm else 1):
        for cache, _ in levels.values():
            cache.misses = 0
        if shuffled and turn:
            np.random.default_rng(2).shuffle(lines)
        for line in lines:
            for element in range(line * per_line, min((line + 1) * per_line, elements)):
                for cache, unit in levels.values():
                    cache.touch(element * 4 // unit)
    return {name: cache.misses for name, (cache, _) in levels.items()}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("elements", [1, 100, 5000, 40000])
def test_array_in_order_is_predicted_exactly(elements, warm):
    geometry = Geometry(l1d=4096, l2=65536, tlb=16)
    expected = walk(elements, geometry, warm=warm)
    predicted = predict_array(np.array([elements]), 4, geometry, warm=warm)
    assert {name: predicted[name][0] for name in expected} == expected
    assert predicted["loads"][0] == predicted["stores"][0] == elements


def test_array_shuffled_is_predicted_within_a_tenth():
    geometry = Geometry(l1d=4096, l2=65536, tlb=16)
    expected = walk(60000, geometry, shuffled=True)
    predicted = predict_array(np.array([60000]), 4, geometry, shuffled=True)
    assert predicted["l1d-misses"][0] == expected["l1d-misses"]
    assert predicted["dtlb-misses"][0] == pytest.approx(expected["dtlb-misses"], rel=0.1)


def test_linear_and_loop():
    linear = predict_linear(np.array([64, 65, 8192]), np.array([16, 17, 2048]), Geometry())
    assert linear["l1i-misses"].tolist() == [1, 2, 128]
    assert linear["itlb-misses"].tolist() == [1, 1, 2]
    loop = predict_loop(np.array([0, 10]), {"instructions": 102, "branches": 1}, {"instructions": 5})
    assert loop["instructions"].tolist() == [5, 1025] and loop["branches"].tolist() == [0, 10]


def test_the_paper_s_row_for_decoded_instructions():
    """perfex adds 830,000 instructions to a loop of 100: within 5 % from 100,000 iterations or more, 10 % from 30,000."""
    sizes = np.array([250, 1000, 10000, 30000, 50000, 100000, 200000, 400000.0])
    predicted = 280 * sizes
    row = judge(
        "instructions", "process", sizes, predicted, measured(predicted, overhead=830_000, noise=0.001)
    )
    assert (row.within_5, row.within_10) == (100000, 30000)
    assert row.overhead == pytest.approx(830_000, rel=0.01)
    assert row.error_high == pytest.approx(830_000 / 70_000, rel=0.01)
    assert row.verdict == "trust above 8.4e+06" and row.above == 8.4e6
    assert row.corrected == "trust" and row.corrected_above == 0
    assert trusted(np.array([1e6, 9e6]), row).tolist() == [False, True]


def test_a_right_counter_is_trusted():
    row = judge("loads", "region", SIZES, SIZES * 3, measured(SIZES * 3, overhead=2, noise=0.01))
    assert row.verdict == "trust" and row.slope == pytest.approx(1, abs=0.01)
    assert row.spread == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize(
    "fault",
    [
        {"slope": 0.5},  # the paper's branches: half of the prediction
        {"slope": 1.3},
        {"slope": 1.15, "overhead": 5000},
        {"slope": 0.0},  # a RAW event that the processor lacks opens and reads 0
    ],
)
def test_a_skewed_counter_is_not_trusted_and_subtraction_does_not_hide_it(fault):
    row = judge("branches", "region", SIZES, SIZES, measured(SIZES, **fault))
    assert row.verdict == row.corrected == "do not trust"
    assert row.slope == pytest.approx(fault["slope"], abs=1e-6)
    assert not trusted(np.array([1e12]), row).any()


def test_a_counter_that_wraps_at_the_largest_sizes_is_not_trusted():
    wrapped = measured(SIZES)
    wrapped[:, -1] -= 2**19
    row = judge("cycles", "region", SIZES, SIZES, wrapped)
    assert row.verdict == "do not trust" and row.within_10 is None


def test_a_count_that_was_not_taken_is_no_agreement():
    holes = measured(SIZES)
    holes[:, -1] = np.nan
    assert judge("cycles", "region", SIZES, SIZES, holes).verdict == "do not trust"


def test_subtraction_and_majority():
    assert subtract_overhead(np.array([5.0, 100.0]), 10).tolist() == [0, 90]
    predicted = np.full(10, 100.0)
    off = predicted.copy()
    off[0] = 1000
    assert majority_error(off + 0.2, predicted) < 1.0
    assert np.isnan(judge("x", "simulator", SIZES, SIZES, SIZES).spread)
