"""The help page, made from the tables of keys and columns so that it can leave nothing out."""

from __future__ import annotations

from pmutop.tui.columns import COLUMNS
from pmutop.tui.keys import KEYS, VIM_KEYS
from pmutop.tui.lines import Line
from pmutop.tui.state import State
from pmutop.tui.welcome import wrapped


def help(state: State, width: int) -> list[Line]:
    lines: list[Line] = [[("Keys", "strong"), ("  (as in htop where htop has them)", "quiet")]]
    cells = [(f" {key.shown:<9}", key.help) for key in KEYS]
    two = width >= 110
    half = (len(cells) + 1) // 2 if two else len(cells)
    for place in range(half):
        line: Line = []
        for shown, text in cells[place::half][:2]:
            room = width // 2 - 12 if two else width - 11
            line += [(shown, "number"), (text[:room].ljust(room) if two else text, "")]
        lines.append(line)
    lines += [[], [("Columns", "strong")]]
    for column in COLUMNS:
        lines += wrapped(f" {column.name:<13}", column.help, width)
    lines += [[], [("Labels", "strong")]]
    for text in (
        "P_... is a pathology that the model was trained to know; the number is how sure it is of it in this slice.",
        "N_... is the healthy twin of one; 'unknown': the model abstains (too little counted, or out of its range).",
        "No label at all: nothing may be said (it was idle, or what the model needs is not counted).",
        "'-' stands where nothing was counted; it is never a 0.",
        "A label shows once two of the last three slices agree; the log keeps each slice as judged.",
    ):
        lines += wrapped(" ", text, width)
    vim = ", ".join(f"{key} {action}" for key, action in VIM_KEYS.items())
    lines += [[], *wrapped(" With vim keys on: ", vim, width, "quiet")]
    return lines
