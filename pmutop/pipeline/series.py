"""A recording as wide tables, one per process: the way from the screen's world to the miner's."""

from __future__ import annotations

import numpy as np

from pmutop.moment import ESTIMATED
from pmutop.pipeline.clean import Cleaner
from pmutop.recording import MAGIC, Reader
from pmutop.slices import Exited
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


def tables_of(path, least: int = LEAST) -> list[Table]:
    """One table per process that moved in at least `least` slices, the busiest (by number of slices) first.

    A row is a slice in which the process moved: the increase of each event summed over its threads, NaN where it is not
    known for one of them. `label` is the command's name, `run` host/pid/start. A zero was counted: `running` is 1 where
    the event was on a counter all the time, less where it was not (the recording's own estimate is in the value).
    """
    reader = Reader(str(path))
    names = tuple(event.name for event in reader.header.events)
    cleaner, tasks, leaders = Cleaner(len(names)), {}, {}
    found: dict[tuple, dict[int, list]] = {}
    try:
        for raw in reader:
            gone = []
            for record in raw.records:
                if isinstance(record, Exited):
                    gone.append(record.ref)
                    continue
                tasks[record.task.ref] = record.task
                if record.task.is_process:
                    leaders[record.task.pid] = record.task
            done = cleaner.clean(raw)
            for ref, increase, quality in zip(done.refs.tolist(), done.increase, done.quality, strict=True):
                task = tasks.get(ref)
                if task is None or np.isnan(increase).all():
                    continue
                leader = leaders.get(task.pid, task)
                slices = found.setdefault((leader.pid, leader.start, leader.comm), {})
                row = slices.setdefault(raw.number, [raw.wall, np.zeros(len(names)), np.ones(len(names))])
                row[1] = row[1] + increase
                row[2] = np.where(quality == ESTIMATED, 0.5, row[2])
            for ref in gone:
                tasks.pop(ref, None)
    finally:
        reader.close()
    tables = []
    for (pid, start, comm), slices in found.items():
        if len(slices) < least:
            continue
        times, values, running = zip(*slices.values(), strict=True)
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
