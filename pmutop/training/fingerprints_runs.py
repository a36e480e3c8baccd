"""Which runs a fingerprint training makes: admission first, then every admitted workload and every healthy one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pmutop.bundle import Bundle
from pmutop.training import fingerprints
from pmutop.training.admission import Admission, admit, pairs
from pmutop.training.collect import Collector, Progress, read_runs
from pmutop.training.labels import Workload
from pmutop.training.tiers import SOFTWARE, Tier
from pmutop.training.workloads import missing, start

ADMISSIONS = "admission.json"
#: s: a simulated init phase in 256 MB is long
PATIENCE = 300.0


def collect(
    folder: Path,
    cpus: Sequence[int],
    slices: int,
    only: str,
    say: Callable[[str], None],
    tier: Tier = SOFTWARE,
) -> None:
    """Measure which pathologies are slower here, then record `slices` slices of each workload that may be
    learnt, once in each of the tier's passes."""
    folder.mkdir(parents=True, exist_ok=True)
    passes = tier.passes(folder)
    workloads = [workload for workload in tier.workloads() if only in workload.name]
    admitted = measure(folder, workloads, cpus, say, tier)
    wanted = [
        workload
        for workload in workloads
        if (not workload.twin or admitted[tier.admit_by(workload)]) and not missing(workload, cpus)
    ]
    done = [{run.name for run in read_runs(place)} for place, _ in passes]
    waiting = [[workload for workload in wanted if workload.name not in names] for names in done]
    progress = Progress(sum(map(len, waiting)), say)
    for (place, open_source), left in zip(passes, waiting, strict=True):
        if left:
            with Collector(open_source, place) as collector:
                record(collector, left, cpus, slices, tier.together(len(cpus)), progress)


def record(
    collector: Collector,
    workloads: Sequence[Workload],
    cpus: Sequence[int],
    slices: int,
    together: int,
    progress: Progress,
) -> None:
    """One run of each of the workloads, `together` at a time."""
    for batch in batches(workloads, together):
        with contextlib.ExitStack() as stack:
            under = getattr(collector.source, "wrap", list)
            running = [stack.enter_context(start(workload, cpus, under=under)) for workload in batch]
            for one in running:
                one.wait_ready(PATIENCE)
            collector.watch_together({one.workload.name: one.pid for one in running}, slices)
        for workload in batch:
            progress.step(workload.name)


def measure(
    folder: Path, workloads: Sequence[Workload], cpus: Sequence[int], say: Callable[[str], None], tier: Tier
) -> dict[str, bool]:
    """{Tier.admit_by: admitted}, measured without any reader where it is not known from an interrupted training."""
    known = {entry["group"]: entry["admitted"] for entry in admissions(folder)}
    firsts: dict[str, tuple[Workload, Workload]] = {}
    for pair in pairs(workloads):
        firsts.setdefault(tier.admit_by(pair[0]), pair)
    waiting = {group: pair for group, pair in firsts.items() if group not in known}
    progress = Progress(len(waiting), say)
    for group, pair in waiting.items():
        (found,) = admit([pair], repeats=3, seconds=0.3, cpus=cpus, hurried=True)
        progress.step(f"{found.workload.name}: {verdict(found)}")
        known[group] = found.admitted
        if not found.refused:  # what could not be measured is tried again by the next training
            with (folder / ADMISSIONS).open("a") as file:
                file.write(json.dumps({"group": group, **entry(found)}) + "\n")
    return known


def batches(workloads: Sequence[Workload], size: int) -> list[tuple[Workload, ...]]:
    return [tuple(workloads[at : at + size]) for at in range(0, len(workloads), size)]


def learn(folder: Path, target: Path, tier: Tier = SOFTWARE) -> tuple[Bundle, str]:
    by_name = {workload.name: workload for workload in tier.workloads()}
    made, text = fingerprints.make_bundle(tier, target, folder, by_name, admissions(folder))
    return made, f"{text}\n"


def admissions(folder: Path) -> list[dict]:
    path = folder / ADMISSIONS
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{"group": each["workload"], **each} for each in found]


def entry(found: Admission) -> dict:
    """One line of the card's admission table: units of work per second, healthy over pathological."""
    return {
        "workload": found.workload.name,
        "label": found.workload.label,
        "factor": round(found.factor, 3),
        "low": round(found.low, 3),
        "high": round(found.high, 3),
        "admitted": found.admitted,
        "refused": found.refused,
    }


def verdict(found: Admission) -> str:
    if found.refused:
        return f"not measured: {found.refused}"
    return f"{'admitted' if found.admitted else 'refused'}, {found.factor:.2f}x slower than its twin"
