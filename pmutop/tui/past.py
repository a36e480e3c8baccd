"""Moving in time: the last minute is at hand; what is older is fetched from the look-back, where the command hands one in.

The whole screen goes back: table, details, findings and lanes are made of the Moment on show. Sampling goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from pmutop import units
from pmutop.moment import Moment
from pmutop.tui.lines import Line
from pmutop.tui.state import State

READING = "reading the look-back ..."
STEPS = {"far": 10.0, "minute": 60.0}  # seconds


class Past:
    """Mixed into the app: what the keys of time do."""

    state: State
    actions: dict[str, Callable]

    def do_pause(self) -> None:
        s = self.state
        if s.held is not None:
            self.do_live()
            return
        s.show_slice(s.moment.number if s.moment else 0)
        if "pause" in self.actions:
            self.act("pause", True)

    def do_live(self) -> None:
        self.state.wanted = None
        self.state.history.older = []
        self.state.show_slice(None)
        if "pause" in self.actions:
            self.act("pause", False)

    def oldest(self) -> int:
        """The oldest slice that can be shown."""
        held = self.actions["oldest"]() if "oldest" in self.actions else None
        return self.state.history.ring[0].number if held is None else held

    def go(self, slices: int) -> None:
        s = self.state
        if s.moment is None:
            return
        s.reach = self.oldest(), s.history.ring[-1].number
        first, last = s.reach
        to = (s.moment.number if s.wanted is None else s.wanted) + slices
        if to > last and "seek" in self.actions:
            self.act("seek", slices)
            return
        if not first <= to <= last:
            s.message = "this is the newest slice" if slices > 0 else "this is the oldest slice that is held"
        self.show(max(first, min(to, last)))

    def show(self, number: int) -> None:
        """Hold the screen on a slice: at once if it is at hand, else when it has been judged again."""
        s = self.state
        if s.history.find(number) is not None:
            s.wanted = None
            s.show_slice(number)
            return
        if s.held is None:
            s.show_slice(s.moment.number)
        s.wanted = number
        fits = s.history.fits()
        first = number - fits * 3 // 4  # going back is what people do there
        asked = range(first, first + fits)
        if self.actions["past"](asked[0], asked[-1], lambda moments: self.give(asked, moments)):
            s.message = s.message or READING

    def give(self, asked: range, moments: list[Moment]) -> None:
        """Slices of the past have come, in whichever thread."""
        try:
            self._loop.call_soon_threadsafe(self.take, asked, moments)
        except RuntimeError:
            pass  # the loop is closed: the screen has gone

    def take(self, asked: range, moments: list[Moment]) -> None:
        s = self.state
        number = s.wanted
        if number is None:
            return  # back in the present meanwhile
        s.history.older = moments
        if s.message == READING:
            s.message = ""
        if number not in asked:
            self.show(number)  # keys were pressed while this was read
        else:
            s.wanted = None
            if moments:
                s.show_slice(number)
            else:
                s.message = "those slices are held no longer"
        self.draw()

    def seconds(self, step: str) -> int:
        """A step of time in slices."""
        return max(1, round(STEPS[step] / (self.state.header.interval or 0.4))) if self.state.header else 1

    def do_back(self) -> None:
        self.go(-1)

    def do_forward(self) -> None:
        self.go(1)

    def do_far_back(self) -> None:
        self.go(-self.seconds("far"))

    def do_far_forward(self) -> None:
        self.go(self.seconds("far"))

    def do_minute_back(self) -> None:
        self.go(-self.seconds("minute"))

    def do_minute_forward(self) -> None:
        self.go(self.seconds("minute"))

    # -- marks ------------------------------------------------------------------------------------------------------

    def do_mark(self) -> None:
        s = self.state
        if s.moment is None:
            return
        s.history.marks ^= {s.moment.number}
        what = "marked" if s.moment.number in s.history.marks else "no longer marked"
        s.message = f"slice {s.moment.number} ({units.clock(s.moment.time)}) is {what}"

    def do_to_mark(self) -> None:
        """To the mark before this slice; from the first one to the last one."""
        s = self.state
        if s.moment is None:
            return
        marks = sorted(mark for mark in s.history.marks if mark >= self.oldest())
        before = [mark for mark in marks if mark < s.moment.number] or marks
        if before:
            self.go(before[-1] - s.moment.number)
        else:
            s.message = "nothing is marked (m marks the slice on show)"

    def do_save(self) -> None:
        """From the first mark to the last; from a single mark to the slice on show; everything where nothing is marked."""
        s = self.state
        marks = sorted(s.history.marks)
        if not marks:
            self.act("save", None, None)
            return
        other = marks[-1] if len(marks) > 1 else s.moment.number
        self.act("save", min(marks[0], other), max(marks[0], other))


def time_line(state: State, width: int) -> Line:
    """While the screen is held: where in the look-back it stands, with the marks."""
    moment, newest = state.moment, state.newest
    first, last = state.reach or (state.history.ring[0].number, newest.number)
    span = max(last - first, 1)
    seconds = moment.header.interval or 0.4
    left = f"-{units.duration((newest.number - first) * seconds)} "
    right = " now  , . { } ( ) move  m mark  w save  l live"
    cells = max(width - len(left) - len(right), 8)
    bar = ["─"] * cells

    def place(number: int) -> int:
        return max(0, min(cells - 1, round((number - first) * (cells - 1) / span)))

    for mark in state.history.marks:
        bar[place(mark)] = "*"
    at = place(moment.number)
    return [
        (left, ""),
        ("".join(bar[:at]), "quiet"),
        ("█" if bar[at] == "─" else "*", "mark"),
        ("".join(bar[at + 1 :]), "quiet"),
        (right, "quiet"),
    ]
