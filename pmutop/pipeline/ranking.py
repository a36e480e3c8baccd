"""The live ranking: which events matter to the process that is looked at and to the busiest few, from their last slices
(CounterMiner, section III-C).

What is kept is a fixed block of counts, what is heavy runs in the worker (pipeline/rank_worker.py), and nothing here
waits for it: a slice that finds it busy, stuck or dead goes its way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pmutop.analysis import figure
from pmutop.errors import UsageError
from pmutop.moment import Moment, Rank
from pmutop.pipeline.rank_worker import Answer, Worker
from pmutop.slices import Header

PLACES = 8  # processes whose slices are kept
BUSIEST = 4  # of a slice are given a place
SLICES = 150  # the last ones in which it ran or waited: a minute of a busy process
LEAST = 60  # slices without which nothing is ranked
AGAIN = 25  # slices until a ranking is made anew
UNWATCHED = 150  # slices after which a worker that nobody looks at is sent home
TOP = 10  # events told
RECENT = 0.1  # weight of this slice in the use that places are given away by
DEATHS = 3  # in a row, after which no other worker is started


class Place:
    """One process that is followed: its last slices, oldest overwritten first."""

    def __init__(self, events: int) -> None:
        self.rates = np.empty((SLICES, events))
        self.ref: int | None = None

    def take(self, ref: int, row: int, use: float) -> None:
        self.ref, self.row, self.use = ref, row, use
        self.slices = 0  # taken in since the beginning
        self.asked = -AGAIN

    @property
    def kept(self) -> int:
        return min(self.slices, SLICES)

    def in_order(self) -> np.ndarray:
        """Counts per second (kept, events), the oldest first."""
        turn = self.slices % SLICES
        return np.roll(self.rates, -turn, axis=0) if self.slices > SLICES else self.rates[: self.kept]


class Ranker:
    """Given every Moment, hands it back with what the worker has found meanwhile (`Moment.ranks`).

    target: the event to be explained (default: IPC where it is counted, else analysis.figure.USER_SHARE); UsageError where
    it is not counted. always: rank whether or not anybody looks (the log). Without a PMU and /proc's columns there is
    nothing to explain, and nothing is ranked.
    """

    def __init__(
        self,
        header: Header,
        target: str | None = None,
        always: bool = False,
        worker: Callable[[], Worker] = Worker,
    ) -> None:
        self.names = [event.name for event in header.events]
        try:
            self.target = figure.choose(self.names, target)
        except ValueError as error:
            raise UsageError(
                f"{f'--target {target}' if target else 'no ranking'}: {error}",
                f"counted are {', '.join(self.names)}",
            ) from None
        self.always = always
        self.places = [Place(len(self.names)) for _ in range(PLACES)]
        self.make, self.worker, self.deaths = worker, None, 0
        self.asked: tuple[Rank, list[str]] | None = (
            None  # what the worker is at: without its answer, inputs' names
        )
        self.unwatched = 0

    def moment(self, moment: Moment, looked_at: int | None = None) -> Moment:
        """Take in one slice; never waits. looked_at: ref of the process whose ranking somebody wants to see."""
        self.follow(moment, looked_at)
        ranks = self.answers(moment.number)
        watched = self.always or looked_at is not None
        self.unwatched = 0 if watched else self.unwatched + 1
        if watched:
            ranks += self.ask(moment, looked_at)
        elif self.unwatched == UNWATCHED:
            self.close()
        return replace(moment, ranks=ranks) if ranks else moment

    # -- the last slices --------------------------------------------------------------------------------------------

    def follow(self, moment: Moment, looked_at: int | None) -> None:
        cpu = np.nan_to_num(moment.cpu)
        known = {}
        for place in self.places:
            row = None if place.ref is None else moment.row_of(place.ref, place.row)
            if row is None:
                place.ref = None
                continue
            known[place.ref], place.row = place, row
            place.use += RECENT * (cpu[row] - place.use)
        count = min(BUSIEST, len(cpu))
        rows = np.argpartition(-cpu, count - 1)[:count].tolist() if count else []
        for row in rows:
            if cpu[row] > 0 and not moment.tasks[row].kernel and moment.tasks[row].ref not in known:
                self.seat(moment, row, float(cpu[row]), known, keep=looked_at)
        if looked_at is not None and looked_at not in known:
            row = moment.row_of(looked_at)
            if row is not None:
                self.seat(moment, row, np.inf, known, keep=looked_at)
        for place in known.values():
            row = place.row
            if cpu[row] > 0 or moment.wait[row] > 0:  # asleep it shows nothing of how it runs
                place.rates[place.slices % SLICES] = moment.counts[row] / moment.seconds
                place.slices += 1

    def seat(self, moment: Moment, row: int, use: float, known: dict[int, Place], keep: int | None) -> None:
        """A place for one more process: a free one, or that of one which has done less than half as much lately."""
        place = next((place for place in self.places if place.ref is None), None)
        if place is None:
            least = min((place for place in self.places if place.ref != keep), key=lambda place: place.use)
            if use < 2 * least.use:
                return
            del known[least.ref]
            place = least
        place.take(moment.tasks[row].ref, row, min(use, float(np.nan_to_num(moment.cpu[row]))))
        known[place.ref] = place

    # -- the worker -------------------------------------------------------------------------------------------------

    def ask(self, moment: Moment, looked_at: int | None) -> tuple[Rank, ...]:
        """Give the worker what is due if it is idle; says why the process that is looked at has no ranking (yet)."""
        ready = [
            place
            for place in self.places
            if place.ref is not None and place.kept >= LEAST and moment.number - place.asked >= AGAIN
        ]
        ready.sort(key=lambda place: (place.ref != looked_at, place.asked))
        told = self.waiting(moment, looked_at)
        for place in ready:
            if self.asked is not None:
                break
            told += self.give(moment, place)
        return told

    def waiting(self, moment: Moment, looked_at: int | None) -> tuple[Rank, ...]:
        place = next((place for place in self.places if place.ref == looked_at), None)
        if looked_at is None or place is None or place.kept >= LEAST:
            return ()
        why = f"{place.kept} of the {LEAST} slices in which it ran that this takes"
        return (self.unranked(moment, place, why),)

    def give(self, moment: Moment, place: Place) -> tuple[Rank, ...]:
        place.asked = moment.number
        inputs, target, names = figure.usable(figure.explain(place.in_order(), self.names, self.target))
        if len(target) < LEAST or len(names) < 2 or np.ptp(target) == 0:
            return (
                self.unranked(
                    moment, place, f"{self.target} or the events hardly change, or are not counted"
                ),
            )
        if self.deaths >= DEATHS:
            return (self.unranked(moment, place, f"the ranking worker ended {DEATHS} times"),)
        try:
            self.worker = self.worker or self.make()
        except OSError:  # no process or no memory to be had: not our business to end for it
            self.deaths += 1
            return ()
        self.asked = self.unranked(moment, place, "")._replace(slices=len(target)), names
        self.worker.give(inputs, target)
        return ()

    def unranked(self, moment: Moment, place: Place, why: str) -> Rank:
        task = moment.tasks[place.row]
        return Rank(moment.number, place.ref, task.pid, task.tid, task.comm, self.target, place.kept, why=why)

    def answers(self, number: int) -> tuple[Rank, ...]:
        """What the worker has to say, without waiting for it."""
        if self.worker is None or self.asked is None:
            return ()
        try:
            answer = self.worker.take()
        except OSError:
            self.close()
            self.deaths += 1
            return ()
        if answer is None:
            return ()
        (rank, names), self.asked, self.deaths = self.asked, None, 0
        return (told(rank, names, answer)._replace(slice=number),)

    def last(self, moment: Moment, over: Callable[[], bool], seconds: float = 60.0) -> tuple[Rank, ...]:
        """At the end of a source: a ranking of every process that has slices enough, waited for unless it is `over`."""
        ranks: tuple[Rank, ...] = ()
        for place in self.places:
            if place.ref is None or place.kept < LEAST:
                continue
            while self.asked is not None and not over() and seconds > 0:
                seconds -= self.worker.wait(0.1)
                ranks += self.answers(moment.number)
            if self.asked is None:
                ranks += self.give(moment, place)
        while self.asked is not None and not over() and seconds > 0:
            seconds -= self.worker.wait(0.1)
            ranks += self.answers(moment.number)
        return ranks

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
        self.worker = self.asked = None


def told(rank: Rank, names: list[str], answer: Answer) -> Rank:
    if not len(answer.order):
        return rank._replace(why=f"{rank.target} hardly changes")
    first = zip(answer.order[:TOP].tolist(), answer.importance[:TOP].tolist(), strict=True)
    return rank._replace(
        events=tuple((names[at], share) for at, share in first),
        error=answer.error,
        median_error=answer.median_error,
    )
