"""RawSlice in, Moment out: tap, clean, roster, features, tree and SVM, blame, in this one place and in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pmutop.bundle import Bundle, left_to_rules
from pmutop.moment import Label, Moment
from pmutop.pipeline.classify import InterferenceModel, TreeModel
from pmutop.pipeline.clean import Cleaner, Scrutiny
from pmutop.pipeline.neighbours import PERIOD_FIELDS, Neighbours
from pmutop.pipeline.roster import NICE, RSS, STATE, Roster
from pmutop.pipeline.rulebook import RuleModel
from pmutop.slices import Exited, Header, RawSlice, Source, Task

#: A row is judged if it ran or waited for a CPU for this many % of the slice, or ended it waiting for a disk;
#: with less there is too little to judge by, and nothing is said.
LEAST_ACTIVITY = 0.5
#: With less than this it may be called healthy, but whoever sleeps nearly all the time is stuck on nothing.
LEAST_TO_BE_STUCK = 5.0
DISK_WAIT = ord("D")
#: A slice shorter than this part of the interval (the last of a run, a hurried stop) is not judged.
LEAST_LENGTH = 0.5


class Engine:
    """Turns the slices of one source into Moments.

    bundles: those that fit the source (bundle.fitting). per_thread: a row per task instead of per process. tap: called
    with each RawSlice before anything else touches it (the recorder).
    """

    def __init__(
        self,
        header: Header,
        bundles: list[Bundle],
        per_thread: bool = False,
        tap: Callable[[RawSlice], None] | None = None,
    ) -> None:
        self.header = header
        self.tap = tap
        names = [event.name for event in header.events]
        self.run_time = names.index("run-time")
        self.run_delay = names.index("run-delay")
        self.cycles = names.index("cycles") if "cycles" in names else None
        self.instructions = names.index("instructions") if "instructions" in names else None
        self.cleaner = Cleaner(len(names), Scrutiny(header.events))
        self.known: dict[int, Task] = {}  # every living task by ref: what another roster is made from
        self.per_thread = per_thread  # may be changed between slices
        self.roster = Roster(len(names), self.run_time, self.run_delay, per_thread)
        self.trees = [TreeModel(bundle, header) for bundle in bundles if bundle.card["kind"] == "tree"]
        if left_to_rules(header, bundles):
            self.trees.append(RuleModel(header))
        self.svms = [
            InterferenceModel(bundle, header) for bundle in bundles if bundle.card["kind"] == "linear"
        ]
        self.neighbours = Neighbours(header)
        self.before: dict | None = None

    def moments(self, source: Source) -> Iterator[Moment]:
        for raw in source:
            yield self.moment(raw)

    def moment(self, raw: RawSlice) -> Moment:
        if self.tap:
            self.tap(raw)
        is_first = self.cleaner.is_first
        cleaned = self.cleaner.clean(raw)
        roster = self.current_roster()
        roster.update(raw, cleaned)
        self.remember(raw)
        size = len(roster.tasks)
        levels = roster.levels[:size].copy()
        increase = roster.increase
        labels, reasons, paths, interference = {}, {}, {}, {}
        per_cent = 100 / (raw.seconds * 1e9) if raw.seconds else np.nan
        cpu, wait = increase[:, self.run_time] * per_cent, increase[:, self.run_delay] * per_cent
        state = levels[:, STATE]
        kernel = np.fromiter((task.kernel for task in roster.tasks), bool, size)
        judged = np.flatnonzero(worth_judging(cpu, wait, state, LEAST_ACTIVITY) & ~kernel)
        stuck = worth_judging(cpu, wait, state, LEAST_TO_BE_STUCK)
        if len(judged) and not is_first and raw.seconds >= LEAST_LENGTH * self.header.interval:
            taken = np.hstack([increase[judged], roster.neighbours[judged]]), state[judged], raw.seconds
            for model in self.trees:
                verdicts = model.judge(*taken)
                for row, *found in zip(judged.tolist(), *verdicts, strict=True):
                    if not stuck[row] and not found[0][0].is_healthy:
                        continue
                    if row not in labels or strength(found[0][0]) > strength(labels[row][0]):
                        labels[row] = found[0] + labels.get(row, ())
                        reasons[row], paths[row] = found[1], found[2]
                    else:
                        labels[row] += found[0]
            for svm in self.svms:
                found = zip(judged.tolist(), svm.judge(*taken), strict=True)
                interference.update((row, verdict) for row, verdict in found if stuck[row])
        if is_first:
            self.neighbours.begin(raw)
        else:
            self.neighbours.add(raw, roster, interference)
        return Moment(
            header=self.header,
            number=raw.number,
            time=raw.wall,
            seconds=raw.seconds,
            late=raw.late,
            tasks=list(roster.tasks),
            state=[chr(code) if code else "?" for code in state.tolist()],
            threads=roster.threads[:size].copy(),
            exited=roster.exited[:size].copy(),
            cpu=cpu,
            wait=wait,
            ipc=self.ipc(increase),
            rss=levels[:, RSS],
            nice=levels[:, NICE],
            counts=increase,
            quality=roster.quality,
            neighbours=roster.neighbours,
            labels=labels,
            reasons=reasons,
            interference=interference,
            machine=self.machine_rates(raw),
            paths=paths,
            periods=np.frombuffer(raw.periods, np.int64).reshape(-1, PERIOD_FIELDS)
            if len(raw.periods)
            else None,
        )

    def current_roster(self) -> Roster:
        """The roster, made anew from all living tasks where rows are now threads (or are no longer)."""
        if self.roster.per_thread != self.per_thread:
            self.roster = Roster(len(self.header.events), self.run_time, self.run_delay, self.per_thread)
            for task in self.known.values():
                self.roster.add(task)
        return self.roster

    def remember(self, raw: RawSlice) -> None:
        for record in raw.records:
            if isinstance(record, Exited):
                self.known.pop(record.ref, None)
            else:
                self.known[record.task.ref] = record.task

    def ipc(self, increase: np.ndarray) -> np.ndarray:
        if self.cycles is None or self.instructions is None:
            return np.full(len(increase), np.nan)
        cycles = increase[:, self.cycles]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(cycles > 0, increase[:, self.instructions] / cycles, np.nan)

    def machine_rates(self, raw: RawSlice) -> dict:
        """The machine's totals as rates of this slice: percents of one CPU, PSI shares in percent, counts."""
        now, before, self.before = raw.machine, self.before, raw.machine
        rates = {
            key: now[key]
            for key in ("own_rss", "lost", "attached", "starved", "shed", "why", "slow_down")
            if key in now
        }
        if before is None or not raw.seconds:
            return rates
        span = raw.seconds * 1e9
        for key, name in (("own_cpu_ns", "own_cpu"), ("steal_ns", "steal")):
            if key in now and key in before:
                rates[name] = round(100 * (now[key] - before[key]) / span, 2)
        for key in ("switches", "forks", "lost", "missing"):
            if key in now and key in before:
                rates[key] = now[key] - before[key]
        if len(now.get("cpu_busy_ns", ())) == len(before.get("cpu_busy_ns", ())):
            pairs = zip(now.get("cpu_busy_ns", ()), before.get("cpu_busy_ns", ()), strict=True)
            rates["cpu_busy"] = [min(100.0, round(100 * (a - b) / span, 1)) for a, b in pairs]
        old, new = before.get("psi", {}), now.get("psi", {})
        rates["psi"] = {
            name: min(100.0, round((new[name] - old[name]) / (span / 1e5), 1)) for name in new if name in old
        }
        return rates


def worth_judging(cpu: np.ndarray, wait: np.ndarray, state: np.ndarray, least: float) -> np.ndarray:
    """Rows that were active for `least` % of the slice, or ended it waiting for a disk: cpu and wait in % (rows,), state
    letters' codes (rows,) -> bool (rows,)."""
    return (np.nan_to_num(cpu) + np.nan_to_num(wait) >= least) | (state == DISK_WAIT)


def strength(label: Label) -> tuple[bool, bool, float]:
    """Which label of several models stands first: a pathology, then whatever is known, then confidence."""
    return label.is_pathology, label.label != "unknown", label.confidence
