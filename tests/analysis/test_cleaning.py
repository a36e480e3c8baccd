"""The cleaner: faults with a known answer, the paper's own rules by hand, and the live form with its bounded state."""

import numpy as np
import pytest
from recorded import a15, cloudsuite, needs_a15, needs_cloudsuite

from pmutop.analysis import physics
from pmutop.analysis.analogues import Analogues, around, counts_of, interpolated, log_rates, rolling_median
from pmutop.analysis.cleaning import (
    FILLED,
    IMPOSSIBLE,
    KEPT,
    MISSING,
    OUTLIER,
    CausalCleaner,
    clean,
    interval_medians,
    nearest_in_time,
    zero_is_missing,
)

EVENTS = ("cycles", "instructions", "loads", "misses", "walks")


def phases(seed=0, rows=120):
    """Two phases in turn, which all events follow; 3 % noise."""
    rng = np.random.default_rng(seed)
    phase = (np.arange(rows) // 15) % 2
    rates = np.where(phase[:, None] == 1, [1, 1.2, 0.4, 1e-2, 1e-3], [1, 0.6, 0.3, 3e-2, 4e-3])
    return (1e8 * rates * np.exp(rng.normal(0, 0.03, rates.shape))).round()


def test_nothing_is_touched_where_nothing_is_wrong():
    done = clean(phases(), EVENTS)
    assert np.all(done.quality == KEPT) and np.array_equal(done.values, phases())


@pytest.mark.parametrize("donors", [[], [phases(1)]])
def test_an_outlier_is_found_and_a_phase_is_none(donors):
    values = phases()
    values[40, 3] *= 5
    values[71, 2] /= 4
    done = clean(values, EVENTS, donors)
    assert np.argwhere(done.quality == OUTLIER).tolist() == [[40, 3], [71, 2]]
    assert np.abs(np.log(done.values[[40, 71], [3, 2]] / phases()[[40, 71], [3, 2]])).max() < 0.3


def test_wrong_cycles_do_not_drag_the_others_along():
    values = phases()
    values[50, 0] *= 4
    done = clean(values, EVENTS)
    assert np.argwhere(done.quality).tolist() == [[50, 0]]
    short = phases()
    short[50] /= 4  # the process really ran for a quarter of the slice
    assert np.all(clean(short, EVENTS).quality == KEPT)


def test_a_hole_is_filled_from_another_run_better_than_by_a_straight_line():
    truth, values = phases(), phases()
    holes = np.random.default_rng(5).random(values.shape) < 0.5
    holes[:, 0] = False
    values[holes] = np.nan
    done = clean(values, EVENTS, [phases(1)])
    assert np.all((done.quality == FILLED) == holes)
    ours = np.abs(done.values - truth)[holes].sum(), np.abs(interpolated(values) - truth)[holes].sum()
    assert ours[0] < 0.7 * ours[1]


def test_a_zero_is_a_zero_unless_the_import_cannot_tell():
    values = phases()
    values[30, 3] = 0
    assert clean(values, EVENTS).quality[30, 3] == KEPT
    done = clean(values, EVENTS, zeros_counted=False)
    assert done.quality[30, 3] == FILLED and done.values[30, 3] > 0


def test_a_column_that_was_never_counted_stays_missing():
    values = phases()
    values[:, 4] = np.nan
    done = clean(values, EVENTS)
    assert np.all(done.quality[:, 4] == MISSING) and np.isnan(done.values[:, 4]).all()
    assert np.all(done.quality[:, :4] == KEPT)


def test_many_events_leaving_together_are_a_change_of_the_program():
    values = phases()
    values[50, 1:] *= [3, 3, 3, 3]
    assert not np.any(clean(values, EVENTS, width=8).quality == OUTLIER)


# ---- the paper's forms ------------------------------------------------------------------------------------------------


def test_equation_7_leaves_a_lone_outlier_where_it_is():
    series = np.append(np.random.default_rng(0).normal(10, 1, 99), 1000.0)
    assert interval_medians(series, np.array([1000.0])) == [1000.0]


def test_equation_7_takes_the_median_of_the_interval():
    series = np.array([0.0, 1, 2, 3, 90, 92, 100, 50, 51])  # nine values, three intervals of 33.3
    assert interval_medians(series, np.array([92.0])).tolist() == [91.0]


def test_the_papers_zero_rule():
    assert zero_is_missing(np.array([0.0, 5, 7])).tolist() == [True, False, False]
    assert not zero_is_missing(np.array([0.0, 0.009, 0.001])).any()


def test_knn_in_time_is_the_mean_of_the_five_nearest():
    column = np.array([1.0, 2, 3, np.nan, 5, 6, 70])
    assert nearest_in_time(column, np.isnan(column)) == [(1 + 2 + 3 + 5 + 6) / 5]


def test_the_papers_method_fills_zeros_and_holes():
    values = phases()
    values[10, 2], values[20, 2] = np.nan, 0
    done = clean(values, EVENTS, method="paper", zeros_counted=False)
    assert done.quality[10, 2] == done.quality[20, 2] == FILLED
    assert done.values[10, 2] == pytest.approx(phases()[[8, 9, 11, 12, 7], 2].mean())


@pytest.mark.parametrize(
    "call", [dict(events=EVENTS[:2]), dict(donors=[np.ones((3, 2))]), dict(method="magic")]
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ValueError):
        clean(**{"values": phases(), "events": EVENTS, **call})


# ---- rules of physics -------------------------------------------------------------------------------------------------


def test_a_broken_rule_costs_one_value_the_one_that_is_off():
    events = ("instructions", "cycles", "branches")
    values = np.tile([1e6, 2e6, 2e5], (30, 1)) * np.random.default_rng(1).normal(1, 0.01, (30, 3))
    values[10, 2] = 3e6  # too many branches
    values[20, 0] = 1e5  # too few instructions
    out, changed = physics.obey(values, rolling_median(values), events)
    assert np.argwhere(changed).tolist() == [[10, 2], [20, 0]]
    assert not physics.broken(out, events).any() and out[20, 0] == pytest.approx(1e6, rel=0.02)


def test_the_width_of_the_machine_is_a_rule():
    values = np.array([[9e6, 1e6], [3e6, 1e6]])
    assert physics.broken(values, ("INST_RETIRED", "CPU_CYCLES"), width=4)[:, 0].tolist() == [True, False]
    assert physics.applicable(("LLC-loads", "LLC-load-misses", "x"))[0][:2] == (1, 0)


# ---- live -------------------------------------------------------------------------------------------------------------


def test_live_an_outlier_is_replaced_and_a_real_change_costs_one_slice():
    cleaner = CausalCleaner(1, EVENTS, window=9)
    values = np.vstack([phases()[:12], phases()[2:12] * [1, 1, 4, 1, 1]])
    values[10, 3] *= 6
    qualities = [cleaner.clean(row[None]).quality[0] for row in values]
    assert qualities[10][3] == OUTLIER and np.all(np.delete(qualities[:12], 10, axis=0) == KEPT)
    believed = [quality[2] for quality in qualities[12:]]
    assert believed[0] == OUTLIER and set(believed[1:]) == {KEPT}


def test_live_a_phase_that_moves_all_events_is_believed_at_once():
    cleaner = CausalCleaner(1, EVENTS)
    assert all(np.all(cleaner.clean(row[None]).quality == KEPT) for row in phases())


def test_live_only_what_may_be_wrong_is_replaced_and_holes_may_stay():
    cleaner, values = CausalCleaner(1, EVENTS), phases()[:12]
    for row in values[:10]:
        cleaner.clean(row[None])
    odd = values[10] * [1, 1, 1, 6, 1]
    odd[4] = np.nan
    done = cleaner.clean(odd[None], may=np.zeros((1, 5), bool), fill=False)
    assert done.values[0, 3] == odd[3] and done.quality[0].tolist() == [KEPT] * 4 + [MISSING]


def test_live_rows_are_kept_apart_and_grow():
    cleaner, values = CausalCleaner(0, EVENTS), phases()
    for number, row in enumerate(values[:12]):
        cleaner.room(8)
        cleaner.clean(np.stack([row, row * 3])[: 1 + number % 2], rows=[5, 2][: 1 + number % 2])
    assert np.isnan(cleaner.last[[0, 1, 3, 4, 6, 7]]).all()
    assert (~np.isnan(cleaner.last[[5, 2], 0])).sum(axis=1).tolist() == [9, 6]


def test_live_state_is_bounded_and_a_new_task_has_no_past():
    cleaner = CausalCleaner(3, EVENTS)
    size = cleaner.last.nbytes
    for row in phases():
        cleaner.clean(np.tile(row, (3, 1)))
    assert cleaner.last.nbytes == size
    cleaner.forget([1])
    hole = np.tile(phases()[-1], (3, 1))
    hole[:, 2] = np.nan
    done = cleaner.clean(hole)
    assert done.quality[:, 2].tolist() == [FILLED, MISSING, FILLED] and np.isnan(done.values[1, 2])


def test_live_impossible_values_are_mended():
    cleaner = CausalCleaner(1, ("instructions", "cycles", "branches"))
    for _ in range(8):
        cleaner.clean(np.array([[1e6, 2e6, 2e5]]))
    done = cleaner.clean(np.array([[1e6, 2e6, 1.5e6]]))
    assert done.quality[0, 2] in (OUTLIER, IMPOSSIBLE) and done.values[0, 2] <= 1e6


# ---- pieces -----------------------------------------------------------------------------------------------------------


def test_log_rates_and_back():
    values = phases()
    values[3, 2] = np.nan
    assert np.allclose(counts_of(log_rates(values, 0), 0), values, equal_nan=True)


def test_around_finds_the_known_neighbours():
    known = np.array([[1], [0], [0], [1], [0]], bool)
    back, on = around(known)
    assert back[:, 0].tolist() == [3, -1, -2, -3, -1] and on[:, 0].tolist() == [3, 2, 1, -3, -1]


def test_the_linear_word_is_ridge_regression_on_the_others():
    from sklearn.linear_model import Ridge

    logs = log_rates(phases(), 0)
    model = Analogues().fit([logs])
    each = model.standard(logs)
    ridge = Ridge(alpha=0.05 * len(each), fit_intercept=False).fit(np.delete(each, 3, axis=1), each[:, 3])
    expected = ridge.predict(np.delete(each, 3, axis=1)) * model.spread_[3] + model.middle_[3]
    assert np.allclose(model.linear(logs)[:, 3], expected, atol=1e-9)


# ---- recorded counters ------------------------------------------------------------------------------------------------


@needs_a15
def test_recorded_hidden_slices_are_filled_better_than_by_a_line():
    one, other = (
        next(t for t in a15() if t.run[0] == f"list1-{run}-1000000" and t.label[0] == "splash2x.fmm").values[
            1:-1
        ]
        for run in ("run1", "run2")
    )
    hidden = np.array(one)
    for row in range(len(one)):
        for pair in range(3):
            if pair != row % 3:
                hidden[row, 1 + 2 * pair : 3 + 2 * pair] = np.nan
    holes = np.isnan(hidden)
    events = a15()[0].events
    off = [
        np.abs(filled - one)[holes].sum()
        for filled in (
            clean(hidden, events, [other]).values,
            clean(hidden, events).values,
            interpolated(hidden),
        )
    ]
    assert off[0] < 0.75 * off[2] and off[1] <= 1.02 * off[2]


@needs_cloudsuite
def test_recorded_impossible_slices_become_possible():
    table = next(t for t in cloudsuite("INTEL") if t.label[0] == "graph_analytics")
    assert physics.broken(table.values, table.events, 4).any(axis=1).mean() > 0.25
    done = clean(table.values, table.events, width=4)
    assert not physics.broken(done.values, table.events, 4).any()
