"""The C4.5 tree at work: its verdicts and what they rest on, its way to and from a bundle, its manners."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from trees import NAN, PLAIN, cut, some_data

from pmutop import _tree
from pmutop.analysis.tree import C45Tree
from pmutop.errors import BadInput

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
