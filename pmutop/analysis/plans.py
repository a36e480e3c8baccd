"""Which events to count in which run: event sets that fit the counters, disjoint for LGL, overlapping for BC.

Source: Neill, Drebes and Pop, "Fuse", section 5.2 (experimental setup).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pmutop.errors import UsageError

#: May these events be counted at once? Measured on the machine (incompatible events, counters taken by others), never
#: read from a table of processors.
Fits = Callable[[Sequence[str]], bool]

#: Words of an event's name and the part of the machine they speak of; the first row that matches counts. The first
#: set of a plan takes from each kind in turn, so that later sets find something related to overlap with.
KINDS = (
    ("instruction cache", ("l1i", "icache", "l1_ic", "l2_ic", "itlb")),
    ("branch", ("branch", "br_")),
    (
        "data cache",
        (
            "l1d",
            "l2d",
            "l3",
            "llc",
            "dcache",
            "l1_dc",
            "l2_dc",
            "cache",
            "mem",
            "tlb",
            "load",
            "store",
            "fault",
        ),
    ),
    ("cycles", ("cyc", "clock", "inst")),
    ("scheduling", ("switch", "migration", "wait", "fork")),
)
HIGH = 0.7  # |Pearson| from which a pair counts as highly correlated; the paper gives no figure
PARTNERS = 2  # overlapping events taken per new event; more would leave no counter for the new ones


@dataclass(frozen=True)
class Plan:
    """One event set per run, in the order in which the runs are to be combined.

    `sets[i]` are the events of run i; `overlap[i]` those of them that an earlier run counts too (empty for run 0, and
    throughout a disjoint plan).
    """

    sets: tuple[tuple[str, ...], ...]
    overlap: tuple[tuple[str, ...], ...]


def counters(number: int) -> Fits:
    """The plainest budget: any `number` events fit at once."""
    return lambda events: len(events) <= number


def kind_of(event: str) -> str:
    """The part of the machine an event's name speaks of (`KINDS`), or "other"."""
    name = event.lower().replace("-", "_")
    return next(
        (kind for kind, words in KINDS if any(word.replace("-", "_") in name for word in words)), "other"
    )


def plan_disjoint(events: Iterable[str], fits: Fits) -> Plan:
    """LGL's sets: greedily fill a set until the next event does not fit, then begin another ("Fuse", 5.2).

    An event that does not fit the set being filled opens a new one, as in the paper; order is kept.
    Raises UsageError where an event does not fit alone.
    """
    sets: list[list[str]] = []
    for event in dict.fromkeys(events):
        if not fits([event]):
            raise UsageError(f"{event} does not fit the counters even alone", "leave it out of --events")
        if sets and fits([*sets[-1], event]):
            sets[-1].append(event)
        else:
            sets.append([event])
    return Plan(tuple(map(tuple, sets)), tuple(() for _ in sets))


def plan_overlapping(
    events: Iterable[str],
    fits: Fits,
    correlation: np.ndarray | None = None,
    constant: Iterable[str] = (),
    high: float = HIGH,
) -> Plan:
    """BC's sets by the paper's heuristic ("Fuse", 5.2): the largest varied set first, then the best correlated.

    `correlation` is Pearson's coefficient between the events in their given order, float (events, events), from any
    earlier run that counted them; NaN or None = unknown, which only costs the choice its foresight. Events in
    `constant` never serve as overlap (see `combination.constant_events`). Of the remaining events those with the
    most highly correlated partners among the chosen ones come first; the partners become the overlap.
    Raises UsageError where no set can hold a new event beside an overlapping one.
    """
    names = list(dict.fromkeys(events))
    strength = (
        np.zeros((len(names), len(names))) if correlation is None else np.abs(np.nan_to_num(correlation))
    )
    useless = set(constant)
    first = varied_set(names, fits, useless)
    sets, overlaps, chosen = [first], [()], list(first)
    index = {name: at for at, name in enumerate(names)}

    def partners(event: str) -> list[str]:
        """The chosen events that say most about `event`: the highly correlated ones, at least the best one."""
        able = [name for name in chosen if name not in useless]
        able.sort(key=lambda name: -strength[index[event], index[name]])
        strong = [name for name in able if strength[index[event], index[name]] >= high]
        return (strong or able)[:PARTNERS]

    def promise(event: str) -> tuple[int, float]:
        related = [strength[index[event], index[name]] for name in chosen if name not in useless]
        return sum(value >= high for value in related), max(related, default=0.0)

    remaining = [name for name in names if name not in chosen]
    while remaining:
        overlap: list[str] = []
        new: list[str] = []
        for event in sorted(remaining, key=promise, reverse=True):
            wanted = partners(event)
            for take in range(len(wanted), 0, -1):
                more = [name for name in wanted[:take] if name not in overlap]
                if fits([*overlap, *more, *new, event]):
                    overlap += more
                    new.append(event)
                    break
        if not new:
            raise UsageError(
                f"no set of counters holds {remaining[0]} beside an event that was counted before",
                "use --method lgl, whose sets need not overlap",
            )
        sets.append((*overlap, *new))
        overlaps.append(tuple(overlap))
        chosen += new
        remaining = [name for name in remaining if name not in new]
    return Plan(tuple(sets), tuple(overlaps))


def varied_set(names: Sequence[str], fits: Fits, last: Iterable[str] = ()) -> tuple[str, ...]:
    """As many events as fit, one kind after the other in turn; those in `last` only when nothing else is left."""
    queues: dict[str, list[str]] = {}
    for name in names:
        queues.setdefault("last" if name in set(last) else kind_of(name), []).append(name)
    late = queues.pop("last", [])
    in_turn = [queue[turn] for turn in range(len(names)) for queue in queues.values() if turn < len(queue)]
    chosen: list[str] = []
    for name in [*in_turn, *late]:
        if fits([*chosen, name]):
            chosen.append(name)
    if not chosen:
        raise UsageError(
            "not one of the events fits the counters", "see `pmutop doctor` for what can be counted"
        )
    return tuple(chosen)


def order_for_overlap(sets: Sequence[Sequence[str]]) -> list[int]:
    """An order in which each event set shares an event with those before it ("Fuse", 3.2): largest first, then the
    one that shares most. Raises UsageError where there is none."""
    rest = sorted(range(len(sets)), key=lambda at: -len(sets[at]))
    order, known = [rest.pop(0)], set(sets[0])
    known = set(sets[order[0]])
    while rest:
        best = max(rest, key=lambda at: len(known & set(sets[at])))
        if not known & set(sets[best]):
            raise UsageError(
                f"no event of {', '.join(sets[best])} was counted in an earlier run too",
                "combine by position (--method lgl) or by progress (--method progress)",
            )
        rest.remove(best)
        order.append(best)
        known |= set(sets[best])
    return order
