"""Which pathologies may be learnt here: those whose variant is measured to be slower per unit of work than its twin (DESIGN,
"Words")."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pmutop.errors import PmutopError
from pmutop.training.labels import Workload
from pmutop.training.workloads import missing, start

#: A pathological variant is admitted when its twin does at least so many times its work (DESIGN, "Words").
ADMISSION = 1.3
#: The mild variants count as healthy when their twin does at most so many times their work. Between the two: no label.
HEALTHY = 1.15
#: So many times beyond its bound a factor needs no second measurement.
CLEAR = 1.5


def rate_of_work(workload: Workload, seconds: float, cpus: Sequence[int]) -> float:
    """Units of work per second of wall time, init phase excluded."""
    with start(workload, cpus, seconds) as running:
        running.wait_ready()
        result = running.result(timeout=seconds * 10 + 30)
    return result["work"] / result["seconds"]


@dataclass(frozen=True)
class Admission:
    """What a pathological (or mild) variant costs here: `factor` = work per second of the twin / of the variant."""

    workload: Workload
    twin: Workload
    rate: float  # units per second, the best of the repeats: what disturbs a run only slows it
    twin_rate: float
    factor: float
    low: float  # the factor from the worst and the best repeats
    high: float
    refused: str  # why it could not be measured; "" when it was

    @property
    def admitted(self) -> bool:
        if self.refused:
            return False
        return self.factor >= ADMISSION if self.workload.pathological else self.factor <= HEALTHY


def is_clear(workload: Workload, factor: float) -> bool:
    """Is this factor far from the bound that it is held against?"""
    bound = ADMISSION if workload.pathological else HEALTHY
    return factor >= bound * CLEAR or factor <= bound / CLEAR


def pairs(workloads: Iterable[Workload]) -> list[tuple[Workload, Workload]]:
    """(variant, twin) for every workload that has one, in order."""
    workloads = list(workloads)
    by_name = {workload.name: workload for workload in workloads}
    return [(workload, by_name[workload.twin]) for workload in workloads if workload.twin]


def admit(
    pairs: Iterable[tuple[Workload, Workload]],
    repeats: int = 3,
    seconds: float = 0.3,
    cpus: Sequence[int] = (),
    progress: Callable[[Admission], None] = lambda admission: None,
    hurried: bool = False,
) -> list[Admission]:
    """Measure every pair natively, variant and twin in turn, and apply the admission rule to the best of each; `hurried`:
    what is clear is not repeated.

    Wants a quiet machine, and `seconds` of more than a duty period (0.1 s).
    """
    cpus = tuple(cpus) or tuple(sorted(os.sched_getaffinity(0)))
    measured = []
    for workload, twin in pairs:
        refused = missing(workload, cpus) or missing(twin, cpus)
        slow, fast = [0.0], [0.0]
        if not refused:
            try:
                rates = []
                while len(rates) < repeats:
                    rates.append((rate_of_work(workload, seconds, cpus), rate_of_work(twin, seconds, cpus)))
                    slow, fast = map(sorted, zip(*rates))
                    if hurried and slow[-1] > 0 and is_clear(workload, fast[-1] / slow[-1]):
                        break
            except PmutopError as error:
                refused = str(error)
            else:
                if slow[0] <= 0:
                    refused = f"no work was done in {seconds:g} s"
        rate, twin_rate = slow[-1], fast[-1]
        factors = (0.0, 0.0, 0.0) if refused else (twin_rate / rate, fast[0] / slow[-1], fast[-1] / slow[0])
        measured.append(Admission(workload, twin, rate, twin_rate, *factors, refused))
        progress(measured[-1])
    return measured


def report(admissions: Iterable[Admission]) -> str:
    """The admission table in Markdown."""
    lines = [
        "| workload | label | units/s | twin units/s | factor (range) | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for admission in admissions:
        workload = admission.workload
        if admission.refused:
            lines.append(
                f"| {workload.name} | {workload.label} | - | - | - | not measured: {admission.refused} |"
            )
            continue
        verdict = "admitted" if admission.admitted else "refused"
        lines.append(
            f"| {workload.name} | {workload.label} | {admission.rate:.3g} | {admission.twin_rate:.3g} "
            f"| {admission.factor:.2f} ({admission.low:.2f}-{admission.high:.2f}) | {verdict} |"
        )
    return "\n".join(lines)
