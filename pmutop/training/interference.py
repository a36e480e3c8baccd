"""Measured pairs to an interference bundle: does this slice suffer from neighbours on its core, and by how much.

Labels (thesis, section 4.1.3, made stricter for machines that repeat less well): 1 where the run took at least 5 %
longer than alone *and* more than 3 sigma of the runs alone; -1 where neither; runs between the two bounds are left out.
So are runs that suffered from a neighbour on another core: that is the work of shared caches and memory, which leave no
trace in these events, and would teach the model of the core that nothing is a sign of trouble.
"""

from __future__ import annotations

import platform
import statistics
import time
from pathlib import Path

import numpy as np

from pmutop import __version__, bundle
from pmutop.analysis.interference import LinearVerdict
from pmutop.analysis.interference_training import area, fit
from pmutop.bundle import Bundle
from pmutop.errors import PmutopError
from pmutop.training.collect import Run, hashes, rows_of

SEED = 20261121
SLOWER = 1.05
SIGMAS = 3.0

#: What sharing a core leaves in /proc, which every user may read: the share of its time, and the factor, that waiting for
#: neighbours explains, of the process and of its thread that is held up most. Its threads' waits for one another are no
#: neighbour's work, so plain run delay misleads: two threads on one CPU alone wait half their time.
FEATURES = (
    "neighbour-delay/run-time+neighbour-delay",
    "run-time+neighbour-delay/run-time",
    "worst-thread-neighbour-delay/worst-thread-run-time+worst-thread-neighbour-delay",
    "worst-thread-run-time+worst-thread-neighbour-delay/worst-thread-run-time",
)
BLIND = (
    "Shared-cache and memory-bandwidth interference cannot be seen here: a neighbour on another core that takes the "
    "last-level cache leaves no trace in software events (ten times slower, same numbers).",
)


def run_of(name: str, part: str, pid: int, numbers: list[int], facts: dict) -> Run:
    return Run(name, part, pid, numbers[0], numbers[-1], facts)


def place_of(run: Run) -> tuple[str, int]:
    return run.facts["victim"], run.facts.get("cpus", 1)


def times_alone(runs: list[Run]) -> dict[tuple[str, int], list[float]]:
    """(victim, its CPUs) -> seconds per iteration of its runs alone."""
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if run.facts["placement"] == "alone":
            found.setdefault(place_of(run), []).append(run.facts["seconds"])
    return found


def factors(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """(factor, label) of each run, float64 and int; label 0 = between the bounds, left out of the yes/no.

    A victim that had two CPUs is compared with itself alone on two (the thesis has a second baseline for PR, too)."""
    alone = times_alone(runs)
    factor, label = np.full(len(runs), np.nan), np.zeros(len(runs), int)
    for number, run in enumerate(runs):
        times = alone.get(place_of(run), [])
        if len(times) < 2:
            continue
        mean, sigma = statistics.mean(times), statistics.stdev(times)
        factor[number] = run.facts["seconds"] / mean
        slower = factor[number] >= SLOWER, run.facts["seconds"] - mean > SIGMAS * sigma
        label[number] = 1 if all(slower) else -1 if not any(slower) else 0
        if run.facts["placement"] == "apart" and any(slower):
            factor[number], label[number] = np.nan, 0
    return factor, label


def make_bundle(target: Path, folder: Path) -> tuple[Bundle, str]:
    """Learn from the runs in `folder` and write the bundle; returns it and a report in Markdown."""
    rows = rows_of(folder)
    if not len(rows.counts):
        raise PmutopError(f"{folder} holds no finished runs", "let the training run to its end")
    factor, label = factors(rows.runs)
    X, y, f = rows.table(FEATURES), label[rows.run], factor[rows.run]
    fitted = fit(
        X,
        y,
        rows.run,
        f,
        seed=SEED,
        preparations=(("standard", "all"), ("standard", "none"), ("standard", "skewed")),
    )
    victims = np.array([run.facts["victim"] for run in rows.runs])[rows.run]
    found = {
        "unseen run": scores(X, y, f, rows.run, np.arange(len(rows.runs))[rows.run] % 5, fitted),
        "unseen application": scores(X, y, f, rows.run, victims, fitted),
    }
    card = {
        "name": "software-interference",
        "kind": "linear",
        "tier": "software",
        "resource": "core",
        "features": list(FEATURES),
        "required": ["run-time", "run-delay"],
        "optional": [],
        "labels": [],
        "blind": list(BLIND),
        "machine": rows.header.machine,
        "interval": rows.header.interval,
        "seed": SEED,
        "versions": {"pmutop": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "trained": time.strftime("%Y-%m-%d"),
        "command": "pmutop train interference",
        "recordings": hashes(folder),
        "runs": len(rows.runs),
        "rows": len(y),
        "chosen": {
            "scaling": fitted.chosen.scaling,
            "log": fitted.chosen.log,
            "machine": list(fitted.chosen.machine),
        },
        "scores": {f"{what}, {name}": value for what, part in found.items() for name, value in part.items()},
    }
    made = bundle.write(target, card, fitted.verdict.to_arrays())
    return made, report(rows.runs, factor, label, card["scores"])


def scores(X, y, f, runs, group, fitted) -> dict[str, float]:
    """Yes/no and factor of slices whose whole group was held out, with the choice made on all (it is one of few)."""
    margin, estimate = np.full(len(y), np.nan), np.full(len(y), np.nan)
    for name in np.unique(group):
        test = group == name
        if len(np.unique(y[~test])) < 2:
            continue
        choice = fitted.chosen
        verdict: LinearVerdict = fit(
            X[~test], y[~test], runs[~test], f[~test], seed=SEED,
            machines=[choice.machine], preparations=[(choice.scaling, choice.log)],
        ).verdict  # fmt: skip
        margin[test], _, estimate[test] = verdict.decide(X[test])
    known = (y != 0) & ~np.isnan(margin)
    off = np.abs(np.maximum(estimate, 1) / f - 1)[~np.isnan(f) & ~np.isnan(estimate)]
    return {
        "accuracy": round(float(((margin[known] > 0) == (y[known] > 0)).mean()), 4),
        "area under the curve": round(float(area(y[known], margin[known])), 4),
        "factor off by (median)": round(float(np.median(off)), 4),
        "factor off by (95th percentile)": round(float(np.percentile(off, 95)), 4),
    }


def report(runs: list[Run], factor: np.ndarray, label: np.ndarray, found: dict[str, float]) -> str:
    lines = [f"- {name}: {value}" for name, value in found.items()]
    lines += ["", "| victim | placement | beside | mix | factor | label |", "|---|---|---|---|---|---|"]
    words = {1: "suffers", -1: "does not", 0: "left out"}
    for run, times, verdict in zip(runs, factor, label, strict=True):
        facts = run.facts
        lines.append(
            f"| {facts['victim']} | {facts['placement']} | {facts['partner'] or '-'} | {facts['mix'] or '-'} "
            f"| {times:.3f} | {words[int(verdict)]} |"
        )
    return "\n".join(lines)
