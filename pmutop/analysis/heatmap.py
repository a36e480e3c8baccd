"""The correlation matrix with the events of a group side by side, as text for a terminal and as SVG.

Source: "Black-boxing PMUs" (2016), figures 4.6 to 4.11: blue where events rise together, white where they have nothing to do
with one another, red where one falls while the other rises; each group has a grey box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import numpy as np

BLUE, RED, WHITE = (33, 102, 172), (178, 24, 43), (255, 255, 255)
#: One character per cell where there is no colour: r from 0 to 1; a negative r is "-", weak ones are blank.
SHADES = " .:oO#"


def reordered(r: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """r (events, events) in the order of `groups`, the largest group in the top left corner (figure 4.7)."""
    order = [member for group in groups for member in group]
    return r[np.ix_(order, order)]


def shrunk(r: np.ndarray, most: int) -> np.ndarray:
    """r averaged over square blocks so that no side is longer than `most`."""
    size = len(r)
    if size <= most:
        return r
    edges = np.linspace(0, size, most + 1).astype(int)[:-1]
    sums = np.add.reduceat(np.add.reduceat(r, edges, axis=0), edges, axis=1)
    lengths = np.diff([*edges, size])
    return sums / np.outer(lengths, lengths)


def colour_of(value: float) -> tuple[int, int, int]:
    """Red, green and blue (0-255) of one r."""
    end, share = (BLUE if value >= 0 else RED), min(abs(value), 1.0)
    return tuple(round(white + (full - white) * share) for white, full in zip(WHITE, end, strict=True))


def text_lines(matrix: np.ndarray, colour: bool) -> Iterator[str]:
    """The lines of a heat map of `matrix` (n, n).

    In colour two rows share a line (an upper half block: foreground above, background below); without, one character
    (SHADES) per cell, doubled so that it is about square.
    """
    if not colour:
        for row in matrix:
            yield "".join(2 * shade_of(value) for value in row).rstrip()
        return
    for top in range(0, len(matrix), 2):
        cells = []
        for column in range(matrix.shape[1]):
            fore = "\x1b[38;2;{};{};{}m".format(*colour_of(matrix[top, column]))
            below = top + 1 < len(matrix)
            back = "\x1b[48;2;{};{};{}m".format(*colour_of(matrix[top + 1, column])) if below else "\x1b[49m"
            cells.append(f"{fore}{back}▀")
        yield "".join(cells) + "\x1b[0m"


def shade_of(value: float) -> str:
    """The character of one r where there is no colour."""
    if value <= -0.1:
        return "-"
    return SHADES[min(int(max(value, 0.0) * len(SHADES)), len(SHADES) - 1)]


def svg(r: np.ndarray, groups: Sequence[Sequence[int]], names: Sequence[str], cell: int = 6) -> Iterator[str]:
    """An SVG document, piece by piece: a square of `cell` pixels per pair of events, a box per group; `names[event]` of both
    and r appear where the pointer rests."""
    order = [member for group in groups for member in group]
    matrix, side = r[np.ix_(order, order)], len(order) * cell
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}" '
        f'shape-rendering="crispEdges">\n<rect width="{side}" height="{side}" fill="white"/>\n'
    )
    for row, one in enumerate(order):
        for column, other in enumerate(order):
            fill = "#{:02x}{:02x}{:02x}".format(*colour_of(matrix[row, column]))
            if fill != "#ffffff":
                yield (
                    f'<rect x="{column * cell}" y="{row * cell}" width="{cell}" height="{cell}" fill="{fill}">'
                    f"<title>{escape(names[one])} / {escape(names[other])}: {matrix[row, column]:.2f}</title></rect>\n"
                )
    start = 0
    for group in groups:
        length = len(group) * cell
        yield f'<rect x="{start}" y="{start}" width="{length}" height="{length}" fill="none" stroke="grey"/>\n'
        start += length
    yield "</svg>\n"
