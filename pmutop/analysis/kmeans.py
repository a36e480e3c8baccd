"""k-means over events: Euclidean with means as centroids, and correlation with events as centroids (medoids).

Source: "Black-boxing PMUs" (2016), sections 4.5.4 and 4.5.5: k random events to start from, until the assignment is
stable, 50 restarts of which the one with the smallest sum of distances (not of squares) to the centroids is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RESTARTS = 50
#: Assignments can only circle among exact ties; this many rounds end that.
MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Clusters:
    """`labels` (events,): each event's cluster, 0..k-1; `leaders` (k,): the event nearest to each centroid; `cost`: the sum
    of the distances to the centroids. Clusters that ended empty are gone, so k may be smaller than asked for."""

    labels: np.ndarray
    leaders: np.ndarray
    cost: float


def euclid_means(rows: np.ndarray, k: int, seed: int, restarts: int = RESTARTS) -> Clusters:
    """Cluster the events `rows` (events, slices) by Euclidean distance; leaders are nearest to the mean (5.3.2)."""
    points = isometric(rows)
    generator = np.random.default_rng(seed)
    best = None
    for _ in range(restarts):
        centroids = points[generator.choice(len(points), size=min(k, len(points)), replace=False)]
        labels = None
        for _ in range(MOST_ROUNDS):
            distance = distances(points, centroids)
            assigned = distance.argmin(axis=1)
            if labels is not None and (assigned == labels).all():
                break
            labels = assigned
            for cluster in np.unique(labels):  # an empty cluster keeps its centroid
                centroids[cluster] = points[labels == cluster].mean(axis=0)
        cost = float(distance[np.arange(len(points)), labels].sum())
        if best is None or cost < best[0]:
            best = cost, labels, distance
    cost, labels, distance = best
    names = np.unique(labels)
    leaders = [nearest(distance[:, cluster], labels == cluster) for cluster in names]
    return Clusters(np.searchsorted(names, labels), np.array(leaders), cost)


def correlation_medoids(r: np.ndarray, k: int, seed: int, restarts: int = RESTARTS) -> Clusters:
    """Cluster events by the distance -r, r (events, events); the centroid is the event of the cluster with the smallest
    total distance to the others, and the leader."""
    distance = -r
    generator = np.random.default_rng(seed)
    best = None
    for _ in range(restarts):
        medoids = generator.choice(len(r), size=min(k, len(r)), replace=False)
        labels = None
        for _ in range(MOST_ROUNDS):
            assigned = distance[:, medoids].argmin(axis=1)
            assigned[medoids] = np.arange(len(medoids))  # a twin (r = 1) must not empty its twin's cluster
            if labels is not None and (assigned == labels).all():
                break
            labels = assigned
            for cluster in range(len(medoids)):
                members = np.flatnonzero(labels == cluster)
                totals = distance[np.ix_(members, members)].sum(axis=1)
                medoids[cluster] = members[totals.argmin()]
        cost = float(distance[np.arange(len(r)), medoids[labels]].sum())
        if best is None or cost < best.cost:
            best = Clusters(labels.copy(), medoids.copy(), cost)
    return best


def isometric(rows: np.ndarray) -> np.ndarray:
    """rows (events, slices) in at most `events` coordinates with the same distances: n points span no more than n - 1
    dimensions, and a round then costs the same for an hour of slices as for a minute."""
    taken = rows - rows.mean(axis=0)
    if taken.shape[1] <= len(taken):
        return taken
    largest = np.abs(taken).max(initial=0.0) or 1.0
    left, singular, _ = np.linalg.svd(np.linalg.qr((taken / largest).T, mode="r").T, full_matrices=False)
    return left * singular * largest


def distances(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Euclidean distances (points, centroids)."""
    squares = (points**2).sum(axis=1)[:, None] + (centroids**2).sum(axis=1) - 2 * points @ centroids.T
    return np.sqrt(np.maximum(squares, 0.0))


def nearest(distance: np.ndarray, members: np.ndarray) -> int:
    """The member with the smallest distance, ties to the smallest event number."""
    return int(np.where(members, distance, np.inf).argmin())
