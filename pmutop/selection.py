"""Which processes a view shows: by pid, user, cgroup, or because a launched command brought them forth."""

from __future__ import annotations

from dataclasses import dataclass, field

from pmutop.moment import Moment


@dataclass
class Selection:
    """Empty fields select everything. `root` is the pid of a launched command: it and all that descend from it, also
    when they outlive their parents. Call `rows` once per Moment, in order: membership is learnt from slice to slice."""

    pids: frozenset[int] = frozenset()
    users: frozenset[str] = frozenset()
    cgroup: str = ""
    root: int | None = None
    family: set[int] = field(default_factory=set)

    @property
    def is_everything(self) -> bool:
        return self.root is None and not (self.pids or self.users or self.cgroup)

    def rows(self, moment: Moment) -> list[int]:
        """Row numbers of the selected processes, in the Moment's order."""
        rows = range(len(moment.tasks))
        if self.root is not None:
            self.grow(moment)
            rows = [row for row in rows if moment.tasks[row].pid in self.family]
        if self.pids:
            rows = [row for row in rows if moment.tasks[row].pid in self.pids]
        if self.users:
            rows = [row for row in rows if moment.tasks[row].user in self.users]
        if self.cgroup:
            rows = [row for row in rows if self.cgroup in moment.tasks[row].cgroup]
        return list(rows)

    def grow(self, moment: Moment) -> None:
        present = {task.pid for task in moment.tasks}
        self.family = {pid for pid in self.family if pid in present} | {self.root}
        grown = True
        while grown:  # a child may stand before its parent
            grown = False
            for task in moment.tasks:
                if task.ppid in self.family and task.pid not in self.family:
                    self.family.add(task.pid)
                    grown = True
