"""Which runs an interference training plans, and what their times are compared with."""

from collections import Counter

import numpy as np
import pytest

from pmutop.training.catalogue import applications
from pmutop.training.collect import Run
from pmutop.training.interference import factors
from pmutop.training.interference_runs import ALONE_REPEATS, MIXES, USUAL, plans

CHOSEN = [one for one in applications() if one.name in USUAL]
THREADED = {one.name for one in CHOSEN if "two-cpus" in one.needs}


def test_the_usual_set_is_the_thesis_and_more():
    assert {"MM-S", "MM-M", "MM-L", "SORT", "PR-2"} < {one.name for one in CHOSEN}
    assert len(CHOSEN) >= 10 and len(THREADED) >= 3


def test_every_run_has_a_name_of_its_own_and_every_role_is_filled():
    found = list(plans(CHOSEN, [0, 1]))
    assert len({one.name for one in found}) == len(found) < 150  # minutes, not hours
    paired = [one for one in found if one.partner]
    assert {one.victim.name for one in paired} == {one.partner.name for one in paired} == set(USUAL)
    mixes = Counter(one.mix for one in paired)
    assert set(mixes) == set(MIXES) and min(mixes.values()) >= len(CHOSEN) // 2


def test_a_victim_of_several_threads_is_hit_on_one_of_its_cpus():
    found = list(plans(CHOSEN, [0, 1]))
    assert {one.victim.name for one in found if one.placement == "half"} == THREADED
    assert all(one.wide == (one.placement == "half") for one in found if one.partner)
    alone = Counter((one.victim.name, one.wide) for one in found if not one.partner)
    assert set(alone) == {(name, False) for name in USUAL} | {(name, True) for name in THREADED}
    assert set(alone.values()) == {ALONE_REPEATS}


def test_one_cpu_has_no_other():
    assert {one.placement for one in plans(CHOSEN, [0])} == {"alone", "same"}


def run(seconds, placement="alone", cpus=1, victim="A"):
    return Run("", "", 1, 0, 3, {"victim": victim, "placement": placement, "seconds": seconds, "cpus": cpus})


def test_the_factor_is_over_the_same_victim_alone_on_as_many_cpus():
    runs = [run(1.0), run(1.02), run(0.5, cpus=2), run(0.51, cpus=2), run(2.02, "same"), run(1.01, "half", 2)]
    factor, label = factors(runs)
    assert factor[4:] == pytest.approx([2.0, 2.0]) and label.tolist() == [-1, -1, -1, -1, 1, 1]


def test_what_another_core_does_is_left_out_and_so_is_what_lies_between():
    runs = [
        run(1.0),
        run(1.1),
        run(1.5, "apart"),
        run(1.13, "same"),
        run(1.0, victim="B"),
        run(3.0, "same", victim="B"),
    ]
    factor, label = factors(runs)
    assert np.isnan(factor[2]) and label[2] == 0  # shared caches leave no trace in these events
    assert label[3] == 0  # 1.076 times, but within three sigma
    assert np.isnan(factor[4:]).all()  # one run alone has no spread
