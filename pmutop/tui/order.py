"""Which rows the table has, and in which order: sorted, filtered, as a tree or under their cgroups; and the findings."""

from __future__ import annotations

from math import isnan, log2
from typing import TYPE_CHECKING

from pmutop.moment import Moment
from pmutop.tui.columns import BY_NAME, trouble
from pmutop.tui.history import Row

if TYPE_CHECKING:
    from pmutop.tui.state import State

KERNEL = 5.0, 2.0  # % of a CPU from which, and down to which, a kernel thread shows that is otherwise hidden
#: Orders that change from slice to slice by themselves.
LIVELY = ("CPU%", "WAIT%", "IPC", "LABEL", "INTERFERENCE", "RES")


class Order:
    """Mixed into the state."""

    def arrange(self: State, now: float) -> None:
        """Make `order` from the Moment on show: sorted, filtered, the cursor kept on its process.

        Of thousands of rows only the busy ones are touched one by one, unless a filter or another order asks for more.
        """
        moment = self.moment
        if moment is None:
            return
        before = self.cursor - self.top
        still = now < self.still_until and self.sort in LIVELY and not self.tree and self._places
        self.ghosts = (
            [row for row in self.history.ghosts.values() if row.moment is not moment]
            if self.held is None
            else []
        )
        order = self._by_cpu(moment) if self.sort == "CPU%" else self._by_column(moment)
        if self.reversed:
            order.reverse()
        order = self._hidden_left_out(moment, order)
        if self.grouped:
            from pmutop.tui.fold import fold

            order = fold(self, order)
        if still:
            order.sort(key=lambda index: self._places.get(self._row(index).task.ref, len(self._places)))
        self.branches = {}
        self.order = self._family(order) if self.tree else order
        self.found = self._findings(moment)
        if self.selected is not None:
            self.cursor = self.find(self.selected)
            if self.cursor < 0:
                self.selected, self.cursor = None, before + self.top
            elif self.follow:
                self.top = self.cursor - before
        self._clamp()

    def _by_cpu(self: State, moment: Moment) -> list[int]:
        """Busy rows by the band of their recent CPU use, then who has just gone, then the idle ones as they came."""
        if self.held is None:
            active = self.history.smooth
        else:
            active = {
                moment.tasks[i].ref: (float(moment.cpu[i]), i) for i in (moment.cpu > 0).nonzero()[0].tolist()
            }
        touched = moment.cpu > 0
        bands, keyed = {}, []
        for ref, (use, index) in active.items():
            bands[ref] = band = self.band(ref, use)
            keyed.append((-band, ref, index))
            touched[index] = True
        self._bands = bands
        keyed.sort()
        gone = range(len(moment.tasks), len(moment.tasks) + len(self.ghosts))
        return [index for _, _, index in keyed] + [*gone] + (~touched).nonzero()[0].tolist()

    def band(self: State, ref: int, use: float) -> int:
        """CPU use on a scale of steps of 19 %; a process stays in its band until it is well outside of it."""
        exact = 4 * log2(1 + use)
        old = self._bands.get(ref)
        return old if old is not None and abs(exact - old) < 0.8 else round(exact)

    def _by_column(self: State, moment: Moment) -> list[int]:
        column = BY_NAME[self.sort]
        order = list(range(len(moment.tasks) + len(self.ghosts)))
        keys = [column.key(self, self._row(index)) for index in order]
        order.sort(key=keys.__getitem__, reverse=column.descending)
        return order

    def _hidden_left_out(self: State, moment: Moment, order: list[int]) -> list[int]:
        """Without threads and kernel threads where these are hidden, and what the filters leave out.

        A kernel thread that uses a CPU, or is asked for by name, shows all the same.
        """
        tasks, count = moment.tasks, len(moment.tasks)
        if not self.threads:
            order = [index for index in order if index >= count or tasks[index].pid == tasks[index].tid]
        if not self.kernel and not self.filter:
            shown = self.kernel_busy = self._busy_kernel_threads(moment)
            order = [
                index
                for index in order
                if index >= count or not tasks[index].kernel or tasks[index].ref in shown
            ]
        if self.filter or self.user:
            order = [index for index in order if self._wanted(self._row(index))]
        return order

    def _busy_kernel_threads(self: State, moment: Moment) -> set[int]:
        """The refs of kernel threads that use a CPU, lately or (in the past) in this slice."""
        tasks, (comes, stays) = moment.tasks, KERNEL
        if self.held is not None:
            return {tasks[i].ref for i in (moment.cpu >= comes).nonzero()[0].tolist() if tasks[i].kernel}
        return {
            ref
            for ref, (use, index) in self.history.smooth.items()
            if use >= (stays if ref in self.kernel_busy else comes) and tasks[index].kernel
        }

    def _wanted(self: State, row: Row) -> bool:
        task = row.task
        if self.user and task.user != self.user:
            return False
        return not self.filter or self.matches(row, self.filter)

    def matches(self: State, row: Row, text: str) -> bool:
        """Does a row match what was typed: command, user, label, cgroup (any case), or the whole PID?"""
        task = row.task
        label = self.label_of(row)
        hay = (
            f"{task.comm}\n{task.cmdline}\n{task.user}\n{task.cgroup}\n{label.label if label else ''}".lower()
        )
        return text.lower() in hay or text == str(task.pid)

    def _findings(self: State, moment: Moment) -> list[Row]:
        """Rows with a pathology or an interference, worst first: by confidence, factor, and the CPU they use."""
        found = []
        tasks, tracks = moment.tasks, self.history.tracks
        for index in moment.labels.keys() | moment.interference.keys():
            track = tracks.get(tasks[index].ref)
            if (
                self.held is not None
                or index in moment.interference
                or (track is not None and track.shown.is_pathology)
            ):
                row = Row(moment, index)
                worst = trouble(self, row)
                if worst >= 1:
                    use = float(moment.cpu[index])
                    found.append((worst if isnan(use) else worst + use / 100, -tasks[index].ref, row))
        found.sort(key=lambda item: item[:2], reverse=True)
        return [row for _, _, row in found]

    def _family(self: State, order: list[int]) -> list[int]:
        """Rows under their parents, siblings in the order they had; notes each one's branch."""
        tasks = {index: self._row(index).task for index in order}
        here = {task.pid: index for index, task in tasks.items() if task.is_process}
        children: dict[int, list[int]] = {}
        roots = []
        for index, task in tasks.items():
            parent = here.get(task.ppid if task.is_process else task.pid, index)
            if parent == index:
                roots.append(index)
            else:
                children.setdefault(parent, []).append(index)
        ordered: list[int] = []
        seen = set()
        stack = [(index, "", "") for index in reversed(roots)]
        while stack:
            index, branch, below = stack.pop()
            seen.add(index)
            ordered.append(index)
            self.branches[tasks[index].ref] = branch
            young = children.get(index, [])
            for place in range(len(young) - 1, -1, -1):
                last = place == len(young) - 1
                stack.append(
                    (young[place], below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))
                )
        # Parents in a loop (possible between two reads of /proc) are under nobody: they come last.
        return ordered + [index for index in order if index not in seen]
