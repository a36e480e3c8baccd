"""The pages that open over or under the table: each is a function from the state and a width to lines.

A page is imported when it is opened first: the first frame waits for none but the one that it shows.
"""

from __future__ import annotations

from importlib import import_module

from pmutop.tui.lines import Line
from pmutop.tui.state import State

#: Name, which is that of its file and of the function in it -> (title, whether it may share the screen with the table)
PAGES: dict[str, tuple[str, bool]] = {
    "details": ("Details", True),
    "blame": ("Who hurts whom", True),
    "cores": ("Every CPU by socket, node and shared cache", True),
    "timeline": ("The last minute of every CPU", True),
    "help": ("Help", False),
    "welcome": ("What can be seen here", False),
}


def lines_of(name: str, state: State, width: int) -> list[Line]:
    return getattr(import_module(f"pmutop.tui.{name}"), name)(state, width)
