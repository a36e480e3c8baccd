"""The C4.5 tree against hand-computed numbers, brute force and the rules of the method (test_tree_weka.py: against J48)."""

import math
import pickle
import subprocess
import sys
from statistics import NormalDist

import numpy as np
import pytest

from pmutop import _c45, _tree
from pmutop.analysis.tree import ARRAYS, C45Tree
from pmutop.errors import BadInput

NAN = np.nan
PLAIN = {"min_leaf": 1, "scale_leaf": False, "mdl": False, "collapse": False, "confidence": None}


def cut(values, labels, weight=None, min_leaf=1, scale_leaf=False, mdl=False):
    labels = np.asarray(labels, dtype=np.int32)
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=float)
    return _c45.cut(
        np.ascontiguousarray(values, dtype=float),
        labels,
        weight,
        int(labels.max()) + 1,
        min_leaf=min_leaf,
        scale_leaf=scale_leaf,
        mdl=mdl,
    )


def some_data(rows=400, features=6, classes=3, seed=1, missing=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    X = rng.normal(size=(rows, features))
    X[:, 0] += y
    X[:, 1] -= 0.7 * y
    X[rng.random(X.shape) < missing] = NAN
    return X, y


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


# --- verdicts


def test_leaf_probabilities_are_laplace_smoothed():
    tree = C45Tree(**PLAIN | {"min_leaf": 3}).fit([[1.0], [1], [1], [2], [2], [2]], [0, 0, 1, 1, 1, 1])
    assert tree.predict_proba([[1.0]])[0] == pytest.approx([3 / 5, 2 / 5])
    assert tree.predict_proba([[2.0]])[0] == pytest.approx([1 / 5, 4 / 5])


def walk(tree, row, at=0, weight=1.0):
    """The leaves a row reaches with its parts, in plain Python."""
    while tree.feature_[at] >= 0:
        value = row[tree.feature_[at]]
        if np.isnan(value):
            yield from walk(tree, row, tree.left_[at], weight * tree.share_[at])
            at, weight = tree.right_[at], weight * (1 - tree.share_[at])
        else:
            at = tree.left_[at] if value <= tree.threshold_[at] else tree.right_[at]
    yield at, weight


def test_native_verdicts_are_those_of_a_plain_walk():
    X, y = some_data(300, missing=0.2)
    tree = C45Tree().fit(X, y)
    for row, answer in zip(X, tree.predict_proba(X), strict=True):
        leaves = list(walk(tree, row))
        support = sum(weight * tree.counts_[at].sum() for at, weight in leaves)
        mixed = sum(weight * tree.counts_[at] / tree.counts_[at].sum() for at, weight in leaves)
        assert answer == pytest.approx((mixed * support + 1) / (support + 3))
        assert np.argmax(answer) == np.argmax(mixed)


def test_path_leads_to_the_verdict():
    X, y = some_data(300)
    tree = C45Tree().fit(X, y)
    for row, verdict in zip(X[:50], tree.predict(X[:50]), strict=True):
        at = 0
        for step in tree.path(row):
            assert (step.feature, step.threshold) == (tree.feature_[at], tree.threshold_[at])
            assert step.value == row[step.feature]
            assert (step.value <= step.threshold) == (step.sign == "<=")
            at = (tree.left_ if step.sign == "<=" else tree.right_)[at]
        assert tree.feature_[at] < 0
        assert tree.classes_[np.argmax(tree.counts_[at])] == verdict


def test_contributions_are_the_changes_on_the_path():
    X, y = some_data(300)
    tree = C45Tree().fit(X, y)
    shares = tree.contributions(X)
    assert (shares >= 0).all()
    for row, share, verdict in zip(X, shares, tree.predict(X), strict=True):
        expected, at = np.zeros(6), 0
        for step in tree.path(row):
            child = (tree.left_ if step.sign == "<=" else tree.right_)[at]
            before, after = (tree.counts_[i, verdict] / tree.counts_[i].sum() for i in (at, child))
            expected[step.feature] += after - before
            at = child
        expected = np.maximum(expected, 0)
        assert share == pytest.approx(expected / expected.sum() if expected.sum() > 0 else expected)


def test_an_unknown_value_takes_no_credit():
    X, y = some_data(500)
    tree = C45Tree().fit(X, y)
    X[:, 0] = NAN
    assert not tree.contributions(X)[:, 0].any()


def test_values_beyond_training_are_outside():
    tree = C45Tree().fit([[0.0, NAN], [10.0, NAN]], [0, 1])
    rows = [[5.0, NAN], [11.0, NAN], [-0.5, 3.0], [NAN, NAN]]
    assert tree.outside(rows).tolist() == [[False, False], [True, False], [True, True], [False, False]]
    assert tree.outside(rows, margin=0.2)[:, 0].tolist() == [False, False, False, False]


def test_rules_read_as_the_tree_decides():
    X = np.array([[1.0, 0], [1, 0], [2, 0], [2, 0], [2, 1], [2, 1]])
    tree = C45Tree(**PLAIN).fit(X, ["idle", "idle", "cpu", "cpu", "memory", "memory"])
    assert tree.rules(["cycles", "misses"]).splitlines() == [
        "cycles <= 1: idle (2)",
        "cycles > 1",
        "|   misses <= 0: cpu (2)",
        "|   misses > 0: memory (2)",
    ]


# --- to and from a bundle


def test_round_trip_through_an_npz(tmp_path):
    X, y = some_data(missing=0.1)
    tree = C45Tree().fit(X, np.array(["N_CPU", "P_CPU", "P_Mem_M"])[y])
    np.savez(tmp_path / "tree.npz", **tree.to_arrays())
    with np.load(tmp_path / "tree.npz", allow_pickle=False) as arrays:
        back = C45Tree.from_arrays(arrays, tree.classes_.tolist(), [f"ev{i}" for i in range(6)])
    assert np.array_equal(back.predict(X), tree.predict(X))
    assert np.array_equal(back.contributions(X), tree.contributions(X))
    assert np.array_equal(back.outside(X * 2), tree.outside(X * 2))
    assert "ev0 <=" in back.rules()


def damaged(name, change):
    def damage(arrays):
        arrays[name] = change(arrays[name].copy())
        return arrays

    return damage


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


DAMAGES = {
    "missing array": lambda arrays: {name: a for name, a in arrays.items() if name != "share"},
    "a loop": damaged("left", put(0, 0)),
    "a far child": damaged("right", put(0, 10_000)),
    "a negative child": damaged("left", put(0, -5)),
    "two parents": lambda arrays: damaged("right", put(0, int(arrays["left"][0])))(arrays),
    "an unknown feature": damaged("feature", put(0, 6)),
    "a negative feature": damaged("feature", put(0, -2)),
    "an undefined threshold": damaged("threshold", put(0, NAN)),
    "an impossible share": damaged("share", put(0, 1.5)),
    "negative counts": damaged("counts", put((0, 0), -1.0)),
    "an empty leaf": damaged("counts", put(-1, 0.0)),
    "another type": damaged("feature", lambda array: array.astype(np.int64)),
    "another length": damaged("share", lambda array: array[:-1]),
    "no nodes": lambda arrays: {name: a if name in ("low", "high") else a[:0] for name, a in arrays.items()},
    "another class count": damaged("counts", lambda array: array[:, :-1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_arrays_are_refused(damage):
    arrays = damage(C45Tree().fit(*some_data()).to_arrays())
    with pytest.raises(BadInput):
        C45Tree.from_arrays(arrays, [0, 1, 2], [f"ev{i}" for i in range(6)])


def test_a_tree_deeper_than_any_grown_is_refused():
    depth = _tree.DEEPEST + 1
    nodes = 2 * depth + 1
    inner = np.arange(nodes) % 2 == 0
    inner[-1] = False
    index = np.arange(nodes, dtype=np.int32)
    arrays = {
        "feature": np.where(inner, 0, -1).astype(np.int32),
        "left": np.where(inner, index + 1, -1).astype(np.int32),
        "right": np.where(inner, index + 2, -1).astype(np.int32),
        "threshold": np.zeros(nodes),
        "share": np.full(nodes, 0.5),
        "counts": np.ones((nodes, 2)),
        "low": np.zeros(1),
        "high": np.ones(1),
    }
    with pytest.raises(BadInput):
        C45Tree.from_arrays(arrays, ["a", "b"], ["ev0"])


def test_the_deepest_tree_that_grows_can_be_read_back():
    rows = 1200  # alternating labels: each cut peels off one row
    tree = C45Tree(**PLAIN).fit(np.arange(rows, dtype=float)[:, None], np.arange(rows) % 2)
    back = C45Tree.from_arrays(tree.to_arrays(), [0, 1], ["ev0"])
    assert back.predict_proba([[NAN]]) == pytest.approx(tree.predict_proba([[NAN]]))
    level = np.zeros(len(tree.feature_), dtype=int)
    for at in np.flatnonzero(tree.feature_ >= 0):
        level[[tree.left_[at], tree.right_[at]]] = level[at] + 1
    assert level.max() == _tree.DEEPEST


# --- manners


def test_scikit_learn_accepts_it():
    base, model_selection = (
        pytest.importorskip("sklearn.base"),
        pytest.importorskip("sklearn.model_selection"),
    )
    X, y = some_data(missing=0.05)
    copy = base.clone(C45Tree(min_leaf=5, confidence=0.1).fit(X, y))
    assert copy.get_params()["min_leaf"] == 5
    assert not hasattr(copy, "counts_")
    assert base.is_classifier(copy)
    assert model_selection.cross_val_score(copy, X, y, cv=3).mean() > 0.4
    grid = model_selection.GridSearchCV(C45Tree(), {"min_leaf": [2, 20]}, cv=3).fit(X, y)
    assert grid.best_params_["min_leaf"] in (2, 20)
    with pytest.raises(BadInput, match="max_depth"):
        C45Tree().set_params(max_depth=3)


def test_a_fitted_tree_travels_to_another_process():
    X, y = some_data()
    tree = C45Tree().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).predict_proba(X), tree.predict_proba(X))


def test_the_live_path_loads_numpy_and_nothing_heavier():
    program = (
        "import sys, pmutop.analysis.tree; print(sorted({'sklearn', 'scipy', 'joblib'} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert loaded.strip() == "[]"


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_no_memory_is_left_behind():
    X, y = some_data(600, missing=0.1)

    def use():
        for _ in range(60):
            tree = C45Tree(mdl=False).fit(X, y)
            tree.predict_proba(X)
            tree.contributions(X)
            cut(X[:, 0], y)

    use()
    before = resident_bytes()
    use()
    use()
    # 120 fits: one case list lost in each would be 1.1 MiB, one order 5 MiB
    assert resident_bytes() - before < 2**20


def test_a_cut_in_the_middle_lies_in_the_gap_and_no_training_row_changes_sides():
    X, y = np.array([[0.001], [0.002], [50.0], [80.0]]), np.array([0, 0, 1, 1])
    plain, middle = (C45Tree(**PLAIN, middle=middle).fit(X, y) for middle in (False, True))
    assert plain.threshold_[0] == 0.002
    assert middle.threshold_[0] == pytest.approx((0.502 * 50.5) ** 0.5 - 0.5)
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(size=(400, 6)))
    y = (X[:, 0] > 1) * 2 + (X[:, 1] * X[:, 2] > 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    plain, middle = (C45Tree(middle=middle).fit(X, y) for middle in (False, True))
    assert (plain.feature_ == middle.feature_).all() and (plain.threshold_ < middle.threshold_).sum() > 10
    assert np.allclose(plain.predict_proba(X), middle.predict_proba(X))
