"""The first frame, before any slice: which labels exist on this machine, which cannot, and what to type for more."""

from __future__ import annotations

from pmutop import units
from pmutop.tui.headline import TIER_WORDS, tier_of
from pmutop.tui.lines import Line
from pmutop.tui.state import State


def welcome(state: State, width: int) -> list[Line]:
    lines: list[Line] = []
    header = state.header
    if header is not None:
        tier = tier_of(header)
        lines.append(
            [
                ("This machine: ", "strong"),
                (f"tier {tier}", "warn" if tier != "hardware" else "good"),
                (f", {TIER_WORDS[tier]}", ""),
            ]
        )
        lines.append([(f"Read by: {header.source}, {units.clean_text(header.why)}", "")])
        lines.append([])
    for note in state.notes:
        lines += note_lines(note, width)
    if header is not None and header.absent:
        lines += [[], [("Events that cannot be counted here", "strong")]]
        for name, why in header.absent.items():
            lines += wrapped(f"  {units.clean_text(name)}: ", units.clean_text(why), width)
    lines += [
        [],
        [("F1 or ? lists every key, Enter explains a process, i brings this page back, q leaves.", "quiet")],
    ]
    return lines


def note_lines(note: str, width: int) -> list[Line]:
    """A note: '# title', '$ command to type', 'name  its text' in two columns, or text, wrapped."""
    text = units.clean_text(note)
    if text.startswith("# "):
        return [[], [(text[2:], "strong")]]
    if text.startswith("$ "):
        return [[("    ", ""), (text[2:], "number")]]
    name, gap, rest = text.partition("  ")
    return wrapped(f"{name:<17}", rest.strip(), width) if gap else wrapped("", text, width)


def wrapped(first: str, text: str, width: int, style: str = "") -> list[Line]:
    """`text` broken between words into lines of at most `width` cells, `first` before the first, blanks before the others."""
    indent = units.width(first) if units.width(first) < width // 2 else 4
    lines: list[Line] = []
    line = first
    used = units.width(first)
    empty = True
    for word in text.split():
        cells = units.width(word)
        if not empty and used + 1 + cells > width:
            lines.append([(line, style)])
            line, used, empty = " " * indent, indent, True
        if not empty:
            line, used = line + " ", used + 1
        if used + cells > width:
            word = units.fit(word, max(width - used, 1))
            cells = units.width(word)
        line, used, empty = line + word, used + cells, False
    lines.append([(line, style)])
    return lines
