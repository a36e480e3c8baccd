"""Everything that a view reads: the Moment on show, and what the person at the keys has chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isnan, log2

from pmutop.moment import Label, Moment, Rank
from pmutop.slices import Header
from pmutop.tui.columns import BY_NAME, DEFAULT_COLUMNS, trouble
from pmutop.tui.history import History, Row

GREETING = 10.0
HOLD = 2.0  # seconds after a key on the cursor in which no row moves


#: Orders that change from slice to slice by themselves.
LIVELY = ("CPU%", "WAIT%", "IPC", "LABEL", "INTERFERENCE", "RES")


@dataclass
class Prompt:
    """One line of input at the foot."""

    title: str
    done: Callable[[str], None]
    changed: Callable[[str], None] | None = None  # at each key
    cancelled: Callable[[], None] | None = None
    text: str = ""


@dataclass
class Menu:
    """A list at the left to choose from; typing narrows it where `narrow`."""

    title: str
    choices: list[tuple[str, object]]  # text, value
    done: Callable[[object], None]
    cursor: int = 0
    typed: str = ""
    stays: bool = False  # choosing does not close it (the column menu)

    def matching(self) -> list[tuple[str, object]]:
        wanted = self.typed.lower()
        return [choice for choice in self.choices if wanted in choice[0].lower()]


@dataclass
class State:
    header: Header | None
    notes: Sequence[str] = ()
    advice: dict[str, str] = field(default_factory=dict)
    history: History = field(default_factory=History)
    moment: Moment | None = None  # on show
    newest: Moment | None = None
    held: int | None = None  # slice on show while looking back or paused; None: the present
    # what is shown
    columns: list[str] = field(default_factory=lambda: list(DEFAULT_COLUMNS))
    sort: str = "CPU%"
    reversed: bool = False
    filter: str = ""
    user: str = ""
    tree: bool = False
    threads: bool = False  # rows per thread
    kernel: bool = True
    follow: bool = False
    tagged: set[int] = field(default_factory=set)
    # where the cursor is
    selected: int | None = (
        None  # ref that the cursor is bound to; None: it stays at `cursor`, rows run under it
    )
    cursor: int = 0
    top: int = 0
    height: int = 1  # rows of the table on the screen, told by the view
    first_line: int = 0  # line of the screen with the first row, told by the view
    shift: int = 0  # the command is scrolled by this many cells
    still_until: float = 0.0
    # what is open
    greeting: bool = (
        True  # the first page is still up: until a key, or GREETING seconds after the first slice
    )
    page: str = ""
    page_top: int = 0
    page_keys: bool = False  # arrows belong to the page
    menu: Menu | None = None
    prompt: Prompt | None = None
    message: str = ""
    finding: int = 0  # which of the findings is named
    child_output: str = ""  # file with the output of the launched command
    order: list[int] = field(
        default_factory=list
    )  # rows of the table, top to bottom: an index into the Moment, or past
    # its end into `ghosts`; see `row`
    ghosts: list[Row] = field(default_factory=list)
    found: list[Row] = field(default_factory=list)  # the rows in trouble, worst first
    branches: dict[int, str] = field(default_factory=dict)  # ref -> branch of the tree before the command
    widest: int = 5  # digits of the longest PID that was on the screen
    _bands: dict[int, int] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)  # ref -> position, while nothing may move

    # -- feeding ----------------------------------------------------------------------------------------------------

    def add(self, moment: Moment) -> None:
        """Take a new Moment; it is shown unless the screen is held."""
        if self.newest is None:
            self.threads = any(
                not task.is_process for task in moment.tasks
            )  # as the source was asked to give them
        self.header = moment.header
        self.newest = moment
        self.history.add(moment)
        self.greeting = self.greeting and moment.time - self.history.ring[0].time < GREETING
        if self.held is None:
            self.moment = moment

    def show_slice(self, number: int | None) -> None:
        """Show the Moment of one slice, or the present (None)."""
        self.held = number
        self.moment = self.newest if number is None else self.history.at(number)

    # -- rows -------------------------------------------------------------------------------------------------------

    def row(self, position: int) -> Row:
        """The row at a position of the table."""
        return self._row(self.order[position])

    def _row(self, index: int) -> Row:
        count = len(self.moment.tasks)
        return (
            self.ghosts[index - count]
            if index >= count
            else Row(self.moment, index, bool(self.moment.exited[index]))
        )

    def label_of(self, row: Row) -> Label | None:
        """The label to show: in the present the one that two of three slices agree on, in the past the slice's own."""
        if self.held is None:
            return self.history.shown(row.task.ref)
        return row.moment.first_label(row.index)

    def rank_of(self, row: Row) -> Rank | None:
        """What the ranking worker last said of it; it speaks of the present only."""
        return self.history.ranks.get(row.task.ref) if self.held is None else None

    def looked_at(self) -> int | None:
        """The ref of the process whose details are open in the present."""
        row = self.current() if self.page == "details" and self.held is None else None
        return None if row is None or row.gone else row.task.ref

    def arrange(self, now: float) -> None:
        """Make `order` from the Moment on show: sorted, filtered, the cursor kept on its process.

        Of thousands of rows only the busy ones are touched one by one, unless a filter or another order asks for more.
        """
        moment = self.moment
        if moment is None:
            return
        before = self.cursor - self.top
        still = now < self.still_until and self.sort in LIVELY and not self.tree and self._places
        self.ghosts = (
            [row for row in self.history.ghosts.values() if row.moment is not moment]
            if self.held is None
            else []
        )
        order = self._by_cpu(moment) if self.sort == "CPU%" else self._by_column(moment)
        if self.reversed:
            order.reverse()
        if self.filter or self.user or not (self.threads and self.kernel):
            order = [index for index in order if self._wanted(self._row(index))]
        if still:
            order.sort(key=lambda index: self._places.get(self._row(index).task.ref, len(self._places)))
        self.branches = {}
        self.order = self._family(order) if self.tree else order
        self.found = self._findings(moment)
        if self.selected is not None:
            self.cursor = self.find(self.selected)
            if self.cursor < 0:
                self.selected, self.cursor = None, before + self.top
            elif self.follow:
                self.top = self.cursor - before
        self._clamp()

    def _by_cpu(self, moment: Moment) -> list[int]:
        """Busy rows by the band of their recent CPU use, then the idle ones as they came."""
        if self.held is None:
            active = self.history.smooth
        else:
            active = {
                moment.tasks[i].ref: (float(moment.cpu[i]), i) for i in (moment.cpu > 0).nonzero()[0].tolist()
            }
        touched = moment.cpu > 0
        bands, keyed = {}, []
        for ref, (use, index) in active.items():
            bands[ref] = band = self._band(ref, use)
            keyed.append((-band, ref, index))
            touched[index] = True
        for place, row in enumerate(self.ghosts):
            ref = row.task.ref
            bands[ref] = band = self._bands.get(ref, 0)
            keyed.append((-band, ref, len(moment.tasks) + place))
        self._bands = bands
        keyed.sort()
        return [index for _, _, index in keyed] + (~touched).nonzero()[0].tolist()

    def _band(self, ref: int, use: float) -> int:
        """CPU use on a scale of steps of 19 %; a process stays in its band until it is well outside of it."""
        exact = 4 * log2(1 + use)
        old = self._bands.get(ref)
        return old if old is not None and abs(exact - old) < 0.8 else round(exact)

    def _by_column(self, moment: Moment) -> list[int]:
        column = BY_NAME[self.sort]
        order = list(range(len(moment.tasks) + len(self.ghosts)))
        keys = [column.key(self, self._row(index)) for index in order]
        order.sort(key=keys.__getitem__, reverse=column.descending)
        return order

    def _wanted(self, row: Row) -> bool:
        task = row.task
        if not self.threads and task.pid != task.tid:
            return False
        if not self.kernel and task.kernel:
            return False
        if self.user and task.user != self.user:
            return False
        return not self.filter or self.matches(row, self.filter)

    def matches(self, row: Row, text: str) -> bool:
        """Does a row match what was typed: command, user, label, cgroup (any case), or the whole PID?"""
        task = row.task
        label = self.label_of(row)
        hay = (
            f"{task.comm}\n{task.cmdline}\n{task.user}\n{task.cgroup}\n{label.label if label else ''}".lower()
        )
        return text.lower() in hay or text == str(task.pid)

    def _findings(self, moment: Moment) -> list[Row]:
        """Rows with a pathology or an interference, worst first: by confidence, factor, and the CPU they use."""
        found = []
        tasks, tracks = moment.tasks, self.history.tracks
        for index in moment.labels.keys() | moment.interference.keys():
            track = tracks.get(tasks[index].ref)
            if (
                self.held is not None
                or index in moment.interference
                or (track is not None and track.shown.is_pathology)
            ):
                row = Row(moment, index)
                worst = trouble(self, row)
                if worst >= 1:
                    use = float(moment.cpu[index])
                    found.append((worst if isnan(use) else worst + use / 100, -tasks[index].ref, row))
        found.sort(key=lambda item: item[:2], reverse=True)
        return [row for _, _, row in found]

    def _family(self, order: list[int]) -> list[int]:
        """Rows under their parents, siblings in the order they had; notes each one's branch."""
        tasks = {index: self._row(index).task for index in order}
        here = {task.pid: index for index, task in tasks.items() if task.is_process}
        children: dict[int, list[int]] = {}
        roots = []
        for index, task in tasks.items():
            parent = here.get(task.ppid if task.is_process else task.pid, index)
            if parent == index:
                roots.append(index)
            else:
                children.setdefault(parent, []).append(index)
        ordered: list[int] = []
        seen = set()
        stack = [(index, "", "") for index in reversed(roots)]
        while stack:
            index, branch, below = stack.pop()
            seen.add(index)
            ordered.append(index)
            self.branches[tasks[index].ref] = branch
            young = children.get(index, [])
            for place in range(len(young) - 1, -1, -1):
                last = place == len(young) - 1
                stack.append(
                    (young[place], below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))
                )
        # Parents in a loop (possible between two reads of /proc) are under nobody: they come last.
        return ordered + [index for index in order if index not in seen]

    # -- the cursor -------------------------------------------------------------------------------------------------

    def current(self) -> Row | None:
        return self.row(self.cursor) if 0 <= self.cursor < len(self.order) else None

    def find(self, ref: int) -> int:
        """The position of a process in the table, -1 if it is not there."""
        return next((place for place, index in enumerate(self.order) if self._row(index).task.ref == ref), -1)

    def move(self, to: int, now: float) -> None:
        """Put the cursor on a row and bind it to that process; nothing moves for a while."""
        self.cursor = to
        self._clamp()
        row = self.current()
        self.selected = row.task.ref if row else None
        self.still_until = now + HOLD
        self._places = {self._row(index).task.ref: place for place, index in enumerate(self.order)}

    def select(self, ref: int, now: float) -> bool:
        """Put the cursor on a process; False if it is not in the table."""
        place = self.find(ref)
        if place >= 0:
            self.move(place, now)
        return place >= 0

    def _clamp(self) -> None:
        self.cursor = max(0, min(self.cursor, len(self.order) - 1))
        self.top = max(min(self.top, self.cursor), self.cursor - self.height + 1)
        self.top = max(0, min(self.top, len(self.order) - self.height))

    def targets(self) -> list[Row]:
        """The tagged rows, or the one under the cursor."""
        tagged = (
            [row for row in map(self._row, self.order) if row.task.ref in self.tagged] if self.tagged else []
        )
        current = self.current()
        return tagged or ([current] if current else [])
