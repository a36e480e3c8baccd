"""Prints how well fingerprints do: the shipped simulated bundle's scores, programs that training never saw, and the
fingerprinting paper's case (canneal) and second experiment (the program's name as the class) on recorded counters.

    python tests/bench/fingerprints.py [--only SECTION] [--model FOLDER] [--slices 20] [--seal]

Expected labels stand in tests/programs/EXPECTED.md, written before any program was run; --seal writes the share of
programs' slices that got them into the model's card. `--write-table RUNS FILE` writes the training rows in the folder
RUNS as wide CSV instead (tests/analysis/micro-benchmarks.csv.gz is that of the shipped model).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import numpy as np

from pmutop import bundle
from pmutop.analysis.tree import C45Tree
from pmutop.pipeline.engine import Engine
from pmutop.sources.machine import describe
from pmutop.sources.simulated import SimulatedSource
from pmutop.training.fingerprints import dataset
from pmutop.training.tiers import SIMULATED
from pmutop.training.workloads import command_of, start

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "programs"), str(TESTS / "analysis")]
import expected
import learning_sets
from expected import Unseen

#: what the tables are held against: (view, unseen) -> least accuracy
WANTED = {
    "eight labels, unseen size": 0.95,
    "eight labels, unseen build": 0.85,
    "P against N, unseen size": 0.97,
    "P against N, unseen build": 0.90,
    "12 kinds, unseen size": 0.95,
    "12 kinds, unseen build": 0.75,
}
SEALED = "unseen programs, the expected label (mean share of slices)"
TOGETHER = 2
#: canneal loads for some 20 s of simulation and swaps for as long
CANNEAL_SLICES = 120


def show(text: str) -> None:
    print(text, flush=True)


# ---- the bundle's own scores ----


def print_scores(model: bundle.Bundle) -> None:
    show("\n## Whole runs held out (the micro-benchmarks)\n\n| what | accuracy | wanted |\n|---|---|---|")
    for name, score in model.card["scores"].items():
        if name != SEALED:
            show(f"| {name} | {score:.4f} | {WANTED.get(name, '')} |")
    show("| the paper: micro-benchmarks, 10-fold over slices, hardware counters | 0.9996 | |")
    show(
        "\n## Admission, measured natively: refused pathologies are not learnt\n\n| pair | label | times slower | |\n|---|---|---|---|"
    )
    for entry in model.card["admission"]:
        verdict = entry["refused"] or ("admitted" if entry["admitted"] else "refused")
        show(f"| {entry['group']} | {entry['label']} | {entry['factor']:.2f} | {verdict} |")


# ---- programs that training never saw ----


def judged(
    source: SimulatedSource, slices, engine: Engine, programs: list[Unseen], count: int
) -> list[Counter]:
    """How often each label came first, per program, in `count` slices after their init phases."""
    found = [Counter() for _ in programs]
    with ExitStack() as stack:
        cpus = sorted(os.sched_getaffinity(0))
        running = [stack.enter_context(start(one.workload(), cpus, under=source.wrap)) for one in programs]
        for one in running:
            one.wait_ready(600)
        for number in range(count + 2):
            moment = engine.moment(next(slices))
            for row, labels in moment.labels.items():
                for place, one in enumerate(running):
                    if number > 1 and moment.tasks[row].pid == one.pid:
                        found[place][labels[0].label] += 1
    return found


def print_programs(model: bundle.Bundle, count: int) -> float:
    show(
        "\n## Programs that training never saw\n\n| program | expected (defensible) | slices | expected label | or a defensible one | labels seen |"
    )
    show("|---|---|---|---|---|---|")
    source = SimulatedSource()
    engine = Engine(source.header, [model])
    slices = iter(source)
    engine.moment(next(slices))
    programs, right, defensible, best = list(expected.table()), [], [], 0
    try:
        for at in range(0, len(programs), TOGETHER):
            batch = programs[at : at + TOGETHER]
            for one, seen in zip(batch, judged(source, slices, engine, batch, count), strict=True):
                total = max(1, seen.total())
                right.append(seen[one.expected] / total)
                defensible.append(right[-1] + sum(seen[label] for label in one.defensible) / total)
                best += bool(seen) and seen.most_common(1)[0][0] == one.expected
                said = ", ".join(f"{label} {number}" for label, number in seen.most_common(4))
                wanted = f"{one.expected} ({', '.join(one.defensible)})" if one.defensible else one.expected
                show(
                    f"| `{one.name}` | {wanted} | {seen.total()} | {right[-1]:.0%} | {defensible[-1]:.0%} | {said} |"
                )
    finally:
        source.close()
    mean = float(np.mean(right))
    show(
        f"| all {len(programs)}: mean of shares | | | {mean:.1%} | {np.mean(defensible):.1%} | expected most often: {best} |"
    )
    return round(mean, 4)


# ---- the paper's case: from label to code ----


def print_canneal(model: Path) -> None:
    """What `pmutop log --hot` says of canneal over a whole round of loading and swapping."""
    one = next(one for one in expected.table() if one.program == "canneal")
    words = ["log", "--source", "simulated", "--hot", "--slices", str(CANNEAL_SLICES), "--model", str(model)]
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "pmutop", *words, "--", *command_of(one.workload())]
        subprocess.run(command, stdout=log, check=True)
        log.seek(0)
        lines = [json.loads(line) for line in log]
    rows = [line for line in lines if line.get("comm") == "canneal" and line["labels"]]
    seen = Counter(row["labels"][0]["label"] for row in rows)
    show(f"\n## The paper's case: `pmutop {' '.join(words[:-2])} -- canneal {' '.join(one.arguments)}`\n")
    show(
        f"{len(rows)} judged slices of loading and swapping: "
        + ", ".join(f"{label} {number / len(rows):.1%}" for label, number in seen.most_common())
        + ". The paper, on hardware: P_Mem_M 68 %, found by hand.\n\n| label | samples | functions |\n|---|---|---|"
    )
    for hot in (line["hot"] for line in lines if "hot" in line):
        functions = ", ".join(f"{entry['name']} {entry['share']:.0%}" for entry in hot["functions"][:4])
        show(f"| {hot['label']} | {hot['samples']} | {functions} |")


# ---- the paper's second experiment ----


def print_recorded() -> None:
    show(
        "\n## The program's name as the class (Cortex-A15, 9 PARSEC and SPLASH programs, recorded by others)\n"
    )
    show(
        "| event list | slices | 10-fold over slices | whole runs held out | leaves |\n|---|---|---|---|---|"
    )
    for events in (1, 2):
        X, y, run = learning_sets.parsec_runs(events)
        if not len(X):
            show("| - | the recordings are not here | | | |")
            return
        fold = np.random.default_rng(0).integers(0, 10, len(y))
        scores = []
        for group in (fold, run):
            hits = [
                C45Tree().fit(X[group != one], y[group != one]).predict(X[group == one]) == y[group == one]
                for one in np.unique(group)
            ]
            scores.append(float(np.concatenate(hits).mean()))
        show(f"| {events} | {len(y)} | {scores[0]:.4f} | {scores[1]:.4f} | {C45Tree().fit(X, y).leaves} |")
    show("| the paper: SPEC CPU2006, hardware counters | 45932 | 0.9774 | - | 1049 |")
    show("| the paper: PARSEC, hardware counters | 52213 | 0.9940 | - | 317 |")


SECTIONS = ("scores", "programs", "canneal", "recorded")


def cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"


def write_table(runs: str, target: str) -> None:
    """The training rows as wide CSV: a column per feature, the run and its label."""
    by_name = {workload.name: workload for workload in SIMULATED.workloads()}
    _, data = dataset(SIMULATED, Path(runs), by_name)
    with gzip.GzipFile(target, "wb", mtime=0) as packed:
        lines = [",".join(("run", "label", *SIMULATED.features))]
        for values, label, run in zip(data.X, data.y, data.run, strict=True):
            lines.append(",".join((data.workloads[run].name, label, *map(cell, values))))
        packed.write("\n".join(lines).encode() + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--model", default=str(bundle.SHIPPED / "simulated-fingerprints"))
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument(
        "--seal", action="store_true", help="write the unseen programs' score into the model's card"
    )
    parser.add_argument("--write-table", nargs=2, metavar=("RUNS", "FILE"))
    options = parser.parse_args()
    if options.write_table:
        return write_table(*options.write_table)
    wanted = (options.only,) if options.only else SECTIONS
    machine = describe()
    show(f"# Fingerprints\n\n{machine['model']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, {date.today()}; "
         f"`python tests/bench/{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}`".rstrip(" `") + "`")  # fmt: skip
    if "scores" in wanted:
        print_scores(bundle.read(Path(options.model)))
    if "programs" in wanted:
        model = bundle.read(Path(options.model))
        share = print_programs(model, options.slices)
        if options.seal:
            bundle.write(
                model.folder, model.card | {"scores": model.card["scores"] | {SEALED: share}}, model.arrays
            )
    if "canneal" in wanted:
        print_canneal(Path(options.model))
    if "recorded" in wanted:
        print_recorded()


if __name__ == "__main__":
    main()
