"""Raw to cleaned: differences first, then scaling by enabled/running, then scrutiny; every number leaves with its quality.

Rates are not made here: whoever wants one divides by the time that really passed (RawSlice.seconds), never by 0.4.

What the verdicts are given: a value that was counted all the time is a fact and never smoothed away; an estimate
(running < enabled) that stands alone against its own past is replaced by the median of that past and marked `replaced`, and
the verdicts use it; a value that no machine can count (analysis.physics) is withheld and marked `impossible`, so that a
verdict that needs it abstains. Holes stay holes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmutop.analysis import cleaning, physics
from pmutop.events import PROC, Event
from pmutop.moment import ESTIMATED, EXACT, FIRST, IMPOSSIBLE, REPLACED, UNCOUNTED
from pmutop.slices import Exited, RawSlice

VALUE, ENABLED, RUNNING = range(3)


class Cleaned(NamedTuple):
    """refs int64 (rows,); increase float64 (rows, events), NaN = not known; quality uint8 (rows, events); enabled and
    running float64 (rows, events): ns in which the event was wanted, and on a counter, since the task was last read."""

    refs: np.ndarray
    increase: np.ndarray
    quality: np.ndarray
    enabled: np.ndarray
    running: np.ndarray


class Scrutiny:
    """Holds counts against physics and, where they are estimates, against their own past (CounterMiner, section III-B,
    with nothing but the past). Costs nothing where no event can break a rule and nothing is multiplexed."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.columns = np.array([at for at, event in enumerate(events) if event.type != PROC], np.intp)
        self.names = tuple(events[at].name for at in self.columns)
        self.rules = [
            (self.columns[part], self.columns[whole], factor)
            for part, whole, factor, _ in physics.applicable(self.names)
        ]
        self.past: cleaning.CausalCleaner | None = None  # from the first estimate on

    def look(self, slots: np.ndarray, value: np.ndarray, quality: np.ndarray) -> None:
        """Correct value (rows, events) and quality in place; row i is task slots[i], the same as long as it lives."""
        if not len(self.columns):
            return
        estimated = (quality == ESTIMATED).any(axis=1)
        if estimated.any():
            rows = np.flatnonzero(estimated)
            self.past = self.past or cleaning.CausalCleaner(0, self.names)
            self.past.room(int(slots[rows].max()) + 1)
            may = quality[np.ix_(rows, self.columns)] == ESTIMATED
            done = self.past.clean(value[np.ix_(rows, self.columns)], slots[rows], may, fill=False)
            self.mark(value, quality, rows, done.quality == cleaning.OUTLIER, done.values, REPLACED)
            self.mark(value, quality, rows, done.quality == cleaning.IMPOSSIBLE, np.nan, IMPOSSIBLE)
        broken = np.zeros(len(value), bool)
        for part, whole, factor in self.rules:
            broken |= value[:, part] > factor * value[:, whole]
        if broken.any():
            rows = np.flatnonzero(broken)
            block = value[np.ix_(rows, self.columns)]
            _, changed = physics.obey(block, np.full(block.shape, np.nan), self.names)
            self.mark(value, quality, rows, changed, np.nan, IMPOSSIBLE)

    def mark(self, value, quality, rows, which, becomes, mark: int) -> None:
        """Write `becomes` and `mark` where `which` (rows, columns) says."""
        at = rows[np.nonzero(which)[0]], self.columns[np.nonzero(which)[1]]
        value[at] = np.broadcast_to(becomes, which.shape)[which]
        quality[at] = mark

    def forget(self, slot: int) -> None:
        if self.past is not None and slot < len(self.past.last):
            self.past.forget(slot)


class Cleaner:
    """Remembers the last totals of every task, and nothing older; `scrutiny` (optional) what it needs of their past."""

    def __init__(self, events: int, scrutiny: Scrutiny | None = None) -> None:
        self.events = events
        self.scrutiny = scrutiny
        self.last = np.zeros((256, events, 3), np.uint64)
        self.slots: dict[int, int] = {}
        self.free = list(range(255, -1, -1))
        self.is_first = True

    def clean(self, raw: RawSlice) -> Cleaned:
        """The increase of every count since the task was last read.

        A task born after the first slice began at zero, so its totals are its increase; one that was there before us is
        FIRST. time_enabled that stood still or never began is UNCOUNTED (never 0); running < enabled is ESTIMATED by
        value * enabled / running; a total that went backwards is IMPOSSIBLE.
        """
        refs = np.frombuffer(raw.refs, np.int64)
        now = np.frombuffer(raw.counts, np.uint64).reshape(len(refs), self.events, 3)
        slots = np.fromiter((self.slot_of(ref) for ref in refs.tolist()), np.intp, len(refs))
        last = self.last[slots]
        value = (now[:, :, VALUE] - last[:, :, VALUE]).astype(np.float64)
        enabled = now[:, :, ENABLED].astype(np.float64) - last[:, :, ENABLED]
        running = now[:, :, RUNNING].astype(np.float64) - last[:, :, RUNNING]
        quality = np.full(value.shape, EXACT, np.uint8)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = (running > 0) & (running < enabled)
            value[part] *= enabled[part] / running[part]
        quality[part] = ESTIMATED
        quality[(running <= 0) | (now[:, :, ENABLED] == 0)] = UNCOUNTED
        quality[(now[:, :, VALUE] < last[:, :, VALUE])] = IMPOSSIBLE
        if self.is_first:
            quality[quality != UNCOUNTED] = FIRST
            self.is_first = False
        value[quality >= UNCOUNTED] = np.nan
        self.last[slots] = now
        if self.scrutiny is not None:
            self.scrutiny.look(slots, value, quality)
        for record in raw.records:
            if isinstance(record, Exited):
                self.forget(record.ref)
        return Cleaned(refs, value, quality, enabled, running)

    def slot_of(self, ref: int) -> int:
        slot = self.slots.get(ref)
        if slot is None:
            if not self.free:
                have = len(self.last)
                self.last = np.concatenate([self.last, np.zeros_like(self.last)])
                self.free = list(range(2 * have - 1, have - 1, -1))
            slot = self.slots[ref] = self.free.pop()
            self.last[slot] = 0
            if self.scrutiny is not None:
                self.scrutiny.forget(slot)
        return slot

    def forget(self, ref: int) -> None:
        slot = self.slots.pop(ref, None)
        if slot is not None:
            self.free.append(slot)
