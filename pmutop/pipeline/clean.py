"""Raw to cleaned: differences first, then scaling by enabled/running; every number leaves with its quality.

Rates are not made here: whoever wants one divides by the time that really passed (RawSlice.seconds), never by 0.4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmutop.moment import ESTIMATED, EXACT, FIRST, IMPOSSIBLE, UNCOUNTED
from pmutop.slices import Exited, RawSlice

VALUE, ENABLED, RUNNING = range(3)


class Cleaned(NamedTuple):
    """refs int64 (rows,); increase float64 (rows, events), NaN = not known; quality uint8 (rows, events)."""

    refs: np.ndarray
    increase: np.ndarray
    quality: np.ndarray


class Cleaner:
    """Remembers the last totals of every task, and nothing older."""

    def __init__(self, events: int) -> None:
        self.events = events
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
        for record in raw.records:
            if isinstance(record, Exited):
                self.forget(record.ref)
        return Cleaned(refs, value, quality)

    def slot_of(self, ref: int) -> int:
        slot = self.slots.get(ref)
        if slot is None:
            if not self.free:
                have = len(self.last)
                self.last = np.concatenate([self.last, np.zeros_like(self.last)])
                self.free = list(range(2 * have - 1, have - 1, -1))
            slot = self.slots[ref] = self.free.pop()
            self.last[slot] = 0
        return slot

    def forget(self, ref: int) -> None:
        slot = self.slots.pop(ref, None)
        if slot is not None:
            self.free.append(slot)
