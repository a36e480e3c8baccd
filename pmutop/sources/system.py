"""The system reader: every task of the machine from one stream of samples, taken at each context switch on every CPU.

Needs CAP_PERFMON (or root, or perf_event_paranoid 0). Costs descriptors by the number of CPUs, not of tasks; /proc is read
once at the start and then only for tasks that ran. Where even that costs too much it sheds load in two steps: no events,
only who ran; then the attach reader goes on in its place, under the same refs, and the machine record says so.
"""

from __future__ import annotations

import errno
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pmutop import __version__
from pmutop._perf import Group
from pmutop._proc import Scanner
from pmutop._switches import Sealed, SwitchError, Switches
from pmutop.errors import NoPermission, PmutopError
from pmutop.events import PROC_EVENTS, Event
from pmutop.kernelfiles import cpu_list, text
from pmutop.refusal import meaning, paranoid_level
from pmutop.slices import LEVELS, Header, RawSlice
from pmutop.sources import cores, machine
from pmutop.sources.attach import AttachSource, choose_groups, let_go, raise_descriptor_limit
from pmutop.sources.people import People
from pmutop.sources.quotas import Quotas
from pmutop.sources.shedding import HANDED_BACK, NO_EVENTS, Budget
from pmutop.topology import Pmu

CPUS = Path("/sys/devices/system/cpu")
KEPT = 256  # schedstat files held open: of those that run all the time
WHY = "samples every context switch on every CPU"


class SystemSource:
    """A Source of RawSlices by sampling context switches (see slices.Source).

    interval: seconds. names: events asked for; None = the default sets; progress: one more. budget: share of one CPU that we ourselves may take
    (0.02 = 2 %) before load is shed. Raises NoPermission where the kernel refuses it, and PmutopError where it cannot do it.
    """

    def __init__(
        self,
        interval: float = 0.4,
        names: list[str] | None = None,
        why: str = "",
        budget: float = 0.02,
        periods: int = 65536,
        progress: str = "",
    ) -> None:
        raise_descriptor_limit()
        self.interval = interval
        self.names, self.progress = names, progress
        pmus = cores.kinds()
        self.tried: list[Group] = []
        found = choose_groups(names, pmus, progress, self.tried)
        groups, absent = on_every_core(*found, pmus, names is not None)
        groups = [[in_user_mode(event) for event in group] for group in groups]
        self.counted = tuple(event for group in groups for event in group)
        if not self.counted:
            groups, self.counted = [[TASK_CLOCK]], (TASK_CLOCK,)  # the samples tell it anyway
        self.events = PROC_EVENTS + self.counted
        self.budget = Budget(budget)
        self.quotas = Quotas()
        self.attached: AttachSource | None = None
        self.stopped = False
        self.reading = 0  # ns of CPU that reading has cost in this thread
        self.last: tuple[int, int, int] | None = None
        try:
            self.switches = Switches(
                self.counted,
                places(groups),
                interval,
                before=len(PROC_EVENTS),
                kinds=kinds_of(self.counted, pmus),
                periods=periods,
                quiet=undisturbed(CPUS),
            )
        except SwitchError as error:
            raise explained(error) from None
        except ValueError as error:
            raise PmutopError(
                f"the system reader: {error}", "ask for fewer events, or use --source attach"
            ) from None
        try:
            self.scanner = Scanner(keep=KEPT, places=[range(len(self.counted))])
            self.people = People(self.switches, self.scanner)
        except BaseException:
            self.switches.close()
            raise
        self.header = Header(
            version=__version__,
            host=machine.host(),
            boot=machine.boot_id(),
            machine=machine.describe(),
            source="system",
            why=why or WHY,
            interval=interval,
            events=self.events,
            absent=absent,
            progress=progress,
        )

    def __iter__(self) -> Iterator[RawSlice]:
        """Slices for ever; deadlines are the native thread's."""
        yield self.baseline()
        while not self.stopped:
            sealed = self.switches.next()
            if sealed is None:
                return
            raw = self.slice_of(sealed)
            yield raw
            if self.budget.state == HANDED_BACK and not self.stopped:
                yield from self.hand_back(raw)
                return

    def baseline(self) -> RawSlice:
        """Slice 0: every task there is, with what /proc says of it; counting begins with its end."""
        start = time.monotonic_ns()
        found = self.scanner.scan(start)
        if found is None:
            return RawSlice(0, start, start, time.time(), 0.0, (), b"", b"", b"")
        born, _, _, rows = found
        records = self.people.adopt(born)
        of_slot = {slot: self.people.refs.get(self.scanner.task(slot)[1], 0) for slot in rows}
        counts, levels = self.scanner.blocks()
        end, wall = self.switches.start(), time.time()
        let_go(self.tried)
        totals = machine.totals() | {"lost": 0}
        refs = array("q", [of_slot[slot] for slot in rows]).tobytes()
        return RawSlice(0, start, end, wall, 0.0, tuple(records), refs, counts, levels, machine=totals)

    def slice_of(self, sealed: Sealed) -> RawSlice:
        began = time.thread_time_ns()
        wall = time.time() - (time.monotonic_ns() - sealed.end) / 1e9
        levels = bytearray(8 * len(LEVELS) * sealed.rows)
        _, renamed, slots = self.scanner.fill(sealed.who, sealed.run, sealed.counts, levels, self.width)
        records = self.people.records(sealed, slots, renamed)
        totals = machine.totals() | self.quotas.read()
        self.reading += (
            time.thread_time_ns() - began
        )  # what reading costs is what shedding can save: not the screen, not the log
        before, self.last = (
            self.last,
            (sealed.end, sealed.totals["switches"], sealed.totals["own_ns"] + self.reading),
        )
        if before:
            elapsed, switches, own = (now - then for now, then in zip(self.last, before, strict=True))
            self.budget.weigh(own / elapsed, switches * 1e9 / elapsed)
            self.switches.shed(self.budget.state == NO_EVENTS)
        totals |= {
            name: sealed.totals[name]
            for name in ("lost", "missing", "merged", "dropped_periods", "deaf_ns", "ring_bytes")
        }
        totals |= {
            "reader_ns": sealed.totals["own_ns"],
            "unknown_ns": sealed.totals["unknown_ns"],
            "fifo": self.switches.fifo,
            "shed": self.budget.state,
            "why": self.budget.why,
        }
        return RawSlice(
            sealed.number,
            sealed.start,
            sealed.end,
            wall,
            sealed.late / 1e9,
            records,
            sealed.refs,
            sealed.counts,
            levels,
            sealed.periods,
            totals,
        )

    @property
    def width(self) -> int:
        return len(self.events)

    # ------------------------------------------------------------------------------------------------- giving up

    def hand_back(self, last: RawSlice) -> Iterator[RawSlice]:
        """The attach reader's slices, numbered on, under the refs that the tasks have already."""
        self.switches.close()
        self.scanner.close()  # its descriptors are the attach reader's now
        self.attached = AttachSource(self.interval, self.names, self.budget.why, self.progress)
        tasks = self.people.tasks
        self.attached.take_over(
            {(task.pid, task.tid): task for task in tasks.values()}, self.people.last_ref + 1
        )
        if self.stopped:
            self.attached.stop()
        start = last.end
        for raw in self.attached:
            note = {"shed": HANDED_BACK, "why": self.budget.why}
            yield replace(raw, number=raw.number + last.number + 1, start=start, machine=raw.machine | note)
            start = raw.end

    def stop(self) -> None:
        self.stopped = True
        self.switches.stop()
        if self.attached is not None:
            self.attached.stop()

    def close(self) -> None:
        let_go(self.tried)
        self.switches.close()
        self.scanner.close()
        if self.attached is not None:
            self.attached.close()


TASK_CLOCK = Event("task-clock", "ns", "software", 1, 1)


def in_user_mode(event: Event) -> Event:
    """What happens in the kernel between two samples is partly ours; hardware events count user mode unless told."""
    if event.tier == "hardware" and not event.mode:
        return replace(event, mode="u")
    return event


def on_every_core(
    groups: list[list[Event]], absent: dict[str, str], pmus: Sequence[Pmu], asked: bool
) -> tuple[list[list[Event]], dict[str, str]]:
    """Without the events that some kind of core lacks: every CPU's samples hold the same events. `asked` for, one is an error."""
    lacks = {
        event.name: without for group in groups for event in group if (without := cores.lacking(event, pmus))
    }
    told = {
        name: f"not counted on {' and '.join(without)}, and the system reader needs all cores"
        for name, without in lacks.items()
    }
    for name, why in told.items():
        if asked:
            raise PmutopError(f"event {name}: {why}", "--source attach counts it where it can")
    kept = [[event for event in group if event.name not in lacks] for group in groups]
    return [group for group in kept if group], absent | told


def kinds_of(counted: Sequence[Event], pmus: Sequence[Pmu]) -> list[tuple[tuple[int, ...], list[Event]]]:
    """For each kind of core its CPUs, and the events as its PMU counts them."""
    spread = [cores.spread(event, pmus) for event in counted]
    return [(pmu.cpus, [known.get(pmu.name, event) for event, known in zip(counted, spread)]) for pmu in pmus]


def places(groups: list[list[Event]]) -> list[list[int]]:
    """Groups as places among all events. Software events need no counter: they ride in every group and are never off."""
    numbered: list[list[int]] = []
    for group in groups:
        first = sum(map(len, numbered))
        numbered.append(list(range(first, first + len(group))))
    software = [
        place
        for group, row in zip(groups, numbered)
        for event, place in zip(group, row)
        if event.tier == "software"
    ]
    hardware = [
        [p for event, p in zip(group, row) if event.tier != "software"]
        for group, row in zip(groups, numbered)
    ]
    return [part + software for part in hardware if part] or [software]


def undisturbed(cpus: Path) -> set[int]:
    """CPUs set apart for somebody: sampled when they switch, never interrupted."""
    return set(cpu_list(text(cpus / "isolated"))) | set(cpu_list(text(cpus / "nohz_full")))


def explained(error: SwitchError) -> PmutopError:
    if error.errno in (errno.EACCES, errno.EPERM):
        if error.call == "mmap":
            hint = "locked memory does not suffice: raise perf_event_mlock_kb, or --source attach"
            return NoPermission(f"the system reader may not sample: {error.strerror}", hint)
        cause, fix = meaning(error.errno, paranoid_level())
        return NoPermission(f"the system reader may not sample: {cause}", f"{fix}, or --source attach")
    return PmutopError(f"the system reader: {error.strerror}", "--source attach needs less")
