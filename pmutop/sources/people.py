"""Who the tasks of the system reader are: named once from /proc, then from the lifecycle records of the rings alone.

A fork inherits its parent's name, user, control group and command line; only exec, and what no record tells (a change of
user or control group), is read from /proc again.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable

from pmutop._proc import Scanner
from pmutop._switches import EXECED, EXITED, FORKED, MET, RENAMED, Sealed, Switches
from pmutop.slices import Born, Exited, Record, Renamed, Task
from pmutop.sources import machine
from pmutop.sources.identity import Users, cgroup_of, cmdline_of, cpus_of, read_text

KTHREADD = 2  # the parent of every kernel thread, include/linux/kthread.h
RESYNC = 30.0  # seconds between two looks at the list of processes
BACKLOG = 40  # tasks per slice whose command line and control group are read beside those that ran


class People:
    """Every living task by its ref. `records(sealed)` turns one slice's lifecycle records into those of the door."""

    def __init__(self, switches: Switches, scanner: Scanner) -> None:
        self.switches = switches
        self.scanner = scanner
        self.tasks: dict[int, Task] = {}
        self.last_ref = 0  # the highest ever given, also to those that are gone
        self.refs: dict[int, int] = {}  # living tid -> ref
        self.unread: deque[int] = deque()  # refs whose command line and control group were never read
        self.users = Users()
        self.boot_time = machine.boot_time()
        self.wall = time.time() - time.monotonic()
        self.ticks = os.sysconf("SC_CLK_TCK")
        self.due = time.monotonic() + RESYNC
        self.lost = 0

    # ----------------------------------------------------------------------------------- those who were there before us

    def adopt(self, slots: Iterable[int]) -> list[Record]:
        """Tasks that the scanner has in `slots` are there already: give them refs. Their command lines follow by and by."""
        found = [self.scanner.task(slot) for slot in slots]
        refs = self.switches.adopt((tid, pid) for pid, tid, *_ in found)
        records: list[Record] = []
        for ref, (pid, tid, ppid, ticks, comm, kernel) in zip(refs, found):
            if ref < 0 or ref in self.tasks:
                continue
            start = round(self.boot_time + ticks / self.ticks, 2)
            name = comm.decode(errors="surrogateescape")
            records.append(
                self.add(Task(ref, pid, tid, ppid, start, name, self.users.of(pid), "", "", kernel))
            )
            if pid == tid and not kernel:
                self.unread.append(ref)
        return records

    def resync(self) -> list[Record]:
        """Processes that no record told of, and those whose end was lost; only after losses are threads looked at too."""
        listed = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
        gone = [(task.tid, ref) for ref, task in self.tasks.items() if task.pid not in listed]
        self.switches.forget(gone)
        return self.meet((pid, pid) for pid in listed if pid not in self.refs)

    def meet(self, pairs: Iterable[tuple[int, int]]) -> list[Record]:
        """Tasks (tid, pid) of which nothing is known but that they live."""
        found = [(tid, pid) for tid, pid in pairs]
        refs = self.switches.adopt(found)
        return [
            self.add(self.stranger(ref, pid, tid))
            for ref, (tid, pid) in zip(refs, found)
            if ref > 0 and ref not in self.tasks
        ]

    def stranger(self, ref: int, pid: int, tid: int, comm: str = "") -> Task:
        """A task by what /proc says of it now; nearly empty if it is gone."""
        head, _, tail = read_text(f"/proc/{pid}/task/{tid}/stat").rpartition(")")
        fields = tail.split()
        if len(fields) < 20:
            return Task(ref, pid, tid, 0, round(time.time(), 2), comm, "", "", "", False)
        start = round(self.boot_time + int(fields[19]) / self.ticks, 2)
        kernel = bool(int(fields[6]) & 0x00200000)  # PF_KTHREAD, include/linux/sched.h
        task = Task(
            ref, pid, tid, int(fields[1]), start, head.partition("(")[2], self.users.of(pid), "", "", kernel
        )
        return self.told(task)

    # --------------------------------------------------------------------------------------------- what the records tell

    def records(self, sealed: Sealed, slots: list[int], renamed: Iterable[int]) -> tuple[Record, ...]:
        """The lifecycle of one slice in order. slots: the scanner's slot of each row, -1 = never seen alive; renamed: slots
        under another name or parent than before."""
        records: list[Record] = []
        ended: list[int] = []
        for kind, ref, when, tid, pid, ptid, ppid, comm in sealed.lives:
            known = self.tasks.get(ref)
            if kind == FORKED:
                records.append(self.forked(known, ref, when, tid, pid, ptid, ppid))
            elif kind == EXITED:
                if known is not None:
                    records.append(Exited(ref))
                    self.remove(known)
                    ended.append(tid)
            elif known is None and kind == MET:
                records.append(self.add(self.stranger(ref, pid, tid)))
            elif kind in (RENAMED, EXECED):
                name = comm.decode(errors="surrogateescape")
                if known is None:
                    records.append(self.add(self.stranger(ref, pid, tid, name)))
                    continue
                task = known._replace(comm=name)
                if kind == EXECED:
                    task = self.told(task._replace(kernel=False, user=self.users.of(pid) or known.user))
                self.tasks[ref] = task
                records.append(Renamed(task))
        for slot in renamed:
            records.extend(self.corrected(slot))
        self.scanner.drop(ended)
        records.extend(self.catch_up(sealed))
        return tuple(records)

    def forked(
        self, known: Task | None, ref: int, when: int, tid: int, pid: int, ptid: int, ppid: int
    ) -> Record:
        process = self.tasks.get(self.refs.get(ppid, 0))
        parent = self.tasks.get(self.refs.get(ptid, 0)) or process
        if known is not None:  # met before its FORK was read
            self.tasks[ref] = known._replace(ppid=ppid if tid == pid else known.ppid)
            return Renamed(self.tasks[ref])
        start = round(self.wall + when / 1e9, 2)
        if parent is None:
            return self.add(self.stranger(ref, pid, tid)._replace(start=start))
        if tid != pid:
            return self.add(
                parent._replace(ref=ref, pid=pid, tid=tid, start=start, cgroup="", cmdline="", cpus="")
            )
        whole = process or parent  # a thread that forks carries no command line itself
        task = parent._replace(ref=ref, pid=pid, tid=tid, ppid=ppid, start=start, kernel=ppid == KTHREADD)
        return self.add(task._replace(cgroup=whole.cgroup, cmdline=whole.cmdline, cpus=whole.cpus))

    def corrected(self, slot: int) -> list[Record]:
        """A new name or parent that /proc shows and no record told (reparenting; kernel threads' long names)."""
        _, tid, ppid, _, comm, kernel = self.scanner.task(slot)
        known = self.tasks.get(self.refs.get(tid, 0))
        if known is None:
            return []
        task = known._replace(ppid=ppid, comm=comm.decode(errors="surrogateescape"), kernel=kernel)
        self.tasks[known.ref] = task
        return [Renamed(task)] if task != known else []

    def catch_up(self, sealed: Sealed) -> list[Record]:
        """A few more command lines; from time to time, and after losses, a look at what /proc lists."""
        records: list[Record] = []
        for _ in range(min(BACKLOG, len(self.unread))):
            known = self.tasks.get(self.unread.popleft())
            if known is not None:
                self.tasks[known.ref] = self.told(known)
                records.append(Renamed(self.tasks[known.ref]))
        lost = sealed.totals["lost"] + sealed.totals["dropped_lives"]
        if lost != self.lost or time.monotonic() > self.due:
            self.lost = lost
            self.due = time.monotonic() + RESYNC
            records.extend(self.resync())
        return records

    def told(self, task: Task) -> Task:
        """The task with the command line, control group and CPUs that it has now."""
        if task.pid != task.tid or task.kernel:
            return task
        return task._replace(
            cgroup=cgroup_of(task.pid) or task.cgroup, cmdline=cmdline_of(task.pid), cpus=cpus_of(task.pid)
        )

    # ---------------------------------------------------------------------------------------------------------------

    def add(self, task: Task) -> Born:
        self.tasks[task.ref] = task
        self.last_ref = max(self.last_ref, task.ref)
        self.refs[task.tid] = task.ref
        return Born(task)

    def remove(self, task: Task) -> None:
        del self.tasks[task.ref]
        if self.refs.get(task.tid) == task.ref:
            del self.refs[task.tid]
