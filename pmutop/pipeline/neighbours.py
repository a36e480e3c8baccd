"""Who does it: feeds the antagonist search (analysis/blame) with who had which CPU in each slice."""

from __future__ import annotations

import numpy as np

from pmutop.analysis.blame import Blame, Occupancy
from pmutop.moment import RESOURCES, UNSEEN, Antagonist, Interference
from pmutop.pipeline.roster import CPU, Roster
from pmutop.slices import RawSlice

PERIOD_FIELDS = 4  # slices.Period: cpu, ref, start, end


class Neighbours:
    """Names the antagonist on the victim's core. Exact where the source gives scheduling periods; else a row's CPU time
    counts for the CPU on which it ran last."""

    def __init__(self, run_time: int, run_delay: int) -> None:
        self.run_time, self.run_delay = run_time, run_delay
        self.core = Blame("core")
        self.steal: int | None = None

    def add(self, raw: RawSlice, roster: Roster, interference: dict[int, Interference]) -> None:
        """Take one slice and put the antagonists into `interference`, by row."""
        ids = np.fromiter((task.ref for task in roster.tasks), np.int64, len(roster.tasks))
        wait = roster.increase[:, self.run_delay] / 1e9
        cpus = max(1, len(raw.machine.get("cpu_busy_ns", ())))
        for blamed in self.core.update(
            ids, raw.seconds, wait, self.occupancy(raw, roster), steal=self.stolen(raw, cpus)
        ):
            suspect = roster.tasks[blamed.suspect]
            named = Antagonist(
                suspect.pid, suspect.comm, blamed.resource, blamed.score, blamed.before, blamed.during
            )
            found = interference.get(blamed.victim, Interference(*[UNSEEN] * len(RESOURCES), None))
            interference[blamed.victim] = found._replace(antagonist=named)

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

    def stolen(self, raw: RawSlice, cpus: int) -> np.ndarray | None:
        """Seconds that the hypervisor took in this slice, shared evenly among the CPUs; None while not known."""
        now, before = raw.machine.get("steal_ns"), self.steal
        self.steal = now
        return None if now is None or before is None else np.full(cpus, (now - before) / 1e9 / cpus)
