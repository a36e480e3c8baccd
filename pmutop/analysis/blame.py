"""Who does it: the antagonist of each victim, by correlation in time of what it did with what the victim suffered.

Source: the idea of CPI2 (Zhang et al., "CPI2: CPU performance isolation for shared compute clusters", 2013, section 4.2):
a suspect is scored by when it ran, not by what it looks like. For the run queue the times also have to add up: who waits for a
CPU waits for those that run on it. Causal, with a ring of the last slices as its only state.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pmutop.analysis.blame_gates import mix_changed, too_small, without_steal, without_throttling

SLICES = 75  # half a minute of 0.4 s slices
#: The score from which a suspect is named, and from which its effect counts: the thesis's 1.05 as a share of the time.
THRESHOLD = 0.5
EFFECT = 1 - 1 / 1.05
#: A suspect "ran" in a slice from this share of it on; it is named only in slices in which it ran for `NOW` of them.
ON, NOW = 0.005, 0.02
#: Slices with and without the suspect, and changes between the two, before their difference is a contrast: something that
#: began once, when the suffering began, is a coincidence and not yet a correlation.
FEWEST, CHANGES = 3, 2


#: The worst off of a slice that are judged; each costs about half a millisecond.
MOST_VICTIMS = 16


class Resource(NamedTuple):
    """`adds_up`: the victim's suffering is time that others had; `beside`: only other CPUs of the domain can hurt."""

    adds_up: bool
    beside: bool


RESOURCES = {
    "core": Resource(adds_up=True, beside=False),
    "smt": Resource(adds_up=False, beside=True),
    "llc": Resource(adds_up=False, beside=False),
    "memory": Resource(adds_up=False, beside=False),
    "progress": Resource(adds_up=False, beside=False),
}


class Blamed(NamedTuple):
    """`victim` and `suspect` are rows of the slice; `score` 0..1; `before` and `during`: the median suffering in slices
    without and with the suspect ("its runs raise your wait from `before` to `during`"), as a share of the slice."""

    victim: int
    suspect: int
    resource: str
    score: float
    before: float
    during: float


class Occupancy(NamedTuple):
    """Who ran where: `row` (k,) of the slice, `cpu` (k,), `seconds` (k,). From switch samples, or a row's last CPU with
    its whole CPU time where nothing better is known."""

    row: np.ndarray
    cpu: np.ndarray
    seconds: np.ndarray


@dataclass(frozen=True)
class Scored:
    """Every suspect of one victim, one entry each: `score`, `effect` (share of the victim's demand that it takes in the
    slices in which it runs), `before`, `during`, and `weight` to choose between them."""

    score: np.ndarray
    effect: np.ndarray
    before: np.ndarray
    during: np.ndarray
    weight: np.ndarray


def score_suspects(
    suffering: np.ndarray, demand: np.ndarray, activity: np.ndarray, everybody: np.ndarray, adds_up: bool
) -> Scored:
    """Score suspects against a victim's history, oldest slice first.

    suffering (slices,): share of the slice that was lost; demand (slices,): what the victim wanted of it (run + wait, > 0);
    activity (suspects, slices): share of the slice in which each suspect had the resource; everybody (slices,): the same
    summed over all that could hurt. With `adds_up` a suspect is first relieved of what the others account for (so that two
    antagonists that take turns are not hidden by the constant wait they cause together), and one that never stops is
    judged by how far the running of all accounts for the wait. Otherwise there must be a contrast (`FEWEST`, `CHANGES`);
    without one the score is 0.
    """
    on = activity >= ON
    before, during = medians(suffering, ~on), medians(suffering, on)
    if adds_up:
        passed_on = min(suffering.sum() / max(everybody.sum(), 1e-12), 1.0)  # a sleeping victim does not wait
        others = everybody - activity
        score = correlations(activity, suffering - passed_on * others)
        covered = np.minimum(everybody / np.maximum(suffering, 1e-12), 1.0)[suffering > 0]
        steady = activity.std(axis=1) < 0.1 * activity.mean(axis=1)
        few = len(suffering) < 2 * FEWEST
        score = np.where(steady | few, covered.mean() if len(covered) else 0.0, score)
        share = np.divide(activity, everybody, out=np.zeros_like(activity), where=everybody > 0)
        # while one of its threads waits, a suspect's second costs the victim a second; its other waits are of its own making
        taken = np.minimum(suffering * share, activity * np.maximum(suffering, 1.0))
        effect = medians(taken / demand, on)
        before = np.where(np.isnan(before), np.maximum(during - medians(taken, on), 0.0), before)
        weight = taken[:, -1]
    else:
        contrast = (on.sum(axis=1) >= FEWEST) & ((~on).sum(axis=1) >= FEWEST)
        changes = (np.diff(on.astype(np.int8), axis=1) != 0).sum(axis=1)
        score = np.where(contrast & (changes >= CHANGES), correlations(activity, suffering), 0.0)
        effect = np.nan_to_num(during - before, nan=0.0)
        weight = score
    return Scored(np.clip(score, 0.0, 1.0), effect, before, during, weight)


def correlations(activity: np.ndarray, series: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of activity (suspects, slices) with series ((slices,) or (suspects, slices)); 0 where
    either does not change."""
    a = activity - activity.mean(axis=1, keepdims=True)
    s = np.broadcast_to(series, activity.shape)
    s = s - s.mean(axis=1, keepdims=True)
    norm = np.sqrt((a**2).sum(axis=1) * (s**2).sum(axis=1))
    return np.divide((a * s).sum(axis=1), norm, out=np.zeros(len(a)), where=norm > 1e-12)


def medians(series: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The median of series ((slices,) or (suspects, slices)) over each row's `chosen` slices; NaN where there are none."""
    ordered = np.sort(np.where(chosen, series, np.inf), axis=1)
    count = chosen.sum(axis=1)
    row, last = np.arange(len(ordered)), ordered.shape[1] - 1
    middle = (ordered[row, np.maximum(count - 1, 0) // 2] + ordered[row, np.minimum(count // 2, last)]) / 2
    return np.where(count > 0, middle, np.nan)


class Past(NamedTuple):
    """The ring put together once a slice: entries (k,) in time order, `who_at` their place in `names`, those of the current
    slice from `latest` on; `order` sorts entries by name and `bounds` cuts it; `total` (slots, cpus) sums all."""

    slot: np.ndarray
    who: np.ndarray
    cpu: np.ndarray
    share: np.ndarray
    names: np.ndarray
    who_at: np.ndarray
    latest: int
    order: np.ndarray
    bounds: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, ran: deque, cpus: int) -> Past:
        who, cpu, share = (np.concatenate(column) for column in zip(*ran, strict=True))
        lengths = [len(entry[0]) for entry in ran]
        slot = np.repeat(np.arange(len(ran)), lengths)
        names, who_at = np.unique(who, return_inverse=True)
        order = np.argsort(who_at, kind="stable")
        bounds = np.searchsorted(who_at[order], np.arange(len(names) + 1))
        total = np.zeros((len(ran), max(int(cpu.max(initial=0)) + 1, cpus)))
        np.add.at(total, (slot, cpu), share)
        return cls(slot, who, cpu, share, names, who_at, len(who) - lengths[-1], order, bounds, total)

    @property
    def slots(self) -> int:
        return len(self.total)

    def table(self, name: int) -> np.ndarray:
        """What one process had of each CPU in each slice, (slots, cpus), as shares of the slice."""
        had = np.zeros_like(self.total)
        at = int(np.searchsorted(self.names, name))
        if at < len(self.names) and self.names[at] == name:
            mine = self.order[self.bounds[at] : self.bounds[at + 1]]
            np.add.at(had, (self.slot[mine], self.cpu[mine]), self.share[mine])
        return had


class Blame:
    """Names antagonists live, one resource an instance.

    `domain_of` (cpus,): the number of each CPU's sharing domain (sibling pair, LLC, node); None for "core", where every
    CPU is its own. State: the last `slices` slices, of rows that ran or waited only.
    """

    def __init__(
        self, resource: str = "core", domain_of: np.ndarray | None = None, slices: int = SLICES
    ) -> None:
        self.resource, self.kind, self.slices = resource, RESOURCES[resource], slices
        self.domain_of = None if domain_of is None else np.asarray(domain_of)
        self.number = 0
        self.ran: deque[tuple[np.ndarray, ...]] = deque(maxlen=slices)  # (id, cpu, share) of each slice
        self.suffered: dict[int, deque[tuple[int, float, float]]] = {}  # id -> (number, suffering, demand)
        self.mixes: dict[int, deque[np.ndarray]] = {}

    def update(
        self,
        ids: np.ndarray,
        seconds: float,
        wait: np.ndarray,
        ran: Occupancy,
        factor: np.ndarray | None = None,
        throttled: np.ndarray | None = None,
        steal: np.ndarray | None = None,
        mix: np.ndarray | None = None,
    ) -> list[Blamed]:
        """Take one slice of n rows and name who hurts whom in it, at most one antagonist a victim.

        ids (n,): int64, the same for a process as long as it lives and never again; seconds: the slice's true length; wait
        (n,): seconds runnable and not running (NaN = unknown: never a victim); ran: who had which CPU; factor (n,): the
        interference factor for resources other than "core" (NaN = unknown); throttled (n,): seconds held by a CPU quota;
        steal (cpus,): seconds the hypervisor took; mix (n, m): ratios of the victim's own work that no neighbour changes
        (threads, faults or branches per instruction): a jump starts its history anew.
        """
        self.number += 1
        ids = np.asarray(ids, dtype=np.int64)
        row, cpu = np.asarray(ran.row, dtype=np.intp), np.asarray(ran.cpu, dtype=np.intp)
        share = np.asarray(ran.seconds, dtype=np.float64) / seconds
        self.ran.append((ids[row], cpu, share))
        had = np.bincount(row, weights=share, minlength=len(ids))
        waited = np.asarray(wait, dtype=np.float64) / seconds
        if throttled is not None:
            waited = without_throttling(waited, np.asarray(throttled) / seconds)
        if steal is not None:
            waited = without_steal(waited, row, cpu, share, np.asarray(steal) / seconds)
        lost = waited
        if not self.kind.adds_up:
            if factor is None:
                raise ValueError(f"{self.resource} is judged by the interference factor")
            lost = 1 - 1 / np.maximum(factor, 1.0)
        demand = had + np.nan_to_num(waited)
        self.remember(ids, demand, lost, mix)
        hurt = np.flatnonzero((lost >= (EFFECT * demand if self.kind.adds_up else EFFECT)) & (demand > 0))
        victims = [one for one in hurt.tolist() if not too_small(had[one], waited[one])]
        victims = sorted(victims, key=lambda one: -lost[one])[:MOST_VICTIMS]
        if not victims:
            return []
        past = Past.of(self.ran, len(self.domain_of) if self.domain_of is not None else 0)
        row_of = dict(zip(ids[row].tolist(), row.tolist(), strict=True))
        found = (self.judge(victim, ids, past, row_of) for victim in victims)
        return [blamed for blamed in found if blamed is not None]

    def remember(self, ids, demand, lost, mix) -> None:
        """Keep this slice of every row that wanted the CPU, which thousands of sleepers do not; forget those unseen for a
        whole ring."""
        for at in np.flatnonzero((demand >= ON) & ~np.isnan(lost)).tolist():
            name = int(ids[at])
            history = self.suffered.setdefault(name, deque(maxlen=self.slices))
            if mix is not None:
                mixes = self.mixes.setdefault(name, deque(maxlen=self.slices))
                if mix_changed(np.array(mixes), mix[at]):
                    history.clear()
                    mixes.clear()
                mixes.append(np.asarray(mix[at], dtype=np.float64))
            history.append((self.number, float(lost[at]), float(demand[at])))
        if self.number % self.slices == 0:
            gone = [
                name for name, history in self.suffered.items() if history[-1][0] <= self.number - self.slices
            ]
            for name in gone:
                del self.suffered[name]
                self.mixes.pop(name, None)

    def judge(self, victim: int, ids: np.ndarray, past: Past, row_of: dict) -> Blamed | None:
        """The antagonist of one row in this slice, or None."""
        name, oldest = int(ids[victim]), self.number - past.slots + 1
        history = [entry for entry in self.suffered.get(name, ()) if entry[0] >= oldest]
        if not history:
            return None
        times, lost, demand = (np.array(column) for column in zip(*history, strict=True))
        at = times.astype(np.intp) - oldest  # slices in which the victim wanted nothing say nothing
        near = self.near(past.table(name))
        now = near[-1, past.cpu[past.latest :]] & (past.who[past.latest :] != name)
        had = np.bincount(past.who_at[past.latest :][now], weights=past.share[past.latest :][now])
        suspects = [one for one in past.names[np.flatnonzero(had >= NOW)].tolist() if one in row_of]
        if not suspects:
            return None
        activity = np.stack([(past.table(one) * near).sum(axis=1)[at] for one in suspects])
        everybody = ((past.total - past.table(name)) * near).sum(axis=1)[at]
        scored = score_suspects(lost, demand, activity, everybody, self.kind.adds_up)
        fit = (scored.score >= THRESHOLD) & (scored.effect >= EFFECT)
        if not fit.any():
            return None
        best = int(np.where(fit, scored.weight, -np.inf).argmax())
        evidence = (scored.score[best], scored.before[best], scored.during[best])
        return Blamed(victim, row_of[suspects[best]], self.resource, *map(float, evidence))

    def near(self, own: np.ndarray) -> np.ndarray:
        """Where the victim could be hurt, bool (slots, cpus), from where it ran: `own` (slots, cpus). In a slice in which it
        got nothing it waits where it ran last."""
        was_on = own > 0
        last = np.maximum.accumulate(np.where(was_on.any(axis=1), np.arange(len(own)), 0))
        was_on = was_on[last]
        if self.domain_of is None:
            return was_on
        shares = np.zeros((len(own), int(self.domain_of.max()) + 1), dtype=bool)
        slot, cpu = np.nonzero(was_on)
        shares[slot, self.domain_of[cpu]] = True
        shared = shares[:, self.domain_of]
        return shared & ~was_on if self.kind.beside else shared
