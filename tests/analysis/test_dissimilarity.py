"""TMD against independent earth mover's distances; EPD and correlation error against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from pmutop._transport import least_work
from pmutop.analysis.dissimilarity import (
    binned,
    correlation_error,
    epd,
    histogram,
    movers_distance,
    spearman,
    tmd,
)
from pmutop.errors import BadInput


def run(seed, tasks=800, events=4, scale=1.0):
    rng = np.random.default_rng(seed)
    hidden = rng.lognormal(3, 0.6, (tasks, 2))
    return (
        scale
        * hidden
        @ np.random.default_rng(5).random((2, events))
        * np.exp(rng.normal(0, 0.1, (tasks, events)))
    )


@pytest.mark.parametrize("n, m, spread", [(1, 1, 1), (1, 9, 1), (7, 5, 3), (40, 33, 1), (144, 144, 2)])
def test_least_work_against_pot(n, m, spread):
    ot = pytest.importorskip("ot", reason="POT is the independent earth mover's distance")
    rng = np.random.default_rng(n * m)
    supply = rng.multinomial(5000, rng.dirichlet(np.full(n, 1 / spread)))
    demand = rng.multinomial(7000, rng.dirichlet(np.full(m, 1 / spread)))
    cost = rng.random((n, m)) * 12
    ours = least_work(supply * 7000, demand * 5000, cost) / 35e6
    assert ours == pytest.approx(ot.emd2(supply / 5000, demand / 7000, cost), rel=1e-9)


def test_least_work_against_linear_programming():
    rng = np.random.default_rng(1)
    n, m = 6, 8
    supply, demand = rng.multinomial(100, [1 / n] * n), rng.multinomial(100, [1 / m] * m)
    cost = rng.random((n, m))
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)] + [
        np.kron(np.ones(n), np.eye(m)[j]) for j in range(m)
    ]
    answer = linprog(cost.ravel(), A_eq=np.array(rows), b_eq=np.concatenate([supply, demand]))
    assert least_work(supply, demand, cost) == pytest.approx(answer.fun)
    with pytest.raises(ValueError):
        least_work(supply, demand * 2, cost)


def test_tmd_of_one_event_against_scipy():
    """In one dimension the earth mover's distance of the centroids is scipy's Wasserstein distance."""
    reference, target = run(1)[:, :1], run(2, scale=1.4)[:, :1]
    low, high = reference.min(), reference.max()
    ours = tmd(target, [reference], calibrated=False)

    def centroids(values):
        position = (values[:, 0] - low) / ((high - low) / 10)
        place = np.where(
            values[:, 0] < low, -1, np.where(values[:, 0] > high, 10, np.minimum(position.astype(int), 9))
        )
        means = {at: position[place == at].mean() for at in set(place)}
        return np.array([means[at] for at in place])

    assert ours == pytest.approx(stats.wasserstein_distance(centroids(target), centroids(reference)))


def test_tmd_of_two_events_against_pot_on_bins_made_another_way():
    ot = pytest.importorskip("ot", reason="POT is the independent earth mover's distance")
    references, target = [run(1)[:, :2], run(2)[:, :2], run(3)[:, :2]], run(4, tasks=700, scale=1.1)[:, :2]
    everything = np.concatenate(references)
    low, high = everything.min(axis=0), everything.max(axis=0)

    def signature(values):
        bins = {}
        for task in values:
            position = (task - low) / ((high - low) / 10)
            key = tuple(
                -1 if value < bottom else 10 if value > top else min(int(at), 9)
                for value, at, bottom, top in zip(task, position, low, high)
            )
            bins.setdefault(key, []).append(position)
        return np.array([len(held) / len(values) for held in bins.values()]), np.array(
            [np.mean(held, axis=0) for held in bins.values()]
        )

    def distance(a, b):
        (w, x), (v, y) = signature(a), signature(b)
        return ot.emd2(w, v, np.sqrt(((x[:, None] - y[None]) ** 2).sum(2)))

    plain = np.median([distance(target, reference) for reference in references])
    scale = np.median([distance(a, b) for a, b in combinations(references, 2)])
    assert tmd(target, references, calibrated=False) == pytest.approx(plain)
    assert tmd(target, references) == pytest.approx(plain / scale)


def test_work_is_in_bins():
    """Half of the tasks one bin apart is 0.5; tasks outside the range go to the two outer bins."""
    reference = np.array([[0.0], [10.0]] * 5)
    moved = np.array([[1.0], [10.0]] * 5)
    assert tmd(moved, [reference], calibrated=False) == pytest.approx(0.5)
    placed = binned(np.array([[-3.0], [0.0], [9.9], [10.0], [25.0]]), np.array([0.0]), np.array([10.0]))
    assert placed.bin.ravel().tolist() == [0, 1, 10, 10, 11]
    assert movers_distance(histogram(placed, [0]), histogram(placed, [0])) == 0.0


def test_epd_is_the_geometric_mean_of_the_pairs():
    references, target = [run(seed) for seed in range(5)], run(9, scale=1.2)
    found = epd("abcd", target, references)
    expected = [
        tmd(target[:, pair], [reference[:, pair] for reference in references])
        for pair in map(list, combinations(range(4), 2))
    ]
    np.testing.assert_allclose(found.tmd, expected)
    assert found.epd == pytest.approx(stats.gmean(expected))
    assert found.pairs[0] == ("a", "b") and not found.left_out
    assert epd("abcd", target, references, jobs=2).epd == found.epd


def test_another_run_scores_one_and_a_shuffled_one_far_more():
    references = [run(seed) for seed in range(5)]
    same = epd("abcd", run(8), references).epd
    torn = run(8)
    torn[:, 2] = np.random.default_rng(0).permutation(torn[:, 2])
    assert 0.6 < same < 1.6
    assert epd("abcd", torn, references).epd > 2 * same


def test_references_may_hold_two_events_each_as_in_the_paper():
    references = [run(seed) for seed in range(3)]
    apart = []
    for a, b in combinations(range(4), 2):
        for reference in references:
            only = np.full_like(reference, np.nan)
            only[:, [a, b]] = reference[:, [a, b]]
            apart.append(only)
    assert epd("abcd", run(9), apart).epd == pytest.approx(epd("abcd", run(9), references).epd)


def test_a_few_tasks_without_counts_cost_only_themselves():
    references, target = [run(seed) for seed in range(3)], run(9)
    found, error = epd("abcd", target, references).epd, correlation_error(target, references)
    for values in (*references, target):
        values[:3, 2] = np.nan
    assert epd("abcd", target, references).epd == pytest.approx(found, rel=0.1)
    assert correlation_error(target, references) == pytest.approx(error, abs=0.02)


def test_what_says_nothing_is_left_out_with_the_reason():
    references = [run(seed) for seed in range(3)]
    target = run(9)
    for values in (*references, target):
        values[:, 1] = 7.0
    references[0][:, 3] = references[1][:, 3] = np.nan
    found = epd("abcd", target, references)
    assert found.pairs == (("a", "c"),)
    assert "b: always 7" in found.left_out[0]
    assert any("fewer than two references" in line for line in found.left_out)
    with pytest.raises(BadInput, match="missing"):
        tmd(np.array([[np.nan]]), references)


def test_counts_that_repeat_to_the_last_are_as_alike_as_can_be():
    fixed = run(1, events=2)
    references = [fixed.copy() for _ in range(3)]
    assert epd("ab", fixed, references).epd == 1.0
    off = fixed.copy()
    off[:40] = fixed[40:80]
    assert 1.0 < epd("ab", off, references).epd < 1000


def test_spearman_against_scipy_with_ties():
    values = np.round(run(1) / 20)
    np.testing.assert_allclose(spearman(values), stats.spearmanr(values).statistic)


def test_correlation_error_is_the_area_between_the_curves():
    references, target = [run(seed) for seed in range(3)], run(9)
    target[:, 2] = np.random.default_rng(0).permutation(target[:, 2])
    expected = np.median([stats.spearmanr(reference).statistic for reference in references], axis=0)
    gaps = np.abs(stats.spearmanr(target).statistic - expected)[np.triu_indices(4, 1)]
    assert correlation_error(target, references) == pytest.approx(
        stats.wasserstein_distance(gaps, np.zeros(6))
    )
    assert correlation_error(references[0], references[:1]) == 0.0
    flipped = np.column_stack([np.arange(50), -np.arange(50)])
    assert correlation_error(flipped, [np.abs(flipped)]) == pytest.approx(2.0)
