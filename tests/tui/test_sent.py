"""What is sent for a change leaves on a terminal what sending the whole picture leaves, in fewer bytes."""

import random

import pyte
import pytest
from moments import HOSTILE

from pmutop import units
from pmutop.tui import sent

WIDTH, HEIGHT = 60, 24
PENS = {
    "": ("", ""),
    "bad": ("\x1b[1;31m", "\x1b[0m"),
    "quiet": ("\x1b[2m", "\x1b[0m"),
    "head": ("\x1b[30;42m", "\x1b[0m"),
}
BLANK = [[(" " * WIDTH, "")]] * HEIGHT


def row(pid, value, name):
    style = "bad" if value > 50 else "quiet"
    text = units.fit(units.clean_text(name), WIDTH - 12)
    return [(f"{pid:>5} ", ""), (f"{value:>5} ", style), (text, "" if value % 2 else "quiet")]


def picture(rows, clock):
    lines = [[(f"slice {clock}".ljust(WIDTH), "head")], *(row(*one) for one in rows)]
    return (lines + BLANK)[:HEIGHT]


class Shown:
    """A terminal that is sent changes."""

    def __init__(self):
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.stream = pyte.Stream(self.screen)
        self.lines, self.bytes = BLANK, 0

    def to(self, lines):
        data = sent.changes(self.lines, lines, WIDTH, PENS)
        self.bytes += len(data)
        self.stream.feed(data)
        self.lines = lines
        return data

    def cells(self):
        """Characters with their attributes; a blank's colour is not seen unless it has a background."""
        return [
            [
                (cell.data, cell.fg if cell.data.strip() else "", cell.bg, cell.bold)
                for x in range(WIDTH)
                for cell in [self.screen.buffer[y][x]]
            ]
            for y in range(HEIGHT)
        ]


@pytest.mark.parametrize("seed", range(20))
def test_what_was_changed_looks_like_what_is_sent_whole(seed):
    draw = random.Random(seed)
    names = ["redis-server", "postgres: checkpointer", *HOSTILE] if seed % 2 else ["redis-server", "nginx"]
    rows = [(100 + 7 * one, draw.randrange(100), draw.choice(names)) for one in range(30)]
    terminal = Shown()
    for clock in range(25):
        for _ in range(draw.randrange(6)):
            kind, at = draw.randrange(4), draw.randrange(len(rows))
            if kind == 0:
                rows.insert(draw.randrange(len(rows)), rows.pop(at))
            elif kind == 1:
                rows[at] = (rows[at][0], draw.randrange(100), rows[at][2])
            elif kind == 2 and len(rows) > 5:
                del rows[at]
            else:
                rows.insert(at, (draw.randrange(10_000, 99_999), draw.randrange(100), draw.choice(names)))
        terminal.to(picture(rows, clock))
        fresh = Shown()
        fresh.to(picture(rows, clock))
        assert terminal.cells() == fresh.cells(), (seed, clock)
        assert (terminal.screen.margins or (0, HEIGHT - 1)) == (0, HEIGHT - 1), (
            "the margins are the whole screen again"
        )


def test_a_row_that_moves_costs_a_row_and_not_all_between():
    rows = [(100 + one, one, f"process number {one} of many") for one in range(23)]
    terminal = Shown()
    terminal.to(picture(rows, 1))
    rows.insert(2, rows.pop(20))
    data = terminal.to(picture(rows, 1))
    assert len(data) < 150 and "\x1b[1M" in data and "\x1b[1L" in data


def test_only_the_cells_that_differ_are_sent():
    rows = [(100 + one, 51, "x" * 40) for one in range(3)]
    terminal = Shown()
    terminal.to(picture(rows, 1))
    assert terminal.to(picture(rows, 1)) == ""
    rows[1] = (101, 53, "x" * 39 + "y")
    data = terminal.to(picture(rows, 1))
    assert data.count("x") == 0 and "y" in data and len(data) < 60
