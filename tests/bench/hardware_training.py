"""How long `pmutop train fingerprints --tier hardware` takes in its default size, measured where there is no PMU.

    python tests/bench/hardware_training.py [FOLDER]

The same admission, the same runs and the same reader, one pass, with software events in the counters' place; then the
learning and scoring of as many rows with 100 made-up events. Times only: what it learns is worth nothing.
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from pmutop.training import passes
from pmutop.training.collect import read_runs
from pmutop.training.fingerprints import Dataset, new_tree
from pmutop.training.fingerprints_runs import admissions, collect, measure
from pmutop.training.fingerprints_scores import confusion, scores
from pmutop.training.tiers import HARDWARE

IN_THEIR_PLACE = ["task-clock", "context-switches", "cpu-migrations", "page-faults"]
EVENTS = 100


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    place = folder / "pass-0"
    tier = replace(HARDWARE, passes=lambda _: [(place, partial(passes.reader, IN_THEIR_PLACE))])
    cpus = sorted(os.sched_getaffinity(0))
    folder.mkdir(exist_ok=True)
    marks = [time.monotonic()]
    measure(folder, tier.workloads(), cpus, print, tier)
    marks.append(time.monotonic())
    collect(folder, cpus, tier.slices, "", print, tier)
    marks.append(time.monotonic())
    runs = read_runs(place)
    by_name = {one.name: one for one in tier.workloads()}
    workloads = [by_name[run.name] for run in runs]
    run = np.repeat(np.arange(len(runs)), tier.slices)
    y = np.array([workloads[at].label for at in run])
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(8, EVENTS))[np.unique(y, return_inverse=True)[1]]
    learnt = replace(tier, required=tuple(f"event-{at}/kc" for at in range(EVENTS)))
    data = Dataset(learnt, centres + rng.normal(size=(len(y), EVENTS)), y, run, workloads)
    new_tree(learnt).fit(data.X, data.y)
    scores(data)
    confusion(data)
    marks.append(time.monotonic())
    parts = [later - before for before, later in pairwise(marks)]
    print(
        f"{len(cpus)} CPUs, {len(admissions(folder))} pairs measured, {len(runs)} runs of {tier.slices} slices"
    )
    for name, seconds in zip(("admission", "one pass", f"learning from {EVENTS} events"), parts, strict=True):
        print(f"{name:<28}{seconds:7.1f} s")
    print(f"{'in all, with one pass':<28}{sum(parts):7.1f} s")


if __name__ == "__main__":
    main()
