"""Which task of one run belongs to which of another: by place in the creation tree, or by similar counts on a grid.

Source: Neill, Drebes and Pop, "Fuse", section 3.2 (clustering, cluster processing, relaxation). Tasks are rows of
arrays here; `combination` makes profiles of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pmutop.errors import BadInput

RELAX = (
    7 / 8
)  # the grid is coarsened by at least this factor; the paper's own step can be as small as 1 in 1e9
NEAR = 1 / RELAX - 1  # distance (in cells) from which the paper's step is the larger one
SMALL = 100_000  # differences that are faster taken at once than sought in a tree (whose import alone takes 0.2 s)
FINEST = 2**40  # grid divisions; finer than any counter's difference over its range


def pair_by_behaviour(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair the rows of `a` (n, events) and `b` (m, events) on ever coarser grids, nearest first (algorithm 3, 14-33).

    Rows stand in the order in which those of one cell are paired. Returns two index arrays of equal length. Rows with
    a missing count stay unpaired.
    """
    old, new = (np.flatnonzero(np.isfinite(values).all(axis=1)) for values in (a, b))
    if not len(old) or not len(new):
        return old[:0], new[:0]
    low = np.minimum(a[old].min(axis=0), b[new].min(axis=0))
    span = np.maximum(a[old].max(axis=0), b[new].max(axis=0)) - low
    span[span == 0] = 1.0
    unit_old, unit_new = (a[old] - low) / span, (b[new] - low) / span
    found_old, found_new = [], []
    division = finest_division(unit_old, unit_new)
    while True:
        left, right = pair_by_key(cells(unit_old, division), cells(unit_new, division))
        found_old.append(old[left])
        found_new.append(new[right])
        old, new = np.delete(old, left), np.delete(new, right)
        unit_old, unit_new = np.delete(unit_old, left, axis=0), np.delete(unit_new, right, axis=0)
        if not len(old) or not len(new) or division == 1:
            return np.concatenate(found_old), np.concatenate(found_new)
        division = reduced_division(unit_old, unit_new, division, len(left))


def finest_division(a: np.ndarray, b: np.ndarray) -> int:
    """dmax: per event, the range over the smallest difference between the runs; of these the smallest (section 3.2).

    Equal counts share a cell on any grid, so an event in which some are equal puts no bound on dmax. Where that is
    every event, dmax is the grid on which nothing but equal counts share a cell.
    """
    bounds, exact = [], [1]
    for x, y in zip(a.T, b.T):
        x, y = np.unique(x), np.unique(y)
        above = np.searchsorted(y, x, "right")
        below = np.searchsorted(y, x, "left") - 1
        up = y[above[above < len(y)]] - x[above < len(y)]
        down = x[below >= 0] - y[below[below >= 0]]
        if not len(up) and not len(down):
            continue
        division = int(min(1.0 / np.concatenate([up, down]).min(), FINEST))
        if np.isin(x, y).any():
            exact.append(division + 1)
        else:
            bounds.append(division)
    return max(min(bounds, default=max(exact)), 1)


def reduced_division(a: np.ndarray, b: np.ndarray, division: int, paired: int) -> int:
    """The next grid: cells grow by the distance of the nearest remaining pair (section 3.2), and by 1/7 at least.

    Looking for that pair pays only where the last grid paired next to nothing; elsewhere it is next door.
    """
    step = division * RELAX
    if paired * 16 < len(a):
        near = nearest(a, b) * division
        if near > NEAR:
            step = division / (1.0 + near)
    return max(int(step), 1)


def nearest(a: np.ndarray, b: np.ndarray) -> float:
    """The smallest Euclidean distance between a row of `a` (n, events) and one of `b` (m, events)."""
    if a.size * len(b) <= SMALL:
        return float(np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2).min()))
    from scipy.spatial import cKDTree

    few, many = (a, b) if len(a) < len(b) else (b, a)
    return float(cKDTree(many).query(few, k=1, workers=-1)[0].min())


def cells(unit: np.ndarray, division: int) -> np.ndarray:
    """The cell of each row of `unit` (values 0 to 1) on a grid, as one uint64: `division` can be 1e9, so cells are
    hashed. Two cells that meet in one number (about 1 in 1e10 grids of 50,000 tasks) would merely be one larger cell."""
    key = np.zeros(len(unit), np.uint64)
    for column in unit.T:
        cell = np.minimum((column * division).astype(np.int64), division - 1).astype(np.uint64)
        key = (key ^ cell) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def pair_by_key(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First with first, second with second, ... among the entries of `a` and `b` that are equal; two index arrays."""
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    sorted_a, sorted_b = a[order_a], b[order_b]
    rank = np.arange(len(a)) - np.searchsorted(sorted_a, sorted_a, "left")
    mate = np.searchsorted(sorted_b, sorted_a, "left") + rank
    paired = mate < np.searchsorted(sorted_b, sorted_a, "right")
    return order_a[paired], order_b[mate[paired]]


def pair_by_place(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal paths with each other, then the rest in the order of their rows."""
    ids, _ = row_ids(np.concatenate(padded([a, b])))
    left, right = pair_by_key(ids[: len(a)], ids[len(a) :])
    rest_a, rest_b = np.delete(np.arange(len(a)), left), np.delete(np.arange(len(b)), right)
    more = min(len(rest_a), len(rest_b))
    return np.concatenate([left, rest_a[:more]]), np.concatenate([right, rest_b[:more]])


def paths_of(labels: Iterable[str]) -> np.ndarray:
    """Labels such as "0.1.2" as int32 (tasks, depth), padded with -1; sorted by columns they are in depth-first order.

    Raises BadInput for a label that is not numbers with dots between.
    """
    split = [label.split(".") if label else [] for label in labels]
    bad = next((parts for parts in split for part in parts if not part.isdecimal()), None)
    if bad:
        raise BadInput(f"{'.'.join(bad)} is no place in a creation tree", "write 0.1.2: the root, then ranks")
    path = np.full((len(split), max(map(len, split), default=0)), -1, np.int32)
    for row, parts in zip(path, split):
        row[: len(parts)] = parts
    return path


def labels_of(path: np.ndarray) -> list[str]:
    """The inverse of `paths_of`; "" where two tasks have not even the root in common."""
    return [".".join(str(part) for part in row if part >= 0) for row in path.tolist()]


def padded(paths: list[np.ndarray]) -> list[np.ndarray]:
    """The same int32 (tasks, depth) arrays with one depth, -1 behind the end."""
    depth = max((path.shape[1] for path in paths), default=0)
    return [np.pad(path, ((0, 0), (0, depth - path.shape[1])), constant_values=-1) for path in paths]


def row_ids(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number equal rows alike, in lexicographic order. Returns (ids (rows,), first row of each id)."""
    if not len(rows):
        return np.zeros(0, int), np.zeros(0, int)
    order = depth_first(rows)
    new = np.ones(len(rows), bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    ids = np.empty(len(rows), int)
    ids[order] = np.cumsum(new) - 1
    return ids, order[new]


def depth_first(path: np.ndarray) -> np.ndarray:
    """The order in which a depth-first walk meets the tasks: parents first, siblings by rank of creation."""
    return np.lexsort(path.T[::-1]) if path.shape[1] else np.arange(len(path))
