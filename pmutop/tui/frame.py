"""The whole screen as lines: head, then table, page and menu as they are open, then the bar at the foot."""

from __future__ import annotations

from pmutop import units
from pmutop.tui.headline import headline
from pmutop.tui.keys import KEYS
from pmutop.tui.lines import Line
from pmutop.tui.pages import PAGES, lines_of
from pmutop.tui.state import Menu, State
from pmutop.tui.table import table

MENU = 60  # cells that a menu takes at most
SHARED = 34  # from this height on a page leaves the upper part to the table


def frame(state: State, width: int, height: int) -> list[Line]:
    top = headline(state, width, height)
    state.first_line = len(top) + 1
    room = max(height - len(top) - 1, 0)
    menu_width = 0
    if state.menu:
        texts = [state.menu.title + " " * 4, *(text for text, _ in state.menu.choices)]
        menu_width = max(min(max(map(units.width, texts)) + 3, width - 24, MENU), 18)
    body = middle(state, width - menu_width, room, height)
    if state.menu:
        left = menu(state.menu, menu_width, room)
        body = [left[y] + (body[y] if y < len(body) else []) for y in range(room)]
    body += [[] for _ in range(room - len(body))]
    return top + body[:room] + [foot(state, width)]


def middle(state: State, width: int, room: int, height: int) -> list[Line]:
    """Table, page, or both. The first page gives way to the table in two steps, so that it can be read."""
    name = state.page
    if not name and state.moment is None:
        return page("welcome", state, width, room)
    if not name and state.greeting:
        if not state.history.tracks:
            return page("welcome", state, width, room)
        name = "welcome"
    elif not name:
        return table(state, width, room)
    elif not shares(state, height):
        return page(name, state, width, room)
    upper = max(room * 2 // 5, 8)
    above = table(state, width, upper)
    above += [[] for _ in range(upper - len(above))]
    return above + page(name, state, width, room - upper)


def shares(state: State, height: int) -> bool:
    """Is there a table above the open page?"""
    return bool(state.page) and PAGES[state.page][1] and height >= SHARED and state.moment is not None


def page(name: str, state: State, width: int, room: int) -> list[Line]:
    """A title bar and as much of the page as fits, from `state.page_top` on."""
    title, _ = PAGES[name]
    lines = lines_of(name, state, width)
    fits = max(room - 1, 1)
    state.page_top = max(0, min(state.page_top, len(lines) - fits))
    last = min(state.page_top + fits, len(lines))
    where = f"  {state.page_top + 1}-{last} of {len(lines)}" if len(lines) > fits else ""
    closing = "  Esc closes" if state.page else "  any key closes, i brings it back" if state.moment else ""
    bar = units.fit(f" {title}{where}{closing}", width)
    return [[(bar, "sorted" if state.page_keys else "head")], *lines[state.page_top : last]]


def menu(menu: Menu, width: int, room: int) -> list[Line]:
    """A list with its cursor, scrolled to it."""
    choices = menu.matching()
    title = f" {menu.title}" + (f": {menu.typed}" if menu.typed else "")
    lines: list[Line] = [[(units.fit(title, width - 1), "head"), (" ", "")]]
    first = max(0, menu.cursor - max(room - 2, 0))
    for place in range(first, min(first + room - 1, len(choices))):
        style = "cursor" if place == menu.cursor else ""
        lines.append([(units.fit(f" {choices[place][0]}", width - 1), style), (" ", "")])
    lines += [[(" " * width, "")] for _ in range(room - len(lines))]
    return lines


def foot(state: State, width: int) -> Line:
    """The bar of function keys, or the line that is being typed."""
    if state.prompt is not None:
        text = f"{state.prompt.title}: {state.prompt.text}"
        return [
            (units.fit(units.clean_text(text), width - 1)[: width - 1].rstrip() + "_", "message"),
            ("  Enter: done  Esc: no", "quiet"),
        ]
    if state.menu is not None:
        return [
            ("Enter", "keyname"),
            (" choose  ", ""),
            ("Esc", "keyname"),
            (" close  ", ""),
            ("letters narrow the list", "quiet"),
        ]
    line: Line = []
    for key in KEYS:
        if key.foot:
            name = key.shown.split()[0]
            line += [(name, "key"), (units.fit(key.foot, 6), "keyname")]
    return line
