"""Numbers and foreign strings as short text of known width: used by every view and by the log.

Numbers never grow wider than their docstring says, so that columns stay columns. Strings that come from other processes
(names, command lines, cgroups, users) are hostile until `clean_text` has seen them.
"""

from __future__ import annotations

import re
import time
import unicodedata
from functools import lru_cache
from math import isfinite

NOTHING = "-"  # what stands where nothing was counted: never a 0
HIDDEN = "·"  # what stands for a character that must not reach a terminal
ELLIPSIS = "…"

#: Unicode categories that a terminal obeys, joins, hides or draws at a width of its own choosing: control, format (bidi,
#: zero width, tags), surrogate, private, unassigned, marks that stack on their neighbour, line and paragraph separators.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "Mc", "Zl", "Zp"))
#: Letters by category that draw nothing: Hangul fillers and conjoining vowels, the braille blank, emoji skin tones.
_UNSAFE_RANGES = ((0x115F, 0x11FF), (0x3164, 0x3164), (0xFFA0, 0xFFA0), (0x2800, 0x2800), (0xD7B0, 0xD7FF), (0x1F3FB, 0x1F3FF)) + (
    # Yijing, Taixuanjing and counting rods: narrow before Unicode 16, wide since, so terminals disagree.
    (0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D356), (0x1D360, 0x1D376),
)  # fmt: skip
#: Matches where no character can be wide: Latin to Georgian, punctuation, arrows, box drawing and bars.
_NARROW = re.compile("[\0-\u10ff\u2010-\u2027\u2190-\u2319\u2500-\u25fc]*").fullmatch
_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float | None) -> str:
    """A count or a rate in at most 5 characters: 0, 7, 7.5, 999, 1.23k, 45.6M; '-' for None, NaN and infinities."""
    if value is None or not isfinite(value):
        return NOTHING
    sign, size = ("-", -value) if value < 0 else ("", value)
    for step, letter in _STEPS:
        if size >= step * 0.9995:
            return sign + _three_digits(size / step) + letter
    return sign + _three_digits(size)


def _three_digits(size: float) -> str:
    if size >= 99.95:
        return f"{min(size, 9999):.0f}"
    text = f"{size:.2f}" if size < 9.995 else f"{size:.1f}"
    return text.rstrip("0").rstrip(".")


def size(value: float | None) -> str:
    """Bytes with binary steps in at most 5 characters: 512, 1.5K, 45.6M."""
    if value is None or not isfinite(value):
        return NOTHING
    letters = iter(("", "K", "M", "G", "T", "P"))
    letter = next(letters)
    while value >= 999.5:
        value, letter = value / 1024, next(letters, "E")
    return (f"{value:.0f}" if value >= 99.95 or not letter else _three_digits(value)) + letter


def percent(value: float | None) -> str:
    """A percentage without its sign in at most 5 characters: 0.0, 7.3, 99.9, 100, 12800."""
    if value is None or not isfinite(value):
        return NOTHING
    return f"{value:.1f}" if value < 99.95 else f"{min(value, 99999):.0f}"


def ratio(value: float | None) -> str:
    """A ratio (IPC) in at most 4 characters: 0.85, 1.20, 12.3, 123."""
    if value is None or not isfinite(value):
        return NOTHING
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{min(value, 9999):.0f}"


def factor(value: float | None) -> str:
    """How many times slower, in at most 5 characters: x1.3, x12, x999."""
    if value is None or not isfinite(value):
        return ""
    return f"x{value:.1f}" if value < 9.95 else f"x{min(value, 9999):.0f}"


def share(value: float | None) -> str:
    """A share 0..1 as a whole percentage with its sign in at most 4 characters: 0%, 87%, 100%."""
    return NOTHING if value is None or not isfinite(value) else f"{min(max(value, 0), 1) * 100:.0f}%"


def duration(seconds: float | None) -> str:
    """A length of time in at most 6 characters: 12us, 400ms, 1.5s, 59.9s, 1:02, 12:02h, 3.2d."""
    if seconds is None or not isfinite(seconds):
        return NOTHING
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f}ms" if seconds >= 9.95e-3 else f"{seconds * 1e3:.1f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = int(seconds + 0.5)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    if whole < 86400:
        return f"{whole // 3600}:{whole % 3600 // 60:02}h"
    return f"{seconds / 86400:.1f}d" if seconds < 864000 else f"{min(whole // 86400, 99999)}d"


def clock(when: float | None) -> str:
    """The local wall clock of Unix seconds, 8 characters: 14:02:07."""
    return NOTHING if when is None or not isfinite(when) else time.strftime("%H:%M:%S", time.localtime(when))


@lru_cache(maxsize=4096)
def clean_text(text: str) -> str:
    """`text` with everything replaced that could steer a terminal, hide, or shift its neighbours.

    What is left has the width that `width` says, holds no newline, and survives UTF-8; each character that was replaced
    still shows, as '·', so that a hostile name looks hostile.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_clean_character, text))


@lru_cache(maxsize=4096)
def _clean_character(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    code = ord(character)
    if unicodedata.category(character) in _UNSAFE or any(
        first <= code <= last for first, last in _UNSAFE_RANGES
    ):
        return HIDDEN
    return character


def width(text: str) -> int:
    """How many terminal cells cleaned `text` takes: two for wide East Asian characters and emoji, one for others."""
    if text.isascii() or _NARROW(text):
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def fit(text: str, cells: int, right: bool = False) -> str:
    """Cleaned `text` in exactly `cells` cells: cut with an ellipsis, or filled with blanks (at the left if `right`)."""
    have = width(text)
    if have > cells:
        if cells <= 0:
            return ""
        text = cut(text, cells - 1) + ELLIPSIS
        have = width(text)
    blank = " " * (cells - have)
    return blank + text if right else text + blank


def cut(text: str, cells: int) -> str:
    """The longest start of cleaned `text` that fits into `cells` cells."""
    if text.isascii():
        return text[: max(cells, 0)]
    used = 0
    for position, character in enumerate(text):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > cells:
            return text[:position]
    return text


def as_ascii(text: str) -> str:
    """Cleaned `text` of the same width in ASCII only, for terminals and pipes that have nothing else."""
    if text.isascii():
        return text
    return "".join(
        c if c.isascii() else _ASCII.get(c) or "?" * (2 if unicodedata.east_asian_width(c) in "WF" else 1)
        for c in text
    )


#: The characters that the views draw with, and what stands for each where only ASCII may be sent.
_ASCII = {
    **dict(zip(" ▁▂▃▄▅▆▇█", " _.:-=+*#")),
    **dict(zip("▏▎▍▌▋▊▉", ".:-=+**")),
    **dict(zip("░▒▓─│┌┐└┘├┤┬┴┼", ".:%-|++++++++")),
    **dict(zip("·…→←↑↓▲▼▶◀●○×±≤≥≠µ", ".~><^v^v><*ox~<>!u")),
    "┼": "+",
}


def parse_size(text: str) -> int:
    """Bytes from '4096', '512K', '10M', '1.5G' (binary steps). Raises ValueError."""
    return int(
        _parsed(
            text.upper().removesuffix("B").removesuffix("I"),
            {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40},
        )
    )


def parse_duration(text: str) -> float:
    """Seconds from '90', '0.5s', '400ms', '5m', '1h', '7d'. Raises ValueError."""
    return _parsed(text.lower(), {"": 1, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400})


def _parsed(text: str, steps: dict[str, float]) -> float:
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)([A-Za-z]*)", text)
    if not found or found[2] not in steps:
        raise ValueError(text)
    return float(found[1]) * steps[found[2]]
