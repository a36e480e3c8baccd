"""A recording as wide tables, one per process: the way from the screen's world to the miner's."""

from __future__ import annotations

import numpy as np

from pmutop.pipeline.clean import Cleaner
from pmutop.recording import MAGIC, Reader
from pmutop.slices import Exited, RawSlice, Task
from pmutop.wide import Table

#: Processes that moved in fewer slices than this tell nothing (the ranker's own least).
LEAST = 20


def is_recording(path) -> bool:
    """Whether `path` begins like a recording."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class Counted:
    """What one process counted in one slice: `values` float64 (events,) summed over its threads, NaN where it is not known
    for one of them; the ns in which each event was wanted and on a counter, (events,) each."""

    def __init__(self, events: int) -> None:
        self.values, self.enabled, self.running = np.zeros((3, events))

    def add(self, values: np.ndarray, enabled: np.ndarray, running: np.ndarray) -> None:
        self.values = self.values + values
        self.enabled = self.enabled + enabled
        self.running = self.running + running

    @property
    def share(self) -> np.ndarray:
        """The share of the time (events,) in which each event was on a counter; NaN where it was not wanted."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.enabled > 0, np.minimum(self.running / self.enabled, 1.0), np.nan)


class Increases:
    """Raw slices, one after the other, to what each process counted in them; nothing is cleaned but taken apart."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.cleaner = Cleaner(events)
        self.tasks: dict[int, Task] = {}
        self.leaders: dict[int, Task] = {}  # by pid: every living process

    def take(self, raw: RawSlice) -> dict[Task, Counted]:
        """The processes that moved in this slice, by their first thread."""
        gone = []
        for record in raw.records:
            if isinstance(record, Exited):
                gone.append(record.ref)
                continue
            self.tasks[record.task.ref] = record.task
            if record.task.is_process:
                self.leaders[record.task.pid] = record.task
        done, found = self.cleaner.clean(raw), {}
        columns = zip(done.refs.tolist(), done.increase, done.enabled, done.running, strict=True)
        for ref, increase, enabled, running in columns:
            task = self.tasks.get(ref)
            if task is None or np.isnan(increase).all():
                continue
            leader = self.leaders.get(task.pid, task)
            found.setdefault(leader, Counted(self.events)).add(increase, enabled, running)
        for ref in gone:
            task = self.tasks.pop(ref, None)
            if task is not None and task.is_process and self.leaders.get(task.pid) == task:
                del self.leaders[task.pid]
        return found


def tables_of(path, least: int = LEAST) -> list[Table]:
    """One table per process that moved in at least `least` slices, the busiest (by number of slices) first.

    A row is a slice in which the process moved: the increase of each event summed over its threads, NaN where it is not
    known for one of them. `label` is the command's name, `run` host/pid/start. A zero was counted: `running` is the share
    of the slice in which the event was on a counter (the recording's own estimate is in the value).
    """
    reader = Reader(str(path))
    names = tuple(event.name for event in reader.header.events)
    increases = Increases(len(names))
    found: dict[tuple, list] = {}
    try:
        for raw in reader:
            for task, counted in increases.take(raw).items():
                share = np.nan_to_num(counted.share, nan=1.0)
                found.setdefault((task.pid, task.start, task.comm), []).append(
                    (raw.wall, counted.values, share)
                )
    finally:
        reader.close()
    tables = []
    for (pid, start, comm), slices in found.items():
        if len(slices) < least:
            continue
        times, values, running = zip(*slices, strict=True)
        tables.append(
            Table(
                names,
                np.array(values),
                time=np.array(times),
                label=np.array([comm] * len(times)),
                run=np.array([f"{reader.header.host}/{pid}/{start:.2f}"] * len(times)),
                running=np.array(running),
                source=f"{path}, {comm} {pid}",
                problems=((0, reader.damage),) if reader.damage else (),
            )
        )
    return sorted(tables, key=lambda table: -len(table))
