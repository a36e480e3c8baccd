"""How long it takes to go back: a stretch of the look-back is judged again, at several places of a ten-minute ring.

python tests/bench/lookback.py      prints a markdown table; made-up counts, a tenth of the tasks moves in each slice
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from making import born, header, raw, task

from pmutop.pipeline.engine import Engine
from pmutop.sinks.lookback import LookBack
from pmutop.sinks.ring import Ring

SLICES, STRETCH, MEMORY = 1500, 150, 8 << 20


def filled(tasks: int) -> Ring:
    random, events = np.random.default_rng(3), len(header().events)
    totals = np.zeros((tasks, events, 3), np.uint64)
    ring = Ring(header(), minutes=10, memory=MEMORY)
    base = raw(0, {1: ({}, "S")}, born(*map(task, range(1, tasks + 1))))
    for number in range(SLICES):
        moving = np.sort(random.choice(tasks, tasks // 10, replace=False)) if number else np.arange(tasks)
        totals[moving, :, 0] += random.integers(0, 1 << 24, (len(moving), events), dtype=np.uint64)
        totals[:, :, 1:] = int((number + 1) * 4e8)
        ring.add(
            replace(base, number=number, start=int(number * 4e8), end=int((number + 1) * 4e8), records=() if number else base.records,
                    refs=(moving + 1).tobytes(), counts=totals[moving].tobytes(), levels=bytes(len(moving) * 32))
        )  # fmt: skip
    return ring


def main() -> None:
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}\n")
    print(f"| tasks | slices {STRETCH} of | s by the clock | s of CPU |\n|---|---|---|---|")
    for tasks in (200, 1000):
        ring = filled(tasks)
        back = LookBack(ring, lambda: Engine(header(), []).moment)
        for minutes, first in ((10, 1), (5, SLICES // 2), (1, SLICES - 150)):
            began, used = time.perf_counter(), time.process_time()
            assert len(back.moments(first, first + STRETCH - 1)) == STRETCH
            print(
                f"| {tasks} | {minutes} minute{'s' * (minutes > 1)} ago | {time.perf_counter() - began:.2f} | {time.process_time() - used:.2f} |"
            )


if __name__ == "__main__":
    main()
