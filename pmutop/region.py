"""Mark regions of a Python program, so that each counts as a task of its own: `with region("solve"): ...`.

The counterpart of pmutop_region.h (in this folder), and of one format with it. Without PMUTOP_REGIONS in the environment a mark does
nothing. With it, each thread opens its own counter group for the events in PMUTOP_EVENTS (`environment` writes both) and
each region that ends adds a line to that file, a wide CSV: type (the name), path (the place) and a column per event. The
n-th region inside another gets that one's place and .n; a program that hands tasks to several threads gives the
place itself, as only it knows who created the task.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pmutop._perf import CountError, Group
from pmutop.events import Event

FILE, EVENTS = "PMUTOP_REGIONS", "PMUTOP_EVENTS"

own = (
    threading.local()
)  # group: this thread's Group or None; open: list of [place, number of children so far]
outermost = itertools.count()


def environment(path: str | os.PathLike, events: Iterable[Event]) -> dict[str, str]:
    """The variables that make a program's regions count `events` (at most 16) into the file at `path`.

    The names become columns, so they stand without commas. Raises ValueError for an event that needs more than a type
    and a code (a filter, a second configuration word).
    """
    words = []
    for event in events:
        if event.filter or event.config1 or event.config2 or event.type < 0:
            raise ValueError(f"{event.name} cannot be counted in a region")
        words.append(
            f"{event.name.replace(',', ';').replace('=', '~')}={event.type}:{event.config}{event.mode}"
        )
    return {FILE: os.fspath(path), EVENTS: " ".join(words)}


@contextmanager
def region(name: str, place: str | None = None) -> Iterator[None]:
    """Count what this thread does inside as one task of type `name` at `place` ("0.3.1"; None = by nesting)."""
    path = os.environ.get(FILE)
    if not path:
        yield
        return
    names, group = opened()
    nested = own.open
    if place is None:
        place = f"0.{next(outermost)}" if not nested else f"{nested[-1][0]}.{nested[-1][1]}"
        if nested:
            nested[-1][1] += 1
    nested.append([place, 0])
    before = group.read() if group else []
    try:
        yield
    finally:
        after = group.read() if group else []
        nested.pop()
        append(path, names, name, place, [cell(a, b) for a, b in zip(before, after)] or [""] * len(names))


def opened() -> tuple[list[str], Group | None]:
    """The names of the events and this thread's group, opened at its first region; None where the kernel refuses."""
    if not hasattr(own, "open"):
        events = []
        for word in os.environ.get(EVENTS, "").split():
            name, _, code = word.rpartition("=")
            kind, config = code.split(":")
            mode = config[-1] if config[-1] in "uk" else ""
            events.append(Event(name, "count", "", int(kind), int(config.rstrip("uk"), 0), mode=mode))
        own.open, own.names, own.group = [], [event.name for event in events], None
        try:
            own.group = Group(events, 0)
            own.group.enable()
        except CountError as error:
            print(f"pmutop region: {error}", file=sys.stderr)
    return own.names, own.group


def cell(before: tuple[int, int, int], after: tuple[int, int, int]) -> str:
    """One count as text; scaled where the group had to share its counters, empty (not 0) where it never ran."""
    value, enabled, running = (b - a for a, b in zip(before, after))
    if not running:
        return ""
    return str(value if running >= enabled else round(value * enabled / running))


def append(path: str, names: list[str], name: str, place: str, cells: list[str]) -> None:
    """Add one line, in one write so that threads and processes never mix theirs; whoever is first writes the header."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w") as file:
            file.write(",".join(["type", "path", *names]) + "\n")
    except FileExistsError:
        pass
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, (",".join([name, place, *cells]) + "\n").encode())
    finally:
        os.close(handle)
