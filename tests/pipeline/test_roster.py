import numpy as np
from making import EVENTS, NAMES, born, proc, raw, task

from pmutop.moment import ESTIMATED, EXACT, UNCOUNTED
from pmutop.pipeline.clean import Cleaner
from pmutop.pipeline.roster import Roster
from pmutop.slices import Exited, Renamed

RUN, DELAY, FAULTS, CLOCK = (
    NAMES.index(name) for name in ("run-time", "run-delay", "minor-faults", "task-clock")
)


def run(*slices, per_thread=False):
    cleaner, roster = Cleaner(len(EVENTS)), Roster(len(EVENTS), RUN, DELAY, per_thread)
    for one in slices:
        roster.update(one, cleaner.clean(one))
    return roster


def row_of(roster, pid):
    return next(row for row, one in enumerate(roster.tasks) if one.pid == pid)


def test_threads_add_up_to_their_process():
    main, other = task(1, pid=50), task(2, pid=50, tid=51)
    roster = run(
        raw(0, {1: (proc(), "S"), 2: (proc(), "S")}, born(main, other)),
        raw(1, {1: (proc(run_time=10, minor_faults=1), "S"), 2: (proc(run_time=30, minor_faults=2), "R")}),
    )
    row = row_of(roster, 50)
    assert (roster.increase[row, RUN], roster.increase[row, FAULTS]) == (40, 3)
    assert roster.threads[row] == 2 and chr(roster.levels[row, 0]) == "R"


def test_threads_that_wait_for_one_another_wait_for_no_neighbour():
    roster = run(
        raw(0, {}, born(task(1, pid=50), task(2, pid=50, tid=51))),
        raw(
            1,
            {1: (proc(run_time=200, run_delay=200), "R", 0), 2: (proc(run_time=200, run_delay=200), "R", 0)},
        ),
    )
    assert roster.neighbours.tolist() == [[0, 200, 0]]
    roster.update(raw(2, {}), Cleaner(len(EVENTS)).clean(raw(2, {})))
    assert roster.neighbours.tolist() == [[0, 0, 0]], "who did not move did not wait"


def test_per_thread_keeps_them_apart():
    main, other = task(1, pid=50), task(2, pid=50, tid=51)
    roster = run(
        raw(0, {}),
        raw(1, {1: (proc(run_time=10), "S"), 2: (proc(run_time=30), "R")}, born(main, other)),
        per_thread=True,
    )
    assert sorted(roster.increase[:, RUN].tolist()) == [10, 30] and len(roster.tasks) == 2


def test_who_did_not_move_increased_by_an_exact_zero():
    roster = run(
        raw(0, {1: (proc(run_time=3), "S")}, born(task(1))), raw(1, {1: (proc(run_time=4), "S")}), raw(2, {})
    )
    assert roster.increase[0, RUN] == 0 and roster.quality[0, RUN] == EXACT
    assert np.isnan(roster.increase[0, CLOCK]) and roster.quality[0, CLOCK] == UNCOUNTED


def uncounted_thread(share):
    """A process of two threads, the second without a perf group, holding `share` of the run time."""
    main, other = task(1, pid=50), task(2, pid=50, tid=51)
    first, second = int(1000 * (1 - share)), int(1000 * share)
    return run(
        raw(0, {}),
        raw(
            1,
            {1: (proc(run_time=first) | {"task-clock": first}, "R"), 2: (proc(run_time=second), "R")},
            born(main, other),
        ),
    )


def test_a_small_uncounted_rest_makes_an_estimate():
    roster = uncounted_thread(0.02)
    assert roster.quality[0, CLOCK] == ESTIMATED and roster.increase[0, CLOCK] == 1000


def test_a_large_uncounted_rest_makes_the_sum_unknown():
    roster = uncounted_thread(0.4)
    assert roster.quality[0, CLOCK] == UNCOUNTED and np.isnan(roster.increase[0, CLOCK])


def test_exited_rows_are_shown_once_and_leave():
    roster = run(
        raw(0, {1: (proc(), "S"), 2: (proc(), "S")}, born(task(1), task(2))), raw(1, {}, [Exited(1)])
    )
    assert roster.exited[row_of(roster, 1001)]
    after = raw(2, {})
    roster.update(after, Cleaner(len(EVENTS)).clean(after))
    assert [one.ref for one in roster.tasks] == [2] and not roster.exited[0]


def test_a_reused_pid_is_somebody_else():
    old, new = task(1, pid=77, comm="old"), task(2, pid=77, comm="new")
    roster = run(
        raw(0, {1: (proc(run_time=100), "R")}, born(old)),
        raw(1, {2: (proc(run_time=5), "R")}, [Exited(1), *born(new)]),
    )
    assert roster.increase[next(i for i, one in enumerate(roster.tasks) if one.comm == "new"), RUN] == 5


def test_rename_changes_the_row():
    roster = run(raw(0, {1: (proc(), "S")}, born(task(1))), raw(1, {}, [Renamed(task(1, comm="execed"))]))
    assert roster.tasks[0].comm == "execed"


def test_many_come_and_go_and_the_table_stays_small_and_right():
    cleaner, roster = Cleaner(len(EVENTS)), Roster(len(EVENTS), RUN, DELAY)
    stays = task(1, comm="stays")
    slices = [raw(0, {1: (proc(run_time=1), "R")}, born(stays))]
    for number in range(1, 300):
        one = task(number + 1)
        records = [*born(one), *([Exited(number)] if number > 1 else [])]
        slices.append(
            raw(number, {1: (proc(run_time=1 + number), "R"), number + 1: (proc(run_time=7), "R")}, records)
        )
    for one in slices:
        roster.update(one, cleaner.clean(one))
    row = next(i for i, one in enumerate(roster.tasks) if one.comm == "stays")
    assert len(roster.tasks) <= 4 and roster.increase[row, RUN] == 1
