"""Groups of events that say the same, and a leader for each: measure the leaders, know the groups.

Source: "Black-boxing PMUs" (2016), sections 4.5 (grouping) and 5.3.2 (group leaders).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmutop.analysis import cliques, kmeans
from pmutop.analysis.similarity import CUTOFF, alive, correlation, filled_in, related
from pmutop.errors import BadInput, UsageError

Group = tuple[int, ...]


@dataclass(frozen=True)
class Grouping:
    """One way to partition the events. `groups`: column numbers, the largest group first, then by smallest event;
    `leaders[i]` stands for `groups[i]`; `exact`: whether the method's own optimum is proven (k-means never is)."""

    method: str
    groups: tuple[Group, ...]
    leaders: tuple[int, ...]
    exact: bool


@dataclass(frozen=True)
class Events:
    """What every method works on: `columns` (D,), the live events' numbers in the table they came from; `values`
    (slices, D); `r` (D, D) and `adjacency` (D, D)."""

    columns: np.ndarray
    values: np.ndarray
    r: np.ndarray
    adjacency: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, cutoff: float = CUTOFF) -> Events:
        """The live events of values (slices, events), in counts per slice, NaN = not counted; raises BadInput
        where there are none."""
        values = np.asarray(values, dtype=np.float64)
        if not -1.0 <= cutoff <= 1.0:
            raise UsageError(f"a correlation cutoff of {cutoff} is not between -1 and 1")
        columns = np.flatnonzero(alive(values))
        if not len(columns):
            raise BadInput("no event ever counted anything", "record longer, or look at `pmutop doctor`")
        taken = values[:, columns]
        r = correlation(taken)
        return cls(columns, taken, r, related(r, cutoff))


def by_components(events: Events, **_) -> tuple[list[Group], bool]:
    return cliques.components(events.adjacency), True


def by_minimum_cover(events: Events, seconds: float, **_) -> tuple[list[Group], bool]:
    return cliques.minimum_cover(events.adjacency, seconds)


def by_colouring(events: Events, **_) -> tuple[list[Group], bool]:
    return cliques.coloured_cover(events.adjacency), True


def by_greedy_cover(events: Events, **_) -> tuple[list[Group], bool]:
    return cliques.greedy_cover(events.adjacency)


#: Methods on the correlation graph; their leaders are the events with the largest degree in the group.
GRAPH_METHODS: dict[str, Callable[..., tuple[list[Group], bool]]] = {
    "cc": by_components,
    "min-clique": by_minimum_cover,
    "approx-min-clique": by_colouring,
    "greedy-max-clique": by_greedy_cover,
}
#: Methods that are told the number of groups; their leaders are nearest to the centroids.
CLUSTER_METHODS: dict[str, Callable[[Events, int, int], kmeans.Clusters]] = {
    "kmeans-euclid": lambda events, k, seed: kmeans.euclid_means(filled_in(events.values).T, k, seed),
    "kmeans-correlation": lambda events, k, seed: kmeans.correlation_medoids(events.r, k, seed),
}
METHODS = (*GRAPH_METHODS, *CLUSTER_METHODS)


def group(events: Events, method: str, k: int = 10, seed: int = 0, seconds: float = 5.0) -> Grouping:
    """Group the live events by one of METHODS. `k` is for k-means only; `seconds` bounds the exact cover."""
    if method in GRAPH_METHODS:
        groups, exact = GRAPH_METHODS[method](events, seconds=seconds)
        leaders = [leader(members, events.adjacency) for members in groups]
    elif method in CLUSTER_METHODS:
        if not 1 <= k <= len(events.columns):
            raise UsageError(
                f"{k} groups of {len(events.columns)} live events", "choose --k between 1 and that number"
            )
        clusters, exact = CLUSTER_METHODS[method](events, k, seed), False
        groups = [tuple(np.flatnonzero(clusters.labels == i).tolist()) for i in range(len(clusters.leaders))]
        leaders = clusters.leaders.tolist()
    else:
        raise UsageError(f"there is no grouping method {method!r}", f"choose one of {', '.join(METHODS)}")
    order = sorted(range(len(groups)), key=lambda i: (-len(groups[i]), groups[i]))
    number = events.columns.tolist()
    return Grouping(
        method,
        tuple(tuple(number[member] for member in groups[i]) for i in order),
        tuple(number[leaders[i]] for i in order),
        exact,
    )


def leader(members: Group, adjacency: np.ndarray) -> int:
    """The member with the largest degree inside its group, ties to the smallest event number (section 5.3.2).

    The thesis does not say whose degree; its table 5.5 does: {2, 150, 158, 166} is led by 2, though 166 has the largest
    degree in the whole graph. In a clique that makes the smallest number the leader.
    """
    inside = adjacency[np.ix_(members, members)].sum(axis=1)
    return min(zip(-inside, members, strict=True))[1]
