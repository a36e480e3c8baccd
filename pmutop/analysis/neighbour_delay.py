"""How long a process was kept waiting by others: its run delay, less what its own threads are to blame for.

Who waits on a CPU waits for those that run on it, so of a wait no more is the neighbours' than the time they had there. What
is left, threads waited for one another; that is the neighbours' as well as far as they had the other CPUs that the process
may use and these were not idle anyway. Two threads on one CPU, alone, wait half their time, and nobody is to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pmutop.kernelfiles import cpu_list
from pmutop.slices import Task

#: What is found for each row, ns: the delay owed to neighbours, and run time and such delay of the thread held up most.
NEIGHBOURS = ("neighbour-delay", "worst-thread-run-time", "worst-thread-neighbour-delay")
#: Waits of a process's threads for one another below this share of the slice are not looked into.
LEAST_AMONG = 0.02


class CPUs(NamedTuple):
    """The machine in one slice: how many CPUs it has (0: not known), and how long the slice was, ns."""

    number: int
    slice_ns: float


class Waits(NamedTuple):
    """Of each pair of a process and a CPU it was on: `key` (row * CPUs + CPU), ns that `others` had there, ns `waited`."""

    key: np.ndarray
    others: np.ndarray
    waited: np.ndarray


def neighbour_delay(
    rows: np.ndarray,
    cpu: np.ndarray,
    run: np.ndarray,
    delay: np.ndarray,
    machine: CPUs,
    processes: Sequence[Task],
) -> np.ndarray:
    """float64 (processes, NEIGHBOURS) from the threads that moved: `rows` (k,) says which process each belongs to, `cpu` where
    it ran last (-1: nowhere when the slice ended), `run` and `delay` ns within the slice (NaN: not known, as good as none)."""
    found = np.zeros((len(processes), len(NEIGHBOURS)))
    if not len(rows):
        return found
    placed = cpu >= 0
    cpu, run, delay = np.where(placed, cpu, 0), np.nan_to_num(run) * placed, np.nan_to_num(delay) * placed
    width = max(int(cpu.max()) + 1, machine.number)
    key, at = np.unique(rows * width + cpu, return_inverse=True)
    busy = np.bincount(cpu, run, width)
    waits = Waits(key, busy[key % width] - np.bincount(at, run), np.bincount(at, delay))
    np.add.at(found[:, 0], key // width, np.minimum(waits.waited, waits.others))
    of_thread = np.minimum(delay, waits.others[at])
    among = np.bincount(rows, delay, len(found)) - found[:, 0]
    for row in np.flatnonzero(among > LEAST_AMONG * machine.slice_ns).tolist():
        allowed = [one for one in cpu_list(processes[row].cpus) or range(width) if one < width]
        extra = elsewhere(row, allowed, busy, waits, among[row], machine.slice_ns)
        found[row, 0] += extra
        mine = np.flatnonzero(rows == row)
        of_thread[mine] += (delay[mine] - of_thread[mine]) * (extra / among[row])
    order = np.lexsort((-run, of_thread, rows))
    worst = order[np.append(np.diff(rows[order]) > 0, True)]  # the last of each row
    found[rows[worst], 1], found[rows[worst], 2] = run[worst], of_thread[worst]
    return found


def elsewhere(
    row: int, allowed: Sequence[int], busy: np.ndarray, waits: Waits, among: float, slice_ns: float
) -> float:
    """For how much of what a process's threads waited `among` themselves neighbours are the reason, ns: they had CPUs that
    it might have used (`allowed`), and none of these was idle. `busy` (CPUs,): ns that anybody ran there."""
    width = len(busy)
    mine = np.flatnonzero(waits.key // width == row)
    left = np.maximum(waits.others - waits.waited, 0.0)  # on its own CPUs, and not counted already
    taken = dict(zip((waits.key[mine] % width).tolist(), left[mine].tolist(), strict=True))
    had = sum(taken.get(one, float(busy[one])) for one in allowed)
    idle = sum(max(slice_ns - float(busy[one]), 0.0) for one in allowed)
    return max(0.0, min(among - idle, had))
