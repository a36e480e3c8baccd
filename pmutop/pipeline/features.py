"""Cleaned counts to features: a feature is a named ratio, written as it is read on the screen.

`minor-faults/ms` is per millisecond of run time, `switches/s` per second of slice, `run-time/slice` the share of a slice
that a time (ns) takes, `x/ki` per 1000 instructions, `x/kc` per 1000 cycles; anything else behind the last slash is itself a sum of events, e.g.
`run-delay/run-time+run-delay`. `state=D` is 1 where the task was in that /proc state at the end of the slice, and
`counted=x` where event x was counted in it: a tree can ask first whether it may rely on it. An event's name may itself
hold slashes, as sysfs spells it: `armv8_pmuv3/l1d_cache//kc`. `NEIGHBOURS` are columns more than the source has events:
how long a process waited while others had its CPUs (for its own threads it may wait without anybody's fault), and the same of
its thread that was held up most, which a sum over all would hide.
Training and the live path share this file; a missing event makes a missing (NaN) feature, never a 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from pmutop.analysis.neighbour_delay import NEIGHBOURS
from pmutop.errors import BadInput
from pmutop.events import Event

#: Denominators with a meaning of their own: name -> (event or None for the slice itself, divisor)
PER = {
    "ms": ("run-time", 1e6),
    "s": (None, 1.0),
    "slice": (None, 1e-9),
    "ki": ("instructions", 1e3),
    "kc": ("cycles", 1e3),
}
EVENT = r"(?:[\w.-]+/[\w.:=,-]+/[uk]?|[\w.:=-]+)"
SUM = rf"{EVENT}(?:\+{EVENT})*"
NAME = re.compile(rf"({SUM})(?:/({SUM}))?")


class Features:
    """Computes the features `names` from the columns `events`, then NEIGHBOURS; `needs[i]` are the events of feature i."""

    def __init__(self, names: list[str], events: tuple[Event, ...]) -> None:
        self.names = list(names)
        columns = [event.name for event in events] + list(NEIGHBOURS)
        self.column = {name: number for number, name in enumerate(columns)}
        self.needs = [needs(name) for name in names]
        self.rows: list[Callable] = [self.plan(name) for name in names]

    def plan(self, name: str) -> Callable:
        """A function of (increase (rows, events), state codes (rows,), seconds) that returns one column."""
        if name.startswith("state="):
            letter = ord(name[6:])
            return lambda increase, state, seconds: (state == letter).astype(np.float64)
        if name.startswith("counted="):
            column = self.column.get(name[8:])
            return lambda increase, state, seconds: (
                np.zeros(len(increase))
                if column is None
                else (~np.isnan(increase[:, column])).astype(np.float64)
            )
        above, below = parted(name)
        above_columns = self.columns(above)
        event, divisor = PER.get(below, (below, 1.0))
        below_columns = self.columns(event) if event else None
        if above_columns is None or (event and below_columns is None):
            return lambda increase, state, seconds: np.full(len(increase), np.nan)

        def ratio(increase, state, seconds):
            top = increase[:, above_columns].sum(axis=1)
            if below_columns is None:
                return top * divisor / seconds
            bottom = increase[:, below_columns].sum(axis=1) / divisor
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(bottom > 0, top / bottom, np.nan)

        return ratio

    def columns(self, names: str) -> list[int] | None:
        found = [self.column.get(name) for name in names.split("+")]
        return None if None in found else found

    def compute(self, increase: np.ndarray, state: np.ndarray, seconds: float) -> np.ndarray:
        """float64 (rows, features) from increase (rows, events and, where a feature wants them, NEIGHBOURS) and the /proc
        state letters' codes (rows,)."""
        table = np.empty((len(increase), len(self.rows)))
        for number, row in enumerate(self.rows):
            table[:, number] = row(increase, state, seconds)
        return table


def parted(name: str) -> tuple[str, str]:
    """(what is counted, per what; "" for an event as it is); raises BadInput for something that is not a feature's name."""
    found = NAME.fullmatch(name)
    if not found:
        raise BadInput(f"'{name}' is not the name of a feature")
    return found[1], found[2] or ""


def needs(name: str) -> tuple[str, ...]:
    """The events that a feature is made of; raises BadInput for something that is not a feature's name."""
    above, below = parted(name)
    if name.startswith(("state=", "counted=")):
        return ()
    event = PER.get(below, (below, 1.0))[0]
    return tuple(dict.fromkeys(above.split("+") + (event.split("+") if event else [])))
