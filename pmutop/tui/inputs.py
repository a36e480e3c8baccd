"""Choosing and typing: the menus at the left, the line at the foot, and what a key means while one of them is open."""

from __future__ import annotations

import time

from pmutop import units
from pmutop.tui.columns import COLUMNS
from pmutop.tui.keys import KEYS
from pmutop.tui.state import Menu, Prompt, State


class Inputs:
    """Mixed into the app, beside Deeds."""

    state: State

    def do_sort(self) -> None:
        names = [column.name for column in COLUMNS]
        self.state.menu = Menu(
            "Sort by", [(name, name) for name in names], self.sort_by, names.index(self.state.sort)
        )

    def do_user(self) -> None:
        users = sorted({task.user for task in self.state.moment.tasks}) if self.state.moment else []
        choices = [("all users", "")] + [(units.clean_text(user), user) for user in users]
        self.state.menu = Menu("User", choices, lambda user: setattr(self.state, "user", user))

    def do_columns(self) -> None:
        s = self.state

        def toggle(name: str) -> None:
            if name in s.columns and name != "COMMAND":
                s.columns.remove(name)
            elif name not in s.columns:
                # A column that comes back takes its place of the table again.
                s.columns = [
                    column.name for column in COLUMNS if column.name in s.columns or column.name == name
                ]
            s.menu.choices = choices()
            self.kept()

        def choices() -> list[tuple[str, object]]:
            return [
                (f"[{'x' if c.name in s.columns else ' '}] {c.name:<12} {c.help}", c.name) for c in COLUMNS
            ]

        s.menu = Menu("Columns", choices(), toggle, stays=True)

    def do_search(self) -> None:
        s = self.state
        start = s.cursor

        def jump(text: str, first: int = start) -> None:
            for offset in range(len(s.order)):
                place = (first + offset) % len(s.order)
                if text and s.matches(s.row(place), text):
                    s.move(place, time.monotonic())
                    s.message = ""
                    return
            s.message = f"no match for '{text}'" if text else ""

        s.prompt = Prompt("Search", lambda text: None, jump)

    def do_filter(self) -> None:
        s = self.state
        before = s.filter

        def change(text: str) -> None:
            s.filter = text

        s.prompt = Prompt("Filter", change, change, lambda: change(before), text=s.filter)

    def do_palette(self) -> None:
        rows = [(f"{key.shown:<9} {key.help}", key.action) for key in KEYS if key.action != "palette"]
        self.state.menu = Menu("Command", rows, lambda action: getattr(self, f"do_{action}")())

    def type_prompt(self, key: str, character: str | None) -> None:
        """One key for the line at the foot."""
        s = self.state
        prompt = s.prompt
        if key in ("enter", "ctrl+j"):
            s.prompt = None
            prompt.done(prompt.text)
            return
        if key in ("escape", "ctrl+c"):
            s.prompt = None
            if prompt.cancelled:
                prompt.cancelled()
            return
        if key == "f3" and prompt.title == "Search" and prompt.text:
            s.prompt.changed(prompt.text, s.cursor + 1)
            return
        if key in ("backspace", "ctrl+h"):
            prompt.text = prompt.text[:-1]
        elif key == "ctrl+u":
            prompt.text = ""
        elif character:
            prompt.text += units.clean_text(character)
        else:
            return
        if prompt.changed:
            prompt.changed(prompt.text)

    def type_menu(self, key: str, character: str | None) -> None:
        """One key for the open menu."""
        s = self.state
        menu = s.menu
        choices = menu.matching()
        moves = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10, "home": -(1 << 20), "end": 1 << 20}
        if key in moves:
            menu.cursor = max(0, min(menu.cursor + moves[key], len(choices) - 1))
        elif key in ("escape", "ctrl+c", "f10"):
            s.menu = None
        elif key in ("enter", "ctrl+j") or (key == "space" and menu.stays):
            if not menu.stays:
                s.menu = None
            if choices:
                menu.done(choices[min(menu.cursor, len(choices) - 1)][1])
        elif key in ("backspace", "ctrl+h"):
            menu.typed = menu.typed[:-1]
            menu.cursor = 0
        elif character and character.isprintable():
            menu.typed += character
            menu.cursor = 0
