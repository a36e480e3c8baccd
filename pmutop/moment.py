"""The nouns at the far end: what the pipeline says of one slice. Screen, log, metrics and tests all receive a Moment.

Columns are numpy arrays of one row per process (or per task with --threads); they are never changed after the Moment is
made. What concerns few rows (labels, evidence, interference) is kept by row number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from pmutop.slices import Header, Task

if TYPE_CHECKING:
    from numpy import ndarray

#: Marks of how a number came to be; the index is the code in Moment.quality.
QUALITIES = ("exact", "estimated", "uncounted", "unsupported", "first", "replaced", "impossible")
EXACT, ESTIMATED, UNCOUNTED, UNSUPPORTED, FIRST, REPLACED, IMPOSSIBLE = range(len(QUALITIES))

UNKNOWN = "unknown"  # the label where the model abstains


class Label(NamedTuple):
    label: str  # P_... , N_... or 'unknown'
    kind: str  # finer name beside it, '' where there is none
    confidence: float  # 0..1
    tier: str
    model: str  # name of the bundle, or 'rule'

    @property
    def is_pathology(self) -> bool:
        return self.label.startswith("P_")

    @property
    def is_healthy(self) -> bool:
        return self.label.startswith("N_")


class Reason(NamedTuple):
    """One piece of evidence for the first label: an event, its share of the evidence, its value and the healthy twin's."""

    name: str
    share: float
    value: float
    normal: float
    unit: str


class Antagonist(NamedTuple):
    pid: int
    comm: str
    resource: str
    score: float
    before: float  # victim's suffering while the suspect rests
    during: float  # and while it runs


class Resource(NamedTuple):
    """The verdict for one shared resource: True, False, or None where this tier cannot see it."""

    verdict: bool | None
    factor: float | None
    margin: float | None


#: The best of several models is shown, so one that has learnt nothing is a little better than the median by luck.
TELLING = 0.8


class Rank(NamedTuple):
    """How much each event matters to `target` (a performance figure) in the last `slices` of one process, as boosted
    trees have it (CounterMiner, section III-C); no events: not ranked, and `why`."""

    slice: int  # in which it came
    ref: int
    pid: int
    tid: int
    comm: str
    target: str
    slices: int
    events: tuple[
        tuple[str, float], ...
    ] = ()  # (name, importance in percent of all), the most important first
    error: float = float("nan")  # equation 14 on slices that the model has not seen, a share
    median_error: float = float("nan")  # the same for always saying the median
    why: str = ""

    @property
    def is_telling(self) -> bool:
        """Whether the model errs clearly less than the median does; if not, its importances mean nothing."""
        return bool(self.events) and self.error <= TELLING * self.median_error


#: The resources that a verdict is given for, in the order of columns and JSON keys.
RESOURCES = ("core", "smt", "llc", "memory", "progress")
UNSEEN = Resource(None, None, None)


class Interference(NamedTuple):
    core: Resource
    smt: Resource
    llc: Resource
    memory: Resource
    progress: Resource  # no resource of its own: slowed per CPU second by any of them, told by --progress
    antagonist: Antagonist | None


@dataclass(frozen=True)
class Moment:
    """All that is known of one slice; row i of every column is process `tasks[i]`."""

    header: Header
    number: int
    time: float  # Unix seconds, end of the slice
    seconds: float  # its true length
    late: float
    tasks: list[Task]
    state: list[str]
    threads: ndarray  # int (rows,)
    exited: ndarray  # bool
    cpu: ndarray  # % of one CPU; NaN = not known
    wait: ndarray  # % of the slice runnable but not running (summed over threads)
    ipc: ndarray
    rss: ndarray  # bytes
    nice: ndarray
    counts: ndarray  # float64 (rows, events): cleaned increase within the slice, NaN = not counted
    quality: ndarray  # uint8 (rows, events): index into QUALITIES
    labels: dict[int, tuple[Label, ...]]  # strongest first; a row that is not here: nothing may be said
    reasons: dict[int, tuple[Reason, ...]]
    interference: dict[int, Interference]
    machine: dict = field(
        default_factory=dict
    )  # rates of this slice: own_cpu %, own_rss, lost, switches, cpu_busy, psi
    ranks: tuple[Rank, ...] = ()  # what the ranking worker has found since the last slice
    neighbours: ndarray | None = None  # float64 (rows, as neighbour_delay.NEIGHBOURS), ns
    paths: dict[int, tuple[str, ...]] = field(
        default_factory=dict
    )  # the tree's tests that led to the label, in words
    periods: ndarray | None = (
        None  # int64 (n, 4) as slices.Period: cpu, ref, start, end; None where the source has none
    )

    def first_label(self, row: int) -> Label | None:
        labels = self.labels.get(row)
        return labels[0] if labels else None

    def row_of(self, ref: int, guess: int = 0) -> int | None:
        """The row of a task; `guess` is where it was in the slice before, which is where it nearly always is."""
        tasks = self.tasks
        for row in range(max(guess - 4, 0), min(guess + 5, len(tasks))):
            if tasks[row].ref == ref:
                return row
        return next((row for row, task in enumerate(tasks) if task.ref == ref), None)

    def only(self, rows: list[int]) -> Moment:
        """The same Moment with only these rows, in this order."""
        place = {row: number for number, row in enumerate(rows)}

        def kept(found: dict) -> dict:
            return {place[row]: value for row, value in found.items() if row in place}

        columns = ("threads", "exited", "cpu", "wait", "ipc", "rss", "nice", "counts", "quality")
        return replace(
            self,
            tasks=[self.tasks[row] for row in rows],
            state=[self.state[row] for row in rows],
            labels=kept(self.labels),
            reasons=kept(self.reasons),
            interference=kept(self.interference),
            paths=kept(self.paths),
            neighbours=None if self.neighbours is None else self.neighbours[rows],
            **{name: getattr(self, name)[rows] for name in columns},
        )
