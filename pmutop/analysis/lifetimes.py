"""From slices to whole lives: what each task counted from birth to death, and its place in the creation tree.

Source: "Fuse", section 2 (task profiles, task creation graphs). The task of a process tree is a thread; the place of a
process is its parent's and its rank among the parent's children, that of another thread the same under its process.
"""

from __future__ import annotations

import numpy as np

from pmutop.errors import BadInput
from pmutop.slices import Born, Header, RawSlice, Renamed, Task
from pmutop.wide import Table


class Lifetimes:
    """Feed it every RawSlice of a source with `add`; `below` then gives the tasks of a launched command."""

    def __init__(self, header: Header) -> None:
        self.events = [event.name for event in header.events]
        self.tasks: dict[int, Task] = {}  # by ref, in order of birth, under their last names
        self.totals: dict[int, np.ndarray] = {}  # by ref: float64 (events, 3), the last running totals

    def add(self, raw: RawSlice) -> None:
        for record in raw.records:
            if isinstance(record, Born | Renamed):
                parent = (
                    self.tasks[record.task.ref].ppid if record.task.ref in self.tasks else record.task.ppid
                )
                self.tasks[record.task.ref] = record.task._replace(ppid=parent)  # an orphan keeps its place
        refs = np.frombuffer(raw.refs, np.int64)
        if not len(refs):
            return
        counts = np.frombuffer(raw.counts, np.uint64).reshape(len(refs), -1, 3)[:, : len(self.events)]
        for ref, totals in zip(refs.tolist(), counts):
            self.totals[ref] = totals.astype(float)

    def below(self, root: int, events: list[str]) -> Table:
        """The process `root` and all that descends from it: a row per task, in order of birth, with `type` (the last name)
        and `path` ("0" for `root`). A count that ran for part of the time is scaled, one that never ran is NaN.

        Raises BadInput where `root` was not met or an event not counted.
        """
        for event in events:
            if event not in self.events:
                raise BadInput(f"{event} was not counted", f"counted were {', '.join(self.events)}")
        place: dict[int, str] = {}  # of processes, by pid; of two with one pid in turn, the later
        children: dict[str, int] = {}
        rows, paths, types = [], [], []
        columns = [self.events.index(event) for event in events]
        for ref, task in self.tasks.items():
            if task.pid == root and task.is_process:
                path = "0"
            else:
                above = place.get(task.ppid if task.is_process else task.pid)
                if above is None:
                    continue
                path = f"{above}.{children.get(above, 0)}"
                children[above] = children.get(above, 0) + 1
            if task.is_process:
                place[task.pid] = path
            rows.append(scaled(self.totals.get(ref, np.zeros((len(self.events), 3)))[columns]))
            paths.append(path)
            types.append(task.comm)
        if not rows:
            raise BadInput(f"process {root} was never met")
        return Table(tuple(events), np.array(rows), type=np.array(types), path=np.array(paths))


def scaled(totals: np.ndarray) -> np.ndarray:
    """Values (events,) from (events, 3) of value, time enabled and time running; NaN where it never ran."""
    value, enabled, running = totals.T
    with np.errstate(all="ignore"):
        return np.where(running > 0, np.where(running < enabled, value * enabled / running, value), np.nan)
