"""As few bytes as may be: what to send to a terminal so that it shows other lines than it does.

Rows that moved are moved by the terminal itself (ECMA-48 IL and DL within DECSTBM margins, which every terminal since the
VT102 has); of the lines that differ after that only the cells that differ are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from pmutop import units
from pmutop.tui.lines import Line

Pens = dict[str, tuple[str, str]]  # style -> what switches it on, and off
Cells = list[tuple[str, str]]  # (character, style); the second cell of a wide character is ('', style)

GAP = 7  # equal cells that cost less than moving the cursor over them
FEWEST = 4  # changed lines from which it pays to look for rows that moved
KEY = 7  # cells at the start of a line that tell a row: a PID


def changes(old: list[Line], new: list[Line], width: int, pens: Pens) -> str:
    """The escape sequences that turn `old` into `new`, fitted lines of `width` cells each."""
    changed = [y for y, (was, now) in enumerate(zip(old, new)) if was != now]
    plain = lines(old, new, changed, pens)
    if len(changed) < FEWEST:
        return plain
    first, last = changed[0], changed[-1] + 1
    moves, moved = shifted(old[first:last], new[first:last], width)
    if not moves:
        return plain
    moves = "".join(f"\x1b[{first + y + 1}H\x1b[{count}{what}" for y, count, what in moves)
    after = [*old[:first], *moved, *old[last:]]
    by_moving = f"\x1b[{first + 1};{last}r{moves}\x1b[r" + lines(after, new, range(first, last), pens)
    return min(plain, by_moving, key=len)


def shifted(old: list[Line], new: list[Line], width: int) -> tuple[list[tuple[int, int, str]], list[Line]]:
    """Deletions (M) from the bottom up, then insertions (L) from the top down, that bring rows to their new places; and
    what the terminal shows then. As many lines go as come, so that none is pushed out of the margins."""
    from difflib import SequenceMatcher  # not needed for the first frame

    blank: Line = [(" " * width, "")]
    was, now = [key(line) for line in old], [key(line) for line in new]
    steps = [
        step for step in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if step[0] != "equal"
    ]
    moves = []
    shown = list(old)
    for _, start, end, to, until in reversed(steps):
        count = (end - start) - (until - to)
        if count > 0:
            moves.append((end - count, count, "M"))
            shown[end - count : end] = []
            shown += [blank] * count
    for _, start, end, to, until in steps:
        count = (until - to) - (end - start)
        if count > 0:
            moves.append((until - count, count, "L"))
            shown[until - count : until - count] = [blank] * count
            del shown[len(old) :]
    return moves, shown


def key(line: Line) -> str:
    text = ""
    for part, _ in line:
        text += part
        if len(text) >= KEY:
            break
    return text[:KEY].strip().partition(" ")[0]


def lines(old: Sequence[Line], new: list[Line], places: Sequence[int], pens: Pens) -> str:
    return "".join(line(y, old[y], new[y], pens) for y in places)


def line(y: int, old: Line, new: Line, pens: Pens) -> str:
    """The cells of one line that differ, with the cursor moved before each run of them."""
    was, now = cells(old), cells(new)
    out: list[str] = []
    style = ""
    for first, last in runs(was, now):
        if style:
            out.append(pens[style][1])
            style = ""
        out.append(f"\x1b[{y + 1};{first + 1}H" if not out else f"\x1b[{first + 1}G")
        for character, kind in now[first:last]:
            if kind != style:
                on, off = pens[kind][0], pens[style][1]
                out.append(f"\x1b[0;{on[2:]}" if on and off else on or off)
                style = kind
            out.append(character)
    if style:
        out.append(pens[style][1])
    return "".join(out)


def runs(was: Cells, now: Cells) -> list[tuple[int, int]]:
    """Where two lines differ, [first, last): runs with less than GAP equal cells between are one; no wide character is cut."""
    found: list[list[int]] = []
    for x, (before, after) in enumerate(zip(was, now)):
        if before == after:
            continue
        if found and x - found[-1][1] < GAP:
            found[-1][1] = x + 1
        else:
            found.append([x, x + 1])
    for run in found:
        while run[0] and not (now[run[0]][0] and was[run[0]][0]):
            run[0] -= 1
        while run[1] < len(now) and not (now[run[1]][0] and was[run[1]][0]):
            run[1] += 1
    return [(first, last) for first, last in found]


def cells(line: Line) -> Cells:
    found: Cells = []
    for text, style in line:
        if text.isascii():
            found += [(character, style) for character in text]
            continue
        for character in text:
            found.append((character, style))
            if units.width(character) == 2:
                found.append(("", style))
    return found
