"""The one widget: a screen that is a function of the state, of which only what differs is sent to the terminal.

A view is a function that returns lines; a line is a list of spans (text, style name); the texts are clean (units.clean_text)
and of known width. The canvas compares each line with what the terminal already shows and repaints the span between the
first and the last difference: 13 to 17 times cheaper than Textual's DataTable at 2.5 frames a second.
"""

from __future__ import annotations

from collections.abc import Callable
from os.path import commonprefix

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from pmutop import units

Span = tuple[str, str]
Line = list[Span]

#: Style name -> (with colours, without). Only the 16 colours that the user's own terminal theme defines; never bright
#: black, which several themes make invisible; without colours every distinction is an attribute or is said in words.
STYLES = {
    "": ("", ""),
    "quiet": ("dim", "dim"),
    "strong": ("bold", "bold"),
    "title": ("bold cyan", "bold"),
    "head": ("black on green", "reverse"),
    "sorted": ("bold black on cyan", "bold reverse"),
    "bad": ("bold red", "bold"),
    "warn": ("yellow", "bold"),
    "good": ("green", ""),
    "number": ("cyan", ""),
    "mark": ("bold yellow", "underline"),
    "cursor": ("black on cyan", "reverse"),
    "tagged": ("bold yellow", "underline"),
    "key": ("", ""),
    "keyname": ("black on cyan", "reverse"),
    "message": ("bold yellow", "bold"),
    "alert": ("white on red", "bold reverse"),
    "c0": ("cyan", ""),
    "c1": ("green", ""),
    "c2": ("yellow", ""),
    "c3": ("magenta", ""),
    "c4": ("blue", ""),
    "c5": ("red", ""),
}


class Canvas(Widget):
    """Shows what `draw(width, height)` returns; `update` draws again.

    Whole pictures (start, resize, repaint) go through Textual's Line API. What changes in between is written to `send`
    as it is: Textual would paint from the left edge and make a dozen objects a line, at three times the CPU.
    """

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; }"

    def __init__(self, draw: Callable[[int, int], list[Line]], colours: bool, ascii_only: bool) -> None:
        super().__init__()
        self.draw = draw
        self.send: Callable[[str], None] | None = None  # None: nobody looks (a test)
        self.ascii_only = ascii_only
        self.styles_of = {name: Style.parse(pair[0 if colours else 1]) for name, pair in STYLES.items()}
        self.pens = {name: pen(style) for name, style in self.styles_of.items()}
        self.asked: list[Line] = []  # as drawn
        self.lines: list[Line] = []  # the same, each exactly as wide as the screen
        self.drawn = (0, 0)

    def update(self) -> None:
        """Draw the state and send what differs from the terminal."""
        width, height = self.size
        if (width, height) != self.drawn:
            self.refresh()  # a new size: the whole picture, drawn in `render_lines`
            return
        fresh = self.draw(width, height)
        changes = []
        for y in range(height):
            line = fresh[y] if y < len(fresh) else []
            if line != self.asked[y]:
                self.asked[y] = line
                line = self.fitted(line, width)
                first, last = difference(self.lines[y], line)
                self.lines[y] = line
                if last > first:
                    changes.append(f"\x1b[{y + 1};{first + 1}H{self.escaped(line, first, last)}")
        if changes and self.send is not None:
            self.send("".join(changes))

    def render_lines(self, crop: Region) -> list[Strip]:
        """The picture as strips; draws first if the size is new, so that the very first frame has its content."""
        width, height = self.size
        if (width, height) != self.drawn:
            fresh = self.draw(width, height)[:height]
            self.asked = fresh + [[] for _ in range(height - len(fresh))]
            self.lines = [self.fitted(line, width) for line in self.asked]
            self.drawn = (width, height)
        x, y, wide, high = crop
        strips = [
            Strip([Segment(text, self.styles_of[style]) for text, style in line], width)
            for line in self.lines[y : y + high]
        ]
        return strips if x == 0 and wide >= width else [strip.crop(x, x + wide) for strip in strips]

    def fitted(self, line: Line, width: int) -> Line:
        """`line` cut or filled to exactly `width` cells, in ASCII if that is all the terminal has."""
        spans: Line = []
        used = 0
        for text, style in line:
            cells = units.width(text)
            if used + cells > width:
                text = units.fit(units.cut(text, width - used), width - used)
                cells = width - used
            if cells:
                spans.append((units.as_ascii(text) if self.ascii_only else text, style))
            used += cells
        if used < width:
            spans.append((" " * (width - used), ""))
        return spans

    def escaped(self, line: Line, first: int, last: int) -> str:
        """The cells from `first` up to `last` of a fitted line with their escape sequences."""
        out = []
        at = 0
        for text, style in line:
            cells = units.width(text)
            if at + cells > first and at < last:
                if at < first:
                    text = text[len(units.cut(text, first - at)) :]
                if at + cells > last:
                    text = units.cut(text, last - max(at, first))
                on, off = self.pens[style]
                out.append(f"{on}{text}{off}")
            at += cells
        return "".join(out)

    def text(self) -> str:
        """What the screen says, line by line, without styles."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.lines)


def pen(style: Style) -> tuple[str, str]:
    """The escape sequences that switch a style on and off."""
    on, _, off = style.render("|", color_system=ColorSystem.STANDARD).partition("|")
    return on, off


def difference(old: Line, new: Line) -> tuple[int, int]:
    """The first and one past the last cell in which two lines of one width differ."""
    first, same = _alike(old, new)
    if same == len(new) == len(old):
        return first, first
    after, _ = _alike(old[same:][::-1], new[same:][::-1], backwards=True)
    return first, max(sum(units.width(text) for text, _ in new) - after, first)


def _alike(old: Line, new: Line, backwards: bool = False) -> tuple[int, int]:
    """Cells at the start (or the end) that are the same in both, and how many whole spans."""
    cells = spans = 0
    for (before, was), (after, now) in zip(old, new):
        if before == after and was == now:
            cells += units.width(after)
            spans += 1
            continue
        if was == now:
            if backwards:
                before, after = before[::-1], after[::-1]
            length = len(commonprefix((before, after)))
            cells += units.width(after[:length])
        break
    return cells, spans
