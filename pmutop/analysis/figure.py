"""What is to be explained, and by what: the performance figure of each slice, and the events that may explain it
(CounterMiner, section III-C: IPC, and instructions and cycles are never inputs of it)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmutop.analysis.analogues import cycles_column

IPC = "IPC"
#: Without a PMU nothing counts the work done while running. The nearest to IPC that every user's /proc has is the share of
#: its CPU time in which the program's own code ran: what faults, system calls and switches cost is missing from it. Its
#: grain is that of user-time, 10 ms.
USER_SHARE = "user-time/run-time"
#: They tell the same time; none of them explains another.
CLOCKS = frozenset({"user-time", "system-time", "run-time", "task-clock", "cpu-clock"})
INSTRUCTIONS = ("instructions", "inst_retired", "inst_retired.any", "instr_retired")
#: An event that was not counted in more than this share of the slices is no input.
HOLES = 0.1


class Explained(NamedTuple):
    """inputs float64 (rows, inputs), target float64 (rows,), names of the inputs."""

    inputs: np.ndarray
    target: np.ndarray
    names: list[str]


def instructions_column(events) -> int | None:
    return next((at for at, name in enumerate(events) if name.lower() in INSTRUCTIONS), None)


def choose(events, wanted: str | None = None) -> str:
    """The figure to explain: `wanted`, else IPC where it was counted, else USER_SHARE; ValueError where there is none."""
    if wanted is not None and wanted not in (IPC, USER_SHARE):
        if wanted not in events:
            raise ValueError(f"no event {wanted} to be explained")
        return wanted
    has_ipc = cycles_column(events) is not None and instructions_column(events) is not None
    if has_ipc and wanted != USER_SHARE:
        return IPC
    if set(USER_SHARE.split("/")) <= set(events) and wanted != IPC:
        return USER_SHARE
    raise ValueError("no IPC without instructions and cycles")


def explain(values, events, target: str, per: str = "cycle") -> Explained:
    """Counts (rows, events) as inputs and `target` (see `choose`).

    `per` divides the inputs: by cycle (by run time for USER_SHARE), by instruction, or not at all (slice, and where that
    column was not counted); the column divided by is no input. A row without a figure has target NaN and inputs 0: leave
    it out.
    """
    events, values = list(events), np.asarray(values, float)
    cycles, instructions = cycles_column(events), instructions_column(events)
    by = {"cycle": cycles, "instruction": instructions, "slice": None}[per]
    if target == USER_SHARE and per == "cycle":
        by = events.index("run-time")
    same = CLOCKS if target in CLOCKS | {USER_SHARE} else {target}
    left_out = {at for at, name in enumerate(events) if name in same}
    if target == IPC:
        left_out = {cycles, instructions}
    inputs = [at for at in range(len(events)) if at not in left_out and at != by]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.ones(len(values)) if by is None else values[:, by]
        rates = values[:, inputs] / scale[:, None]
        if target == IPC:
            figure = values[:, instructions] / values[:, cycles]
        elif target == USER_SHARE:
            figure = values[:, events.index("user-time")] / values[:, events.index("run-time")]
        else:
            figure = values[:, events.index(target)]
    rows = np.isfinite(figure) & np.isfinite(scale) & (scale > 0)
    rates[~rows] = 0
    return Explained(rates, np.where(rows, figure, np.nan), [events[at] for at in inputs])


def usable(explained: Explained) -> Explained:
    """Only the rows with a figure and without a hole, and the inputs that were counted in nearly all of them and move."""
    inputs, target, names = explained
    rows = np.isfinite(target)
    known = np.isfinite(inputs[rows])
    columns = np.flatnonzero((~known).mean(axis=0) <= HOLES) if rows.any() else np.arange(0)
    rows[rows] = known[:, columns].all(axis=1)
    inputs, target = inputs[rows][:, columns], target[rows]
    moving = np.ptp(inputs, axis=0) > 0 if len(inputs) else np.zeros(len(columns), bool)
    return Explained(inputs[:, moving], target, [names[at] for at in columns[moving]])
