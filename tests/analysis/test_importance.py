"""The ranker on data whose answer is known, and its equations by hand."""

import numpy as np
import pytest

from pmutop.analysis.importance import (
    averaged,
    error_of,
    forest,
    friedman,
    one_to_three,
    paper,
    rank,
    rank_all,
    unseen_rows,
)

EVENTS = tuple(f"e{at}" for at in range(12))


def known(seed=0, rows=400):
    """IPC driven by e3 (strongly) and e7 (weakly), the other ten are noise."""
    rng = np.random.default_rng(seed)
    inputs = rng.lognormal(0, 1, (rows, len(EVENTS)))
    target = 2 - 0.8 * np.tanh(inputs[:, 3]) - 0.3 * np.tanh(inputs[:, 7]) + rng.normal(0, 0.02, rows)
    return inputs, target


@pytest.mark.parametrize("measure", ["friedman", "paper"])
def test_the_events_that_drive_ipc_come_first(measure):
    found = rank(*known(), EVENTS, measure=measure)
    assert found.best.events[:2] == ("e3", "e7")
    assert found.best.importance.sum() == pytest.approx(100) and found.paper.sum() == pytest.approx(100)
    assert found.best.error < found.baseline / 3


def test_refinement_drops_the_noise_and_keeps_the_best_model():
    found = rank(*known(), EVENTS, drop=2)
    assert [len(r.events) for r in found.rounds] == [12, 10, 8, 6, 4, 2]
    assert found.best.error == min(r.error for r in found.rounds)
    assert {"e3", "e7"} == set(found.rounds[-1].events)


def test_whole_runs_are_unseen():
    runs = np.repeat(["a", "b", "c", "d", "e"], [10, 50, 40, 60, 40])
    rows, how = unseen_rows(runs, 200)
    hidden = set(runs[rows])
    assert hidden and not hidden & set(runs[~rows]) and "of 5 runs" in how
    rows, _ = unseen_rows(None, 200)
    assert np.sum(np.diff(rows.astype(int)) != 0) <= 12 and rows.sum() == 50


def test_equations_10_and_11_on_one_split():
    x = np.column_stack([np.repeat([0.0, 1.0], 50), np.zeros(100)])
    y = np.repeat([1.0, 3.0], 50)
    model = forest(0, 2, trees=1)
    model.set_params(max_depth=1, subsample=1.0).fit(x, y)
    assert paper(model) == pytest.approx([100, 0]) and friedman(model) == pytest.approx([100, 0])


def test_equation_11_averages_only_over_the_trees_that_use_the_event():
    inputs, target = known(1)
    model = forest(1, 12, trees=20).fit(inputs, target)
    literal, over_all = paper(model), friedman(model)
    used = np.array([sum(at in tree.tree_.feature for tree in model.estimators_.ravel()) for at in range(12)])
    rare = np.flatnonzero((used > 0) & (used < 20))
    assert len(rare) and np.all(literal[rare] > 0) and np.argmax(literal) == np.argmax(over_all) == 3


def test_equation_14():
    assert error_of([2.0, 4.0, 0.0], [1.0, 5.0, 9.0]) == pytest.approx((0.5 + 0.25) / 2)


def test_the_one_to_three_law():
    assert [
        one_to_three(x) for x in ([50, 20, 15, 15], [30, 30, 10, 10], [20, 20, 20, 10, 9], [25, 24, 23, 22])
    ] == [1, 2, 3, 0]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_backend_changes_no_number(backend):
    from joblib import parallel_config

    series = [(*known(seed, 80), EVENTS, None) for seed in (1, 2)]
    alone = rank_all(series, drop=4, trees=20)
    with parallel_config(backend=backend, n_jobs=2):
        spread = rank_all(series, drop=4, trees=20)
    for a, b in zip(alone, spread, strict=True):
        assert a.best.events == b.best.events and np.array_equal(a.best.importance, b.best.importance)
        assert a.best.error == b.best.error


def test_averaging_over_seeds_is_repeatable():
    inputs, target = known(3, 100)
    assert np.array_equal(*(averaged(inputs, target, EVENTS, seeds=range(3), trees=20) for _ in "ab"))


@pytest.mark.parametrize(
    "inputs, target, word",
    [(np.ones((50, 1)), np.arange(50), "1 events"), (np.ones((9, 3)), np.arange(9), "9 slices"), (np.ones((50, 3)), np.ones(50), "never changes")],
)  # fmt: skip
def test_what_cannot_be_ranked(inputs, target, word):
    with pytest.raises(ValueError, match=word):
        rank(inputs, target, EVENTS[: inputs.shape[1]])
