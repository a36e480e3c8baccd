"""Figures for `pmutop combine` and `pmutop compare`: prints markdown tables.

python tests/bench/fuse.py a15            recorded counters (../shared/data/a15-parsec or $PMUTOP_DATA)
python tests/bench/fuse.py speed          50,000 tasks x 15 event sets; EPD of 33 events
python tests/bench/fuse.py collect DIR    run the programs (the system reader); resumes where it was stopped
python tests/bench/fuse.py epd DIR        EPD and correlation error of what was collected
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from programs import c_project

from pmutop.analysis.combination import combine_bc, combine_lgl
from pmutop.analysis.dissimilarity import correlation_error, epd
from pmutop.analysis.plans import Plan, counters, plan_disjoint, plan_overlapping
from pmutop.analysis.profiles import Profile, profile_of
from pmutop.cli.combine import count_tasks

HERE = Path(__file__).resolve().parent
REPETITIONS, BUDGET = 5, 4  # as many references as merged profiles
EVENTS = (  # software events that vary in both programs, so that a wrong pairing can show
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "raw_syscalls:sys_enter",
    "syscalls:sys_enter_read",
    "syscalls:sys_enter_openat",
    "kmem:mm_page_alloc",
    "kmem:kmem_cache_alloc",
    "kmem:rss_stat",
    "filemap:mm_filemap_get_pages",
    "sched:sched_waking",
)
PROGRAMS = {
    "random": "Python job, random order",
    "make": "make -j2, 120 C files",
    "fixed": "Python job, fixed order",
}

# ---- speed --------------------------------------------------------------------------------------------------------------


def invented(tasks: int, sets: tuple[tuple[str, ...], ...], seed: int = 0) -> list[Profile]:
    """Runs of a program whose tasks have three hidden properties that show in all events, with 5 % noise per run."""
    path = np.array([[0, at // 100, at % 100] for at in range(tasks)], np.int32)
    kind = np.array([f"type{at * 18 // tasks}" for at in range(tasks)])
    rng = np.random.default_rng(seed)
    runs = []
    for events in sets:
        hidden = rng.lognormal(10, 1, (tasks, 3))
        weights = np.array([np.random.default_rng(int(event[1:])).random(3) for event in events]).T
        counts = hidden @ weights * np.exp(rng.normal(0, 0.05, (tasks, len(events))))
        runs.append(Profile(tuple(events), np.round(counts * 100), path, kind))
    return runs


def speed() -> None:
    events = tuple(f"e{at}" for at in range(33))
    correlation = np.random.default_rng(1).random((33, 33))
    plan = plan_overlapping(events, counters(5), (correlation + correlation.T) / 2)
    runs = invented(50_000, plan.sets)
    print(
        f"50,000 tasks of 18 types, {len(plan.sets)} event sets, 33 events, {os.cpu_count()} CPUs\n\n| what | seconds |\n|---|---|"
    )
    for name, work in {
        "LGL": lambda: combine_lgl(runs),
        "BC": lambda: combine_bc(runs),
        "BC (unlabelled)": lambda: combine_bc(runs, labelled=False),
    }.items():
        start = time.perf_counter()
        work()
        print(f"| {name} | {time.perf_counter() - start:.1f} |")
    references = [run.values for seed in range(1, 6) for run in invented(50_000, (events,), seed)]
    start = time.perf_counter()
    result = epd(events, invented(50_000, (events,), 9)[0].values, references, jobs=2)
    print(
        f"| EPD, {len(result.pairs)} pairs, 5 references of 50,000 tasks | {time.perf_counter() - start:.1f} |"
    )


# ---- real programs ------------------------------------------------------------------------------------------------------


def plans(folder: Path, program: str) -> tuple[Plan, Plan]:
    """LGL's sets, and BC's from the correlations in a pilot run of its own (neither merged nor a reference)."""
    pilot = load(folder / f"{program}-pilot.npz")
    with np.errstate(all="ignore"):
        correlation = np.corrcoef(pilot.values.T)
    return plan_disjoint(EVENTS, counters(BUDGET)), plan_overlapping(EVENTS, counters(BUDGET), correlation)


def collect(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as project:
        build = c_project(Path(project))
        for program in PROGRAMS:
            command = build if program == "make" else [sys.executable, str(HERE / "programs.py"), program]
            keep(folder / f"{program}-pilot.npz", EVENTS, command)
            for number in range(
                REPETITIONS
            ):  # references in between, so that what else runs here disturbs all alike
                keep(folder / f"{program}-reference{number}.npz", EVENTS, command)
                for method, plan in zip(("lgl", "bc"), plans(folder, program)):
                    for at, events in enumerate(plan.sets):
                        keep(folder / f"{program}-{method}{number}.{at}.npz", events, command)


def keep(target: Path, events: tuple[str, ...], command: list[str]) -> None:
    """Run once and keep the counts, unless that was done before; again where over 1 % of the tasks lack counts (under heavy
    foreign load the kernel throttles sampling)."""
    while not target.exists():
        profile = profile_of(count_tasks(events, command))
        if np.isnan(profile.values).any(axis=1).mean() > 0.01:
            continue
        np.savez(target, events=profile.events, values=profile.values, path=profile.path, type=profile.type)
        print(target.name, len(profile.values), "tasks", flush=True)


def load(path: Path) -> Profile:
    """The tasks below the first one: that one creates the others, and alone would stretch the bins over its size."""
    held = np.load(path)
    below = held["path"][:, 1] >= 0
    return Profile(
        tuple(held["events"].tolist()), held["values"][below], held["path"][below], held["type"][below]
    )


def in_columns(profile: Profile) -> np.ndarray:
    return profile.values[:, [profile.events.index(event) for event in EVENTS]]


def epd_tables(folder: Path) -> None:
    print(
        f"{len(EVENTS)} events, {BUDGET} counters, {REPETITIONS} references, {REPETITIONS} merged profiles each, 10 + 2 bins.\n"
    )
    print(
        "| program | tasks | method | runs | EPD median (min-max) | / LGL | correlation error | incomplete tasks |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for program, title in PROGRAMS.items():
        references = [
            in_columns(load(folder / f"{program}-reference{number}.npz")) for number in range(REPETITIONS)
        ]
        disjoint, overlapping = plans(folder, program)
        first = None
        for name, prefix, plan, combine in (
            ("LGL", "lgl", disjoint, combine_lgl),
            ("BC", "bc", overlapping, combine_bc),
            ("BC (unlabelled)", "bc", overlapping, lambda runs: combine_bc(runs, labelled=False)),
        ):
            merged = [
                combine(
                    [load(folder / f"{program}-{prefix}{number}.{at}.npz") for at in range(len(plan.sets))]
                )
                for number in range(REPETITIONS)
            ]
            scores = [epd(EVENTS, in_columns(profile), references).epd for profile in merged]
            errors = [correlation_error(in_columns(profile), references) for profile in merged]
            first = first or np.median(scores)
            torn = np.mean([np.isnan(profile.values).any(axis=1).mean() for profile in merged])
            print(
                f"| {title} | {len(references[0])} | {name} | {len(plan.sets)} | {np.median(scores):.2f} "
                f"({min(scores):.2f}-{max(scores):.2f}) | {np.median(scores) / first:.2f} | {np.median(errors):.3f} | {torn:.1%} |"
            )
        own = [
            epd(EVENTS, held, references[:at] + references[at + 1 :]).epd
            for at, held in enumerate(references)
        ]
        print(
            f"| {title} | {len(references[0])} | a reference against the others | 1 | {np.median(own):.2f} "
            f"({min(own):.2f}-{max(own):.2f}) | | | |"
        )


if __name__ == "__main__":
    what, *where = sys.argv[1:] or ["speed"]
    {"speed": speed, "collect": collect, "epd": epd_tables}[what](*map(Path, where))
