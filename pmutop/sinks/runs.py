"""Runs of programs into a store (CounterMiner, section III-A): the launched command with all that it starts is one run, and
so is each process that was named; a row is a slice in which it moved."""

from __future__ import annotations

from pmutop.pipeline.series import Counted, Increases
from pmutop.selection import Selection
from pmutop.slices import Header, RawSlice, Task
from pmutop.store import Store


class Runs:
    """Given every raw slice; each is in the store, in a transaction of its own, before the next is waited for.

    chosen: root (a launched command, one run of the whole family under the name `program`) or pids (a run each, under
    the command's name). settings: the --param values. resume: go on with the runs of the same program, events and settings
    that were cut off.
    """

    def __init__(
        self,
        store: Store,
        header: Header,
        chosen: Selection,
        program: str | None = None,
        settings: dict[str, str] | None = None,
        resume: bool = False,
    ) -> None:
        self.store, self.header, self.chosen = store, header, chosen
        self.program, self.settings, self.resume = program, settings or {}, resume
        self.names = [event.name for event in header.events]
        self.increases = Increases(len(self.names))
        self.open: dict[int, int] = {}  # pid (0: the family) -> run
        self.done: list[int] = []
        self.went_on: set[int] = set()

    def write(self, raw: RawSlice) -> None:
        before = dict(self.increases.leaders)  # those who exit in this slice have still moved in it
        moved = self.increases.take(raw)
        tasks = list((before | self.increases.leaders | {task.pid: task for task in moved}).values())
        rows = self.chosen.rows(Present(tasks))
        wanted = {tasks[row].pid for row in rows}
        for pid, parts in self.parts(wanted, moved).items():
            counted = Counted(len(self.names))
            for part in parts.values():
                counted.add(part.values, part.enabled, part.running)
            run = self.open.get(pid) or self.begin(pid, next(iter(parts)))
            self.store.append(run, raw.wall, counted.values, counted.share)
        for pid in [pid for pid in self.open if pid and pid not in self.increases.leaders]:
            self.finish(pid)

    def parts(self, wanted: set[int], moved: dict[Task, Counted]) -> dict[int, dict[Task, Counted]]:
        """What each run is made of in this slice: all of the family, or one process."""
        found: dict[int, dict[Task, Counted]] = {}
        for task, counted in moved.items():
            if task.pid in wanted:
                found.setdefault(0 if self.chosen.root is not None else task.pid, {})[task] = counted
        return found

    def begin(self, pid: int, task: Task) -> int:
        program = self.program or task.comm.encode(errors="surrogateescape").decode(errors="replace")
        run = self.store.open_run(program, self.names, self.settings) if self.resume else None
        if run is not None and run not in self.open.values():
            self.went_on.add(run)
        else:
            interval, host = self.header.interval, self.header.host
            run = self.store.begin_run(program, self.names, "MLPX", interval, self.settings, host)
        self.open[pid] = run
        return run

    def finish(self, pid: int) -> None:
        run = self.open.pop(pid)
        self.store.finish(run)
        self.done.append(run)

    def close(self) -> None:
        """The runs are over, by themselves or because nobody wants more of them."""
        for pid in list(self.open):
            self.finish(pid)


class Present:
    """All that a Selection asks of a Moment."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks
