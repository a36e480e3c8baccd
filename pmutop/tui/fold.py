"""Rows under their cgroup (unit, container, pod): a head with the sums of its rows, folded until it is opened.

A head is a row of a Moment of its own, so that the table, the columns and sorting need not know of groups. Its ref and its
PID are negative: no process has such a one, and nothing can be sent to it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pmutop.moment import EXACT
from pmutop.slices import Task
from pmutop.tui.columns import BY_NAME, group_of, harms, trouble
from pmutop.tui.history import Row

if TYPE_CHECKING:
    from pmutop.tui.state import State

LONG_ID = re.compile(r"([0-9a-f]{12})[0-9a-f]{20,}")  # of a container: the first 12 digits name it


def is_head(row: Row | None) -> bool:
    return row is not None and row.task.ref < 0


def group_key(row: Row) -> str:
    """The cgroup; kernel threads and tasks that told none are at the root."""
    return row.task.cgroup or "/"


def name_of(path: str) -> str:
    """'docker-1f2e3d4c5b6a.scope' of a path that ends with the container's 64 digits."""
    return LONG_ID.sub(r"\1", group_of(path))


def fold(state: State, order: list[int]) -> list[int]:
    """`order` with a head before the rows of each cgroup, these left out where it is folded. Makes `state.heads`.

    Groups stand in the order of the chosen column, their rows as they came.
    """
    rows = {index: state._row(index) for index in order}
    members: dict[str, list[int]] = {}
    for index, row in rows.items():
        members.setdefault(group_key(row), []).append(index)
    paths = list(members)
    summed = sums(state, paths, [[rows[index] for index in members[path]] for path in paths])
    first = len(state.moment.tasks) + len(state.ghosts)
    state.heads = [Row(summed, place) for place in range(len(paths))]
    ranked = sorted(range(len(paths)), key=lambda place: ranking(state, state.heads[place]))
    if state.reversed:
        ranked.reverse()
    folded = []
    for place in ranked:
        folded.append(first + place)
        if state.heads[place].task.ref in state.unfolded:
            folded += members[paths[place]]
    return folded


def ranking(state: State, head: Row) -> tuple:
    """Sorts groups as rows are sorted: CPU use by bands, so that they do not jump; text as it is, numbers as they go."""
    if state.sort == "CPU%":
        return -state.band(head.task.ref, float(head.moment.cpu[head.index])), head.task.comm
    column = BY_NAME[state.sort]
    key = column.key(state, head)
    return (-key if column.descending else key), head.task.comm


def sums(state: State, paths: list[str], groups: list[list[Row]]):
    """A Moment with a row per group: use and counts added up, the label and the interference of its worst row."""
    import numpy as np  # loaded long since by whoever made the Moment

    moment = state.moment
    size, events = len(paths), len(moment.header.events)
    names = [event.name for event in moment.header.events]
    columns = {name: np.full(size, np.nan) for name in ("cpu", "wait", "ipc", "rss", "nice")}
    counts, quality = np.full((size, events), np.nan), np.zeros((size, events), np.uint8)
    threads, tasks, states = np.zeros(size, int), [], []
    labels, reasons, paths_of, interference = {}, {}, {}, {}
    for place, (path, rows) in enumerate(zip(paths, groups)):
        alive = [row for row in rows if row.moment is moment]
        at = [row.index for row in alive]
        for name in ("cpu", "wait", "rss"):
            columns[name][place] = np.nansum(getattr(moment, name)[at])
        threads[place] = moment.threads[at].sum()
        known = ~np.isnan(moment.counts[at]).all(axis=0) if at else np.zeros(events, bool)
        counts[place, known] = np.nansum(moment.counts[at][:, known], axis=0)
        quality[place] = moment.quality[at].max(axis=0) if at else EXACT
        if "cycles" in names and "instructions" in names and counts[place, names.index("cycles")] > 0:
            columns["ipc"][place] = (
                counts[place, names.index("instructions")] / counts[place, names.index("cycles")]
            )
        letters = {moment.state[index][:1] for index in at}
        states.append(next((letter for letter in "RDS" if letter in letters), "?"))
        ref = state.groups.setdefault(path, -1 - len(state.groups))
        user = rows[0].task.user if len({row.task.user for row in rows}) == 1 else "*"
        tasks.append(
            Task(
                ref,
                -len(rows),
                -len(rows),
                0,
                0.0,
                name_of(path),
                user,
                path,
                f"{name_of(path)}: {path}",
                False,
            )
        )
        worst = max(alive, key=lambda row: trouble(state, row), default=None)
        if worst is not None and (label := state.label_of(worst)):
            labels[place] = (label,)
            reasons[place] = moment.reasons.get(worst.index, ())
            paths_of[place] = moment.paths.get(worst.index, ())
        hurt = max(alive, key=lambda row: max((f or 1.0 for _, f in harms(row)), default=0.0), default=None)
        if hurt is not None and hurt.index in moment.interference:
            interference[place] = moment.interference[hurt.index]
    return replace(
        moment, tasks=tasks, state=states, threads=threads, exited=np.zeros(size, bool), counts=counts, quality=quality,
        labels=labels, reasons=reasons, paths=paths_of, interference=interference, **columns,
    )  # fmt: skip


class Folding:
    """Mixed into the app: what the keys of groups do."""

    state: State

    def do_group(self) -> None:
        s = self.state
        s.grouped = not s.grouped
        s.tree = s.tree and not s.grouped
        s.message = "rows under their cgroup: Enter or + unfolds one, - folds it" if s.grouped else ""
        self.kept()

    def unfold(self, on: bool) -> None:
        s = self.state
        row = s.current()
        if row is None or not s.grouped:
            s.message = "groups are off (c puts rows under their cgroup)"
            return
        ref = s.groups.get(group_key(row), 0)
        (s.unfolded.add if on else s.unfolded.discard)(ref)
        s.selected, s.still_until = row.task.ref if on else ref, 0.0

    def do_unfold(self) -> None:
        self.unfold(True)

    def do_fold(self) -> None:
        self.unfold(False)
