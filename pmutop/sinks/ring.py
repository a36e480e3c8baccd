"""The look-back: the last minutes of raw slices, packed, ready to be written out as a recording.

A recording begins with a baseline that holds every task and its totals. The ring keeps one as of its oldest slice: a slice
that leaves is folded into it. Packed slices that do not fit into memory wait in unlinked files.
"""

from __future__ import annotations

import os
import struct
import threading
import time
import zlib
from collections import deque
from dataclasses import replace
from typing import NamedTuple

from pmutop.recording import BLOCK, Recorder, decode, encode, sealed
from pmutop.slices import LEVELS, Born, Exited, Header, RawSlice, Task

SEGMENT = 16 << 20  # bytes of one unlinked file
COUNT = 3 * 8  # bytes of (value, enabled, running)


class Segment:
    """An unlinked file that goes when the last block in it does."""

    def __init__(self) -> None:
        import tempfile  # 10 ms that the first frame need not wait for

        folder = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None  # /tmp may be memory
        self.descriptor, path = tempfile.mkstemp(prefix="pmutop-", dir=folder)
        os.unlink(path)
        self.size = 0

    def append(self, data: bytes) -> int:
        place = self.size
        if os.pwrite(self.descriptor, data, place) != len(data):
            raise OSError("the disk is full")
        self.size += len(data)
        return place

    def __del__(self) -> None:
        os.close(self.descriptor)


class Block(NamedTuple):
    """One packed slice: in memory, or at a place in a segment."""

    number: int  # of the slice
    end: int  # monotonic ns
    size: int
    data: bytes | None
    segment: Segment | None
    place: int

    def read(self) -> bytes:
        return (
            self.data if self.data is not None else os.pread(self.segment.descriptor, self.size, self.place)
        )


class Ring:
    """Holds the slices of the last `minutes`, `memory` bytes of them in memory; `add` and `write` from any threads.

    cmdlines: False leaves command lines out of what is held and written. Where no file can be written for what exceeds
    the memory, the oldest slices go early.
    """

    def __init__(
        self, header: Header, minutes: float = 10.0, memory: int = 64 << 20, cmdlines: bool = True
    ) -> None:
        self.header = header
        self.span = minutes * 60e9
        self.memory = memory
        self.cmdlines = cmdlines
        self.kept: deque[Block] = deque()  # in unlinked files, oldest first
        self.fresh: deque[Block] = deque()  # in memory, after them
        self.held = 0  # bytes in memory
        self.baseline = Baseline(len(header.events))
        self.segment: Segment | None = None
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.kept) + len(self.fresh)

    @property
    def seconds(self) -> float:
        """From the end of the oldest slice to that of the newest."""
        oldest = self.kept or self.fresh
        return (self.fresh[-1].end - oldest[0].end) / 1e9 if self.fresh else 0.0

    def add(self, raw: RawSlice) -> None:
        data = sealed(encode(raw, self.cmdlines))
        with self.lock:
            self.fresh.append(Block(raw.number, raw.end, len(data), data, None, 0))
            self.held += len(data)
            while self.held > self.memory and len(self.fresh) > 1:
                self.move_out()
            while self.seconds * 1e9 > self.span:
                self.drop()

    def move_out(self) -> None:
        """The oldest block in memory goes to a file; where that cannot be, everything older is let go with it."""
        block = self.fresh[0]
        try:
            if self.segment is None or self.segment.size + block.size > SEGMENT:
                self.segment = Segment()
            place = self.segment.append(block.data)
        except OSError:
            while self.kept:
                self.drop()
            self.drop()
            return
        self.fresh.popleft()
        self.held -= block.size
        self.kept.append(block._replace(data=None, segment=self.segment, place=place))

    def drop(self) -> None:
        """The oldest slice is folded into the baseline."""
        if self.kept:
            block = self.kept.popleft()
        else:
            block = self.fresh.popleft()
            self.held -= block.size
        self.baseline.fold(unsealed(block.read()))

    @property
    def oldest(self) -> int | None:
        """The number of the oldest slice held that has rates; the first of all is a baseline."""
        with self.lock:
            blocks = self.kept or self.fresh
            return blocks[0].number + (self.baseline.last is None) if blocks else None

    def cut(self, first: int | None = None, last: int | None = None) -> tuple[RawSlice | None, list[Block]]:
        """Slices `first` to `last` as they are needed to be judged: the baseline before them, and their blocks.

        None stands for the oldest and the newest. The baseline is None where the source's own is among the blocks. The
        blocks hold their files: what the ring drops meanwhile can still be read.
        """
        with self.lock:
            baseline = self.baseline.copy()
            blocks = [*self.kept, *self.fresh]
        for block in blocks:
            if first is None or block.number >= first:
                break
            baseline.fold(unsealed(block.read()))
        wanted = [
            block
            for block in blocks
            if (first is None or block.number >= first) and (last is None or block.number <= last)
        ]
        return baseline.slice(), wanted

    def write(
        self, path: str, force: bool = False, first: int | None = None, last: int | None = None
    ) -> tuple[int, float]:
        """Write what is held, or slices `first` to `last` of it, as a recording (mode 0600); returns how many slices and
        seconds. Raises PmutopError."""
        baseline, blocks = self.cut(first, last)
        recorder = Recorder(path, self.header, force=force)
        try:
            if baseline is not None:
                recorder.write(baseline)
            for block in blocks:
                recorder.put(block.read())
        finally:
            recorder.close()
        return len(blocks), (blocks[-1].end - blocks[0].end) / 1e9 if blocks else 0.0


def unsealed(data: bytes) -> RawSlice:
    return decode(zlib.decompress(data[BLOCK.size :]))


class Baseline:
    """All living tasks with the totals and levels that they were last read with, as of the end of the last folded slice."""

    def __init__(self, events: int) -> None:
        self.row = events * COUNT
        self.tasks: dict[int, Task] = {}
        self.counts: dict[int, bytes] = {}
        self.levels: dict[int, bytes] = {}
        self.last: RawSlice | None = None

    def copy(self) -> Baseline:
        """The same baseline, to be folded further without touching this one."""
        other = Baseline(0)
        other.row, other.last = self.row, self.last
        other.tasks, other.counts, other.levels = dict(self.tasks), dict(self.counts), dict(self.levels)
        return other

    def fold(self, raw: RawSlice) -> None:
        for record in raw.records:
            if not isinstance(record, Exited):
                self.tasks[record.task.ref] = record.task
        width = len(LEVELS) * 8
        for number, (ref,) in enumerate(struct.iter_unpack("q", raw.refs)):
            self.counts[ref] = raw.counts[number * self.row : (number + 1) * self.row]
            self.levels[ref] = raw.levels[number * width : (number + 1) * width]
        for record in raw.records:
            if isinstance(record, Exited):
                for table in (self.tasks, self.counts, self.levels):
                    table.pop(record.ref, None)
        self.last = raw

    def slice(self) -> RawSlice | None:
        """The baseline as a slice, None where nothing was folded yet (the source's own is still held)."""
        if self.last is None:
            return None
        refs = list(self.counts)
        return replace(
            self.last,
            records=tuple(map(Born, self.tasks.values())),
            refs=struct.pack(f"{len(refs)}q", *refs),
            counts=b"".join(self.counts[ref] for ref in refs),
            levels=b"".join(self.levels[ref] for ref in refs),
            periods=b"",
        )


def name_for(folder: str) -> str:
    """A name that is not taken: pmutop-20261121T140207.pmu, with -2 and so on in the same second."""
    stem = os.path.join(folder, time.strftime("pmutop-%Y%m%dT%H%M%S"))
    path, number = f"{stem}.pmu", 1
    while os.path.exists(path):
        number += 1
        path = f"{stem}-{number}.pmu"
    return path
