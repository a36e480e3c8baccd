"""The pages that open over or under the table: each is a function from the state and a width to lines."""

from __future__ import annotations

from collections.abc import Callable

from pmutop.tui.blame import blame
from pmutop.tui.cores import cores
from pmutop.tui.details import details
from pmutop.tui.help import help_page
from pmutop.tui.lines import Line
from pmutop.tui.state import State
from pmutop.tui.timeline import timeline
from pmutop.tui.welcome import welcome

#: Name -> (title, its lines, whether it may share the screen with the table)
PAGES: dict[str, tuple[str, Callable[[State, int], list[Line]], bool]] = {
    "details": ("Details", details, True),
    "blame": ("Who hurts whom", blame, True),
    "cores": ("Every CPU by socket, node and shared cache", cores, True),
    "timeline": ("The last minute of every CPU", timeline, True),
    "help": ("Help", help_page, False),
    "welcome": ("What can be seen here", welcome, False),
}
