"""The nouns of combination: the tasks of one run, and the profile merged from several; to and from wide tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pmutop.analysis.pairing import depth_first, labels_of, paths_of
from pmutop.wide import Table


@dataclass(frozen=True)
class Profile:
    """The tasks of one run.

    events  their names, in the order of the columns
    values  float64 (tasks, events), increase over each task; NaN = not counted
    path    int32 (tasks, depth), place in the creation tree (`pairing.paths_of`), -1 behind the end
    type    (tasks,) of str: executable, thread or region name; only tasks of one type are combined
    """

    events: tuple[str, ...]
    values: np.ndarray
    path: np.ndarray
    type: np.ndarray


@dataclass(frozen=True)
class Combined(Profile):
    """A profile merged from several.

    run        int16 (tasks, events), the run each count was recorded in; -1 = in none
    row        int32 (tasks, events), the task (row) of that run; -1 = in none, or not a single one (`estimated`)
    estimated  True where counts were re-cut (`progress`) and are no longer values that a counter showed
    notes      what to know before believing it: order of runs, overlap used, what found no counterpart
    """

    run: np.ndarray
    row: np.ndarray
    estimated: bool
    notes: tuple[str, ...]


def profiles_of(tables: Sequence[Table]) -> list[Profile]:
    """One profile per table, or per value of its `run` column; the runs are numbered in this order.

    Rows without a `path` are time slices: the n-th of its type becomes 0.n, so that position is their place.
    """
    profiles = []
    for table in tables:
        runs = dict.fromkeys(table.run.tolist()) if table.run is not None else [None]
        profiles += [profile_of(table if run is None else table.rows(table.run == run)) for run in runs]
    return profiles


def profile_of(table: Table) -> Profile:
    """The tasks (or slices) of a table that holds one run."""
    kind = np.full(len(table), "") if table.type is None else np.asarray(table.type)
    if table.path is not None:
        path = paths_of(table.path.tolist())
    else:
        path = np.zeros((len(table), 2), np.int32)
        for name in dict.fromkeys(kind.tolist()):
            path[kind == name, 1] = np.arange((kind == name).sum())
    return Profile(table.events, table.values, path, kind)


def table_of(combined: Combined) -> Table:
    """A merged profile as a wide table with `type` and `path`."""
    return Table(
        combined.events, combined.values, type=combined.type, path=np.array(labels_of(combined.path))
    )


AnyProfile = TypeVar("AnyProfile", bound=Profile)


def without_ends(profile: AnyProfile) -> AnyProfile:
    """Time slices without the first and last of each type, which hold start-up and a cut-off rest."""
    order = depth_first(profile.path)
    kept = np.ones(len(order), bool)
    for name in set(profile.type.tolist()):
        rows = order[profile.type[order] == name]
        kept[rows[[0, -1]]] = False
    per_task = {"values", "path", "type", "run", "row"} & set(vars(profile))
    return replace(profile, **{name: getattr(profile, name)[kept] for name in per_task})
