"""Every key: from this table come the bindings, the bar at the foot, the help page and the command palette.

The hands are htop's. A key is named as Textual names it; `shown` is how a person calls it.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    keys: tuple[str, ...]
    action: str  # PmutopApp.do_<action>
    shown: str
    foot: str  # word in the bar at the foot, '' where there is no room for it
    help: str


KEYS = (
    Key(("f1", "h", "question_mark"), "help", "F1 h ?", "Help", "this page"),
    Key(
        ("enter",),
        "details",
        "Enter",
        "Why?",
        "all about this process: label strip, evidence, importance, rates, advice",
    ),
    Key(("f2", "C"), "columns", "F2 C", "Setup", "choose columns; the choice is kept"),
    Key(
        ("f3", "slash"),
        "search",
        "F3 /",
        "Search",
        "jump to a name as you type it; F3 again for the next one",
    ),
    Key(
        ("f4", "backslash"),
        "filter",
        "F4 \\",
        "Filter",
        "show only rows whose command, user, label or PID matches",
    ),
    Key(("f5", "t"), "tree", "F5 t", "Tree", "processes under their parents"),
    Key(("c",), "group", "c", "", "rows under their cgroup (unit, container, pod), with sums"),
    Key(("plus",), "unfold", "+", "", "show the rows of this group"),
    Key(("minus",), "fold", "-", "", "fold this group"),
    Key(
        ("f6", "greater_than_sign", "less_than_sign"),
        "sort",
        "F6 < >",
        "Sort",
        "choose the column to sort by",
    ),
    Key(("f7", "left_square_bracket"), "nice_down", "F7 [", "", "higher priority (nice - 1)"),
    Key(("f8", "right_square_bracket"), "nice_up", "F8 ]", "", "lower priority (nice + 1)"),
    Key(("f9", "k"), "signal", "F9 k", "Kill", "send a signal to the tagged processes, or to this one"),
    Key(("f10", "q", "ctrl+c"), "quit", "F10 q", "Quit", "leave"),
    Key(("n",), "finding", "n", "", "jump to the worst finding, then to the next one"),
    Key(("b",), "blame", "b", "", "who hurts whom"),
    Key(
        ("f",),
        "functions",
        "f",
        "",
        "the functions behind each label of this process: samples it until its details close",
    ),
    Key(("T",), "sort_label", "T", "", "sort by trouble: pathologies first"),
    Key(("P",), "sort_cpu", "P", "", "sort by CPU %"),
    Key(("M",), "sort_memory", "M", "", "sort by memory"),
    Key(("N",), "sort_pid", "N", "", "sort by PID"),
    Key(("I",), "reverse", "I", "", "turn the order round"),
    Key(("u",), "user", "u", "", "show the processes of one user"),
    Key(("H",), "threads", "H", "", "show or hide threads"),
    Key(("K",), "kernel", "K", "", "show or hide kernel threads (one that uses a CPU always shows)"),
    Key(("F",), "follow", "F", "", "keep this process where it is on the screen"),
    Key(("space",), "tag", "Space", "", "tag this process; U takes all tags off"),
    Key(("U",), "untag", "U", "", "take all tags off"),
    Key(("a",), "affinity", "a", "", "choose the CPUs this process may run on"),
    Key(("S",), "separate", "S", "", "move the one who slows this process to another CPU, when confirmed"),
    Key(("z", "Z"), "pause", "Z", "", "hold the screen; sampling goes on"),
    Key(("comma",), "back", ",", "", "one slice back in time (the whole screen goes back)"),
    Key(("full_stop",), "forward", ".", "", "one slice forward"),
    Key(("left_curly_bracket",), "far_back", "{", "", "ten seconds back"),
    Key(("right_curly_bracket",), "far_forward", "}", "", "ten seconds forward"),
    Key(("left_parenthesis",), "minute_back", "(", "", "a minute back, up to ten"),
    Key(("right_parenthesis",), "minute_forward", ")", "", "a minute forward"),
    Key(("m",), "mark", "m", "", "mark this slice, or take its mark off"),
    Key(("apostrophe",), "to_mark", "'", "", "to the mark before this slice"),
    Key(("l",), "live", "l", "", "back to the present"),
    Key(("o",), "cores", "o", "", "every CPU as a heat map, by socket, NUMA node and shared cache"),
    Key(("y",), "timeline", "y", "", "the last minute of every CPU, by process"),
    Key(("i",), "welcome", "i", "", "which labels exist here, which cannot, and what to type for more"),
    Key(("w", "W"), "save", "w W", "", "save the look-back as a recording: from mark to mark, or all of it"),
    Key(("up",), "up", "Up", "", "one row up"),
    Key(("down",), "down", "Down", "", "one row down"),
    Key(("pageup",), "page_up", "PgUp", "", "one page up"),
    Key(("pagedown",), "page_down", "PgDn", "", "one page down"),
    Key(("home",), "top", "Home", "", "first row; from there the rows run under the cursor"),
    Key(("end",), "bottom", "End", "", "last row"),
    Key(("left",), "left", "Left", "", "scroll the command back"),
    Key(("right",), "right", "Right", "", "scroll the command to its end"),
    Key(("tab",), "switch", "Tab", "", "arrows move the page instead of the table, and back"),
    Key(("colon", "ctrl+p"), "palette", ": Ctrl-P", "", "every command by name"),
    Key(("ctrl+l",), "repaint", "Ctrl-L", "", "paint the screen anew"),
    Key(("escape",), "escape", "Esc", "", "close what is open; take the filter off"),
)

#: With `vim = true` in the configuration: these come first; the letters' other meanings move to where htop users look last.
VIM_KEYS = {
    "j": "down",
    "k": "up",
    "g": "top",
    "G": "bottom",
    "ctrl+d": "page_down",
    "ctrl+u": "page_up",
    "x": "signal",
}


def bindings(vim: bool = False) -> dict[str, str]:
    """Key -> action."""
    table = {key: row.action for row in KEYS for key in row.keys}
    return table | VIM_KEYS if vim else table
