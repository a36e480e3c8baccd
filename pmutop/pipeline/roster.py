"""Who there is: one dense row per process (or per task), kept from slice to slice, summed from the tasks below it."""

from __future__ import annotations

import numpy as np

from pmutop.analysis.neighbour_delay import CPUs, neighbour_delay
from pmutop.moment import ESTIMATED, EXACT, FIRST, UNCOUNTED
from pmutop.pipeline.clean import Cleaned
from pmutop.slices import LEVELS, Born, Exited, RawSlice, Renamed, Task

STATE, CPU, NICE, RSS = range(len(LEVELS))
#: A sum over threads is given if the threads that were counted hold at least this share of the run time.
ENOUGH = 0.95


class Roster:
    """Rows are dense: a row that leaves is replaced by the last one, so a view follows `tasks[i].ref`, never i.

    After `update(raw, cleaned)`: tasks, threads, exited, levels (rows, LEVELS), increase and quality (rows, events),
    neighbours (rows, as neighbour_delay.NEIGHBOURS), moved (row numbers that were read in
    this slice). Arrays are the roster's own: a Moment copies what it keeps.
    """

    def __init__(self, events: int, run_time: int, run_delay: int, per_thread: bool = False) -> None:
        self.events = events
        self.run_time, self.run_delay = (
            run_time,
            run_delay,
        )  # columns; the first weighs the threads of a process
        self.per_thread = per_thread
        self.tasks: list[Task] = []
        self.row_of_ref: dict[int, int] = {}
        self.row_of_pid: dict[int, int] = {}
        self.refs_of_row: list[set[int]] = []
        self.leaving: list[int] = []
        self.room(256)

    def room(self, size: int) -> None:
        old = len(self.tasks)
        for name, shape, kind in (
            ("levels", (size, len(LEVELS)), np.int64),
            ("threads", (size,), np.int32),
            ("exited", (size,), bool),
            ("counted", (size, self.events), bool),
        ):
            block = np.zeros(shape, kind)
            if old:
                block[:old] = getattr(self, name)[:old]
            setattr(self, name, block)

    def update(self, raw: RawSlice, cleaned: Cleaned) -> None:
        self.remove_left()
        for record in raw.records:
            if isinstance(record, Born):
                self.add(record.task)
            elif isinstance(record, Renamed):
                self.rename(record.task)
        self.sum_tasks(raw, cleaned)
        for record in raw.records:
            if isinstance(record, Exited):
                self.leave(record.ref)
        unread = sorted(
            set(self.leaving).difference(self.moved.tolist())
        )  # what they did at the end nobody saw
        self.increase[unread] = self.neighbours[unread] = np.nan
        self.quality[unread] = UNCOUNTED

    def add(self, task: Task) -> None:
        row = None if self.per_thread else self.row_of_pid.get(task.pid)
        if row is None or self.exited[row]:
            row = len(self.tasks)
            if row == len(self.levels):
                self.room(2 * row)
            self.tasks.append(task)
            self.refs_of_row.append(set())
            self.levels[row] = 0
            self.threads[row] = 0
            self.exited[row] = False
            self.counted[row] = False
            if not self.per_thread:
                self.row_of_pid[task.pid] = row
        elif task.is_process:
            self.tasks[row] = task
        self.row_of_ref[task.ref] = row
        self.refs_of_row[row].add(task.ref)
        self.threads[row] += 1

    def rename(self, task: Task) -> None:
        row = self.row_of_ref.get(task.ref)
        if row is not None and (self.per_thread or task.is_process):
            self.tasks[row] = task

    def leave(self, ref: int) -> None:
        row = self.row_of_ref.get(ref)
        if row is None:
            return
        if len(self.refs_of_row[row]) == 1:
            self.exited[row] = True
            self.leaving.append(row)
        else:
            del self.row_of_ref[ref]
            self.refs_of_row[row].discard(ref)
            self.threads[row] -= 1

    def remove_left(self) -> None:
        """Rows that exited in the last slice have been shown once with their last counts; now they go."""
        for row in sorted(self.leaving, reverse=True):
            for ref in self.refs_of_row[row]:
                self.row_of_ref.pop(ref, None)
            if self.row_of_pid.get(self.tasks[row].pid) == row:
                del self.row_of_pid[self.tasks[row].pid]
            end = len(self.tasks) - 1
            if row != end:
                self.tasks[row], self.refs_of_row[row] = self.tasks[end], self.refs_of_row[end]
                for block in (self.levels, self.threads, self.exited, self.counted):
                    block[row] = block[end]
                for ref in self.refs_of_row[row]:
                    self.row_of_ref[ref] = row
                if self.row_of_pid.get(self.tasks[row].pid) == end:
                    self.row_of_pid[self.tasks[row].pid] = row
            self.tasks.pop()
            self.refs_of_row.pop()
        self.leaving.clear()

    def sum_tasks(self, raw: RawSlice, cleaned: Cleaned) -> None:
        """Increase and quality per row. A row that did not move increased by an exact 0 where it is being counted."""
        rows = np.fromiter(
            (self.row_of_ref[ref] for ref in cleaned.refs.tolist()), np.intp, len(cleaned.refs)
        )
        levels = np.frombuffer(raw.levels, np.int64).reshape(len(rows), len(LEVELS))
        size = len(self.tasks)
        self.increase = np.where(self.counted[:size], 0.0, np.nan)
        self.quality = np.where(self.counted[:size], EXACT, UNCOUNTED).astype(np.uint8)
        self.moved = np.flatnonzero(np.bincount(rows))  # a plain np.unique would load numpy.ma
        self.levels[rows] = levels
        alone = self.threads[rows] == 1
        self.put(rows[alone], cleaned.increase[alone], cleaned.quality[alone])
        run, delay = cleaned.increase[:, self.run_time], cleaned.increase[:, self.run_delay]
        machine = CPUs(len(raw.machine.get("cpu_busy_ns", ())), raw.seconds * 1e9)
        self.neighbours = neighbour_delay(rows, levels[:, CPU], run, delay, machine, self.tasks)
        for row in np.flatnonzero(np.bincount(rows[~alone])).tolist():
            members = rows == row
            self.put(row, *self.total(cleaned.increase[members], cleaned.quality[members]))
            self.levels[row] = self.level_of(levels[members])

    def put(self, rows, increase: np.ndarray, quality: np.ndarray) -> None:
        self.increase[rows] = increase
        self.quality[rows] = quality
        self.counted[rows] = quality != UNCOUNTED

    def total(self, increase: np.ndarray, quality: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum over threads (threads, events) -> (events,): the worst quality, or ESTIMATED over a small unknown rest."""
        known = ~np.isnan(increase)
        weight = np.nan_to_num(increase[:, self.run_time])[:, None]
        whole = weight.sum()
        share = (known * weight).sum(axis=0) / whole if whole > 0 else known.mean(axis=0)
        value = np.where(known, increase, 0.0).sum(axis=0)
        worst = np.where(known, quality, EXACT).max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(share >= ENOUGH, value / share, np.nan)
        all_known = known.all(axis=0)
        mark = np.where(
            share >= ENOUGH, np.where(all_known, worst, ESTIMATED), np.where(known, 0, quality).max(axis=0)
        )
        mark = np.where((share < ENOUGH) & (mark < FIRST) & (mark != UNCOUNTED), UNCOUNTED, mark)
        return value, mark.astype(np.uint8)

    @staticmethod
    def level_of(levels: np.ndarray) -> np.ndarray:
        """One level for a process: running beats disk wait beats the rest; the memory is the same for all threads."""
        for state in b"RD":
            if (levels[:, STATE] == state).any():
                return levels[levels[:, STATE] == state][0]
        return levels[0]
