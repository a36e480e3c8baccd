"""How slow is it, told by its own progress: events per CPU second against the process's own best baseline.

Works on any machine, PMU or not, for whatever takes CPU time away from work: shared caches, memory bandwidth, a sibling
thread. Waiting for a CPU is not in it (that is no CPU time). The rule for "slower" is the thesis's, made stricter for
machines that repeat less well: 1.05 and more, and beyond three times the baseline's own spread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from pmutop.analysis.blame_gates import SMALL, mix_changed

SLOWER = 1.05
SPREADS = 3.0
#: A slice says something if the baseline expects this many events of it: fewer are counted too coarsely.
FEWEST_EVENTS = 10.0
#: Slices that make a baseline, and how many of the last undisturbed ones are its ring.
FEWEST, RING = 4, 64
LEAST_SPREAD = 0.01  # of the rate
#: What is this much slower than the best is no part of the baseline, however noisy that is.
WIDE = 1.5


@dataclass
class Baseline:
    """One process: the rates of its undisturbed slices, and its mix of work in them."""

    rates: deque[float] = field(default_factory=lambda: deque(maxlen=RING))
    mixes: deque[np.ndarray] = field(default_factory=lambda: deque(maxlen=RING))
    seen: int = 0

    def expected(self) -> tuple[float, float]:
        """(rate, spread) of the undisturbed slices: median and scaled median deviation, larger while they are few."""
        rates = np.array(self.rates)
        usual = float(np.median(rates))
        spread = 1.4826 * float(np.median(np.abs(rates - usual))) * (1 + FEWEST / len(rates))
        return usual, max(spread, LEAST_SPREAD * usual)

    def join(self, rate: float) -> None:
        """Take a slice into the baseline; what the best show to have been disturbed leaves it. The best are `FEWEST`
        slices, for one may be luck: so a process that was slowed when it was first seen gets a baseline later."""
        self.rates.append(rate)
        if len(self.rates) >= FEWEST:
            best = sorted(self.rates)[-FEWEST]
            self.rates = deque((one for one in self.rates if one >= best / WIDE), maxlen=RING)

    def take(self, rate: float, events: float, seconds: float, mix: np.ndarray) -> tuple[float, float]:
        """(factor, the factor from which it counts as slowed) of one slice; NaN where nothing can be said yet."""
        if mix_changed(np.array(self.mixes), mix):
            self.rates.clear()
            self.mixes.clear()
        if rate > 0:
            self.mixes.append(mix)
        if len(self.rates) < FEWEST:
            if events >= FEWEST_EVENTS:
                self.join(rate)
            return np.nan, np.nan
        usual, spread = self.expected()
        if usual * seconds < FEWEST_EVENTS:
            return np.nan, np.nan
        limit = min(max(SLOWER, usual / max(usual - SPREADS * spread, usual / WIDE)), WIDE)
        factor = usual / max(rate, 0.5 / seconds)
        if factor < limit:
            self.join(rate)
        return factor, limit


class Pace:
    """The factors of all processes, slice by slice; remembers those that progress, and forgets the dead."""

    FORGET = 750  # slices without any progress

    def __init__(self) -> None:
        self.known: dict[int, Baseline] = {}
        self.number = 0

    def update(
        self, ids: np.ndarray, seconds: float, ran: np.ndarray, events: np.ndarray, mix: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(factor, limit) of n rows, float64 (n,), NaN = cannot be said; slowed where factor >= limit.

        ids (n,): as in blame.Blame.update; seconds: the slice's length; ran (n,): CPU seconds; events (n,): progress in
        the slice (NaN = not counted); mix (n, m): what the process does per event of progress, and no neighbour changes: a
        jump is another kind of work, which begins its baseline anew.
        """
        self.number += 1
        factor, limit = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        for row in np.flatnonzero((ran >= SMALL * seconds) & (events >= 0)).tolist():
            name, count, used = int(ids[row]), float(events[row]), float(ran[row])
            if not count and name not in self.known:
                continue
            baseline = self.known.setdefault(name, Baseline())
            baseline.seen = self.number
            factor[row], limit[row] = baseline.take(count / used, count, used, mix[row])
        if self.number % self.FORGET == 0:
            self.known = {
                name: one for name, one in self.known.items() if one.seen > self.number - self.FORGET
            }
        return factor, limit
