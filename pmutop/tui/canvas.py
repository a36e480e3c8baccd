"""The one widget: a screen that is a function of the state, of which only what differs is sent to the terminal.

The canvas compares each line with what the terminal already shows and sends what differs (see `sent`): 13 to 17 times
cheaper than Textual's DataTable at 2.5 frames a second.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from pmutop.tui.lines import STYLES, Line, fitted, pens
from pmutop.tui.sent import changes


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
        self.pens = pens(colours)
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
        lines = list(self.lines)
        for y in range(height):
            line = fresh[y] if y < len(fresh) else []
            if line != self.asked[y]:
                self.asked[y] = line
                lines[y] = fitted(line, width, self.ascii_only)
        data = changes(self.lines, lines, width, self.pens)
        self.lines = lines
        if data and self.send is not None:
            self.send(data)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The picture as strips; draws first if the size is new, so that the very first frame has its content."""
        width, height = self.size
        if (width, height) != self.drawn:
            fresh = self.draw(width, height)[:height]
            self.asked = fresh + [[] for _ in range(height - len(fresh))]
            self.lines = [fitted(line, width, self.ascii_only) for line in self.asked]
            self.drawn = (width, height)
        x, y, wide, high = crop
        strips = [
            Strip([Segment(text, self.styles_of[style]) for text, style in line], width)
            for line in self.lines[y : y + high]
        ]
        return strips if x == 0 and wide >= width else [strip.crop(x, x + wide) for strip in strips]

    def text(self) -> str:
        """What the screen says, line by line, without styles."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.lines)
