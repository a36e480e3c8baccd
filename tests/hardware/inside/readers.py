"""What the checks of both readers share: slices taken one by one, and the exactness that both must show."""

import contextlib
import os
import signal
import time
from array import array

from loops import Spin

from pmutop.slices import Born, Renamed

PAIR = ["cycles:u", "instructions:u"]
#: Passes of three loops side by side, and of the same three in a second run.
LENGTHS = [500_000, 2_000_000, 1_000_000], [1_500_000, 2_000_000, 4_000_000]


class Watch:
    """The slices of a source, taken one by one; `total(tid, event)` is the last running total of a task, `cpus` by ref where
    its scheduling periods were."""

    def __init__(self, source):
        self.source = source
        self.slices = iter(source)
        self.names = [event.name for event in source.events]
        self.refs, self.totals, self.cpus = {}, {}, {}
        self.tick()

    def tick(self):
        raw = next(self.slices)
        for record in raw.records:
            if isinstance(record, Born | Renamed):
                self.refs[record.task.tid] = record.task.ref
        width = 3 * len(self.names)
        refs, counts = array("q", bytes(raw.refs)), array("Q", bytes(raw.counts))
        for row, ref in enumerate(refs):
            self.totals[ref] = counts[row * width : (row + 1) * width]
        periods = array("q", bytes(raw.periods))
        for cpu, ref in zip(periods[::4], periods[1::4], strict=True):
            self.cpus.setdefault(ref, set()).add(cpu)
        return raw

    def catch_up(self):
        """Take slices until one that began after this call: a reader may be some slices ahead of whoever takes them."""
        now = time.monotonic_ns()
        raw = self.tick()
        while raw.start < now:
            raw = self.tick()
        return raw

    def total(self, tid, event):
        """(value, time_enabled, time_running); all 0 while nothing was said of it."""
        at = 3 * self.names.index(event)
        return tuple(self.totals.get(self.refs.get(tid), [0] * 3 * len(self.names))[at : at + 3])


def nudge(spin):
    """Let a waiting task run for a moment, so that a reader meets it: stop and continue it."""
    os.kill(spin.pid, signal.SIGSTOP)
    os.kill(spin.pid, signal.SIGCONT)


def settle(watch, spins):
    """Until they wait and the reader has said all that they did: what was nudged restarts the read(2) in which it waits,
    what said "done" is on its way into it, and the slice that tells of either comes later."""
    for spin in spins:
        spin.wait_asleep()
    watch.catch_up()


def increases(make, lengths):
    """`increases_in` a reader of its own: make(interval, names) opens it."""
    watch = Watch(make(0.02, PAIR))
    with contextlib.closing(watch.source):
        return increases_in(watch, lengths)


def increases_in(watch, lengths):
    """(cycles, instructions) that the reader counted for each of several loops of these lengths running side by side."""
    with contextlib.ExitStack() as stack:
        spins = [stack.enter_context(Spin(passes, pieces=40)) for passes in lengths]
        while not all(watch.total(spin.pid, PAIR[1])[1] for spin in spins):
            for spin in spins:
                nudge(spin)
            watch.tick()
        settle(watch, spins)
        before = [[watch.total(spin.pid, name)[0] for name in PAIR] for spin in spins]
        for spin in spins:
            spin.go()
        for spin in spins:
            assert spin.process.stdout.readline() == b"done\n"
        settle(watch, spins)
        after = [[watch.total(spin.pid, name) for name in PAIR] for spin in spins]
        assert all(enabled == running > 0 for pair in after for _, enabled, running in pair), after
        return [
            [now[0] - then for now, then in zip(pair, start, strict=True)]
            for pair, start in zip(after, before, strict=True)
        ]


def differences_are_exact(make):
    """Two runs of three tasks that differ in length only: the difference is the loop's, to the digit, in the right task."""
    return exact(*(increases(make, lengths) for lengths in LENGTHS))


def exact(first, second):
    """What `increases` gave for both LENGTHS: their differences are those of the loops, and fields are not swapped."""
    overheads = [count[1] - 2 * passes for count, passes in zip(first, LENGTHS[0], strict=True)]
    got = [late[1] - early[1] for late, early in zip(second, first, strict=True)]
    assert got == [2 * (b - a) for a, b in zip(*LENGTHS, strict=True)], (got, overheads)
    assert all(cycles == 4 * instructions for cycles, instructions in first + second), (first, second)
    return {"overheads": overheads}
