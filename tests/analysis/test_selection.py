"""Key events: discretisation, CFS and gain ratio against hand-computed numbers, brute force, scikit-learn and Weka."""

import itertools
import math
import re
from functools import partial

import learning_sets
import numpy as np
import pytest
import weka_oracle

from pmutop.analysis import selection
from pmutop.errors import BadInput

NAN = np.nan


def cuts(values, labels):
    labels = np.asarray(labels)
    return selection.cut_points(np.asarray(values, dtype=float), labels, labels.max() + 1).tolist()


# --- discretisation


def test_cut_between_two_classes():
    assert cuts([1, 2, 3, 7, 8, 9], [0, 0, 0, 1, 1, 1]) == [5.0]
    assert cuts([9, 1, 8, 2, 7, 3, 20, 21, 22], [1, 0, 1, 0, 1, 0, 2, 2, 2]) == [5.0, 14.5]


def test_a_cut_must_pay_for_its_description():
    # gain .459 bits; five cuts tried and delta = log2(7) - (2 * 1 - 2 * .811): (2.322 + 2.430) / 6 = .792
    assert cuts([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1]) == []
    # the same twelve times over: (2.322 + 2.430) / 72 = .066
    assert cuts([1, 2, 3, 4, 5, 6] * 12, [0, 0, 1, 0, 1, 1] * 12) != []


@pytest.mark.parametrize(
    "values, labels", [([3, 3, 3], [0, 1, 0]), ([1], [0]), ([1, 2, 3], [0, 0, 0]), ([5, 5], [0, 1])]
)
def test_nothing_to_cut(values, labels):
    assert cuts(values, labels) == []
    assert (selection.discretise(np.array(values, dtype=float)[:, None], labels) == 0).all()


def test_equal_values_are_never_parted_and_infinite_ones_are_values():
    assert cuts([1, 1, 1, 1, 2, 2, 2, 2], [0, 0, 0, 0, 1, 1, 1, 1]) == [1.5]
    for low, high in ((-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0)):
        codes = selection.discretise(np.array([[low]] * 4 + [[high]] * 4), [0] * 4 + [1] * 4)
        assert codes.ravel().tolist() == [0] * 4 + [1] * 4


def test_missing_values_are_marked():
    codes = selection.discretise(
        np.array([[1.0, NAN], [1, NAN], [2, NAN], [2, NAN], [NAN, NAN]]), [0, 0, 1, 1, 1]
    )
    assert codes.tolist() == [[0, -1], [0, -1], [1, -1], [1, -1], [-1, -1]]


# --- the measures


def test_gain_ratio_by_hand():
    X = np.array([[1.0, 7], [1, 7], [1, 7], [1, 7], [2, 7], [2, 7], [2, 7], [2, 7]])
    assert selection.gain_ratio(X, [0] * 4 + [1] * 4).tolist() == [1.0, 0.0]
    X[3, 0], labels = NAN, [0] * 4 + [1] * 4
    # the row without the value is 3/7 below the cut and 4/7 above it
    below, above = 3 + 3 / 7, 4 + 4 / 7
    intervals = -sum(part / 8 * math.log2(part / 8) for part in (below, above))
    after = above / 8 * -sum(p * math.log2(p) for p in (4 / above, (4 / 7) / above))
    assert selection.gain_ratio(X, labels)[0] == pytest.approx((1 - after) / intervals)


def test_uncertainty_is_that_of_mutual_information():
    metrics = pytest.importorskip("sklearn.metrics")
    X, y = learning_sets.load("wine")
    codes, measured = selection.discretise(X, y), selection.correlations(X, y)

    def uncertainty(a, b):
        entropies = metrics.mutual_info_score(a, a) + metrics.mutual_info_score(b, b)
        return 2 * metrics.mutual_info_score(a, b) / entropies

    for a, b in itertools.combinations(range(X.shape[1]), 2):
        assert measured.among[a, b] == pytest.approx(uncertainty(codes[:, a], codes[:, b]))
    for a in range(X.shape[1]):
        assert measured.with_label[a] == pytest.approx(uncertainty(codes[:, a], y))


def test_an_event_that_says_nothing_counts_as_redundant():
    X, y = learning_sets.load("wine")
    measured = selection.correlations(np.column_stack([X, np.ones(len(X)), np.full(len(X), NAN)]), y)
    assert measured.with_label[-2:].tolist() == [0, 0]
    assert (measured.among[-2:] == 1).all()
    assert len(selection.cfs(selection.correlations(np.ones((4, 3)), [0, 1, 0, 1])).events) == 0


def test_search_finds_the_best_of_all_subsets():
    X, y = learning_sets.load("wine")
    measured = selection.correlations(X[:, :9], y)

    def merit(events):
        among = measured.among[np.ix_(events, events)].sum()
        return measured.with_label[list(events)].sum() / math.sqrt(among)

    every = (events for size in range(1, 10) for events in itertools.combinations(range(9), size))
    best = max(every, key=merit)
    found = selection.cfs(measured)
    assert sorted(found.events) == list(best)
    assert found.merit == pytest.approx(merit(best))


# --- both combined


def signals(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, rows)
    first = y // 2 * 6 + rng.normal(size=rows)
    second = y % 2 * 4 + rng.normal(size=rows)
    X = np.column_stack([rng.normal(size=(rows, 3)), first, first + 0.01 * rng.normal(size=rows), second])
    return X, y, ["noise1", "noise2", "noise3", "first", "first_again", "second"]


def test_a_copy_gives_way_to_the_other_signal():
    X, y, names = signals()
    ratios = dict(zip(names, selection.gain_ratio(X, y), strict=True))
    assert min(ratios["first"], ratios["first_again"]) > ratios["second"] > ratios["noise1"] == 0
    kept = selection.key_events(X, y, names, keep=2)
    assert len(set(kept) & {"first", "first_again"}) == 1
    assert "second" in kept
    assert set(selection.key_events(X, y, names, keep=3)) == {"first", "first_again", "second"}


def test_enough_room_keeps_all_ranked():
    X, y, names = signals()
    kept = selection.key_events(X, y, names, keep=40)
    assert sorted(kept) == sorted(names)
    assert set(kept[:3]) == {"first", "first_again", "second"}


def test_key_events_depend_on_order_of_values_only():
    X, y, names = signals()
    assert selection.key_events(np.exp(X), y, names, keep=3) == selection.key_events(X, y, names, keep=3)


def test_ranks_by_hand(monkeypatch):
    # CFS takes c, then a (then b once a is gone); ratios are b > a = c > d
    taken = {4: [2, 0], 3: [2, 0], 2: [1, 0]}
    monkeypatch.setattr(
        selection, "cfs", lambda measured: selection.Subset(taken[len(measured.with_label)], 1.0)
    )
    monkeypatch.setattr(selection, "_ratios", lambda codes, labels: np.array([0.5, 0.9, 0.5, 0.1]))
    drop = [selection.key_events(np.ones((2, 4)), [0, 1], "abcd", keep) for keep in (4, 3, 2)]
    # of four: a 2+3, b 4+1, c 1+3, d 4+4; of three: a 2+3, b 3+1, c 1+3; of two (b, c): c 1+2, b 2+1
    assert drop == [["c", "a", "b", "d"], ["c", "b", "a"], ["c", "b"]]


@pytest.mark.parametrize(
    "X, y, names, keep",
    [
        (np.ones((3, 2)), [0, 1], ["a", "b"], 1),
        (np.ones((3, 2)), [0, 1, 0], ["a"], 1),
        (np.ones((3, 2)), [0, 1, 0], ["a", "b"], 0),
        (np.ones((0, 2)), [], ["a", "b"], 1),
        (np.ones(3), [0, 1, 0], ["a"], 1),
    ],
)
def test_bad_input_is_refused(X, y, names, keep):
    with pytest.raises(BadInput):
        selection.key_events(X, y, names, keep)


# --- Weka

needs_weka = pytest.mark.skipif(bool(weka_oracle.ABSENT), reason=weka_oracle.ABSENT)


@pytest.fixture
def given(request, tmp_path):
    X, y = learning_sets.load(request.param)
    classes, numbers = np.unique(y, return_inverse=True)
    return X, y, weka_oracle.write_arff(tmp_path / "all.arff", X, numbers, len(classes))


@needs_weka
@pytest.mark.parametrize("given", learning_sets.SETS, indirect=True)
def test_equal_to_weka(given):
    X, y, arff = given
    subset, ranking = weka_oracle.at_once(
        [
            partial(
                weka_oracle.weka,
                "weka.attributeSelection.CfsSubsetEval",
                *("-L", "-s", "weka.attributeSelection.BestFirst -D 1 -N 5", "-i", arff, "-c", "last"),
            ),
            partial(
                weka_oracle.weka,
                "weka.attributeSelection.GainRatioAttributeEval",
                *("-s", "weka.attributeSelection.Ranker", "-i", arff, "-c", "last"),
            ),
        ]
    )
    mine = selection.cfs(selection.correlations(X, y))
    theirs = re.search(r"Selected attributes: ([\d,]+)", subset)[1]
    assert sorted(mine.events) == [int(number) - 1 for number in theirs.split(",")]
    merit = float(re.search(r"Merit of best subset found:\s+([\d.]+)", subset)[1])
    assert mine.merit == pytest.approx(merit, abs=5.1e-4)  # Weka prints three decimals
    ratios = selection.gain_ratio(X, y)
    printed = re.findall(r"^\s*([\d.]+)\s+\d+ x(\d+)", ranking, flags=re.MULTILINE)
    assert len(printed) == X.shape[1]
    for ratio, event in printed:
        decimals = len(ratio.partition(".")[2]) or 4
        assert ratios[int(event)] == pytest.approx(float(ratio), abs=0.51 * 10.0 ** -min(decimals, 3))


@needs_weka
@pytest.mark.parametrize("given", ["wine", "digits with holes", "log-normal"], indirect=True)
def test_intervals_equal_weka(given, tmp_path):
    X, y, arff = given
    out = tmp_path / "intervals.arff"
    weka_oracle.weka(
        "weka.filters.supervised.attribute.Discretize",
        *("-E", "-R", "first-last", "-c", "last", "-i", arff, "-o", out),
    )
    header, _, body = out.read_text().partition("@data")
    intervals = [
        {name: code for code, name in enumerate(line.partition("{")[2].rstrip("}").split(","))} | {"?": -1}
        for line in header.splitlines()
        if line.startswith("@attribute x")
    ]
    theirs = [
        [code_of[cell] for code_of, cell in zip(intervals, line.split(","), strict=False)]
        for line in body.split()
    ]
    assert np.array_equal(selection.discretise(X, y), theirs)
