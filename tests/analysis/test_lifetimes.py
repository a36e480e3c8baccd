"""Whole lives from slices made by hand: totals, places, names."""

import numpy as np
import pytest

from pmutop.analysis.lifetimes import Lifetimes
from pmutop.errors import BadInput
from pmutop.events import generic
from pmutop.slices import Born, Exited, Header, RawSlice, Renamed, Task

EVENTS = (generic("task-clock"), generic("page-faults"))


def task(ref, pid, ppid, comm, tid=None):
    return Task(ref, pid, tid or pid, ppid, 0.0, comm, "me", "", "", False)


def lives_of(*slices):
    """Slices as (records, {ref: [(value, enabled, running) per event]})."""
    lives = Lifetimes(Header("0", "here", "boot", {}, "system", "", 0.4, EVENTS))
    for number, (records, rows) in enumerate(slices):
        refs = np.array(list(rows), np.int64).tobytes()
        counts = np.array(list(rows.values()), np.uint64).tobytes()
        lives.add(RawSlice(number, number, number + 1, 0.0, 0.0, tuple(records), refs, counts, b""))
    return lives


def counted(clock, faults):
    return [(clock, 10, 10), (faults, 10, 10)]


def test_a_tree_of_processes_and_threads():
    lives = lives_of(
        (
            [Born(task(1, 10, 1, "shell")), Born(task(2, 77, 1, "other"))],
            {1: counted(1, 1), 2: counted(9, 9)},
        ),
        (
            [
                Born(task(3, 20, 10, "shell")),
                Born(task(4, 20, 10, "shell", tid=21)),
                Born(task(5, 30, 20, "shell")),
                Renamed(task(5, 30, 20, "cc1")),
                Exited(5),
                Born(task(6, 40, 10, "as")),
            ],
            {1: counted(5, 3), 3: counted(7, 70), 4: counted(8, 80), 5: counted(6, 60), 6: counted(2, 20)},
        ),
        ([Exited(3), Renamed(task(6, 40, 1, "as"))], {3: counted(9, 71)}),
    )
    table = lives.below(10, ["page-faults", "task-clock"])
    assert list(zip(table.path, table.type)) == [
        ("0", "shell"),
        ("0.0", "shell"),
        ("0.0.0", "shell"),
        ("0.0.1", "cc1"),
        ("0.1", "as"),
    ]
    assert table.values.tolist() == [[3, 5], [71, 9], [80, 8], [60, 6], [20, 2]]


def test_a_pid_that_comes_again_is_another_task():
    lives = lives_of(
        (
            [Born(task(1, 10, 1, "sh")), Born(task(2, 20, 10, "a")), Exited(2)],
            {1: counted(1, 1), 2: counted(2, 2)},
        ),
        ([Born(task(3, 20, 10, "b")), Born(task(4, 30, 20, "c"))], {3: counted(3, 3), 4: counted(4, 4)}),
    )
    table = lives.below(10, ["task-clock"])
    assert list(zip(table.path, table.type)) == [("0", "sh"), ("0.0", "a"), ("0.1", "b"), ("0.1.0", "c")]


def test_shared_counters_are_scaled_and_what_never_ran_is_missing():
    lives = lives_of(([Born(task(1, 10, 1, "x"))], {1: [(50, 100, 25), (0, 100, 0)]}))
    table = lives.below(10, ["task-clock", "page-faults"])
    assert table.values[0, 0] == 200 and np.isnan(table.values[0, 1])
    with pytest.raises(BadInput, match="never met"):
        lives.below(11, ["task-clock"])
    with pytest.raises(BadInput, match="cycles was not counted"):
        lives.below(10, ["cycles"])
