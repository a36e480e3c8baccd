"""Combination on counters that somebody else recorded: two event lists with an alias pair that never pairs anything."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench" / "a15_combination.py"


@pytest.fixture(scope="module")
def found():
    spec = importlib.util.spec_from_file_location("a15_combination", BENCH)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    if not bench.a15_folder().is_dir():
        pytest.skip(f"no recorded counters at {bench.a15_folder()} (or set PMUTOP_DATA)")
    return bench.ratios()


def spread(ratio):
    return np.round(np.percentile(ratio, [1, 5, 95, 99]), 3).tolist()


def test_position_gives_the_figures_known_of_these_data(found):
    assert spread(found[0]["position (LGL)"]) == [0.776, 0.923, 1.035, 1.248]
    assert spread(found[0]["bound of any pairing"]) == [0.888, 0.942, 1.021, 1.062]


def test_bc_notices_that_cycles_are_constant_and_falls_back_to_position(found):
    ratios, said = found
    assert spread(ratios["BC (falls back to position)"]) == spread(ratios["position (LGL)"])
    assert any(line.startswith("CPU_CYCLES varies by less than 1 % in 9 of 9") for line in said)


def test_progress_is_closer_than_position(found):
    lowest, low, high, highest = spread(found[0]["progress"])
    assert 0.95 <= low and high <= 1.05
    assert 0.82 <= lowest and highest <= 1.20
