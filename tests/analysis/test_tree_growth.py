"""How the C4.5 tree grows and is pruned, against hand-computed numbers and brute force (test_tree_weka.py: against J48)."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from trees import NAN, PLAIN, cut, some_data

from pmutop import _c45
from pmutop.analysis.tree import ARRAYS, C45Tree
from pmutop.errors import BadInput

# --- the criterion


def test_gain_ratio_by_hand():
    threshold, gain, ratio = cut([1, 2, 3, 4], [0, 0, 1, 1])
    assert (threshold, gain, ratio) == pytest.approx((2.5, 1.0, 1.0))


def test_threshold_is_paid_for():
    _, gain, ratio = cut([1, 2, 3, 4], [0, 0, 1, 1], mdl=True)
    assert gain == ratio == pytest.approx(1 - math.log2(3) / 4)  # three cuts were tried on four rows


def test_gain_ratio_with_a_missing_value_by_hand():
    # known: 2 of class 0, 3 of class 1: 0.970951 bits; after the cut 3/5 of 0.918296 bits; 5/6 of the rows are known;
    # split information of 3/6, 2/6 and the missing 1/6: 1.459148 bits
    _, gain, ratio = cut([1, 1, 1, 2, 2, NAN], [0, 0, 1, 1, 1, 0])
    assert gain == pytest.approx(0.349978, abs=1e-6)
    assert ratio == pytest.approx(0.349978 / 1.459148, abs=1e-6)


def brute_force_gain(values, labels, weight, min_leaf):
    def entropy(part):
        shares = (
            np.array([weight[part & (labels == c)].sum() for c in np.unique(labels)]) / weight[part].sum()
        )
        return -sum(p * math.log2(p) for p in shares if p > 0)

    known = ~np.isnan(values)
    best = 0.0
    for threshold in np.unique(values[known])[:-1]:
        sides = [known & (values <= threshold), known & (values > threshold)]
        if min(weight[side].sum() for side in sides) < min_leaf:
            continue
        after = sum(weight[side].sum() * entropy(side) for side in sides) / weight[known].sum()
        best = max(best, (entropy(known) - after) * weight[known].sum() / weight.sum())
    return best


@pytest.mark.parametrize("seed", range(8))
def test_cut_finds_what_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 60).astype(np.int32)
    values = np.round(rng.normal(size=60) + labels, 1)  # ties
    values[rng.random(60) < 0.2] = NAN
    weight = rng.integers(1, 4, 60) * rng.choice([1.0, 0.37])
    _, gain, _ = cut(values, labels, weight, min_leaf=3)
    assert gain == pytest.approx(brute_force_gain(values, labels, weight, 3), abs=2e-6)


def test_minimum_branch_grows_with_the_node():
    labels = np.r_[np.zeros(3), np.ones(97)].astype(np.int32)
    values = np.arange(100.0)
    assert cut(values, labels, min_leaf=2)[0] == 2.5
    assert cut(values, labels, min_leaf=2, scale_leaf=True)[0] == 4.5  # at least 0.1 * 100 / 2 on each side


def test_only_cuts_of_at_least_average_gain_compete():
    # the first column peels off one row at a perfect ratio of tiny information; the second halves the set
    y = np.array([1] + [0] * 9 + [1] * 10)
    X = np.column_stack([np.r_[1.0, np.zeros(19)], np.r_[np.zeros(10), np.ones(10)]])
    assert C45Tree(**PLAIN).fit(X, y).feature_[0] == 1


def test_equal_cuts_go_to_the_first_column_and_the_lower_threshold():
    column = [1.0, 2, 3, 4, 5, 6]
    tree = C45Tree(**PLAIN).fit(np.column_stack([column, column]), [0, 1, 1, 1, 1, 0])
    assert tree.feature_[0] == 0
    assert tree.threshold_[0] == 1.0


def test_threshold_is_a_value_of_the_training_set():
    # the cut 10|20 of the left branch has its middle at 15; 14 occurs, but only in the other branch
    X = np.array([[0, 10], [0, 10], [0, 20], [0, 20], [1, 14], [1, 14], [1, 14], [1, 14]], dtype=float)
    tree = C45Tree(**PLAIN).fit(X, [0, 0, 1, 1, 2, 2, 2, 2])
    assert 14.0 in tree.threshold_


# --- pessimistic errors


@pytest.mark.parametrize("n, each", [(6, 0.206), (9, 0.143), (1, 0.750)])
def test_pessimistic_errors_of_the_book(n, each):
    assert _c45.pessimistic_errors(n, 0, 0.25, 0.6744897501960817) / n == pytest.approx(each, abs=5e-4)


@pytest.mark.parametrize("n, e, confidence", [(20, 3, 0.25), (100, 1, 0.1), (15.5, 7.25, 0.4)])
def test_pessimistic_rate_is_the_upper_limit(n, e, confidence):
    z = NormalDist().inv_cdf(1 - confidence)
    rate = _c45.pessimistic_errors(n, e, confidence, z) / n
    observed = (e + 0.5) / n
    assert rate > observed
    assert (rate - observed) ** 2 == pytest.approx(z * z * rate * (1 - rate) / n)


def test_pessimistic_errors_between_none_and_one_and_at_the_top():
    none, half, one = (_c45.pessimistic_errors(10, e, 0.25, 0.6744897501960817) for e in (0, 0.5, 1))
    assert half == pytest.approx((none + one) / 2)
    assert _c45.pessimistic_errors(5, 4.8, 0.25, 0.6744897501960817) == 5


def test_noise_is_pruned_away():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), np.r_[np.zeros(240), np.ones(60)]
    unpruned, pruned = (C45Tree(mdl=False, confidence=confidence).fit(X, y) for confidence in (None, 0.1))
    assert unpruned.leaves > 10
    assert pruned.leaves < unpruned.leaves / 2


def test_a_subtree_that_does_not_err_less_collapses():
    X, y = np.array([[1.0], [2], [3], [4]]), [0, 0, 0, 1]
    assert C45Tree(**PLAIN | {"min_leaf": 2}).fit(X, y).leaves == 2
    assert C45Tree(**PLAIN | {"min_leaf": 2, "collapse": True}).fit(X, y).leaves == 1


def test_raised_subtrees_carry_every_row():
    for seed in range(20):
        X, y = some_data(seed=seed, missing=0.1)
        tree = C45Tree(mdl=False).fit(X, y)
        inner = tree.feature_ >= 0
        total = tree.counts_[tree.left_[inner]] + tree.counts_[tree.right_[inner]]
        assert total == pytest.approx(tree.counts_[inner])
        assert tree.counts_[0] == pytest.approx(np.bincount(y))


# --- missing values


def test_missing_values_divide_a_training_row_and_a_verdict():
    X = np.array([[1.0], [1], [1], [2], [NAN]])
    tree = C45Tree(**PLAIN).fit(X, ["a", "a", "a", "b", "b"])
    assert tree.share_[0] == pytest.approx(0.75)
    assert tree.counts_[1] == pytest.approx([3, 0.75])
    assert tree.counts_[2] == pytest.approx([0, 1.25])
    # 3/4 of the left leaf (3 : 0.75) and 1/4 of the right one, support 3/4 * 3.75 + 1/4 * 1.25
    frequency, support = 0.75 * 3 / 3.75, 0.75 * 3.75 + 0.25 * 1.25
    assert tree.predict_proba([[NAN]])[0, 0] == pytest.approx((frequency * support + 1) / (support + 2))
    (step,) = tree.path([NAN])
    assert (step.sign, step.fraction) == ("<=", pytest.approx(0.75))
    assert math.isnan(step.value)


def test_columns_and_rows_of_missing_values():
    X, y = some_data()
    blind = C45Tree().fit(np.full_like(X, NAN), y)
    assert len(blind.feature_) == 1
    assert np.isnan(blind.low_).all()
    with_hole = np.column_stack([X, np.full(len(X), NAN)])
    tree, same = C45Tree().fit(with_hole, y), C45Tree().fit(X, y)
    assert np.array_equal(tree.feature_, same.feature_)
    everything_missing = tree.predict_proba(np.full((3, 7), NAN))
    assert everything_missing.sum(axis=1) == pytest.approx(1)
    assert (everything_missing == everything_missing[0]).all()
    assert not tree.contributions(np.full((3, 7), NAN)).any()


def test_learns_in_spite_of_missing_values():
    X, y = some_data(2000, missing=0.3)
    assert C45Tree().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.5
    assert C45Tree().fit(X, y).score(*some_data(2000)) > 0.6


# --- degenerate input


@pytest.mark.parametrize(
    "X, y",
    [
        ([[1.0, 2.0]], ["a"]),
        ([[1.0], [2.0], [3.0]], ["a", "a", "a"]),
        ([[5.0, 5.0]] * 4, ["a", "a", "a", "b"]),
        ([[NAN, 1.0]] * 3, ["a", "a", "b"]),
        (np.empty((3, 0)), ["a", "a", "b"]),
    ],
    ids=["one row", "one class", "constant columns", "constant and missing", "no columns"],
)
def test_nothing_to_split_is_one_leaf(X, y):
    tree = C45Tree().fit(X, y)
    assert len(tree.feature_) == 1
    assert (tree.predict(X) == "a").all()
    assert tree.path(X[0]) == []
    assert tree.rules().startswith("a (")
    assert tree.contributions(X).sum() == 0


def test_infinite_values_are_values():
    X = np.array([[-np.inf], [-np.inf], [0.0], [0.0], [np.inf], [np.inf]])
    y = [0, 0, 1, 1, 2, 2]
    tree = C45Tree(**PLAIN).fit(X, y)
    assert tree.predict(X).tolist() == y
    assert C45Tree(**PLAIN).fit(X[[0, 1, 4, 5]], [0, 0, 1, 1]).predict(X[[0, 5]]).tolist() == [0, 1]


def test_neighbouring_floats_are_told_apart():
    low, high = 1.0, np.nextafter(1.0, 2)
    tree = C45Tree(**PLAIN).fit([[low], [low], [high], [high]], [0, 0, 1, 1])
    assert tree.predict([[low], [high]]).tolist() == [0, 1]


def test_no_rows_answer_with_no_rows():
    tree = C45Tree().fit(*some_data())
    assert tree.predict(np.empty((0, 6))).shape == (0,)
    assert tree.contributions(np.empty((0, 6))).shape == (0, 6)


@pytest.mark.parametrize(
    "X, y, options",
    [
        (np.empty((0, 3)), [], {}),
        ([1.0, 2.0], [0, 1], {}),
        ([[1.0], [2.0]], [0], {}),
        ([[1.0]], [0], {"sample_weight": [-1.0]}),
        ([[1.0]], [0], {"sample_weight": [0.0]}),
        ([[1.0]], [0], {"sample_weight": [NAN]}),
    ],
)
def test_bad_training_input_is_refused(X, y, options):
    with pytest.raises(BadInput):
        C45Tree().fit(X, y, **options)


def test_rows_of_another_width_are_refused():
    with pytest.raises(BadInput, match="6 features"):
        C45Tree().fit(*some_data()).predict(np.zeros((2, 5)))


# --- weights, determinism


def test_a_weight_is_a_repetition():
    X, y = some_data(200)
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    weighted = C45Tree().fit(X, y, sample_weight=weight)
    repeated = C45Tree().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for name in ARRAYS:
        np.testing.assert_allclose(weighted.to_arrays()[name], repeated.to_arrays()[name])


def test_growth_depends_on_neither_row_order_nor_chance():
    X, y = some_data(missing=0.1)
    order = np.random.default_rng(5).permutation(len(y))
    first, again, shuffled = (C45Tree().fit(a, b) for a, b in ((X, y), (X, y), (X[order], y[order])))
    for name in ARRAYS:
        assert np.array_equal(first.to_arrays()[name], again.to_arrays()[name], equal_nan=True)
        np.testing.assert_allclose(first.to_arrays()[name], shuffled.to_arrays()[name])
