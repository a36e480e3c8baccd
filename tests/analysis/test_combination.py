"""Combined profiles hold counts that were recorded, and the ways of pairing do what the paper says."""

import numpy as np
import pytest

from pmutop.analysis import pairing
from pmutop.analysis.combination import combine_bc, combine_lgl, constant_events
from pmutop.analysis.pairing import cells, finest_division, labels_of, pair_by_behaviour, paths_of
from pmutop.analysis.profiles import Profile, profile_of, profiles_of, table_of, without_ends
from pmutop.analysis.progress import combine_progress, equal_shares
from pmutop.errors import BadInput, UsageError
from pmutop.wide import Table


def profile(events, values, labels, types="t"):
    values = np.asarray(values, float).reshape(len(labels), -1)
    return Profile(
        tuple(events), values, paths_of(labels), np.array([types] * len(labels) if types == "t" else types)
    )


def program(seed, events, tasks=400, shuffle=True, noise=0.02, behaviour=0):
    """One run: each task's hidden behaviour shows in all events; where it runs is shuffled per run if asked."""
    hidden = np.random.default_rng(behaviour).lognormal(8, 1, (tasks, 2))
    rng = np.random.default_rng(seed)
    if shuffle:
        hidden = hidden[rng.permutation(tasks)]
    weights = {event: np.random.default_rng(sum(event.encode())).random(2) for event in events}
    columns = [hidden @ weights[event] * np.exp(rng.normal(0, noise, tasks)) for event in events]
    return profile(
        events, np.round(np.column_stack(columns)), [f"0.{at // 20}.{at % 20}" for at in range(tasks)]
    )


def assert_every_count_was_recorded(combined, profiles):
    for task, column in np.argwhere(combined.run >= 0):
        source = profiles[combined.run[task, column]]
        event = source.events.index(combined.events[column])
        assert combined.values[task, column] == source.values[combined.row[task, column], event]
    assert (np.isnan(combined.values) == (combined.run < 0)).all()


def assert_no_task_serves_twice(combined, profiles):
    for number, source in enumerate(profiles):
        for column in range(len(combined.events)):
            rows = combined.row[combined.run[:, column] == number, column]
            assert len(set(rows)) == len(rows)


def test_the_nearest_pair_is_the_same_taken_at_once_and_from_a_tree(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = rng.random((40, 3)), rng.random((70, 3))
    at_once = pairing.nearest(a, b)
    monkeypatch.setattr(pairing, "SMALL", 0)
    assert at_once == pytest.approx(pairing.nearest(a, b), rel=1e-12) and at_once < 0.2


def test_labels_survive_and_sort_depth_first():
    labels = ["0", "0.0", "0.0.10", "0.0.2", "0.10", "0.2", ""]
    path = paths_of(labels)
    assert labels_of(path) == labels
    order = np.lexsort(path.T[::-1])
    assert [labels[at] for at in order] == ["", "0", "0.0", "0.0.2", "0.0.10", "0.2", "0.10"]
    with pytest.raises(BadInput, match="0.x"):
        paths_of(["0.x"])


def test_lgl_joins_equal_places_and_leaves_the_rest_missing():
    first = profile(["a"], [1, 2, 3], ["0", "0.0", "0.1"])
    second = profile(["b"], [30, 10, 40], ["0.1", "0", "0.2"])
    combined = combine_lgl([first, second])
    assert labels_of(combined.path) == ["0", "0.0", "0.1", "0.2"]
    np.testing.assert_array_equal(combined.values, [[1, 10], [2, np.nan], [3, 30], [np.nan, 40]])
    assert combined.run.dtype == np.int16
    assert any("2 of 4 tasks" in note for note in combined.notes)
    assert_every_count_was_recorded(combined, [first, second])


def test_lgl_does_not_join_different_programs_at_one_place():
    combined = combine_lgl([profile(["a"], [1], ["0"], ["sh"]), profile(["b"], [2], ["0"], ["cc"])])
    assert len(combined.values) == 2 and np.isnan(combined.values).sum() == 2


def test_bc_walks_the_paper_s_example_by_hand():
    """Two cells at the finest grid, then relaxation joins what is left over, farthest last."""
    old = np.array([[0.0], [100.0], [50.0]])
    new = np.array([[99.0], [58.0], [1.0]])
    left, right = pair_by_behaviour(old, new)
    assert dict(zip(left, right)) == {0: 2, 1: 0, 2: 1}


def test_dmax_is_the_range_over_the_smallest_difference():
    a, b = np.array([[0.0], [0.5]]), np.array([[0.25], [1.0]])
    assert finest_division(a, b) == 4
    both = np.column_stack([a, np.array([0.0, 1.0])]), np.column_stack([b, np.array([0.5, 0.5])])
    assert finest_division(*both) == 2  # the event with the coarser need decides
    assert finest_division(np.zeros((2, 1)), np.zeros((3, 1))) == 1


def test_equal_counts_of_one_event_do_not_coarsen_the_grid():
    """An event of few values (0 or 1 migrations) has equal counts everywhere; the other event sets dmax."""
    few = np.array([[0.0], [1.0]])
    assert finest_division(np.hstack([few, [[0.0], [0.5]]]), np.hstack([few, [[0.25], [1.0]]])) == 4


def test_equal_counts_meet_at_once_and_in_label_order():
    left, right = pair_by_behaviour(np.array([[5.0], [5.0], [9.0]]), np.array([[9.0], [5.0], [5.0]]))
    assert dict(zip(left, right)) == {0: 1, 1: 2, 2: 0}


def test_cells_are_equal_exactly_where_coordinates_are():
    rng = np.random.default_rng(3)
    unit = rng.random((3000, 3))
    coordinates = np.minimum((unit * 12).astype(int), 11)
    expected = np.unique(coordinates, axis=0, return_inverse=True)[1].ravel()
    hashed = np.unique(cells(unit, 12), return_inverse=True)[1].ravel()
    assert len(set(zip(expected.tolist(), hashed.tolist()))) == expected.max() + 1 == hashed.max() + 1
    assert len(np.unique(cells(unit, 10**9))) == len(unit)


@pytest.mark.parametrize("labelled", [True, False])
def test_bc_finds_the_behaviour_that_lgl_misses(labelled):
    """Tasks land anywhere in each run: only behaviour says which belong together."""
    runs = [program(1, ["a", "b", "c"]), program(2, ["a", "b", "d"]), program(3, ["c", "d", "e"])]
    truth = program(9, ["a", "b", "c", "d", "e"])
    bc = combine_bc(runs, labelled=labelled, seed=4)
    assert bc.values.shape == (400, 5) and np.isfinite(bc.values).all()
    assert_every_count_was_recorded(bc, runs)
    assert_no_task_serves_twice(bc, runs)
    lgl = combine_lgl([Profile(("a", "b"), runs[0].values[:, :2], runs[0].path, runs[0].type), runs[2]])

    def rho(values, x, y):
        return np.corrcoef(np.log(values[:, x]), np.log(values[:, y]))[0, 1]

    true = rho(truth.values, 0, 3)
    assert abs(rho(bc.values, 0, bc.events.index("d")) - true) < 0.05
    assert abs(rho(lgl.values, 0, lgl.events.index("d")) - true) > 0.3


def test_bc_keeps_the_first_counts_of_overlapping_events_and_states_its_order():
    runs = [program(1, ["a", "d"]), program(2, ["a", "b", "c"])]
    combined = combine_bc(runs)
    assert "order 1, 0" in combined.notes[0]
    column = combined.events.index("a")
    assert (combined.run[:, column] == 1).all()
    assert set(combined.values[:, column]) == set(runs[1].values[:, 0])
    assert "overlap a" in combined.notes[1]
    with pytest.raises(UsageError):
        combine_bc([program(1, ["a"]), program(2, ["b"])])


def test_after_bc_the_path_is_the_common_ancestor():
    old = profile(["a", "x"], [[1, 7], [100, 8]], ["0.1.0", "0.1.1"])
    new = profile(["a", "y"], [[100, 5], [1, 6]], ["0.1.0", "0.1.1.3"])
    # too few tasks for a coefficient of variation: clustered all the same
    combined = combine_bc([old, new])
    assert labels_of(combined.path) == ["0.1", "0.1"]
    assert {tuple(row) for row in combined.values} == {(1, 7, 6), (100, 8, 5)}


def test_types_are_never_mixed():
    old = profile(
        ["a", "x"], [[1, 1], [2, 2], [3, 3], [4, 4]], ["0", "0.0", "0.1", "0.2"], ["p", "p", "q", "q"]
    )
    new = profile(
        ["a", "y"], [[4, 1], [3, 2], [2, 3], [1, 4]], ["0", "0.0", "0.1", "0.2"], ["p", "p", "q", "q"]
    )
    combined = combine_bc([old, new])
    for task in range(len(combined.values)):
        x, y = (combined.row[task, combined.events.index(event)] for event in "xy")
        assert old.type[x] == new.type[y] == combined.type[task]


def test_tasks_without_counterpart_stay_with_missing_counts():
    runs = [program(1, ["a", "b"], tasks=60), program(2, ["a", "c"], tasks=50)]
    combined = combine_bc(runs)
    assert len(combined.values) == 60
    assert np.isnan(combined.values[:, combined.events.index("c")]).sum() == 10
    assert "10 tasks without counterpart" in " ".join(combined.notes)
    assert_every_count_was_recorded(combined, runs)


def test_constant_overlap_is_noticed_and_position_used_instead():
    rng = np.random.default_rng(0)
    labels = [f"0.{at}" for at in range(50)]
    cycles = 9e8 * (1 + 1e-4 * rng.normal(size=(2, 50)))
    work = rng.lognormal(5, 1, 50)
    runs = [
        profile(["cycles", "x"], np.column_stack([cycles[0], work]), labels),
        profile(["cycles", "y"], np.column_stack([cycles[1], work]), labels),
    ]
    assert constant_events(runs[0].events, runs[0].values) == ["cycles"]
    combined = combine_bc(runs)
    said = " ".join(combined.notes)
    assert "cycles varies by less than 1 %" in said and "combined by place" in said
    np.testing.assert_array_equal(combined.values[:, 1], combined.values[:, 2])
    # constant in one run alone is enough
    varied = profile(["cycles", "y"], np.column_stack([work * 1e6, work]), labels)
    assert "cycles varies" in " ".join(combine_bc([runs[0], varied]).notes)


def test_progress_undoes_a_difference_in_speed():
    """The same work in 40 and in 57 slices: position drifts, progress does not."""
    phase = np.repeat([1.0, 5.0, 2.0, 8.0], 1000)

    def slices(number, event):
        edges = np.linspace(0, len(phase), number + 1)
        total = np.diff(np.interp(edges, np.arange(len(phase) + 1), np.concatenate([[0], np.cumsum(phase)])))
        return profile(
            ["cycles", event],
            np.column_stack([np.full(number, 1e9), total]),
            [f"0.{at}" for at in range(number)],
        )

    combined = combine_progress([slices(40, "x"), slices(57, "y")], clock="cycles")
    assert combined.estimated and (combined.row == -1).all()
    assert set(combined.run[:, combined.events.index("y")]) == {1}
    ratio = combined.values[:, combined.events.index("x")] / combined.values[:, combined.events.index("y")]
    assert (np.abs(ratio - 1) < 0.02).sum() >= 40 - 2 * 3  # all but the shares beside a change of phase
    assert (np.abs(slices(40, "x").values[:, 1] / slices(57, "y").values[:40, 1] - 57 / 40) < 0.02).sum() < 30
    assert combined.values[:, combined.events.index("x")].sum() == pytest.approx(phase.sum())


def test_shares_touching_an_uncounted_slice_are_missing():
    values = np.array([[1.0, 1.0], [1.0, np.nan], [1.0, 1.0], [1.0, 1.0]])
    cut = equal_shares(values, values[:, 0], 4)
    np.testing.assert_array_equal(
        np.isnan(cut), [[False, False], [False, True], [False, False], [False, False]]
    )
    with pytest.raises(BadInput):
        equal_shares(values, values[:, 1], 4)
    with pytest.raises(UsageError, match="run 0 did not count"):
        combine_progress([profile(["x"], [1], ["0"])], clock="cycles")


def test_tables_become_profiles_and_merged_profiles_tables():
    table = Table(
        ("a",), np.array([[1.0], [2.0], [3.0]]), run=np.array(["x", "x", "y"]), type=np.array(["p", "q", "p"])
    )
    first, second = profiles_of([table])
    assert labels_of(first.path) == ["0.0", "0.0"] and first.type.tolist() == ["p", "q"]
    assert second.values.tolist() == [[3.0]]
    back = table_of(combine_lgl([first]))
    assert back.path.tolist() == ["0.0", "0.0"] and back.values.ravel().tolist() == [1.0, 2.0]
    whole = profile_of(
        Table(("a",), np.arange(5.0)[:, None], path=np.array(["0.9", "0.10", "0.1", "0.2", "0.3"]))
    )
    assert labels_of(without_ends(whole).path) == ["0.9", "0.2", "0.3"]
