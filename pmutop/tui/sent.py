"""As few bytes as may be: what to send to a terminal so that it shows other lines than it does.

Rows that moved are moved by the terminal itself (ECMA-48 IL and DL within DECSTBM margins, which every terminal since the
VT102 has); of the lines that differ after that only the cells that differ are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq

from pmutop import units
from pmutop.tui.lines import Line

Pens = dict[str, tuple[str, str]]  # style -> what switches it on, and off
Cells = tuple[list[str], list[str]]  # characters and their styles; the second cell of a wide character is ''

GAP = 7  # equal cells that cost less than moving the cursor over them
FEWEST = 4  # changed lines from which it pays to look for rows that moved
KEY = 7  # cells at the start of a line that tell a row: a PID


def changes(old: list[Line], new: list[Line], width: int, pens: Pens) -> str:
    """The escape sequences that turn `old` into `new`, fitted lines of `width` cells each."""
    changed = [y for y, (was, now) in enumerate(zip(old, new)) if was != now]
    if len(changed) >= FEWEST:
        first, last = changed[0], changed[-1] + 1
        moves, moved = shifted(old[first:last], new[first:last], width)
        if moves:
            steps = "".join(f"\x1b[{first + y + 1}H\x1b[{count}{what}" for y, count, what in moves)
            after = [*old[:first], *moved, *old[last:]]
            still = [y for y in range(first, last) if after[y] != new[y]]
            return f"\x1b[{first + 1};{last}r{steps}\x1b[r" + lines(after, new, still, pens)
    return lines(old, new, changed, pens)


def shifted(old: list[Line], new: list[Line], width: int) -> tuple[list[tuple[int, int, str]], list[Line]]:
    """Deletions (M) from the bottom up, then insertions (L) from the top down, that bring rows to their new places; and
    what the terminal shows then. As many lines go as come, so that none is pushed out of the margins. No moves where they
    bring fewer rows to their places than they are themselves."""
    from difflib import SequenceMatcher  # not needed for the first frame

    blank: Line = [(" " * width, "")]
    was, now = [key(line) for line in old], [key(line) for line in new]
    steps = SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
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
    brought = sum(end - start for what, start, end, to, _ in steps if what == "equal" and start != to)
    return (moves, shown) if brought > len(moves) else ([], old)


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
    left, old, new = differing(old, new)
    was, now = cells(old), cells(new)
    characters, styles = now
    out: list[str] = []
    style = ""
    for first, last in runs(was, now):
        if style:
            out.append(pens[style][1])
            style = ""
        out.append(f"\x1b[{left + first + 1}G" if out else f"\x1b[{y + 1};{left + first + 1}H")
        while first < last:
            kind, end = styles[first], first + 1
            while end < last and styles[end] == kind:
                end += 1
            if kind != style:
                on, off = pens[kind][0], pens[style][1]
                out.append(f"\x1b[0;{on[2:]}" if on and off else on or off)
                style = kind
            out.append("".join(characters[first:end]))
            first = end
    if style:
        out.append(pens[style][1])
    return "".join(out)


def differing(old: Line, new: Line) -> tuple[int, Line, Line]:
    """Both lines without the spans that they begin and end with in common, and the cell at which the rest begins."""
    first = 0
    for was, now in zip(old, new):
        if was != now:
            break
        first += 1
    last = 0
    for was, now in zip(
        old[: first - 1 : -1] if first else old[::-1], new[: first - 1 : -1] if first else new[::-1]
    ):
        if was != now:
            break
        last += 1
    left = sum(units.width(text) for text, _ in new[:first])
    return left, old[first : len(old) - last], new[first : len(new) - last]


def runs(was: Cells, now: Cells) -> list[tuple[int, int]]:
    """Where two lines differ, [first, last): runs with less than GAP equal cells between are one; no wide character is cut."""
    (before, looked), (after, looks) = was, now
    found: list[list[int]] = []
    for x, same in enumerate(map(eq, zip(before, looked), zip(after, looks))):
        if same:
            continue
        if found and x - found[-1][1] < GAP:
            found[-1][1] = x + 1
        else:
            found.append([x, x + 1])
    for run in found:
        while run[0] and not (after[run[0]] and before[run[0]]):
            run[0] -= 1
        while run[1] < len(after) and not (after[run[1]] and before[run[1]]):
            run[1] += 1
    return [(first, last) for first, last in found]


def cells(line: Line) -> Cells:
    characters: list[str] = []
    styles: list[str] = []
    for text, style in line:
        wide = units.width(text)
        styles += [style] * wide
        if wide == len(text):
            characters += text
        else:
            for character in text:
                characters += (character, "") if units.width(character) == 2 else (character,)
    return characters, styles
