"""The nouns of the door: what every source yields, and nothing that is derived from it.

A RawSlice is what was read between two ticks, untouched: live, replayed and simulated slices are this one type, and
nothing above the door asks which. Blocks are flat buffers in native byte order (numpy wraps them without a copy);
this module itself needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pmutop.events import Event

#: Levels (not counters) of a task at the end of the slice; the columns of RawSlice.levels.
LEVELS = (
    "state",
    "cpu",
    "nice",
    "rss",
)  # ord of the /proc state letter, CPU it last ran on, nice value, bytes


class Task(NamedTuple):
    """Who: one thread, from birth to death. `ref` is unique within a recording and never used again.

    The main thread (tid == pid) carries what belongs to the process: cmdline, cgroup, cpus. Strings come from other processes
    and are hostile: they are cleaned where they are shown, never here.
    """

    ref: int
    pid: int
    tid: int
    ppid: int
    start: float  # Unix seconds, 10 ms grain
    comm: str
    user: str
    cgroup: str
    cmdline: str
    kernel: bool  # a kernel thread
    cpus: str = ""  # the CPUs that it may use where not all, as the kernel lists them (0-3,8)

    @property
    def is_process(self) -> bool:
        return self.pid == self.tid


class Born(NamedTuple):
    """A task was met for the first time (fork, or it was there before us)."""

    task: Task


class Renamed(NamedTuple):
    """The same task under new particulars (exec, prctl, a thread's own name, another parent)."""

    task: Task


class Exited(NamedTuple):
    """The task is gone; its last counts are in this same slice if they could still be read."""

    ref: int


Record = Born | Renamed | Exited


class Period(NamedTuple):
    """A stretch of one task on one CPU, exact from switch samples; times are monotonic nanoseconds."""

    cpu: int
    ref: int
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """What is true of all slices of a source."""

    version: str
    host: str
    boot: str  # boot id
    machine: dict  # model, cpus, kernel, hypervisor, ... : plain JSON
    source: str  # system | attach | simulated
    why: str  # one sentence: why this reader and not another
    interval: float  # asked for, seconds
    events: tuple[Event, ...]
    absent: dict[str, str] = field(default_factory=dict)  # event name -> why it cannot be counted here
    progress: str = ""  # the event that tells progress (--progress), "" where none was named


@dataclass(frozen=True)
class RawSlice:
    """Everything read between two ticks. Rows are the tasks that were read; one left out has not moved.

    counts: uint64, row-major (rows, events, 3): value, time_enabled, time_running, all running totals since the task was
    met; time_enabled 0 = this event is not being counted for this task. levels: int64 (rows, len(LEVELS)).
    periods: int64 (periods, 4) in the order of Period. machine: totals and levels of the whole machine, plain JSON
    (own_cpu_ns, own_rss, lost, switches, cpu_busy_ns per CPU, psi totals in us ...).
    """

    number: int
    start: int  # monotonic ns
    end: int
    wall: float  # Unix seconds at `end`
    late: float  # seconds behind the deadline
    records: tuple[Record, ...]
    refs: memoryview | bytes  # int64 (rows,)
    counts: memoryview | bytes
    levels: memoryview | bytes
    periods: memoryview | bytes = b""
    machine: dict = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9


class Source(Protocol):
    """The door. Iterating blocks until the next tick; slice 0 is the baseline and holds every task there is.

    A target that fails is data (a missing row, a record); only a failing source ends the iteration with an error.
    """

    header: Header

    def __iter__(self) -> Iterator[RawSlice]: ...

    def stop(self) -> None:
        """End the iteration at once, from any thread or signal handler; what is open stays open until `close`."""

    def close(self) -> None: ...
