"""Partitions of the correlation graph: components, and three covers by cliques.

Source: "Black-boxing PMUs" (2016), section 4.5.1 (CC), 4.5.2 (MIN-CLIQUE), 4.5.3 (GREEDY-MAX-CLIQUE), 4.6.3 and
algorithm 3 (APPROX-MIN-CLIQUE). A graph is its adjacency, bool (n, n), symmetric, no loops; a group is a sorted tuple of
vertices. Inside, a set of vertices is one integer with a bit per vertex.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Group = tuple[int, ...]

#: Branches tried before a search settles for the best it has seen; steps, not seconds, so that a result can be repeated.
STEPS = 400_000
#: Maximal cliques of one component beyond which the exact cover is not attempted.
MOST_CLIQUES = 100_000


def components(adjacency: np.ndarray) -> list[Group]:
    """Connected components (CC): events joined by a chain of related events."""
    rows = bit_rows(adjacency)
    left, found = (1 << len(rows)) - 1, []
    while left:
        reached = frontier = left & -left
        while frontier:
            near = 0
            for vertex in bits(frontier):
                near |= rows[vertex]
            frontier = near & ~reached
            reached |= frontier
        found.append(tuple(bits(reached)))
        left &= ~reached
    return found


def coloured_cover(adjacency: np.ndarray) -> list[Group]:
    """APPROX-MIN-CLIQUE: algorithm 3, greedy colouring of the complement; a colour is a group.

    "Degree" is the one in the correlation graph, ties to the smallest number: only so can table 4.10 come out, whose
    event 64 stands with 95 and not with 17.
    """
    rows = bit_rows(adjacency)
    groups: list[int] = []
    for vertex in np.argsort(-adjacency.sum(axis=1), kind="stable").tolist():
        for colour, group in enumerate(groups):
            if group & rows[vertex] == group:
                groups[colour] |= 1 << vertex
                break
        else:
            groups.append(1 << vertex)
    return [tuple(bits(group)) for group in groups]


def greedy_cover(adjacency: np.ndarray) -> tuple[list[Group], bool]:
    """GREEDY-MAX-CLIQUE: take a maximum clique out, repeat; and whether each was proven to be a maximum one."""
    rows = bit_rows(adjacency)
    left, groups, proven = (1 << len(rows)) - 1, [], True
    while left:
        clique, exact = maximum_clique(rows, left)
        groups.append(tuple(bits(clique)))
        proven &= exact
        left &= ~clique
    return groups, proven


def minimum_cover(adjacency: np.ndarray, seconds: float = 5.0) -> tuple[list[Group], bool]:
    """MIN-CLIQUE: the fewest cliques that partition the graph, and whether they are proven to be the fewest.

    Exact by integer programming over the maximal cliques of each component; a component that has too many of them, or
    that the solver does not finish within its share of `seconds`, gets the better of what it found and the colouring.
    """
    parts = [part for part in components(adjacency) if len(part) > 1]
    groups = [part for part in components(adjacency) if len(part) == 1]
    proven = True
    for part in parts:
        share = seconds * len(part) / sum(len(other) for other in parts)
        inner = adjacency[np.ix_(part, part)]
        cover, exact = cover_component(inner, share)
        groups += [tuple(part[vertex] for vertex in group) for group in cover]
        proven &= exact
    return groups, proven


def cover_component(adjacency: np.ndarray, seconds: float) -> tuple[list[Group], bool]:
    """`minimum_cover` of one connected graph."""
    from scipy import optimize, sparse  # heavy, and only here

    fallback = coloured_cover(adjacency)
    cliques = []
    for clique in maximal_cliques(bit_rows(adjacency)):
        cliques.append(clique)
        if len(cliques) > MOST_CLIQUES:
            return fallback, False
    members = [list(bits(clique)) for clique in cliques]
    covers = sparse.csc_array(
        (
            np.ones(sum(map(len, members))),
            np.concatenate(members),
            np.cumsum([0, *map(len, members)]),
        ),
        shape=(len(adjacency), len(cliques)),
    )
    answer = optimize.milp(
        np.ones(len(cliques)),
        integrality=np.ones(len(cliques)),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(covers, lb=1),
        options={"time_limit": seconds},
    )
    if answer.x is None:
        return fallback, False
    chosen = sorted(np.flatnonzero(answer.x > 0.5).tolist(), key=lambda i: (-len(members[i]), members[i]))
    groups, left = [], (1 << len(adjacency)) - 1
    for index in chosen:  # cliques may overlap: an event goes to the largest that has it
        if cliques[index] & left:
            groups.append(tuple(bits(cliques[index] & left)))
        left &= ~cliques[index]
    return min(groups, fallback, key=len), answer.status == 0


def maximal_cliques(rows: list[int]) -> Iterator[int]:
    """Every maximal clique once (Bron and Kerbosch with Tomita's pivot), without recursion."""
    stack = [(0, (1 << len(rows)) - 1, 0)]
    while stack:
        clique, candidates, excluded = stack.pop()
        if not candidates:
            if not excluded:
                yield clique
            continue
        pivot = max(bits(candidates | excluded), key=lambda vertex: (rows[vertex] & candidates).bit_count())
        for vertex in bits(candidates & ~rows[pivot]):
            stack.append((clique | 1 << vertex, candidates & rows[vertex], excluded & rows[vertex]))
            candidates &= ~(1 << vertex)
            excluded |= 1 << vertex


def maximum_clique(rows: list[int], within: int, steps: int = STEPS) -> tuple[int, bool]:
    """A largest clique among the vertices `within` (branch and bound by greedy colouring), and whether that is proven."""
    best, stack = 0, [(0, within, within.bit_count())]
    while stack:
        clique, candidates, most = stack.pop()
        if most <= best.bit_count():
            continue
        if not candidates:
            best = clique
            continue
        steps -= 1
        if steps < 0:
            return best, False
        size, branches = clique.bit_count(), []
        for bound, vertex in reversed(list(colour_order(rows, candidates))):
            branches.append((clique | 1 << vertex, candidates & rows[vertex], size + bound))
            candidates &= ~(1 << vertex)
        stack.extend(reversed(branches))  # the highest bound is searched first
    return best, True


def colour_order(rows: list[int], candidates: int) -> Iterator[tuple[int, int]]:
    """(bound, vertex) with ascending bound: a clique among the vertices up to this one is no larger than bound."""
    colour = 0
    while candidates:
        colour += 1
        free = candidates
        while free:
            low = free & -free
            vertex = low.bit_length() - 1
            yield colour, vertex
            candidates &= ~low
            free &= ~low & ~rows[vertex]


def bit_rows(adjacency: np.ndarray) -> list[int]:
    """Each vertex's neighbours as an integer with a bit per vertex."""
    packed = np.packbits(adjacency, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def bits(vertices: int) -> Iterator[int]:
    """The vertices of a set, ascending."""
    while vertices:
        low = vertices & -vertices
        yield low.bit_length() - 1
        vertices &= ~low
