"""Components and clique covers against networkx, against exhaustive search, and against graphs drawn by hand."""

from functools import cache

import networkx as nx
import numpy as np
import pytest

from pmutop.analysis import cliques


def random_graph(seed: int, vertices: int, density: float) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).random((vertices, vertices)) < density, 1)
    return upper | upper.T


def correlated_graph(seed: int, vertices: int) -> np.ndarray:
    """A graph like the thesis's: events of a few causes and much noise, related where r >= 0.9."""
    generator = np.random.default_rng(seed)
    causes = generator.normal(size=(300, 6))
    rows = causes[:, generator.integers(0, 6, vertices)]
    rows = rows + generator.normal(size=rows.shape) * generator.uniform(0.05, 0.9, vertices)
    adjacency = np.corrcoef(rows.T) >= 0.9
    np.fill_diagonal(adjacency, False)
    return adjacency


GRAPHS = [
    *(
        random_graph(seed, n, p)
        for seed, (n, p) in enumerate([(1, 0.5), (9, 0.0), (9, 1.0), (14, 0.3), (20, 0.7)])
    ),
    *(correlated_graph(seed, 60) for seed in range(4)),
]


def as_networkx(adjacency: np.ndarray) -> nx.Graph:
    return nx.from_numpy_array(adjacency.astype(int))


def check_cover(adjacency: np.ndarray, groups) -> None:
    assert sorted(vertex for group in groups for vertex in group) == list(range(len(adjacency)))
    for group in groups:
        assert group == tuple(sorted(group))
        assert (adjacency[np.ix_(group, group)] | np.eye(len(group), dtype=bool)).all()


@pytest.mark.parametrize("adjacency", GRAPHS)
def test_components_are_those_of_networkx(adjacency):
    expected = {tuple(sorted(part)) for part in nx.connected_components(as_networkx(adjacency))}
    assert set(cliques.components(adjacency)) == expected


@pytest.mark.parametrize("adjacency", GRAPHS)
def test_maximal_cliques_are_those_of_networkx(adjacency):
    found = [tuple(cliques.bits(clique)) for clique in cliques.maximal_cliques(cliques.bit_rows(adjacency))]
    assert sorted(found) == sorted(
        tuple(sorted(clique)) for clique in nx.find_cliques(as_networkx(adjacency))
    )


@pytest.mark.parametrize("adjacency", GRAPHS)
def test_greedy_cover_takes_a_maximum_clique_of_what_is_left_each_time(adjacency):
    groups, proven = cliques.greedy_cover(adjacency)
    assert proven
    check_cover(adjacency, groups)
    graph = as_networkx(adjacency)
    for group in groups:
        assert len(group) == max(map(len, nx.find_cliques(graph)))
        graph.remove_nodes_from(group)


@pytest.mark.parametrize("adjacency", GRAPHS)
def test_colouring_is_networkx_largest_first_on_the_complement(adjacency):
    groups = cliques.coloured_cover(adjacency)
    check_cover(adjacency, groups)
    degrees = adjacency.sum(axis=1)
    complement = nx.complement(as_networkx(adjacency))

    def larger_degrees_first(graph, _colours):
        return sorted(graph, key=lambda vertex: (-degrees[vertex], vertex))

    colours = nx.greedy_color(complement, strategy=larger_degrees_first)
    expected: dict[int, list[int]] = {}
    for vertex in sorted(colours):
        expected.setdefault(colours[vertex], []).append(vertex)
    assert set(groups) == {tuple(group) for group in expected.values()}


def fewest_cliques(adjacency: np.ndarray) -> int:
    """By trying every clique that holds the first vertex still uncovered."""
    rows = cliques.bit_rows(adjacency)

    @cache
    def is_clique(vertices: int) -> bool:
        return all((rows[v] | 1 << v) & vertices == vertices for v in cliques.bits(vertices))

    @cache
    def fewest(left: int) -> int:
        if not left:
            return 0
        low = left & -left
        rest = left & ~low & rows[low.bit_length() - 1]
        best, subset = len(rows), rest
        while True:
            if is_clique(subset | low):
                best = min(best, 1 + fewest(left & ~subset & ~low))
            if not subset:
                return best
            subset = (subset - 1) & rest

    return fewest((1 << len(rows)) - 1)


@pytest.mark.parametrize("seed", range(12))
def test_minimum_cover_is_what_exhaustive_search_finds(seed):
    adjacency = random_graph(100 + seed, 11, 0.25 + 0.05 * seed)
    groups, proven = cliques.minimum_cover(adjacency)
    assert proven
    check_cover(adjacency, groups)
    assert len(groups) == fewest_cliques(adjacency)


def crown(pairs: int) -> np.ndarray:
    """Two cliques of `pairs` vertices, vertex 2i of one joined to 2i + 1 of the other: the complement of the crown graph,
    2-colourable, on which greedy colouring in this order needs one colour per pair."""
    side = np.arange(2 * pairs) % 2
    partner = np.arange(2 * pairs) // 2
    adjacency = (side[:, None] == side) | (partner[:, None] == partner)
    np.fill_diagonal(adjacency, False)
    return adjacency


def test_the_approximation_can_be_far_off_and_the_exact_cover_is_not():
    adjacency = crown(8)
    assert len(cliques.coloured_cover(adjacency)) == 8
    groups, proven = cliques.minimum_cover(adjacency)
    assert (len(groups), proven) == (2, True)
    check_cover(adjacency, groups)


def test_too_many_maximal_cliques_falls_back_and_says_so(monkeypatch):
    monkeypatch.setattr(cliques, "MOST_CLIQUES", 50)
    adjacency = random_graph(7, 60, 0.8)
    groups, proven = cliques.minimum_cover(adjacency)
    assert not proven
    check_cover(adjacency, groups)


def test_a_search_cut_short_says_so():
    rows = cliques.bit_rows(random_graph(3, 120, 0.9))
    clique, proven = cliques.maximum_clique(rows, (1 << 120) - 1, steps=200)
    assert not proven and clique.bit_count() > 20
