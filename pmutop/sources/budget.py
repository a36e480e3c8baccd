"""How many events fit together now: measured by opening groups and looking whether they run, never read off a table.

A group that is too large for its PMU is accepted while its leader is disabled, and then simply never runs; and what is
free depends on the NMI watchdog, the other hardware thread and whoever else counts. So only trying tells.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Sequence

from pmutop import events
from pmutop._perf import CountError, Group
from pmutop.errors import PmutopError
from pmutop.events import Event
from pmutop.sources import cores
from pmutop.sysfs import resolve
from pmutop.topology import Machine, Pmu

WINDOW = 0.012  # seconds: three turns of the kernel's rotation, after which whoever has not run never will
ENOUGH = 0.98  # share of the time that counts as "always"
TURNS = 12  # groups whose turns (20 ms) a slice of 400 ms holds; both readers keep a few more
MOST = 32  # no PMU has more general counters


def share(group: Sequence[Event], window: float = WINDOW) -> float:
    """The share of a short busy loop on this CPU during which the whole group counted: 0 = never, 1 = always.

    User mode only where the kernel may not be counted. Raises CountError where an event does not open at all.
    """
    with opened(group) as counting:
        counting.enable()
        deadline = time.perf_counter() + window
        quick = time.perf_counter() + window / 12
        while True:
            spin(20_000)
            _, enabled, running = counting.read()[0]
            now = time.perf_counter()
            if now > deadline or (now > quick and running == enabled > 0):
                return running / enabled if enabled else 0.0


def opened(group: Sequence[Event]) -> Group:
    try:
        return Group(group, 0)
    except CountError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            raise
        return Group(group, 0, exclude_kernel=True)


def spin(passes: int) -> None:
    for _ in range(passes // 20):
        pass


def least_share(group: Sequence[Event], pmus: Sequence[Pmu]) -> float:
    """`share` of a group of columns; with several kinds of cores the least of them, each tried on a core of its own."""
    least = 1.0
    for pmu, members, _ in cores.formed(group, pmus):
        with cores.on_cpu_of(pmu) as there:
            least = min(least, share(members)) if there else least
    return least


def fitting(
    wanted: Iterable[Event], groups: int = 1, pmus: Sequence[Pmu] = ()
) -> tuple[list[list[Event]], dict[str, str]]:
    """Form at most `groups` groups of the events that count all the time together, the most important first.

    Returns (groups, {name of an event left out: why}). An event that fits into no group any more is dropped, so the drop
    order is the order of importance read backwards. pmus: the kinds of cores, where there are several; what is formed fits
    on each of them.
    """
    formed: list[list[Event]] = []
    dropped: dict[str, str] = {}
    for event in wanted:
        room = next((group for group in formed if len(group) < MOST and fits(group, event, pmus)), None)
        if room is not None:
            room.append(event)
            continue
        try:
            alone = least_share([event], pmus)
        except CountError as error:
            dropped[event.name] = error.strerror or str(error)
            continue
        if alone == 0.0:
            dropped[event.name] = "it opens, and is never counted: others hold the counters"
        elif len(formed) < groups:
            formed.append([event])
        else:
            dropped[event.name] = "no counter is left for it"
    return formed, dropped


def fits(group: list[Event], event: Event, pmus: Sequence[Pmu] = ()) -> bool:
    """Whether the event may join; some kernels refuse what others accept and never run."""
    try:
        return least_share([*group, event], pmus) >= ENOUGH
    except CountError:
        return False


def free_counters(machine: Machine) -> dict[str, int]:
    """PMU name -> how many `cycles` counters run together now on one of its CPUs.

    At least this many general events fit; on processors with fixed counters the fixed ones are in the figure. A PMU is left
    out where we may not count or run on none of its cores.
    """
    plain = Event("cycles", "count", "hardware", events.HARDWARE, 0)
    several = len(machine.core_pmus) > 1
    found = {}
    for pmu in machine.core_pmus:
        cycles = cores.spread(plain, [pmu]).get(pmu.name) if several else plain
        with cores.on_cpu_of(pmu) as there:
            if cycles is None or not there:
                continue
            count = 0
            try:
                while count < MOST and share([cycles] * (count + 1)) >= ENOUGH:
                    count += 1
            except CountError as error:
                if not count and error.errno != errno.EINVAL:
                    continue  # refused altogether: that is the doctor's to explain, not a count of 0
            found[pmu.name] = count
    return found


def probe(names: Iterable[str]) -> dict[str, int]:
    """Event name -> errno with which the kernel refuses it to us, 0 where it opens; names that cannot be resolved are
    left out (tracefs may be unreadable)."""
    found = {}
    for name in names:
        try:
            opened([resolve(name)]).close()
            found[name] = 0
        except CountError as error:
            found[name] = error.errno or 0
        except PmutopError:
            continue
    return found


def own_ipc(seconds: float = 0.01) -> float | None:
    """Instructions per cycle of a loop of ours, for the plausibility check; None where they cannot be counted."""
    wanted = [events.generic("cycles"), events.generic("instructions")]
    try:
        with opened([event for event in wanted if event]) as counting:
            counting.enable()
            deadline = time.perf_counter() + seconds
            while time.perf_counter() < deadline:
                spin(20_000)
            (cycles, _, running), (instructions, _, _) = counting.read()
    except CountError:
        return None
    return instructions / cycles if running and cycles else None
