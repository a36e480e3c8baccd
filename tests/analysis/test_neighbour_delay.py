"""Whose fault a wait is, on slices whose answer is plain: threads by the process they belong to, their CPU, run and delay."""

import numpy as np
import pytest
from making import task

from pmutop.analysis.neighbour_delay import CPUs, neighbour_delay


def found(threads, cpus=("", ""), number=2, slice_ns=400.0):
    """threads: (process, CPU, run, delay); cpus: what each process may use. Lists as NEIGHBOURS, one a process."""
    rows, cpu, run, delay = map(np.array, zip(*threads, strict=True))
    processes = [task(ref)._replace(cpus=allowed) for ref, allowed in enumerate(cpus, 1)]
    machine = CPUs(number, slice_ns)
    return neighbour_delay(rows, cpu, run.astype(float), delay.astype(float), machine, processes).tolist()


def test_a_wait_is_a_neighbours_as_far_as_it_had_the_cpu():
    """Two threads of the first share CPU 0 with the second, and its third is alone on CPU 1, where it may stay idle."""
    first, second = found([(0, 0, 100, 300), (0, 0, 90, 310), (0, 1, 40, 20), (1, 0, 210, 190)])
    assert first == [210, 90, 210], "of 610 on CPU 0 the second had 210; for the rest CPU 1 was free"
    assert second == [190, 210, 190]


def test_threads_that_wait_for_one_another_wait_for_no_neighbour():
    assert found([(0, 0, 200, 200), (0, 0, 200, 200)], [""]) == [[0, 200, 0]]


@pytest.mark.parametrize(
    ("cpus", "beside", "owed"),
    [
        ("", 400, 400),  # the neighbour has the CPU on which one of the two might run
        ("0", 400, 0),  # where it may not run: nobody's fault
        ("0-1", 400, 400),
        ("", 100, 100),  # of 400 it might have run 300 there and did not
        ("", 0, 0),
    ],
)
def test_who_has_the_cpus_that_threads_might_have_run_on(cpus, beside, owed):
    waiting = [(0, 0, 200, 200), (0, 0, 200, 200)]
    assert found([*waiting, (1, 1, beside, 0)], [cpus, ""])[0] == [owed, 200, owed / 2]


def test_an_idle_cpu_that_nobody_was_seen_on_counts_as_idle():
    assert found([(0, 0, 200, 200), (0, 0, 200, 200), (1, 1, 400, 0)], number=3)[0] == [0, 200, 0]


def test_who_was_never_seen_on_a_cpu_is_nobodys_neighbour():
    assert [row[0] for row in found([(0, 0, 100, 50), (1, -1, 90, 9)])] == [0, 0]


def test_unknown_times_are_as_good_as_none():
    assert found([(0, 0, 100, np.nan), (1, 0, np.nan, 100)]) == [[0, 100, 0], [100, 0, 100]]


def test_no_threads_no_waits():
    nothing = np.zeros(0)
    none = np.zeros(0, int)
    assert neighbour_delay(none, none, nothing, nothing, CPUs(2, 400.0), [task(1)]).tolist() == [[0, 0, 0]]
