"""One profile from many runs by progress: counts re-cut at equal shares of each run's total cycles. Our own way.

For time slices, where the only event that all runs count is constant by construction (cycles in equal slices), so that
clustering has nothing to go by, and position drifts because runs are not equally fast. The n-th share of a run is the
work between (n-1)/N and n/N of its cycles; within a slice counts are taken to grow evenly, hence `estimated`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmutop.analysis.pairing import depth_first
from pmutop.analysis.profiles import Combined, Profile
from pmutop.errors import BadInput, UsageError


def combine_progress(
    profiles: Sequence[Profile], clock: str = "CPU_CYCLES", shares: int | None = None
) -> Combined:
    """Re-cut the slices of each run and type into equal shares of `clock` and put equal shares side by side.

    Slices are taken in depth-first order of their paths. `shares` per type; None = as many as the shortest run has
    slices of that type. Paths are 0.n, n counted within the type; `run` names the run of each count, `row` is -1
    (a share is no single slice). Of an event counted in several runs the first run's count stays. The first and last
    share hold what the ends of the run held (start-up, a cut-off slice).
    Raises UsageError where a run did not count `clock`, BadInput where it stands still or no type is in all runs.
    """
    if not profiles:
        raise BadInput("nothing to combine", "give at least one run")
    for number, profile in enumerate(profiles):
        if clock not in profile.events:
            raise UsageError(
                f"run {number} did not count {clock}, by which progress is told", "name another by --progress"
            )
    common = [
        kind
        for kind in dict.fromkeys(map(str, profiles[0].type))
        if all(kind in run.type for run in profiles)
    ]
    if not common:
        raise BadInput("no task type occurs in all runs", "combine runs of one program")
    owner: dict[str, tuple[int, int]] = {}
    for number, profile in enumerate(profiles):
        for column, event in enumerate(profile.events):
            owner.setdefault(event, (number, column))
    blocks = []
    for kind in common:
        series = [in_order(profile, kind) for profile in profiles]
        number = shares or min(len(rows) for rows in series)
        cut = [
            equal_shares(rows, rows[:, profile.events.index(clock)], number)
            for profile, rows in zip(profiles, series)
        ]
        blocks.append(np.column_stack([cut[run][:, column] for run, column in owner.values()]))
    values = np.concatenate(blocks)
    path = np.array([[0, at] for block in blocks for at in range(len(block))], np.int32)
    run = np.where(np.isfinite(values), [run for run, _ in owner.values()], -1).astype(np.int16)
    dropped = {str(kind) for profile in profiles for kind in profile.type} - set(common)
    notes = [
        f"combined by progress: counts re-cut at equal shares of {clock}, so they are estimates, not readings"
    ]
    if dropped:
        notes.append(f"left out, not in every run: {', '.join(sorted(dropped))}")
    return Combined(
        tuple(owner),
        values,
        path,
        np.repeat(common, [len(block) for block in blocks]),
        run,
        np.full(values.shape, -1, np.int32),
        True,
        tuple(notes),
    )


def in_order(profile: Profile, kind: str) -> np.ndarray:
    """The counts of one type's slices, in depth-first order."""
    order = depth_first(profile.path)
    return np.asarray(profile.values, float)[order[np.asarray(profile.type)[order] == kind]]


def equal_shares(values: np.ndarray, clock: np.ndarray, shares: int) -> np.ndarray:
    """Cut a series into `shares` parts in each of which `clock` advances equally, float64 (shares, events).

    `values` is (slices, events), `clock` (slices,), increases per slice. A share that touches a slice in which an
    event was not counted is NaN for that event. Raises BadInput where `clock` is missing or never advances.
    """
    if not np.isfinite(clock).all() or not clock.sum() > 0 or (clock < 0).any():
        raise BadInput(
            "the progress event is missing in a slice or never advances", "name another by --progress"
        )
    at = np.concatenate([[0.0], np.cumsum(clock)])
    edges = np.linspace(0.0, at[-1], shares + 1)
    known = np.isfinite(values)

    def parts(column: np.ndarray) -> np.ndarray:
        return np.diff(np.interp(edges, at, np.concatenate([[0.0], np.cumsum(column)])))

    cut = np.column_stack([parts(column) for column in np.where(known, values, 0.0).T])
    holes = np.column_stack([parts(column) for column in (~known).astype(float).T])
    return np.where(holes > 1e-9, np.nan, cut)
