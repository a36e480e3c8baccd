"""What the screen remembers: a bounded ring of Moments, the label of each process over time, and who has just left.

Labels on screen have hysteresis (two of the last three slices agree); the Moments, and so the log, stay as judged.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from pmutop.moment import Label, Moment, Rank
from pmutop.slices import Task

SLICES = 150  # a minute at 400 ms
BUDGET = 8 << 20  # bytes of columns that the ring of Moments may hold
LINGER = 8.0  # seconds that a process which has gone stays on screen, greyed
NO_LABEL = Label("", "", 0.0, "", "")


class Row(NamedTuple):
    """One line of the table: a row of a Moment, the current one or (for one that has gone) an earlier one."""

    moment: Moment
    index: int
    gone: bool = False

    @property
    def task(self) -> Task:
        return self.moment.tasks[self.index]


class Track:
    """The labels of one process over time."""

    __slots__ = ("marks", "seen", "shown", "since", "votes")

    def __init__(self) -> None:
        self.votes: deque[Label] = deque(maxlen=3)
        self.shown = NO_LABEL
        self.since = 0.0  # Unix seconds when the shown label came up
        self.marks: deque[tuple[int, str, float]] = deque(maxlen=SLICES)  # slice, label, confidence
        self.seen = 0

    def vote(self, label: Label, when: float) -> None:
        self.votes.append(label)
        same = [vote for vote in self.votes if vote.label == label.label]
        if len(same) >= 2 or (len(self.votes) == 1 and label.label):
            if label.label != self.shown.label:
                self.since = when
            self.shown = label
        elif self.shown.label:
            # Keep the label that had two of three, at the confidence it was last given.
            agreeing = [vote for vote in self.votes if vote.label == self.shown.label]
            if agreeing:
                self.shown = agreeing[-1]


class History:
    """Fed with every Moment, in order; read by the views."""

    def __init__(self, slices: int = SLICES, budget: int = BUDGET) -> None:
        self.slices = slices
        self.budget = budget
        self.ring: deque[Moment] = deque()
        self.older: list[
            Moment
        ] = []  # a stretch of the past before the ring, judged again because somebody looks
        self.marks: set[int] = set()  # slices that the person marked
        self.held = 0  # bytes
        self.tracks: dict[int, Track] = {}
        self.ghosts: dict[int, Row] = {}
        self.ranks: dict[int, Rank] = {}  # ref -> the last ranking, not older than the ring
        self.lanes: dict[
            int, list[tuple[int, float]]
        ] = {}  # slice -> per CPU (ref, share); made when first asked for
        self.smooth: dict[
            int, tuple[float, int]
        ] = {}  # ref -> CPU % of recent slices, weighted; row in the newest

    def add(self, moment: Moment) -> None:
        self._keep(moment)
        self._label(moment)
        self._bury(moment)
        self._smooth(moment)
        self._rank(moment)

    def _keep(self, moment: Moment) -> None:
        self.ring.append(moment)
        self.held += weight(moment)
        while len(self.ring) > self.slices or (self.held > self.budget and len(self.ring) > 2):
            past = self.ring.popleft()
            self.held -= weight(past)
            self.lanes.pop(past.number, None)

    def _label(self, moment: Moment) -> None:
        tasks, number = moment.tasks, moment.number
        for row, labels in moment.labels.items():
            ref = tasks[row].ref
            track = self.tracks.get(ref)
            if track is None:
                if not labels:
                    continue
                track = self.tracks[ref] = Track()
            label = labels[0] if labels else NO_LABEL
            track.vote(label, moment.time)
            track.seen = number
            track.marks.append((number, label.label, label.confidence))
        quiet = [ref for ref, track in self.tracks.items() if track.seen != number]
        for ref in quiet:
            track = self.tracks[ref]
            track.vote(NO_LABEL, moment.time)
            if number - track.seen > self.slices:
                del self.tracks[ref]

    def _bury(self, moment: Moment) -> None:
        for index in moment.exited.nonzero()[0].tolist():
            self.ghosts[moment.tasks[index].ref] = Row(moment, index, gone=True)
        for ref in [ref for ref, row in self.ghosts.items() if moment.time - row.moment.time > LINGER]:
            del self.ghosts[ref]

    def _smooth(self, moment: Moment) -> None:
        """Follow the CPU use of the busy: the sort key that does not jump."""
        tasks, old, fresh = moment.tasks, self.smooth, {}
        busy = (moment.cpu > 0).nonzero()[0]
        for index, now in zip(busy.tolist(), moment.cpu[busy].tolist()):
            ref = tasks[index].ref
            before = old.pop(ref, None)
            fresh[ref] = (now if before is None else before[0] * 0.6 + now * 0.4, index)
        for ref, (before, guess) in old.items():
            if before > 0.2:
                index = moment.row_of(ref, guess)
                if index is not None:
                    fresh[ref] = (before * 0.6, index)
        self.smooth = fresh

    def _rank(self, moment: Moment) -> None:
        self.ranks |= {rank.ref: rank for rank in moment.ranks}
        if self.ranks:
            oldest = moment.number - self.slices
            self.ranks = {ref: rank for ref, rank in self.ranks.items() if rank.slice >= oldest}

    def shown(self, ref: int) -> Label | None:
        """The label to show for this process, None where nothing is said."""
        track = self.tracks.get(ref)
        return track.shown if track and track.shown.label else None

    def find(self, number: int) -> Moment | None:
        """The Moment of slice `number` if it is at hand; of numbers that were never taken the one before."""
        for held in (self.ring, self.older):
            if held and held[0].number <= number <= held[-1].number:
                return next(moment for moment in reversed(held) if moment.number <= number)
        return None

    def at(self, number: int) -> Moment | None:
        """The Moment of slice `number`, or the nearest one that is at hand."""
        if not self.ring:
            return None
        return min((*self.older, *self.ring), key=lambda moment: abs(moment.number - number))

    def until(self, number: int, most: int = SLICES) -> list[Moment]:
        """The Moments at hand from at most `most` slices before `number` up to it, oldest first."""
        return [moment for moment in (*self.older, *self.ring) if number - most < moment.number <= number]

    def fits(self) -> int:
        """How many Moments like the newest may be judged again and held at once."""
        return max(8, min(SLICES, self.budget // max(weight(self.ring[-1]), 1)))

    def lane(self, moment: Moment) -> list[tuple[int, float]]:
        """For each CPU the task that held it longest in the slice, and for which share of it; ref 0: nobody."""
        lane = self.lanes.get(moment.number)
        if lane is None:
            lane = self.lanes[moment.number] = holders(moment)
        return lane

    def rows_of(self, ref: int, number: int) -> list[Row]:
        """This process in every Moment at hand of the minute up to slice `number`, oldest first."""
        rows = []
        guess = 0
        for moment in self.until(number):
            index = moment.row_of(ref, guess)
            if index is not None:
                rows.append(Row(moment, index))
                guess = index
        return rows


def holders(moment: Moment) -> list[tuple[int, float]]:
    """Who held each CPU longest: (ref, share of the slice) per CPU, from the exact history of the slice."""
    import numpy as np  # loaded long since by whoever made the Moment, and not needed for the first frame

    if moment.periods is None or not len(moment.periods):
        return []
    cpu, ref, start, end = np.asarray(moment.periods).T
    refs, column = np.unique(ref, return_inverse=True)
    spent = np.bincount(
        cpu * len(refs) + column, weights=end - start, minlength=(int(cpu.max()) + 1) * len(refs)
    )
    spent = spent.reshape(-1, len(refs))
    first = spent.argmax(axis=1)
    share = spent[np.arange(len(spent)), first] / (moment.seconds * 1e9)
    return [(int(refs[place]) if part > 0 else 0, float(part)) for place, part in zip(first, share)]


def weight(moment: Moment) -> int:
    """Bytes that a Moment holds alive, near enough: its columns, and some for each labelled row."""
    history = 0 if moment.periods is None else moment.periods.nbytes
    return (
        history
        + moment.counts.nbytes
        + moment.quality.nbytes
        + len(moment.tasks) * 80
        + len(moment.labels) * 1000
    )
