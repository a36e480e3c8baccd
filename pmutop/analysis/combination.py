"""One profile from many runs that counted different events: by place in the program (LGL) or by behaviour (BC).

Source: Neill, Drebes and Pop, "Fuse", section 3 (algorithms 1-4). Counts are never averaged: each merged count was
recorded in one task of one run, and `Combined.run` and `Combined.row` name both. Where a run has no counterpart for a
task the count is missing (NaN, run -1), never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pmutop.analysis.pairing import depth_first, padded, pair_by_behaviour, pair_by_place, row_ids
from pmutop.analysis.plans import order_for_overlap
from pmutop.analysis.profiles import Combined, Profile
from pmutop.errors import BadInput

CONSTANT = 0.01  # coefficient of variation under which clustering on an event could only shuffle
FEW = 3  # tasks of a type below which a coefficient of variation says nothing


def combine_lgl(profiles: Sequence[Profile]) -> Combined:
    """Label Graph Location (algorithms 1 and 2): tasks with the same place and type become one.

    Runs are taken in the given order (of an event counted twice the first run's count stays). A place that some run
    lacks keeps missing counts there. Tasks come out in depth-first order of their labels.
    """
    if not profiles:
        raise BadInput("nothing to combine", "give at least one run")
    names, depth = names_of_types(profiles), max(profile.path.shape[1] for profile in profiles)
    ids, first = row_ids(np.concatenate([places(profile, names, depth) for profile in profiles]))
    tasks = len(first)
    events = tuple(dict.fromkeys(event for profile in profiles for event in profile.events))
    values = np.full((tasks, len(events)), np.nan)
    run = np.full((tasks, len(events)), -1, np.int16)
    row = np.full((tasks, len(events)), -1, np.int32)
    incomplete = np.zeros(tasks, bool)
    starts = np.cumsum([0] + [len(profile.values) for profile in profiles])
    filled: set[str] = set()
    for number, profile in enumerate(profiles):
        where = ids[starts[number] : starts[number + 1]]
        incomplete |= np.bincount(where, minlength=tasks) == 0
        for column, event in enumerate(profile.events):
            if event in filled:
                continue
            target = events.index(event)
            values[where, target] = profile.values[:, column]
            run[where, target] = number
            row[where, target] = np.arange(len(where))
        filled.update(profile.events)
    notes = [
        f"combined by place in the creation tree, runs in the order {', '.join(map(str, range(len(profiles))))}"
    ]
    if incomplete.any():
        notes.append(
            f"{int(incomplete.sum())} of {tasks} tasks were not found in every run: those counts are missing"
        )
    return Combined(
        events,
        values,
        np.concatenate(padded([profile.path for profile in profiles]))[first],
        np.concatenate([profile.type for profile in profiles])[first],
        run,
        row,
        False,
        tuple(notes),
    )


def combine_bc(
    profiles: Sequence[Profile], labelled: bool = True, seed: int = 0, order: Sequence[int] | None = None
) -> Combined:
    """Behaviour Clustering (algorithms 3 and 4): tasks with similar counts of the overlapping events become one.

    `labelled=False` is BC (Unlabeled): within a cell tasks are paired in an order shuffled by `seed` instead of label
    order. `order` gives the runs' order; None lets `plans.order_for_overlap` choose one, and the notes state it. A
    merged task's path is the common ancestor of the two and need not be unique. Overlap events that hardly vary
    (`constant_events`) are not clustered on; where none is left, tasks are paired by place, and the notes say so.
    Raises UsageError where the event sets do not overlap.
    """
    if not profiles:
        raise BadInput("nothing to combine", "give at least one run")
    chosen = list(order) if order is not None else order_for_overlap([profile.events for profile in profiles])
    rng = None if labelled else np.random.default_rng(seed)
    combined = single(profiles[chosen[0]], chosen[0])
    names = names_of_types(profiles)
    pairing = "in label order" if labelled else f"shuffled by seed {seed}"
    notes = [f"combined by behaviour, {pairing}; runs in the order {', '.join(map(str, chosen))}"]
    for number in chosen[1:]:
        new = single(profiles[number], number)
        common = [event for event in combined.events if event in new.events]
        left, right, said = pair_tasks(combined, new, common, names, rng)
        lost = len(combined.values) + len(new.values) - 2 * len(left)
        notes.append(
            f"run {number}: overlap {', '.join(common)}"
            + (f"; {lost} tasks without counterpart" if lost else "")
        )
        notes += [f"run {number}: {line}" for line in said]
        combined = merge(combined, new, left, right)
    return replace(combined, notes=tuple(notes))


def constant_events(events: Sequence[str], values: np.ndarray) -> list[str]:
    """The events whose coefficient of variation is under 1 %: constant by construction, as cycles are in equal slices.

    `values` is (tasks, events). Nothing is said of fewer than three tasks.
    """
    return [event for event, column in zip(events, np.asarray(values).T) if is_constant(column)]


def is_constant(column: np.ndarray) -> bool:
    known = column[np.isfinite(column)]
    return len(known) >= FEW and float(known.std()) <= CONSTANT * abs(float(known.mean()))


def pair_tasks(
    previous: Profile, new: Profile, common: Sequence[str], names: dict, rng: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows of `previous` and `new` that belong together, type by type (algorithm 3, lines 7-34), and what to say."""
    columns = (
        [previous.events.index(event) for event in common],
        [new.events.index(event) for event in common],
    )
    old_type, new_type = (
        np.array([names[str(name)] for name in profile.type], int) for profile in (previous, new)
    )
    old_order, new_order = depth_first(previous.path), depth_first(new.path)
    if rng is not None:  # one random order of all tasks is a random order within every cell
        old_order, new_order = rng.permutation(old_order), rng.permutation(new_order)
    pairs_left, pairs_right = [], []
    constant: dict[str, int] = {}
    by_place = 0
    types = np.intersect1d(old_type, new_type)
    for kind in types:
        old = old_order[old_type[old_order] == kind]
        cur = new_order[new_type[new_order] == kind]
        a, b = previous.values[np.ix_(old, columns[0])], new.values[np.ix_(cur, columns[1])]
        # Constant in either run is enough: variation on one side only cannot say who belongs to whom.
        dull = [is_constant(a[:, at]) or is_constant(b[:, at]) for at in range(len(common))]
        for event, flat in zip(common, dull):
            constant[event] = constant.get(event, 0) + flat
        useful = ~np.array(dull)
        if useful.any():
            left, right = pair_by_behaviour(a[:, useful], b[:, useful])
        else:
            by_place += 1
            left, right = pair_by_place(previous.path[old], new.path[cur])
        pairs_left.append(old[left])
        pairs_right.append(cur[right])
    said = [
        f"{event} varies by less than 1 % in {count} of {len(types)} task types, so it cannot tell their tasks apart"
        for event, count in constant.items()
        if count
    ]
    if by_place:
        said.append(f"{by_place} of {len(types)} task types have no other overlap: combined by place there")
    empty = [np.zeros(0, int)]
    return np.concatenate(pairs_left or empty), np.concatenate(pairs_right or empty), said


def single(profile: Profile, number: int) -> Combined:
    """One run as the beginning of a combination, its tasks in depth-first order."""
    order = depth_first(profile.path)
    values = np.asarray(profile.values, float)[order]
    counted = np.isfinite(values)
    return Combined(
        tuple(profile.events),
        values,
        profile.path[order],
        np.asarray(profile.type)[order],
        np.where(counted, number, -1).astype(np.int16),
        np.where(counted, order[:, None], -1).astype(np.int32),
        False,
        (),
    )


def merge(old: Combined, new: Combined, left: np.ndarray, right: np.ndarray) -> Combined:
    """Algorithm 4 on all pairs at once, tasks without counterpart kept behind with missing counts; depth-first order.

    Overlapping events keep the counts of `old`.
    """
    fresh = [at for at, event in enumerate(new.events) if event not in old.events]
    shared = [at for at, event in enumerate(new.events) if event in old.events]
    alone_old, alone_new = (
        np.delete(np.arange(len(old.values)), left),
        np.delete(np.arange(len(new.values)), right),
    )
    width = len(old.events) + len(fresh)

    def stacked(name: str, missing: float) -> np.ndarray:
        a, b = getattr(old, name), getattr(new, name)
        orphans = np.full((len(alone_new), width), missing, a.dtype)
        orphans[:, [old.events.index(new.events[at]) for at in shared]] = b[np.ix_(alone_new, shared)]
        orphans[:, len(old.events) :] = b[np.ix_(alone_new, fresh)]
        widows = np.pad(a[alone_old], ((0, 0), (0, len(fresh))), constant_values=missing)
        return np.concatenate([np.hstack([a[left], b[np.ix_(right, fresh)]]), widows, orphans])

    old_path, new_path = padded([old.path, new.path])
    path = np.concatenate(
        [ancestors(old_path[left], new_path[right]), old_path[alone_old], new_path[alone_new]]
    )
    order = depth_first(path)
    return Combined(
        (*old.events, *(new.events[at] for at in fresh)),
        stacked("values", np.nan)[order],
        path[order],
        np.concatenate([old.type[left], old.type[alone_old], new.type[alone_new]])[order],
        stacked("run", -1)[order],
        stacked("row", -1)[order],
        False,
        (),
    )


def ancestors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The first common ancestor of each pair of paths: the parts that agree from the root on."""
    return np.where(np.logical_and.accumulate(a == b, axis=1), a, np.int32(-1))


def names_of_types(profiles: Sequence[Profile]) -> dict[str, int]:
    """A number for each task type of these runs."""
    return {
        name: at
        for at, name in enumerate(sorted({str(kind) for profile in profiles for kind in profile.type}))
    }


def places(profile: Profile, names: dict[str, int], depth: int) -> np.ndarray:
    """What identifies a task across runs, int32 (tasks, depth + 2): path, type, and which of several alike it is."""
    path = np.pad(profile.path, ((0, 0), (0, depth - profile.path.shape[1])), constant_values=-1)
    place = np.column_stack([path, [names[str(kind)] for kind in profile.type]]).astype(np.int32)
    ids, _ = row_ids(place)
    order = np.argsort(ids, kind="stable")
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids)) - np.searchsorted(ids[order], ids[order], "left")
    return np.column_stack([place, rank])
