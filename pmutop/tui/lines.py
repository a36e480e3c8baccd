"""Lines of the screen as plain data, and their way to a terminal. Knows nothing of Textual: the first frame is drawn before
it is loaded.

A view is a function that returns lines; a line is a list of spans (text, style name); the texts are clean (units.clean_text)
and of known width.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

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


#: SGR parameters (ECMA-48, 8.3.117) of the words used above; `on` before a colour means its background.
ATTRIBUTES = {"bold": 1, "dim": 2, "underline": 4, "reverse": 7}
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def has_colours() -> bool:
    """May colours be sent? (NO_COLOR: https://no-color.org)"""
    return not os.environ.get("NO_COLOR")


def pens(colours: bool) -> dict[str, tuple[str, str]]:
    """Style name -> the escape sequences that switch it on and off; without colours none is ever named."""
    return {name: pen(pair[0 if colours else 1]) for name, pair in STYLES.items()}


def pen(words: str) -> tuple[str, str]:
    codes, ground = [], 30
    for word in words.split():
        if word == "on":
            ground = 40
        else:
            codes.append(ATTRIBUTES[word] if word in ATTRIBUTES else ground + COLOURS.index(word))
    return (f"\x1b[{';'.join(map(str, codes))}m", "\x1b[0m") if codes else ("", "")


def fitted(line: Line, width: int, ascii_only: bool) -> Line:
    """`line` cut or filled to exactly `width` cells, in ASCII if that is all the terminal has."""
    spans: Line = []
    used = 0
    for text, style in line:
        cells = units.width(text)
        if used + cells > width:
            text = units.fit(units.cut(text, width - used), width - used)
            cells = width - used
        if cells:
            spans.append((units.as_ascii(text) if ascii_only else text, style))
        used += cells
    if used < width:
        spans.append((" " * (width - used), ""))
    return spans


def escaped(line: Line, first: int, last: int, pens: Mapping[str, tuple[str, str]]) -> str:
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
            on, off = pens[style]
            out.append(f"{on}{text}{off}")
        at += cells
    return "".join(out)
