"""Everything that a view reads: the Moment on show, and what the person at the keys has chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pmutop.moment import Label, Moment, Rank
from pmutop.slices import Header
from pmutop.tui.columns import DEFAULT_COLUMNS
from pmutop.tui.history import History, Row
from pmutop.tui.order import Order

GREETING = 10.0
HOLD = 2.0  # seconds after a key on the cursor in which no row moves


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
class State(Order):
    header: Header | None
    notes: Sequence[str] = ()
    advice: dict[str, str] = field(default_factory=dict)
    history: History = field(default_factory=History)
    moment: Moment | None = None  # on show
    newest: Moment | None = None
    held: int | None = None  # slice on show while looking back or paused; None: the present
    wanted: int | None = None  # slice of the past that is being fetched
    reach: tuple[int, int] | None = None  # the oldest and the newest that can be shown, when last asked
    # what is shown
    columns: list[str] = field(default_factory=lambda: list(DEFAULT_COLUMNS))
    sort: str = "CPU%"
    reversed: bool = False
    filter: str = ""
    user: str = ""
    tree: bool = False
    grouped: bool = False  # rows under their cgroup
    unfolded: set[int] = field(default_factory=set)  # refs of heads whose rows show
    groups: dict[str, int] = field(default_factory=dict)  # cgroup -> ref of its head
    heads: list[Row] = field(default_factory=list)
    threads: bool = False  # rows per thread
    kernel: bool = False  # kernel threads that use no CPU, too
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
    sampled: int | None = None  # ref of the process whose functions are sampled
    functions: list[dict] = field(default_factory=list)  # what was found of it, see pipeline.hot
    finding: int = 0  # which of the findings is named
    child_output: str = ""  # file with the output of the launched command
    order: list[int] = field(
        default_factory=list
    )  # rows of the table, top to bottom: an index into the Moment, past its end into `ghosts`, then `heads`
    ghosts: list[Row] = field(default_factory=list)
    found: list[Row] = field(default_factory=list)  # the rows in trouble, worst first
    branches: dict[int, str] = field(default_factory=dict)  # ref -> branch of the tree before the command
    widest: int = 5  # digits of the longest PID that was on the screen
    kernel_busy: set[int] = field(default_factory=set)  # refs of kernel threads that show although hidden
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
        if index < count:
            return Row(self.moment, index, bool(self.moment.exited[index]))
        index -= count
        return self.ghosts[index] if index < len(self.ghosts) else self.heads[index - len(self.ghosts)]

    def label_of(self, row: Row) -> Label | None:
        """The label to show: in the present the one that two of three slices agree on, in the past the slice's own."""
        if self.held is None and row.task.ref >= 0:
            return self.history.shown(row.task.ref)
        return row.moment.first_label(row.index)

    def rank_of(self, row: Row) -> Rank | None:
        """What the ranking worker last said of it; it speaks of the present only."""
        return self.history.ranks.get(row.task.ref) if self.held is None else None

    def looked_at(self) -> int | None:
        """The ref of the process whose details are open in the present."""
        row = self.current() if self.page == "details" and self.held is None else None
        return None if row is None or row.gone else row.task.ref

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
        """The tagged rows, or the one under the cursor; the head of a group is none."""
        tagged = (
            [row for row in map(self._row, self.order) if row.task.ref in self.tagged] if self.tagged else []
        )
        current = self.current()
        chosen = tagged or ([current] if current else [])
        return [row for row in chosen if row.task.ref >= 0]
