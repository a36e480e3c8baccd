import numpy as np
from making import EVENTS, NAMES, born, proc, raw, task

from pmutop.moment import ESTIMATED, EXACT, FIRST, IMPOSSIBLE, UNCOUNTED
from pmutop.pipeline.clean import Cleaner
from pmutop.slices import Exited

CLOCK = NAMES.index("task-clock")
RUN = NAMES.index("run-time")


def clean(*slices):
    cleaner = Cleaner(len(EVENTS))
    return [cleaner.clean(one) for one in slices]


def test_the_first_slice_says_nothing():
    (first,) = clean(raw(0, {1: (proc(run_time=5), "R")}, born(task(1))))
    assert np.isnan(first.increase[:, RUN]).all() and (first.quality[:, RUN] == FIRST).all()


def test_increase_is_the_difference():
    _, second = clean(
        raw(0, {1: (proc(run_time=5), "R")}, born(task(1))), raw(1, {1: (proc(run_time=25), "R")})
    )
    assert second.increase[0, RUN] == 20 and second.quality[0, RUN] == EXACT


def test_a_zero_that_was_counted_is_a_zero():
    _, second = clean(raw(0, {1: (proc(), "R")}, born(task(1))), raw(1, {1: (proc(run_time=1), "R")}))
    assert second.increase[0, NAMES.index("major-faults")] == 0
    assert second.quality[0, NAMES.index("major-faults")] == EXACT


def test_a_task_born_later_began_at_zero():
    _, second = clean(raw(0, {}), raw(1, {7: (proc(run_time=42), "R")}, born(task(7))))
    assert second.increase[0, RUN] == 42 and second.quality[0, RUN] == EXACT


def test_differences_first_then_scaling():
    # running totals scaled first would say 200*1000/400 - 100*500/500 = 400
    _, second = clean(
        raw(0, {1: ({"task-clock": (100, 500, 500)}, "R")}, born(task(1))),
        raw(1, {1: ({"task-clock": (200, 1000, 750)}, "R")}),
    )
    assert second.increase[0, CLOCK] == 200 and second.quality[0, CLOCK] == ESTIMATED


def test_not_counted_is_never_zero():
    _, never, starved = clean(
        raw(0, {1: (proc(), "R")}, born(task(1))),
        raw(1, {1: (proc(run_time=1) | {"task-clock": (0, 0, 0)}, "R")}),
        raw(2, {1: (proc(run_time=2) | {"task-clock": (0, 900, 0)}, "R")}),
    )
    for cleaned in (never, starved):
        assert np.isnan(cleaned.increase[0, CLOCK]) and cleaned.quality[0, CLOCK] == UNCOUNTED


def test_a_count_that_goes_backwards_is_impossible():
    _, second = clean(
        raw(0, {1: (proc(run_time=50), "R")}, born(task(1))), raw(1, {1: (proc(run_time=49), "R")})
    )
    assert np.isnan(second.increase[0, RUN]) and second.quality[0, RUN] == IMPOSSIBLE


def test_a_group_opened_later_counts_from_zero():
    _, second = clean(
        raw(0, {1: (proc() | {"task-clock": (0, 0, 0)}, "R")}, born(task(1))),
        raw(1, {1: (proc(run_time=1) | {"task-clock": (30, 400, 400)}, "R")}),
    )
    assert second.increase[0, CLOCK] == 30 and second.quality[0, CLOCK] == EXACT


def test_state_is_kept_for_the_living_only():
    cleaner = Cleaner(len(EVENTS))
    cleaner.clean(raw(0, {}))
    for number in range(1, 2000):
        cleaner.clean(raw(number, {number: (proc(run_time=9), "R")}, [*born(task(number)), Exited(number)]))
    assert len(cleaner.last) == 256 and not cleaner.slots


def test_large_totals_lose_nothing():
    big = 2**63 + 10
    _, second = clean(
        raw(0, {1: (proc(run_time=big), "R")}, born(task(1))), raw(1, {1: (proc(run_time=big + 3), "R")})
    )
    assert second.increase[0, RUN] == 3
