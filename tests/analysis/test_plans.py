"""Event sets must fit the counters, cover every event, and (for BC) share an event with an earlier set."""

import numpy as np
import pytest

from pmutop.analysis.plans import counters, kind_of, order_for_overlap, plan_disjoint, plan_overlapping
from pmutop.errors import UsageError

EVENTS = [
    "cycles", "instructions", "branch-misses", "branches", "L1-dcache-load-misses", "L1-icache-load-misses",
    "LLC-load-misses", "dTLB-load-misses", "context-switches", "page-faults", "cpu-migrations",
]  # fmt: skip


def correlation(seed=0):
    values = np.random.default_rng(seed).lognormal(size=(200, 3)) @ np.random.default_rng(seed + 1).random(
        (3, len(EVENTS))
    )
    return np.corrcoef(values.T)


@pytest.mark.parametrize("budget", [2, 3, 4, 7, 11])
def test_every_plan_fits_and_covers(budget):
    for plan in (
        plan_disjoint(EVENTS, counters(budget)),
        plan_overlapping(EVENTS, counters(budget), correlation()),
        plan_overlapping(EVENTS, counters(budget)),
    ):
        assert all(
            len(chosen) <= budget == len(set(chosen)) or len(set(chosen)) == len(chosen)
            for chosen in plan.sets
        )
        assert all(len(chosen) <= budget for chosen in plan.sets)
        assert {event for chosen in plan.sets for event in chosen} == set(EVENTS)


def test_disjoint_sets_count_each_event_once_in_as_few_runs_as_possible():
    plan = plan_disjoint(EVENTS, counters(4))
    assert sum(map(len, plan.sets)) == len(EVENTS)
    assert len(plan.sets) == 3


def test_overlap_is_what_earlier_runs_counted_and_each_set_brings_something_new():
    plan = plan_overlapping(EVENTS, counters(4), correlation())
    known = set(plan.sets[0])
    for chosen, overlap in list(zip(plan.sets, plan.overlap))[1:]:
        assert overlap and set(overlap) == set(chosen) & known
        assert set(chosen) - known
        known |= set(chosen)


def test_the_partner_is_the_best_correlated_event():
    names = ["cycles", "branches", "L1D", "new"]
    table = np.eye(4)
    table[3, 1] = table[1, 3] = -0.95  # strength counts, not the sign
    table[3, 0] = table[0, 3] = 0.3
    plan = plan_overlapping(names, counters(3), table)
    assert plan.sets[1] == ("branches", "new")


def test_constant_events_are_never_overlap():
    plan = plan_overlapping(EVENTS, counters(3), np.ones((len(EVENTS), len(EVENTS))), constant=["cycles"])
    assert all("cycles" not in overlap for overlap in plan.overlap)


def test_first_set_is_varied():
    first = plan_overlapping(EVENTS, counters(5), correlation()).sets[0]
    assert len({kind_of(event) for event in first}) == 5


def test_incompatible_events_are_kept_apart():
    apart = {"branches", "branch-misses"}
    plan = plan_disjoint(EVENTS, lambda chosen: len(chosen) <= 6 and not apart <= set(chosen))
    assert all(not apart <= set(chosen) for chosen in plan.sets)


def test_a_single_counter_cannot_overlap():
    with pytest.raises(UsageError, match="beside"):
        plan_overlapping(EVENTS, counters(1))
    with pytest.raises(UsageError, match="even alone"):
        plan_disjoint(EVENTS, counters(0))


def test_order_for_overlap():
    assert order_for_overlap([["d", "e"], ["a", "b", "c"], ["c", "d"]]) == [1, 2, 0]
    with pytest.raises(UsageError, match="earlier run"):
        order_for_overlap([["a", "b"], ["c"]])
