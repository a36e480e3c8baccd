"""The attach reader: every task through /proc, and a perf group on each task that runs, as far as one may.

Needs no privilege. Whoever may not open perf events still gets the /proc columns; a task beyond the descriptor limit is
left to /proc as well (the hot set holds the tasks that ran last), and the header or the machine record says so.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pmutop import __version__, bundle, sysfs, vendor_events
from pmutop._perf import CountError, Group
from pmutop._proc import Scanner
from pmutop.errors import PmutopError
from pmutop.events import PROC_EVENTS, Event
from pmutop.refusal import meaning, paranoid_level
from pmutop.slices import Born, Exited, Header, RawSlice, Record, Renamed, Task
from pmutop.sources import cores, machine
from pmutop.sources.budget import TURNS, fitting
from pmutop.sources.identity import Users, cgroup_of, cmdline_of, cpus_of
from pmutop.sources.quotas import Quotas
from pmutop.sysfs import resolve
from pmutop.topology import Pmu, processor

#: Counted where permitted: exact run time, then what tells the software tier's pathologies apart.
SOFTWARE_EVENTS = ("task-clock", "cpu-migrations", "syscalls", "futex-calls", "forks", "execs", "disk-waits")
TOGETHER = 64  # members of a group at most (pmutop._perf)

#: Descriptors left for everything else: files, the terminal, sockets.
RESERVE = 512  # or a quarter of the limit where that is less


class AttachSource:
    """A Source of RawSlices by attaching (see slices.Source).

    interval: seconds. names: events asked for; None = the default sets, of which what this machine refuses is left out
    (Header.absent says why); an event asked for by name that cannot be counted is an error. progress: an event beside them.
    """

    def __init__(
        self, interval: float = 0.4, names: list[str] | None = None, why: str = "", progress: str = ""
    ) -> None:
        self.interval = int(interval * 1e9)
        limit = raise_descriptor_limit()
        reserve = min(RESERVE, limit // 4)
        pmus = cores.kinds()
        self.tried: list[Group] = []
        groups, absent = choose_groups(names, pmus, progress, self.tried)
        counted = [event for group in groups for event in group]
        self.groups, places = opened_groups(groups, pmus)
        self.hot: OrderedDict[int, list[Group]] = OrderedDict()  # by slot, the least recently run first
        width = sum(len(group) for group in self.groups)
        keep = max(0, min(2048, (limit - reserve) // 4))
        self.hot_limit = (limit - reserve - keep) // width if width else 0
        try:
            self.scanner = Scanner(keep=keep, places=places)
        except ValueError as error:
            raise PmutopError(
                f"the attach reader: {error}", "ask for fewer events, or for some that fit together"
            ) from None
        self.events = PROC_EVENTS + tuple(counted)
        self.boot_time = machine.boot_time()
        self.tick = os.sysconf("SC_CLK_TCK")
        self.refs: dict[int, int] = {}  # slot -> ref
        self.fresh: set[int] = set()  # slots whose exec may still come without a change of name
        self.next_ref = 1
        self.known: dict[tuple[int, int], Task] = {}  # by (pid, tid): from the reader that went before
        self.starved = 0
        self.users = Users()
        self.quotas = Quotas()
        self.header = Header(
            version=__version__,
            host=machine.host(),
            boot=machine.boot_id(),
            machine=machine.describe(),
            source="attach",
            why=why or "one group per task that runs",
            interval=interval,
            events=self.events,
            absent=absent,
            progress=progress,
        )

    def __iter__(self) -> Iterator[RawSlice]:
        """Slices for ever, at absolute deadlines; a deadline that has already passed is skipped, never squeezed."""
        prefer_real_time()
        number, deadline, start = 0, time.monotonic_ns(), time.monotonic_ns()
        while True:
            found = self.scanner.scan(deadline)
            if found is None:
                return
            born, renamed, gone, rows = found
            end, wall = self.scanner.stamp, time.time()
            late = max(0, end - deadline) / 1e9
            records = self.records(born, renamed, gone, rows)
            counts, levels = self.blocks(rows)
            refs = b"".join(self.refs[slot].to_bytes(8, "little") for slot in rows)
            for slot in gone:
                self.forget(slot)
            self.attach(rows, set(gone))
            let_go(self.tried)
            yield RawSlice(
                number, start, end, wall, late, records, refs, counts, levels, machine=self.totals()
            )
            number, start = number + 1, end
            deadline += self.interval * max(1, -((deadline - time.monotonic_ns()) // self.interval))

    def blocks(self, rows: list[int]) -> tuple[bytes, bytes]:
        """(counts, levels) of the slots that were read, as RawSlice holds them."""
        return self.scanner.blocks()

    def totals(self) -> dict:
        return (
            machine.totals()
            | self.quotas.read()
            | {"lost": 0, "attached": len(self.hot), "starved": self.starved}
        )

    def take_over(self, known: dict[tuple[int, int], Task], next_ref: int) -> None:
        """Go on where another reader stopped: tasks by (pid, tid) keep their refs, new ones start at `next_ref`."""
        self.known = known
        self.next_ref = next_ref

    def stop(self) -> None:
        self.scanner.stop()

    def close(self) -> None:
        let_go(self.tried)
        for slot in list(self.hot):
            self.detach(slot)
        self.scanner.close()

    # ------------------------------------------------------------------------------------------------ who they are

    def records(
        self, born: list[int], renamed: list[int], gone: list[int], rows: list[int]
    ) -> tuple[Record, ...]:
        records: list[Record] = []
        for slot in born:
            before = self.known.pop(self.scanner.task(slot)[:2], None)
            if before is not None:
                self.refs[slot] = before.ref
                continue
            self.refs[slot] = self.next_ref
            self.next_ref += 1
            records.append(Born(self.particulars(slot)))
        records.extend(Exited(task.ref) for task in self.known.values())
        self.known.clear()
        looked_again = set(renamed) | self.fresh.intersection(rows)
        for slot in looked_again - set(born) - set(gone):
            records.append(Renamed(self.particulars(slot)))
        self.fresh = set(born)
        records.extend(Exited(self.refs[slot]) for slot in gone)
        return tuple(records)

    def particulars(self, slot: int) -> Task:
        pid, tid, ppid, ticks, comm, kernel = self.scanner.task(slot)
        main = pid == tid and not kernel
        return Task(
            ref=self.refs[slot],
            pid=pid,
            tid=tid,
            ppid=ppid,
            start=round(self.boot_time + ticks / self.tick, 2),
            comm=comm.decode(errors="surrogateescape"),
            user=self.users.of(pid),
            cgroup=cgroup_of(pid) if main else "",
            cmdline=cmdline_of(pid) if main else "",
            kernel=kernel,
            cpus=cpus_of(pid) if main else "",
        )

    # ----------------------------------------------------------------------------------------------- the hot set

    def attach(self, rows: list[int], gone: set[int]) -> None:
        """Open groups for the tasks that just ran and have none, the busiest first; the longest idle make room."""
        if not self.groups:
            return
        waiting = []
        for slot in rows:
            if slot in self.hot:
                self.hot.move_to_end(slot)
            elif slot not in gone:
                waiting.append(slot)
        waiting.sort(key=self.scanner.busy, reverse=True)
        running = len(rows)
        for slot in waiting:
            if len(self.hot) >= self.hot_limit:
                if running > self.hot_limit or not self.hot:
                    self.starved += 1
                    continue
                self.detach(next(iter(self.hot)))
            self.open_groups(slot)

    def open_groups(self, slot: int) -> None:
        tid = self.scanner.task(slot)[1]
        opened: list[Group] = []
        try:
            for events in self.groups:
                opened.append(Group(events, tid))
            for number, group in enumerate(opened):
                group.enable()
                self.scanner.attach(slot, number, group.leader)
            self.hot[slot] = opened
        except CountError as error:
            for group in opened:
                group.close()
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self.hot_limit = len(self.hot)
                self.starved += 1
            # any other errno: this target cannot be counted (exiting, another user's, ...), which is data, not failure

    def detach(self, slot: int) -> None:
        for number, group in enumerate(self.hot.pop(slot)):
            self.scanner.attach(slot, number, -1)
            group.close()

    def forget(self, slot: int) -> None:
        del self.refs[slot]
        if slot in self.hot:
            self.detach(slot)


def opened_groups(
    groups: list[list[Event]], pmus: Sequence[Pmu]
) -> tuple[list[list[Event]], list[list[int]]]:
    """(groups to open on each task, the column of each of their events): more than `groups` where the cores differ."""
    opened, places, first = [], [], 0
    for group in groups:
        for _, members, here in cores.formed(group, pmus):
            opened.append(members)
            places.append([first + place for place in here])
        first += len(group)
    return opened, places


def choose_groups(
    names: list[str] | None,
    pmus: Sequence[Pmu] = (),
    progress: str = "",
    tried: list[Group] | None = None,
) -> tuple[list[list[Event]], dict[str, str]]:
    """Groups of events that open here, on ourselves, and why the others do not: (groups, {name: reason}).

    tried: is given the software groups that were opened to find out, to be closed when the reader has its own: to close the
    last user of a tracepoint waits for every CPU, 30 ms each (kernel/trace/trace_event_perf.c, perf_trace_event_unreg).

    pmus: the kinds of cores, where there are several (cores.kinds); an event is one column whatever their number.

    Software events lead a group of their own: mixed with hardware events they would cost a counter's turn. progress: one
    more event, in a group of its own unless it is counted anyway.
    """
    absent: dict[str, str] = {}
    groups = []
    learnt = trained_events() if names is None else []
    for wanted in (SOFTWARE_EVENTS, learnt or hardware_events()) if names is None else split(names):
        countable: list[Event] = []
        for name in wanted:
            try:
                countable.append(permitted(resolve(name), pmus, tried))
            except (PmutopError, CountError) as error:
                if names is not None:
                    raise as_user_error(error, name) from None
                absent[name] = reason(error)
        if countable and countable[0].tier == "hardware":
            # Asked for by name, events beyond one group take turns, and so do a model's as far as a slice holds them; of
            # our own choice the first ones stay.
            most = len(countable) if names is not None else TURNS if learnt else 1
            formed, dropped = fitting(countable, groups=most, pmus=pmus)
            groups.extend(formed)
            if names is None:
                absent.update(dropped)
            else:  # asked for, so kept: uncounted until the others let go of the counters
                groups.extend([event] for event in countable if event.name in dropped)
        else:
            groups.extend(countable[at : at + TOGETHER] for at in range(0, len(countable), TOGETHER))
    known = {event.name for event in (*PROC_EVENTS, *(event for group in groups for event in group))}
    if progress and progress not in known:
        try:
            groups.append([permitted(resolve(progress), pmus, tried)])
        except (PmutopError, CountError) as error:
            raise as_user_error(error, progress) from None
    return groups, absent


def trained_events() -> list[str]:
    """What the model that was trained on this processor judges by; [] where there is none, or no PMU."""
    model = bundle.learnt_on(processor()) if sysfs.core_pmus() else None
    return list(dict.fromkeys(["instructions", "cycles", *map(str, model.card["required"])])) if model else []


def hardware_events() -> list[str]:
    """The key events of this processor, most important first; perf's generic names where it has no PMU to ask."""
    pmus = sysfs.core_pmus()
    family = vendor_events.family_named(processor()) if pmus else ""
    return list(vendor_events.key_names(family, pmus).values())


def permitted(event: Event, pmus: Sequence[Pmu] = (), tried: list[Group] | None = None) -> Event:
    """The event as it may be opened here: a hardware event in user mode only, where the kernel may not be counted.

    Its trust says on which kinds of cores it is not counted. Raises CountError where even that is refused.
    """
    known = cores.spread(event, pmus)
    first = next(iter(known.values()), event)
    if known and len(known) < len(pmus):
        event = replace(event, trust=f"{event.trust}, on {' and '.join(known)} only")
    try:
        group = Group([first], 0)
        if tried is None or event.tier == "hardware":
            group.close()
        else:
            tried.append(group)
        return event
    except CountError as error:
        if error.errno not in (errno.EACCES, errno.EPERM) or event.tier != "hardware" or event.mode:
            raise
    Group([replace(first, mode="u")], 0).close()
    return replace(event, mode="u", trust=f"{event.trust}, user mode only")


def let_go(tried: list[Group]) -> None:
    """Close what `choose_groups` left open."""
    while tried:
        tried.pop().close()


def split(names: list[str]) -> list[list[str]]:
    tiers: dict[str, list[str]] = {}
    for name in names:
        if name not in {event.name for event in PROC_EVENTS}:
            tiers.setdefault(resolve(name).tier, []).append(name)
    return list(tiers.values())


def reason(error: Exception) -> str:
    """Why an event cannot be counted, told apart by errno (never 'permission denied' for a full descriptor table)."""
    return meaning(error.errno or 0, paranoid_level())[0] if isinstance(error, CountError) else str(error)


def as_user_error(error: Exception, name: str) -> PmutopError:
    if isinstance(error, PmutopError):
        return error
    return PmutopError(f"event {name}: {reason(error)}", "`pmutop doctor` says what can be counted here")


def raise_descriptor_limit() -> int:
    """Raise the soft descriptor limit to the hard one; returns what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    except (OSError, ValueError):
        return soft


def prefer_real_time() -> None:
    """SCHED_FIFO for the calling thread where allowed (p99 lateness 0.2 ms instead of 25 under load)."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    except OSError:
        pass
