"""What is explained by what: IPC, a ratio or an event, and inputs that are not the figure itself in other words."""

import numpy as np
import pytest

from pmutop.analysis.figure import IPC, USER_SHARE, choose, explain, usable

PROC = ("run-time", "user-time", "system-time", "faults")
PMU = ("cycles", "instructions", "misses", "run-time", "user-time")


def test_the_figure_is_chosen_by_what_was_counted():
    assert choose(PMU) == IPC and choose(PROC) == USER_SHARE
    assert choose(PMU, USER_SHARE) == USER_SHARE and choose(PROC, "faults") == "faults"
    assert choose(PROC, "faults/run-time") == "faults/run-time"
    assert choose((*PROC, "cpu/event=0x1/"), "cpu/event=0x1/") == "cpu/event=0x1/"


@pytest.mark.parametrize(
    ("events", "wanted", "word"),
    [
        (("a", "b"), None, "no IPC"),
        (PROC, IPC, "no IPC"),
        (PROC, "x", "no event x"),
        (PROC, "faults/x", "no event x"),
    ],
)
def test_what_cannot_be_explained(events, wanted, word):
    with pytest.raises(ValueError, match=word):
        choose(events, wanted)


def test_ipc_per_cycle_and_per_instruction():
    values = np.array([[100.0, 50, 5, 9, 8], [0, 0, 0, 0, 0]])
    per_cycle = explain(values, PMU, IPC)
    assert per_cycle.names == ["misses", "run-time", "user-time"] and per_cycle.target[0] == 0.5
    assert per_cycle.inputs[0, 0] == 0.05 and np.isnan(per_cycle.target[1])
    assert explain(values, PMU, IPC, "instruction").inputs[0, 0] == 0.1
    assert explain(values, PMU, IPC, "slice").inputs[0, 0] == 5


def test_a_ratio_divides_its_inputs_and_no_clock_explains_another():
    values = np.array([[100.0, 60, 40, 7]])
    share = explain(values, PROC, USER_SHARE)
    assert share.names == ["faults"] and share.target[0] == 0.6 and share.inputs[0, 0] == 0.07
    rate = explain(values, PROC, "faults/run-time")
    assert rate.names == [] and rate.target[0] == 0.07
    assert explain(values, PROC, "faults").names == ["run-time", "user-time", "system-time"]


def test_usable_drops_holes_constants_and_rows_without_a_figure():
    rng = np.random.default_rng(0)
    values = np.column_stack(
        [np.full(100, 100.0), rng.uniform(0, 100, 100), np.ones(100), *rng.uniform(0, 9, (3, 100))]
    )
    names = (*PROC, "holes", "one-hole")
    values[::3, 4], values[7, 5], values[8, 1] = np.nan, np.nan, np.nan
    inputs, target, kept = usable(explain(values, names, USER_SHARE))
    assert kept == ["faults", "one-hole"] and inputs.shape == (98, 2) and np.isfinite(inputs).all()
    assert np.isfinite(target).all()
