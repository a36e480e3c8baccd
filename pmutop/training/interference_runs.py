"""Which runs an interference training makes: every application alone, then beside every other, under each placement.

Placements (thesis, section 3.2): `same`, victim and antagonists on one CPU; `apart`, the antagonist on another CPU.
Mixes besides (nice values, several antagonists, part-time ones) make factors other than 1 and 2, so that severity can be
learnt. The factor of a run is the victim's time per iteration beside the others over its mean time alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pmutop.bundle import Bundle
from pmutop.errors import PmutopError
from pmutop.sources.attach import AttachSource
from pmutop.training import interference
from pmutop.training.catalogue import Workload, applications
from pmutop.training.collect import Collector, Progress
from pmutop.training.workloads import missing, start

#: The applications of a training in its usual length: matrix multiply, sort, a multithreaded graph kernel, a join.
USUAL = ("MM-M", "SORT", "PR-2", "JOIN")
ALONE_REPEATS = 4
SETTLE = 1

#: name of a mix -> what changes: (antagonists, their nice minus the victim's, their duty in %)
MIXES = {
    "even": (1, 0, 100),
    "three": (2, 0, 100),
    "five": (4, 0, 100),
    "nicer": (1, 5, 100),
    "nicest": (1, 10, 100),
    "half": (1, 0, 50),
    "tenth": (1, 0, 10),
}


@dataclass(frozen=True)
class Plan:
    """One run: a victim, and whom it has beside it where ("" = alone)."""

    victim: Workload
    partner: Workload | None
    placement: str  # alone | same | apart
    mix: str
    repeat: int

    @property
    def name(self) -> str:
        beside = f"{self.partner.name}|{self.mix}" if self.partner else str(self.repeat)
        return f"{self.victim.name}|{self.placement}|{beside}"


def plans(chosen: Sequence[Workload], cpus: Sequence[int]) -> Iterator[Plan]:
    for victim in chosen:
        for repeat in range(ALONE_REPEATS):
            yield Plan(victim, None, "alone", "", repeat)
    for at, victim in enumerate(chosen):
        for number, partner in enumerate(chosen):
            yield Plan(victim, partner, "same", "even", 0)
            if len(cpus) > 1:
                yield Plan(victim, partner, "apart", "even", 0)
            # two mixes a pair, in turn: all of them for every victim, not all of them for every pair
            for step in range(2):
                mix = list(MIXES)[1 + (at + 2 * number + step) % (len(MIXES) - 1)]
                yield Plan(victim, partner, "same", mix, 0)


def collect(folder: Path, cpus: Sequence[int], slices: int, only: str, say: Callable[[str], None]) -> None:
    """Record `slices` slices of each planned run, and how long the victim's iterations took in it."""
    chosen = [
        one
        for one in applications()
        if (only in one.name if only else one.name in USUAL) and not missing(one, cpus)
    ]
    with Collector(AttachSource, folder) as collector:
        done = {run.name for run in collector.done}
        wanted = [plan for plan in plans(chosen, cpus) if plan.name not in done]
        progress = Progress(len(wanted), say)
        for plan in wanted:
            seconds = per_iteration(collector, plan, cpus, slices)
            progress.step(f"{plan.name}: {seconds:.4f} s per iteration")


def per_iteration(collector: Collector, plan: Plan, cpus: Sequence[int], slices: int) -> float:
    """Make one run; returns the victim's seconds per iteration."""
    count, nicer, duty = MIXES.get(plan.mix, (0, 0, 100))
    here, there = [cpus[0]], [cpus[-1]] if plan.placement == "apart" else [cpus[0]]
    length = (slices + SETTLE + 1) * collector.source.header.interval
    with contextlib.ExitStack() as running:
        if plan.partner is not None:
            partner = (
                plan.partner
                if duty == 100
                else replace(plan.partner, arguments=(*plan.partner.arguments, "--duty", str(duty)))
            )
            for _ in range(count):
                running.enter_context(start(partner, there, nice=nicer)).wait_ready()
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
        "seconds": seconds,
    }
    collector.note(interference.run_of(plan.name, collector.part, victim.pid, numbers, facts))
    return seconds


def learn(folder: Path, target: Path) -> tuple[Bundle, str]:
    return interference.make_bundle(target, folder)
