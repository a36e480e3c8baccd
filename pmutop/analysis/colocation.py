"""Which events rise when programs run together (CounterMiner, section V-E)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Change:
    """`factor` is the median together over the median alone (inf from 0), `surer` how often a slice together
    exceeds one alone: 0.5 = no difference, 1 = always."""

    event: str
    alone: float
    together: float
    factor: float
    surer: float


def changes(alone, together, events) -> list[Change]:
    """Every event's change between rates `alone` (slices, events) and `together` (others, events); risen ones
    first, the surest first, the larger factor first. NaN are left out; an event that was never counted on a
    side is not listed.
    """
    found = []
    for at, event in enumerate(events):
        a, b = (
            np.sort(side[~np.isnan(side[:, at]), at]) for side in (np.asarray(alone), np.asarray(together))
        )
        if not len(a) or not len(b):
            continue
        below = np.searchsorted(a, b, "left").sum() + np.searchsorted(a, b, "right").sum()
        first, second = float(np.median(a)), float(np.median(b))
        factor = second / first if first else (float("inf") if second else 1.0)
        found.append(Change(event, first, second, factor, float(below / (2 * len(a) * len(b)))))
    return sorted(found, key=lambda change: (-round(change.surer, 3), -change.factor))
