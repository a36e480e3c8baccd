"""Prints how well fingerprints do: the shipped simulated bundle's scores, programs that training never saw, and the
fingerprinting paper's second experiment (the program's name as the class) on recorded counters.

    python tests/bench/fingerprints.py [--only SECTION] [--model NAME|FOLDER] [--slices 20] [--seal]

Expected labels stand in tests/programs/EXPECTED.md, written before any program was run; --seal writes the share of
programs' slices that got them into the model's card.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import re
import sys
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
from pmutop.training.labels import Workload
from pmutop.training.workloads import start

PROGRAMS = Path(__file__).parent.parent / "programs"
DATA = Path(os.environ.get("PMUTOP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LABEL = re.compile(r"\b[PN]_(?:Mem_)?(?:L2|L3|M|CPU)\b")
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


def expectations() -> list[tuple[str, tuple[str, ...], list[str]]]:
    """(program, arguments, labels: the expected one, then the defensible ones) of every row of EXPECTED.md."""
    found = []
    for line in (PROGRAMS / "EXPECTED.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and (PROGRAMS / f"{cells[0]}.c").exists():
            arguments = () if cells[1] == "-" else tuple(cells[1].split())
            found.append((cells[0], arguments, list(dict.fromkeys(LABEL.findall(cells[3])))))
    return found


def judged(source: SimulatedSource, slices, engine: Engine, programs, count: int) -> list[Counter]:
    """How often each label came first, per program, in `count` slices after their init phases."""
    found = [Counter() for _ in programs]
    with ExitStack() as stack:
        running = []
        for name, arguments, _ in programs:
            row = Workload(name, "", "", "", str(PROGRAMS / f"{name}.c"), arguments=arguments)
            running.append(
                stack.enter_context(start(row, sorted(os.sched_getaffinity(0)), under=source.wrap))
            )
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
        "\n## Programs that training never saw\n\n| program | expected | slices | expected label | or a defensible one | labels seen |"
    )
    show("|---|---|---|---|---|---|")
    source = SimulatedSource()
    engine = Engine(source.header, [model])
    slices = iter(source)
    engine.moment(next(slices))
    rows, right, defensible, best = expectations(), [], [], 0
    try:
        for at in range(0, len(rows), TOGETHER):
            batch = rows[at : at + TOGETHER]
            for (name, arguments, labels), seen in zip(
                batch, judged(source, slices, engine, batch, count), strict=True
            ):
                total = max(1, seen.total())
                right.append(seen[labels[0]] / total)
                defensible.append(sum(seen[label] for label in labels) / total)
                best += bool(seen) and seen.most_common(1)[0][0] == labels[0]
                said = ", ".join(f"{label} {number}" for label, number in seen.most_common(4))
                wanted = " or ".join(labels)
                show(
                    f"| `{' '.join((name, *arguments))}` | {wanted} | {seen.total()} | {right[-1]:.0%} "
                    f"| {defensible[-1]:.0%} | {said} |"
                )
    finally:
        source.close()
    mean = float(np.mean(right))
    show(
        f"| all {len(rows)}: mean of shares | | | {mean:.1%} | {np.mean(defensible):.1%} | expected most often: {best} |"
    )
    return round(mean, 4)


# ---- the paper's second experiment ----


def recorded(events: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X per million cycles, program, run) of one event list of the Cortex-A15 recordings."""
    rows, labels, runs = [], [], []
    for path in sorted(DATA.glob(f"a15-parsec/events_list_{events}/run_*/*/results.data.gz")):
        with gzip.open(path, "rt") as lines:
            cells = list(csv.reader(lines, delimiter="\t"))
        first = cells[0].index("CPU_CYCLES")
        for row in cells[1:]:
            cycles, *counts = (float(cell) for cell in row[first:])
            rows.append([1e6 * value / cycles for value in counts])
            labels.append(row[1])
            runs.append(path.parts[-3])
    return np.array(rows), np.array(labels), np.array(runs)


def print_recorded() -> None:
    show(
        "\n## The program's name as the class (Cortex-A15, 9 PARSEC and SPLASH programs, recorded by others)\n"
    )
    show(
        "| event list | slices | 10-fold over slices | whole runs held out | leaves |\n|---|---|---|---|---|"
    )
    for events in (1, 2):
        X, y, run = recorded(events)
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


SECTIONS = ("scores", "programs", "recorded")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--model", default=str(bundle.SHIPPED / "simulated-fingerprints"))
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument(
        "--seal", action="store_true", help="write the unseen programs' score into the model's card"
    )
    options = parser.parse_args()
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
    if "recorded" in wanted:
        print_recorded()


if __name__ == "__main__":
    main()
