"""Which PMU counts on which core, where the cores are not all alike: hybrid x86 and big.LITTLE.

A source has one column for an event, whatever the machine: `cycles` are the cycles on any core. Where several PMUs count
them, it opens the same group once for each and the column is their sum, made in the source itself, so that nothing above
the door knows of kinds of cores. The attach reader opens the group of every kind on every task and adds them up
(pmutop._proc.add says what becomes of the times); the system reader opens on each CPU what that CPU's PMU counts, so that
its sums over CPUs are sums over kinds already.

How one event is spelt for one of several PMUs: a generic event carries the PMU's type in the upper half of config
(include/uapi/linux/perf_event.h, PERF_PMU_TYPE_SHIFT; Linux 5.13, on arm64 later); a raw one has the PMU's type instead of
PERF_TYPE_RAW; where an Arm kernel does not know the first, the name in the PMU's events folder serves. Which of them a kernel
takes is tried, never assumed. Tested on faked trees only: no such machine was at hand.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from pmutop import events, sysfs
from pmutop._perf import CountError, Group
from pmutop.events import Event
from pmutop.topology import Machine, Pmu

TYPE_SHIFT = 32  # PERF_PMU_TYPE_SHIFT

#: What drivers/perf/arm_pmuv3.c makes of the generic events, by the names of its events folder.
ARM_NAMES = {
    "cycles": "cpu_cycles",
    "instructions": "inst_retired",
    "branches": "br_retired",
    "branch-misses": "br_mis_pred",
    "cache-references": "l1d_cache",
    "cache-misses": "l1d_cache_refill",
    "L1-dcache-loads": "l1d_cache",
    "L1-dcache-load-misses": "l1d_cache_refill",
    "LLC-loads": "ll_cache_rd",
    "LLC-load-misses": "ll_cache_miss_rd",
    "dTLB-load-misses": "l1d_tlb_refill",
    "iTLB-load-misses": "l1i_tlb_refill",
    "stalled-cycles-frontend": "stall_frontend",
    "stalled-cycles-backend": "stall_backend",
}


class Formed(NamedTuple):
    """A group as it is opened: by which PMU (None: the machine's only one), its events, their places in the group asked for."""

    pmu: Pmu | None
    events: list[Event]
    places: list[int]


def kinds(root: str = "/") -> tuple[Pmu, ...]:
    """The core PMUs where there are several, else (): a machine with one needs none of this."""
    return Machine.read(root).core_pmus if len(sysfs.core_pmus(root)) > 1 else ()


def spellings(event: Event, pmu: Pmu) -> list[Event]:
    """What `event` may be called on this one of several PMUs, the likeliest first; [] if it is not this PMU's."""
    if event.type in (events.HARDWARE, events.HW_CACHE):
        found = [replace(event, config=event.config | pmu.type << TYPE_SHIFT, pmu=pmu.name)]
        terms = pmu.events.get(ARM_NAMES.get(event.name.partition(":")[0], ""), "")
        if terms.startswith("event="):
            found.append(
                replace(event, type=pmu.type, config=int(terms.removeprefix("event="), 0), pmu=pmu.name)
            )
        return found
    if event.type == events.RAW and event.tier == "hardware" and "/" not in event.name:
        return [replace(event, type=pmu.type, pmu=pmu.name)]
    return [replace(event, pmu=pmu.name)] if event.type == pmu.type else []


def opens(event: Event) -> bool:
    """Whether the kernel knows the event; one that it only forbids exists as far as we can tell."""
    try:
        Group([event], 0).close()
    except CountError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            return False
        if not event.mode:  # asked before all else, so it hides whether the event is there
            return opens(replace(event, mode="u"))
    return True


def spread(event: Event, pmus: Sequence[Pmu]) -> dict[str, Event]:
    """PMU -> the event as that PMU counts it; PMUs that do not are absent. {} for what no core PMU counts (software)."""
    if event.tier != "hardware":
        return {}
    found = {pmu.name: next(filter(opens, spellings(event, pmu)), None) for pmu in pmus}
    return {name: one for name, one in found.items() if one is not None}


def formed(group: Sequence[Event], pmus: Sequence[Pmu]) -> list[Formed]:
    """The groups to open for a group of columns: one for each kind of core, or the group itself where all are alike."""
    each = [spread(event, pmus) for event in group]
    plain = [place for place, known in enumerate(each) if not known]
    found = [Formed(None, [group[place] for place in plain], plain)] if plain else []
    for pmu in pmus:
        places = [place for place, known in enumerate(each) if pmu.name in known]
        if places:
            found.append(Formed(pmu, [each[place][pmu.name] for place in places], places))
    return found


def lacking(event: Event, pmus: Sequence[Pmu]) -> list[str]:
    """The kinds of cores on which an event is not counted that others count."""
    known = spread(event, pmus)
    return [pmu.name for pmu in pmus if pmu.name not in known] if known else []


@contextmanager
def on_cpu_of(pmu: Pmu | None) -> Iterator[bool]:
    """Run here on one of the PMU's CPUs: its events count nowhere else. Yields False where we may not run on any of them."""
    before = os.sched_getaffinity(0)
    there = pmu is None or bool(before & set(pmu.cpus))
    if pmu is not None and there:
        os.sched_setaffinity(0, {min(before & set(pmu.cpus))})
    try:
        yield there
    finally:
        if pmu is not None and there:
            os.sched_setaffinity(0, before)
