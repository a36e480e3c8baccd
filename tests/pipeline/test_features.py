from dataclasses import replace

import numpy as np
import pytest
from making import EVENTS, NAMES

from pmutop.errors import BadInput
from pmutop.events import generic
from pmutop.pipeline.features import Features, needs


def row(**counts):
    values = np.zeros((1, len(NAMES)))
    for name, value in counts.items():
        values[0, NAMES.index(name.replace("_", "-"))] = value
    return values


def one(name, values, state="R", seconds=0.5):
    return Features([name], EVENTS).compute(values, np.array([ord(state)]), seconds)[0, 0]


def test_per_millisecond_of_run_time():
    assert one("minor-faults/ms", row(minor_faults=40, run_time=8_000_000)) == 5


def test_what_neighbours_took_is_columns_behind_the_events():
    values = np.hstack([row(run_time=100, run_delay=100), [[50.0, 20.0, 60.0]]])
    assert one("neighbour-delay/run-time+neighbour-delay", values) == pytest.approx(1 / 3)
    worst = "worst-thread-neighbour-delay/worst-thread-run-time+worst-thread-neighbour-delay"
    assert one(worst, values) == 0.75


def test_per_second_of_the_slice_that_really_passed():
    assert one("major-faults/s", row(major_faults=10), seconds=0.5) == 20


def test_share_of_a_sum():
    assert one("run-delay/run-time+run-delay", row(run_delay=30, run_time=10)) == 0.75


def test_state_is_one_or_zero():
    assert one("state=D", row(), "D") == 1 and one("state=D", row(), "S") == 0


def test_missing_stays_missing():
    assert np.isnan(one("minor-faults/ms", row(minor_faults=np.nan, run_time=1)))
    assert np.isnan(one("instructions/kc", row(run_time=1)))


def test_nothing_ran_is_not_a_rate_of_zero():
    assert np.isnan(one("minor-faults/ms", row(minor_faults=3)))


def test_per_thousand_instructions():
    events = (generic("instructions"), generic("branch-misses"))
    table = Features(["branch-misses/ki"], events).compute(np.array([[2e6, 3000.0]]), np.array([82]), 0.4)
    assert table[0, 0] == 1.5


def test_needs_names_every_event():
    assert needs("run-delay/run-time+run-delay") == ("run-delay", "run-time")
    assert needs("x/ms") == ("x", "run-time") and needs("state=D") == () and needs("x/s") == ("x",)


def test_an_event_may_be_spelt_with_slashes_as_in_sysfs():
    assert needs("armv8_pmuv3/l1d_cache//kc") == ("armv8_pmuv3/l1d_cache/", "cycles")
    assert needs("cpu/event=0x43,umask=0xfe//ki") == ("cpu/event=0x43,umask=0xfe/", "instructions")
    assert needs("a/b/+c/a/b/u") == ("a/b/", "c", "a/b/u") and needs("c/a/b/") == ("c", "a/b/")
    spelt = replace(generic("branch-misses"), name="cpu/event=0xc5/")
    table = Features(["cpu/event=0xc5//kc"], (generic("cycles"), spelt))
    assert table.compute(np.array([[2e6, 3000.0]]), np.array([82]), 0.4)[0, 0] == 1.5


@pytest.mark.parametrize("name", ["", "a b", "x/y/z", "__import__('os')", "a/", "a//kc", "/a/b"])
def test_what_is_no_feature_is_refused(name):
    with pytest.raises(BadInput):
        needs(name)
