"""Similarity, PCA, k-means, groupings and leaders; the thesis's own tables 4.2, 4.3, 4.5 and 5.5 as witnesses."""

import networkx as nx
import numpy as np
import pytest

from pmutop.analysis import heatmap, kmeans, similarity
from pmutop.analysis.dimensionality import dimensionality
from pmutop.analysis.grouping import METHODS, Events, group, leader
from pmutop.errors import BadInput, UsageError

# "Black-boxing PMUs", table 4.2: the degree of each event in the correlation graph.
DEGREES = {
    40: [166], 39: [158], 37: [87], 36: [7, 8, 11, 23, 77, 83, 135],
    35: [3, 28, 29, 30, 31, 65, 84, 90, 94, 107, 153, 154, 155, 157, 159, 172, 174, 182, 185],
    34: [16, 18, 86, 108], 33: [187], 24: [32], 19: [13], 18: [64, 75, 93, 97, 99, 103, 104, 105],
    17: [95, 131], 16: [98, 129, 145, 165], 15: [27, 124, 147], 14: [26, 96, 149, 152], 13: [1, 22],
    12: [2, 17, 33, 34, 35, 148, 150], 11: [91], 10: [113], 9: [156], 8: [63, 68, 73], 7: [49, 67, 69, 70, 74, 120],
    6: [50, 52, 56, 58, 118, 179], 5: [5, 114, 115, 130, 177], 4: [100, 101, 128],
    3: [6, 21, 71, 72, 76, 79, 82, 85, 102, 106, 171], 2: [9, 12, 20, 37, 38, 39, 117],
    1: [4, 10, 14, 15, 78, 126, 127, 132, 141, 142, 146, 160, 178, 186],
}  # fmt: skip

# Components of table 4.3 and their leaders in table 5.5.
COMPONENTS = [
    ([1, 2, 3, 4, 7, 8, 11, 13, 16, 18, 20, 21, 22, 23, 28, 29, 30, 31, 32, 33, 34, 35, 65, 76, 77, 83, 84, 86, 87, 90, 91, 94,
      96, 107, 108, 113, 114, 115, 135, 148, 149, 150, 152, 153, 154, 155, 157, 158, 159, 160, 166, 172, 174, 182, 185, 187], 166),
    ([5, 12, 17, 26, 27, 64, 75, 93, 95, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 124, 129, 130, 131, 145, 147, 165, 177,
      178, 179, 186], 64),
    ([63, 67, 68, 69, 70, 71, 72, 73, 74, 78, 79, 82, 156], 156), ([49, 50, 52, 56, 58, 117, 118, 120], 49),
    ([6, 85, 126, 128, 171], 128), ([9, 10, 14], 9), ([37, 38, 39], 37), ([15, 127], 15), ([132, 146], 132),
]  # fmt: skip
# Cliques of tables 4.4, 4.5 and 4.10 and their leaders in table 5.5.
CLIQUES = [
    ([2, 150, 158, 166], 2),
    ([63, 67, 68, 69, 70, 73, 74, 156], 63),
    ([5, 27, 124, 130], 5),
    ([17, 26], 17),
]


def causes(seed: int, slices: int = 400) -> np.ndarray:
    """Three causes, counted by 4, 3 and 2 events at very different scales, and one event of its own; none is dead."""
    generator = np.random.default_rng(seed)
    cause = generator.gamma(2.0, 1.0, (slices, 4))
    share = np.repeat(np.eye(4), [4, 3, 2, 1], axis=0)
    noise = 1 + 0.02 * generator.normal(size=(slices, 10))
    return cause @ share.T * noise * 10.0 ** np.array([9, 6, 3, 1, 8, 5, 2, 7, 4, 6])


TRUE_GROUPS = ((0, 1, 2, 3), (4, 5, 6), (7, 8), (9,))


# ---- similarity -----------------------------------------------------------------------------------------------------


def test_correlation_is_numpys_where_everything_was_counted():
    values = causes(1)
    assert similarity.correlation(values) == pytest.approx(np.corrcoef(values.T), abs=1e-12)


def test_correlation_of_missing_cells_is_numpys_over_the_common_slices():
    values = causes(2)
    values[np.random.default_rng(3).random(values.shape) < 0.3] = np.nan
    r = similarity.correlation(values)
    for i in range(10):
        for j in range(i):
            common = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
            assert r[i, j] == pytest.approx(np.corrcoef(values[common, i], values[common, j])[0, 1], abs=1e-9)
    assert (r == r.T).all()


def test_small_changes_of_huge_counts_keep_their_correlation():
    wave = np.sin(np.arange(200.0))
    values = np.stack([3e15 + 100 * wave, 7e14 - 50 * wave], axis=1)
    assert similarity.correlation(values)[0, 1] == pytest.approx(-1, abs=1e-3)


def test_constant_and_never_met_events_are_uncorrelated_not_nan():
    values = np.array([[1.0, 5, 2, np.nan], [2.0, 5, np.nan, 1], [3.0, 5, np.nan, 2], [5.0, 5, np.nan, 4]])
    r = similarity.correlation(values)
    assert np.isfinite(r).all() and r[1].tolist() == [0, 1, 0, 0] and r[2].tolist() == [0, 0, 1, 0]
    assert r[0, 3] == pytest.approx(np.corrcoef([2, 3, 5], [1, 2, 4])[0, 1])


def test_opposite_events_are_not_related():
    wave = np.arange(50.0)
    assert not similarity.related(similarity.correlation(np.stack([wave, 100 - wave], axis=1))).any()


def test_euclid_is_the_norm_of_the_difference():
    values = causes(4)
    expected = np.linalg.norm(values.T[:, None] - values.T, axis=2)
    assert similarity.euclid(values) == pytest.approx(expected, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_transitivity_violations_are_the_pairs_at_distance_two(seed):
    graph = nx.gnp_random_graph(40, 0.08, seed=seed)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    at_two = sum(length == 2 for ends in lengths.values() for length in ends.values()) // 2
    adjacency = nx.to_numpy_array(graph).astype(bool)
    assert similarity.transitivity_violations(adjacency) == at_two
    assert similarity.uncorrelated(adjacency).tolist() == sorted(nx.isolates(graph))


def test_cliques_violate_nothing():
    assert similarity.transitivity_violations(nx.to_numpy_array(nx.complete_graph(5)).astype(bool)) == 0


# ---- dimensions -----------------------------------------------------------------------------------------------------


def test_pca_error_is_what_the_best_plane_of_k_dimensions_leaves():
    values = causes(5)
    values = values / values.std(axis=0) * np.arange(1, 11)
    found = dimensionality(values)
    taken = values - values.mean(axis=0)
    left, singular, right = np.linalg.svd(taken, full_matrices=False)
    missed = [((taken - (left[:, :k] * singular[:k]) @ right[:k]) ** 2).sum() for k in range(1, 11)]
    assert found.error == pytest.approx(np.array(missed) / missed[0], abs=1e-9)
    assert found.lost == pytest.approx(np.array(missed) / (taken**2).sum(), abs=1e-9)
    assert found.eigenvalues.sum() == pytest.approx(taken.var(axis=0, ddof=1).sum())


def test_smallest_k_counts_from_one():
    values = causes(6)
    found = dimensionality(values / values.std(axis=0))
    assert found.smallest(0.1) == 4 and found.error[3] < 0.1 <= found.error[2]  # four causes


# ---- k-means --------------------------------------------------------------------------------------------------------


def test_euclidean_means_are_scikit_learns_where_the_clusters_are_plain():
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    generator = np.random.default_rng(8)
    rows = np.repeat(generator.normal(size=(5, 300)) * 10, 12, axis=0) + generator.normal(size=(60, 300))
    found = kmeans.euclid_means(rows, 5, seed=0)
    witness = KMeans(5, n_init=10, random_state=0).fit(rows)
    assert adjusted_rand_score(witness.labels_, found.labels) == 1
    cost = np.linalg.norm(rows - witness.cluster_centers_[witness.labels_], axis=1).sum()
    assert found.cost == pytest.approx(cost)
    for cluster, first in enumerate(found.leaders):
        members = np.flatnonzero(found.labels == cluster)
        away = np.linalg.norm(rows[members] - rows[members].mean(axis=0), axis=1)
        assert first == members[away.argmin()]


def test_fewer_coordinates_keep_every_distance():
    rows = np.random.default_rng(9).gamma(1.0, 1e8, (30, 2000))
    expected = np.linalg.norm(rows[:, None] - rows, axis=2)
    points = kmeans.isometric(rows)
    assert points.shape[1] <= 30
    assert np.linalg.norm(points[:, None] - points, axis=2) == pytest.approx(expected, rel=1e-9)


def test_medoids_are_the_best_there_are_on_a_small_table():
    from itertools import combinations

    r = similarity.correlation(causes(10))
    found = kmeans.correlation_medoids(r, 4, seed=0)
    best = min(-r[:, list(chosen)].max(axis=1).sum() for chosen in combinations(range(10), 4))
    assert found.cost == pytest.approx(best)
    for cluster, medoid in enumerate(found.leaders):
        members = np.flatnonzero(found.labels == cluster)
        assert medoid == members[r[np.ix_(members, members)].sum(axis=1).argmax()]


def test_twins_do_not_empty_a_cluster():
    r = np.ones((6, 6))
    found = kmeans.correlation_medoids(r, 3, seed=0)
    assert sorted(set(found.labels.tolist())) == [0, 1, 2]


@pytest.mark.parametrize("method", ["kmeans-euclid", "kmeans-correlation"])
def test_a_seed_is_a_result(method):
    events = Events.of(np.random.default_rng(11).gamma(1.0, 1.0, (60, 40)))
    assert group(events, method, k=7, seed=5) == group(events, method, k=7, seed=5)


# ---- groups and leaders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "expected"), COMPONENTS)
def test_leaders_of_components_are_the_theses(members, expected):
    degree_of = {event: degree for degree, events in DEGREES.items() for event in events}
    graph = nx.havel_hakimi_graph([degree_of[event] for event in members])  # some graph with those degrees
    adjacency = np.zeros((191, 191), dtype=bool)
    for one, other in graph.edges:
        adjacency[members[one], members[other]] = adjacency[members[other], members[one]] = True
    assert leader(tuple(members), adjacency) == expected


@pytest.mark.parametrize(("members", "expected"), CLIQUES)
def test_leaders_of_cliques_are_the_theses(members, expected):
    adjacency = np.zeros((191, 191), dtype=bool)
    adjacency[np.ix_(members, members)] = True
    for degree, events in DEGREES.items():  # relations out of the group do not count
        adjacency[events, 190 - degree : 190] = True
    adjacency[np.ix_(members, members)] = ~np.eye(len(members), dtype=bool)
    assert leader(tuple(members), adjacency) == expected


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_causes(method):
    values = causes(12)
    if method == "kmeans-euclid":  # knows no scale: give it events of one scale, as the thesis warns (4.3.1)
        values = values / values.mean(axis=0)
    found = group(Events.of(values), method, k=4, seed=0)
    assert found.groups == TRUE_GROUPS
    assert all(first in members for first, members in zip(found.leaders, found.groups, strict=True))


def test_dead_events_are_dropped_and_numbers_stay_those_of_the_table():
    values = np.insert(causes(13), [0, 4], 0.0, axis=1)
    found = group(Events.of(values), "cc")
    assert found.groups == ((1, 2, 3, 4), (6, 7, 8), (9, 10), (11,))


def test_an_event_counted_now_and_then_is_alive():
    values = causes(14)
    values[1:, 9] = np.nan
    assert similarity.alive(values).all()


def test_refusals_say_what_is_wrong():
    with pytest.raises(BadInput, match="no event"):
        Events.of(np.zeros((5, 3)))
    events = Events.of(causes(15))
    with pytest.raises(UsageError, match="11 groups of 10"):
        group(events, "kmeans-euclid", k=11)
    with pytest.raises(UsageError, match="no grouping method"):
        group(events, "magic")


# ---- the picture ----------------------------------------------------------------------------------------------------


def test_heat_map_has_the_groups_as_blocks():
    events = Events.of(causes(16)[:, [0, 4, 1, 5, 2, 6, 3, 7, 8, 9]])
    groups = group(events, "cc").groups
    matrix = heatmap.reordered(events.r, groups)
    assert (matrix[:4, :4] > 0.9).all() and (matrix[:4, 4:] < 0.5).all()
    lines = list(heatmap.text_lines(matrix, colour=False))
    assert lines[0].startswith("########") and not lines[0].strip("#.:- ")
    coloured = list(heatmap.text_lines(matrix, colour=True))
    assert len(coloured) == 5 and all(line.count("▀") == 10 for line in coloured)


def test_heat_map_shrinks_by_averaging():
    big = np.kron(np.array([[1.0, -0.5], [-0.5, 1.0]]), np.ones((50, 50)))
    assert heatmap.shrunk(big, 10) == pytest.approx(
        np.kron(np.array([[1.0, -0.5], [-0.5, 1.0]]), np.ones((5, 5)))
    )


def test_svg_is_well_formed_and_names_are_escaped():
    from xml.etree import ElementTree

    events = Events.of(causes(17))
    groups = group(events, "cc").groups
    text = "".join(heatmap.svg(events.r, groups, [f"cpu/event={i}<>&/" for i in range(10)]))
    tree = ElementTree.fromstring(text)
    boxes = [node for node in tree if node.get("stroke") == "grey"]
    assert [int(box.get("width")) for box in boxes] == [24, 18, 12, 6]
