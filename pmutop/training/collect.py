"""Runs workloads under the live reader and keeps raw recordings: what models are learnt from, and can be again.

One folder per training: `part-N.pmu` (recordings) and `runs.jsonl`, a line per finished run: its name, the part, the pid
of the started process and the slices in which it was past its init phase. A training that was interrupted goes on with
the runs that have no line yet.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pmutop.errors import PmutopError
from pmutop.moment import Moment
from pmutop.pipeline.engine import Engine, worth_judging
from pmutop.pipeline.features import Features
from pmutop.recording import Reader, Recorder
from pmutop.selection import Selection
from pmutop.slices import Header, RawSlice, Source


class Examples(NamedTuple):
    """Which processes of a run are examples of its label: those active for `least` % of a slice (run and wait together:
    a partner that only wakes and sleeps looks like a storm of its own), or only the started one, the main."""

    least: float = 10.0
    main: bool = False


@dataclass(frozen=True)
class Run:
    """One finished run of a workload: slices first..last (inclusive) of `part` show it and nothing but it."""

    name: str
    part: str
    pid: int
    first: int
    last: int
    facts: dict  # what else was measured: work done, seconds, repeats, partners


class Collector:
    """Drives one live source through many runs, recording everything.

    open_source: makes the live source; folder: where recordings and the index are kept.
    """

    def __init__(self, open_source: Callable[[], Source], folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.index = folder / "runs.jsonl"
        self.done = read_runs(folder)
        self.part = f"part-{len(list(folder.glob('part-*.pmu')))}.pmu"
        self.source = open_source()
        self.slices: Iterator[RawSlice] = iter(self.source)
        self.recorder = Recorder(str(folder / self.part), self.source.header)
        self.next()

    def next(self) -> RawSlice:
        """The next slice, recorded."""
        raw = next(self.slices)
        self.recorder.write(raw)
        return raw

    def settle(self, slices: int) -> None:
        """Let what just started or stopped pass out of the counts: the slice in which it did, and `slices` - 1 more."""
        for _ in range(slices):
            self.next()

    def watch(self, name: str, pid: int, slices: int, settle: int = 1, **facts) -> Run:
        """Record `slices` whole slices of a running workload and note them in the index."""
        return self.watch_together({name: pid}, slices, settle, **facts)[0]

    def watch_together(self, pids: dict[str, int], slices: int, settle: int = 1, **facts) -> list[Run]:
        """The same for workloads {name: pid} that run at the same time and do not mind one another."""
        self.settle(settle)
        numbers = [self.next().number for _ in range(slices)]
        return [
            self.note(Run(name, self.part, pid, numbers[0], numbers[-1], facts)) for name, pid in pids.items()
        ]

    def note(self, run: Run) -> Run:
        with self.index.open("a") as index:
            index.write(json.dumps(asdict(run)) + "\n")
        self.done.append(run)
        return run

    def close(self) -> None:
        self.recorder.close()
        self.source.close()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *problem) -> None:
        self.close()


def read_runs(folder: Path) -> list[Run]:
    index = folder / "runs.jsonl"
    if not index.exists():
        return []
    return [Run(**json.loads(line)) for line in index.read_text().splitlines() if line.endswith("}")]


def header_of(folder: Path) -> Header:
    parts = sorted(folder.glob("part-*.pmu"))
    if not parts:
        raise PmutopError(f"{folder} holds no finished runs", "let the training run to its end")
    reader = Reader(str(parts[0]))
    reader.close()
    return reader.header


def passes_of(folder: Path) -> list[Path]:
    """The folders of a training's passes (training.passes); its own where there is but one."""
    return sorted(folder.glob("pass-*")) or [folder]


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every recording a model was learnt from, for its card."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("part-*.pmu"))
    }


@dataclass(frozen=True)
class Rows:
    """What the runs gave, one row per judged process and slice, made by the live pipeline's own cleaning.

    counts float64 (rows, events), NaN = not counted; state codes (rows,); seconds (rows,); run: index into `runs`;
    neighbours (rows, as neighbour_delay.NEIGHBOURS).
    """

    header: Header
    runs: list[Run]
    counts: np.ndarray
    state: np.ndarray
    seconds: np.ndarray
    run: np.ndarray
    pid: np.ndarray
    neighbours: np.ndarray

    def table(self, names: Sequence[str]) -> np.ndarray:
        """The features `names` as the live path computes them: float64 (rows, features)."""
        features = Features(list(names), self.header.events)
        increase = np.hstack([self.counts, self.neighbours])
        return np.vstack(
            [
                features.compute(increase[at : at + 1], self.state[at : at + 1], float(self.seconds[at]))
                for at in range(len(increase))
            ]
        )


def rows_of(folder: Path, examples: Callable[[Run], Examples] = lambda run: Examples()) -> Rows:
    """Every row of every run that is an example of its label."""
    runs = read_runs(folder)
    found: list[tuple] = []
    header = header_of(folder)
    for part in sorted({run.part for run in runs}):
        here = [(number, run) for number, run in enumerate(runs) if run.part == part]
        reader = Reader(str(folder / part))
        header = reader.header
        engine = Engine(reader.header, [])
        families = {number: Selection(root=run.pid) for number, run in here}
        for moment in engine.moments(reader):
            for number, run in here:
                if run.first - 3 <= moment.number <= run.last:
                    rows = families[number].rows(moment)
                    if moment.number >= run.first:
                        found += judged_rows(moment, rows, number, run, examples(run))
        reader.close()
    columns = list(zip(*found, strict=True)) if found else [[]] * 6
    return Rows(header, runs, *(np.array(column) for column in columns))


def judged_rows(moment: Moment, rows: Sequence[int], number: int, run: Run, wanted: Examples) -> list[tuple]:
    state = np.array([ord(letter) for letter in moment.state])
    worth = worth_judging(moment.cpu, moment.wait, state, wanted.least)
    return [
        (
            moment.counts[row],
            state[row],
            moment.seconds,
            number,
            moment.tasks[row].pid,
            moment.neighbours[row],
        )
        for row in rows
        if worth[row] and (not wanted.main or moment.tasks[row].pid == run.pid)
    ]


class Progress:
    """A line on stderr that says how far a long work is and how long it will still take."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total, self.say, self.began, self.done = total, say, time.monotonic(), 0

    def step(self, what: str) -> None:
        self.done += 1
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        self.say(f"{self.done}/{self.total}  {left / 60:3.0f}:{left % 60:02.0f} left  {what}")
