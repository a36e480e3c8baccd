"""Which runs an interference training makes: every application alone, then beside every other, under each placement.

Placements (thesis, section 3.2): `same`, victim and antagonists on one CPU; `apart`, the antagonist on another CPU;
`half`, a victim of several threads on two CPUs, the antagonist on one of them. Mixes besides (nice values, CPU weights, several antagonists, part-time ones) make factors other than 1 and 2, so that severity can be
learnt. The factor of a run is the victim's time per iteration beside the others over its mean time alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pmutop._perf import CountError
from pmutop.bundle import Bundle
from pmutop.errors import PmutopError
from pmutop.events import SOFTWARE_IDS
from pmutop.sources.attach import SOFTWARE_EVENTS, AttachSource, permitted
from pmutop.sysfs import resolve, tracefs
from pmutop.training import interference, weights
from pmutop.training.catalogue import Workload, applications
from pmutop.training.collect import Collector, Progress
from pmutop.training.workloads import missing, start

#: The applications of a training in its usual length: matrix multiply in three sizes, sort, page rank, a join, a stream, a
#: pointer chase, a stencil and a Fourier transform; three of them multithreaded.
USUAL = ("MM-S", "MM-M", "MM-L", "SORT", "PR-2", "JOIN", "TRIAD", "CHASE", "STENCIL-2", "FFT-2")
ALONE_REPEATS = 3
#: How many of the others each victim meets, and in how many mixes.
PARTNERS, MIXED = 2, 5
SETTLE = 1
#: Events of these parts of the kernel are recorded where they may be (tracefs): the space that tables of groups are of.
SYSTEMS = (
    "exceptions",
    "irq",
    "irq_vectors",
    "kmem",
    "lock",
    "mmap_lock",
    "raw_syscalls",
    "sched",
    "signal",
    "timer",
)


@dataclass(frozen=True)
class Mix:
    """Who is beside a victim: how many, their nice value minus the victim's, their duty in %, the CPU weight of their
    control group (100 = the usual, and in no group of their own)."""

    count: int = 1
    nicer: int = 0
    duty: int = 100
    weight: int = weights.USUAL


MIXES = {
    "even": Mix(),
    "three": Mix(2),
    "five": Mix(4),
    "nicer": Mix(nicer=5),
    "nicest": Mix(nicer=10),
    "half": Mix(duty=50),
    "tenth": Mix(duty=10),
    "heavy": Mix(weight=300),
    "light": Mix(weight=30),
}


@dataclass(frozen=True)
class Plan:
    """One run: a victim, and whom it has beside it where ("" = alone)."""

    victim: Workload
    partner: Workload | None
    placement: str  # alone | same | apart | half
    mix: str
    repeat: int
    wide: bool = False  # the victim has two CPUs

    @property
    def name(self) -> str:
        beside = f"{self.partner.name}|{self.mix}" if self.partner else f"{self.repeat}"
        return f"{self.victim.name}{'|wide' if self.wide else ''}|{self.placement}|{beside}"


def plans(
    chosen: Sequence[Workload], cpus: Sequence[int], mixes: Sequence[str] = tuple(MIXES)
) -> Iterator[Plan]:
    """Every victim alone, then beside `PARTNERS` others in turn (its like among them) under every placement, and in
    `MIXED` mixes: over all victims every partner and every mix comes equally often."""
    splits = {one.name: len(cpus) > 1 and "two-cpus" in one.needs for one in chosen}
    for victim in chosen:
        for wide in (False, True)[: 1 + splits[victim.name]]:
            for repeat in range(ALONE_REPEATS):
                yield Plan(victim, None, "alone", "", repeat, wide)
    for at, victim in enumerate(chosen):
        for step in range(min(PARTNERS, len(chosen))):
            partner = chosen[(at + step * (1 + len(chosen) // 3)) % len(chosen)]
            yield Plan(victim, partner, "same", "even", 0)
            if len(cpus) > 1:
                yield Plan(victim, partner, "apart", "even", 0)
            if splits[victim.name]:
                yield Plan(victim, partner, "half", "even", 0, wide=True)
        for step in range(min(MIXED, len(chosen))):
            partner = chosen[(at + 1 + 2 * step) % len(chosen)]
            mix = mixes[1 + (at + step) % (len(mixes) - 1)]
            yield Plan(victim, partner, "same", mix, 0)


def every_event() -> list[str]:
    """The software events and the tracepoints of `SYSTEMS` that may be counted here; dead ones too, as in the thesis."""
    folder = tracefs()
    points = [
        f"{system}:{point.name}"
        for system in SYSTEMS
        for point in (sorted((folder / "events" / system).glob("*/")) if folder else ())
    ]
    found = []
    for name in (*SOFTWARE_EVENTS, *SOFTWARE_IDS, *points):
        try:
            permitted(resolve(name))
        except (PmutopError, CountError):
            continue
        found.append(name)
    return list(dict.fromkeys(found))


def collect(folder: Path, cpus: Sequence[int], slices: int, only: str, say: Callable[[str], None]) -> None:
    """Record `slices` slices of each planned run, and how long the victim's iterations took in it."""
    chosen = [
        one
        for one in applications()
        if (only in one.name if only else one.name in USUAL) and not missing(one, cpus)
    ]
    with Collector(lambda: AttachSource(names=every_event()), folder) as collector:
        done = {run.name for run in collector.done}
        weighing = weights.allowed()
        mixes = [name for name, mix in MIXES.items() if weighing or mix.weight == weights.USUAL]
        wanted = [plan for plan in plans(chosen, cpus, mixes) if plan.name not in done]
        progress = Progress(len(wanted), say)
        for plan in wanted:
            seconds = per_iteration(collector, plan, cpus, slices)
            progress.step(f"{plan.name}: {seconds:.4f} s per iteration")


def per_iteration(collector: Collector, plan: Plan, cpus: Sequence[int], slices: int) -> float:
    """Make one run; returns the victim's seconds per iteration."""
    mix = MIXES.get(plan.mix, Mix(0))
    here, there = [cpus[0]], [cpus[0] if plan.placement == "same" else cpus[-1]]
    if plan.wide:
        here = [cpus[0], cpus[-1]]
    length = (slices + SETTLE + 1) * collector.source.header.interval
    with contextlib.ExitStack() as running:
        if plan.partner is not None:
            partner = (
                plan.partner
                if mix.duty == 100
                else replace(plan.partner, arguments=(*plan.partner.arguments, "--duty", str(mix.duty)))
            )
            joined = (
                running.enter_context(weights.weighed(mix.weight)) if mix.weight != weights.USUAL else list
            )
            for _ in range(mix.count):
                running.enter_context(start(partner, there, nice=mix.nicer, under=joined)).wait_ready()
        victim = running.enter_context(start(plan.victim, here, seconds=length, nice=0))
        victim.wait_ready()
        collector.settle(SETTLE)
        numbers = [collector.next().number for _ in range(slices)]
        done = victim.result(timeout=60)
    if not done["work"]:
        raise PmutopError(f"{plan.name}: no work was done", "train on a machine with less other load")
    seconds = done["seconds"] / done["work"]
    facts = {
        "victim": plan.victim.name,
        "partner": plan.partner.name if plan.partner else "",
        "placement": plan.placement,
        "mix": plan.mix,
        "cpus": len(here),
        "seconds": seconds,
    }
    collector.note(interference.run_of(plan.name, collector.part, victim.pid, numbers, facts))
    return seconds


def learn(folder: Path, target: Path) -> tuple[Bundle, str]:
    return interference.make_bundle(target, folder)
