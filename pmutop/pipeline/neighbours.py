"""Who does it: feeds the antagonist search (analysis/blame) with who had which CPU in each slice, with what quotas and the
hypervisor took, and, where the user named an event of progress, with the slow-down that it shows (analysis/pace)."""

from __future__ import annotations

import numpy as np

from pmutop.analysis.blame import Blame, Blamed, Occupancy
from pmutop.analysis.pace import Pace
from pmutop.moment import RESOURCES, UNSEEN, Antagonist, Interference, Resource
from pmutop.pipeline.roster import CPU, Roster
from pmutop.slices import Header, RawSlice

PERIOD_FIELDS = 4  # slices.Period: cpu, ref, start, end
#: What a process does per event of progress, whoever is beside it; this much more or less does not matter.
OWN_WORK, LITTLE = ("minor-faults", "syscalls"), 0.1
NOTHING = Interference(*[UNSEEN] * len(RESOURCES), None)


class Neighbours:
    """Names the antagonist on the victim's core, and of a victim whose progress is slowed. Exact where the source gives
    scheduling periods; else a row's CPU time counts for the CPU on which it ran last."""

    def __init__(self, header: Header) -> None:
        self.columns = {event.name: column for column, event in enumerate(header.events)}
        self.run_time, self.run_delay = self.columns["run-time"], self.columns["run-delay"]
        self.progress = self.columns.get(header.progress)
        self.work = [self.columns[name] for name in OWN_WORK if name in self.columns]
        self.core = Blame("core")
        self.slowed = Blame("progress", np.zeros(1, np.intp))  # one domain: memory is shared by all CPUs
        self.pace = Pace()
        self.steal: list[int] | None = None

    def begin(self, raw: RawSlice) -> None:
        """The first slice: nothing has increased yet, but totals begin."""
        self.steal = raw.machine.get("cpu_steal_ns")

    def add(self, raw: RawSlice, roster: Roster, interference: dict[int, Interference]) -> None:
        """Take one slice and put what is found into `interference`, by row."""
        ids = np.fromiter((task.ref for task in roster.tasks), np.int64, len(roster.tasks))
        ran = self.occupancy(raw, roster)
        found = self.core.update(
            ids,
            raw.seconds,
            roster.increase[:, self.run_delay] / 1e9,
            ran,
            throttled=throttled(raw, roster),
            steal=self.stolen(raw, ran),
        )
        if self.progress is not None:
            found += self.by_progress(raw, roster, ids, ran, interference)
        for blamed in sorted(
            found, key=lambda one: one.during - one.before
        ):  # the worst of a victim is said last
            suspect = roster.tasks[blamed.suspect]
            named = Antagonist(
                suspect.pid, suspect.comm, blamed.resource, blamed.score, blamed.before, blamed.during
            )
            interference[blamed.victim] = interference.get(blamed.victim, NOTHING)._replace(antagonist=named)

    def by_progress(
        self, raw: RawSlice, roster: Roster, ids: np.ndarray, ran: Occupancy, interference: dict
    ) -> list[Blamed]:
        """The factors of those that make progress, into `interference`, and who is to blame for them."""
        increase = roster.increase
        events, used = increase[:, self.progress], increase[:, self.run_time] / 1e9
        with np.errstate(divide="ignore", invalid="ignore"):
            mix = increase[:, self.work] / np.where(events > 0, events, np.nan)[:, None] + LITTLE
        factor, limit = self.pace.update(ids, raw.seconds, used, events, mix)
        for row in np.flatnonzero(~np.isnan(factor)).tolist():
            slowed = Resource(
                bool(factor[row] >= limit[row]), max(1.0, float(factor[row])), float(factor[row] - limit[row])
            )
            interference[row] = interference.get(row, NOTHING)._replace(progress=slowed)
        cpus = max(len(raw.machine.get("cpu_busy_ns", ())), int(ran.cpu.max(initial=0)) + 1)
        if len(self.slowed.domain_of) < cpus:
            self.slowed.domain_of = np.zeros(cpus, np.intp)
        wait = np.zeros(len(ids))  # its rate is per CPU second: waiting has no part in it
        return self.slowed.update(ids, raw.seconds, wait, ran, factor=factor, mix=mix)

    def occupancy(self, raw: RawSlice, roster: Roster) -> Occupancy:
        if len(raw.periods):
            periods = np.frombuffer(raw.periods, np.int64).reshape(-1, PERIOD_FIELDS)
            refs, which = np.unique(periods[:, 1], return_inverse=True)
            rows = np.fromiter((roster.row_of_ref.get(ref, -1) for ref in refs.tolist()), np.intp, len(refs))[
                which
            ]
            known = rows >= 0
            cpus = int(periods[:, 0].max()) + 1
            place = rows[known] * cpus + periods[known, 0]
            seconds = np.bincount(place, weights=(periods[known, 3] - periods[known, 2]) / 1e9)
            had = np.flatnonzero(seconds)
            return Occupancy(had // cpus, had % cpus, seconds[had])
        run = np.nan_to_num(roster.increase[:, self.run_time]) / 1e9
        rows = np.flatnonzero(run > 0)
        return Occupancy(rows, roster.levels[rows, CPU], run[rows])

    def stolen(self, raw: RawSlice, ran: Occupancy) -> np.ndarray | None:
        """Seconds that the hypervisor took from each CPU in this slice; None while not known."""
        now, before = raw.machine.get("cpu_steal_ns"), self.steal
        self.steal = now
        if now is None or before is None or len(now) != len(before):
            return None
        found = np.zeros(
            max(len(now), int(ran.cpu.max(initial=0)) + 1)
        )  # one that came or went: nothing is known
        found[: len(now)] = np.array(now) - np.array(before)
        return found / 1e9


def throttled(raw: RawSlice, roster: Roster) -> np.ndarray | None:
    """Seconds that each row was held back by its group's quota; None where nobody was. A group's time is every member's:
    who waited for the quota and who for a neighbour cannot be told apart within it."""
    groups = raw.machine.get("throttled")
    if not groups:
        return None
    of_pid: dict[int, float] = {}
    for nanoseconds, pids in groups:
        for pid in pids:
            of_pid[pid] = max(of_pid.get(pid, 0.0), nanoseconds / 1e9)
    return np.array([of_pid.get(task.pid, 0.0) for task in roster.tasks])
