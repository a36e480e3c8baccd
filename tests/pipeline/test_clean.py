import numpy as np
import pytest
from making import EVENTS, NAMES, born, proc, raw, task

from pmutop.events import generic
from pmutop.moment import ESTIMATED, EXACT, FIRST, IMPOSSIBLE, REPLACED, UNCOUNTED
from pmutop.pipeline.clean import Cleaner, Scrutiny
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


# ---- scrutiny ---------------------------------------------------------------------------------------------------------

COUNTED = EVENTS + tuple(generic(name) for name in ("cycles", "instructions", "branches", "branch-misses"))
COLUMN = {event.name: at for at, event in enumerate(COUNTED)}
USUAL = {"cycles": 1_000_000, "instructions": 2_000_000, "branches": 400_000, "branch-misses": 4_000}


def scrutinised(rows, share=0.5):
    """Cleaned slices of one task from its counts per slice (dicts), each counted for `share` of the time."""
    cleaner, totals, out = Cleaner(len(COUNTED), Scrutiny(COUNTED)), dict.fromkeys(USUAL, 0), []
    cleaner.clean(raw(0, {}, events=COUNTED))
    for number, counts in enumerate(rows, 1):
        for name, value in counts.items():
            totals[name] += int(value * share)
        time = number * 1_000_000
        cells = {name: (value, time, int(time * share)) for name, value in totals.items()}
        out.append(
            cleaner.clean(
                raw(number, {1: (proc() | cells, "R")}, born(task(1)) if number == 1 else (), events=COUNTED)
            )
        )
    return out


def test_an_estimate_that_stands_alone_is_replaced_and_says_so():
    *_, odd, after = scrutinised([*[USUAL] * 8, USUAL | {"branch-misses": 40_000}, USUAL])
    at = COLUMN["branch-misses"]
    assert odd.quality[0, at] == REPLACED and abs(odd.increase[0, at] - 4000) < 10
    assert odd.quality[0, COLUMN["branches"]] == ESTIMATED and after.quality[0, at] == ESTIMATED


def test_what_was_counted_all_the_time_is_never_replaced():
    *_, odd = scrutinised([*[USUAL] * 8, USUAL | {"branch-misses": 40_000}], share=1)
    assert (
        odd.quality[0, COLUMN["branch-misses"]] == EXACT
        and odd.increase[0, COLUMN["branch-misses"]] == 40_000
    )


def test_a_phase_of_one_event_is_late_by_one_slice_and_one_of_all_by_none():
    *_, first, second = scrutinised([*[USUAL] * 8, *[USUAL | {"branch-misses": 40_000}] * 2])
    assert [done.quality[0, COLUMN["branch-misses"]] for done in (first, second)] == [REPLACED, ESTIMATED]
    other = {"cycles": 1_000_000, "instructions": 300_000, "branches": 20_000, "branch-misses": 15_000}
    *_, at_once = scrutinised([*[USUAL] * 8, other])
    assert set(at_once.quality[0, list(COLUMN.values())[-4:]].tolist()) == {ESTIMATED}


@pytest.mark.parametrize("share", [1, 0.5])
def test_what_no_machine_can_count_is_withheld(share):
    (odd,) = scrutinised([USUAL | {"branch-misses": 500_000}], share)
    at = COLUMN["branch-misses"]
    assert np.isnan(odd.increase[0, at]) and odd.quality[0, at] == IMPOSSIBLE
    assert odd.increase[0, COLUMN["branches"]] == 400_000


def test_another_task_in_the_same_place_has_no_past():
    cleaner = Cleaner(len(COUNTED), Scrutiny(COUNTED))
    cleaner.clean(raw(0, {}, events=COUNTED))
    for number in range(1, 12):
        cells = {name: (value * number, 1000 * number, 500 * number) for name, value in USUAL.items()}
        cleaner.clean(
            raw(number, {1: (proc() | cells, "R")}, born(task(1)) if number == 1 else (), events=COUNTED)
        )
    cleaner.clean(raw(12, {}, [Exited(1)], events=COUNTED))
    cells = {name: (value, 1000, 500) for name, value in (USUAL | {"branch-misses": 40_000}).items()}
    done = cleaner.clean(raw(13, {2: (proc() | cells, "R")}, born(task(2)), events=COUNTED))
    assert cleaner.slots == {2: 0} and done.quality[0, COLUMN["branch-misses"]] == ESTIMATED


def test_where_nothing_is_multiplexed_no_past_is_kept():
    cleaner = Cleaner(len(EVENTS), Scrutiny(EVENTS))
    for number in range(3):
        cleaner.clean(raw(number, {1: (proc(run_time=number), "R")}, born(task(1)) if not number else ()))
    assert cleaner.scrutiny.past is None
