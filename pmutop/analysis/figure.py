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
    """The figure to explain: `wanted` (an event, or the ratio a/b of two), else IPC where it was counted, else USER_SHARE;
    ValueError where there is none."""
    has_ipc = cycles_column(events) is not None and instructions_column(events) is not None
    if wanted is None:
        wanted = IPC if has_ipc or not set(parts(USER_SHARE, events)) <= set(events) else USER_SHARE
    if wanted == IPC and not has_ipc:
        raise ValueError("no IPC without instructions and cycles")
    absent = [name for name in parts(wanted, events) if name not in events] if wanted != IPC else []
    if absent:
        raise ValueError(f"no event {absent[0]} to be explained")
    return wanted


def parts(target: str, events) -> tuple[str, ...]:
    """The event that is the figure, or the two of a ratio (an event may have a slash in its name)."""
    above, slash, below = target.rpartition("/")
    return (above, below) if slash and target not in events else (target,)


def explain(values, events, target: str, per: str = "cycle") -> Explained:
    """Counts (rows, events) as inputs and `target` (see `choose`).

    `per` divides the inputs: by cycle (a ratio a/b: by b), by instruction, or not at all (slice, and where that column was
    not counted); the column divided by is no input. A row without a figure has target NaN and inputs 0: leave it out.
    """
    events, values = list(events), np.asarray(values, float)
    cycles, instructions = cycles_column(events), instructions_column(events)
    made_of = (
        [instructions, cycles] if target == IPC else [events.index(name) for name in parts(target, events)]
    )
    by = {"cycle": made_of[1] if len(made_of) > 1 else cycles, "instruction": instructions, "slice": None}[
        per
    ]
    left_out = set(made_of)
    if any(events[at] in CLOCKS for at in made_of):
        left_out |= {at for at, name in enumerate(events) if name in CLOCKS}
    inputs = [at for at in range(len(events)) if at not in left_out and at != by]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.ones(len(values)) if by is None else values[:, by]
        rates = values[:, inputs] / scale[:, None]
        figure = values[:, made_of[0]] / (values[:, made_of[1]] if len(made_of) > 1 else 1.0)
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
