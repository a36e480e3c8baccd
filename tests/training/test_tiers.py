"""The table of tiers: every feature can be computed from what its source counts, and runs are held out whole."""

import numpy as np
import pytest

from pmutop.events import PROC_EVENTS
from pmutop.pipeline.features import needs
from pmutop.sources.simulated import COUNTERS
from pmutop.training.catalogue import BUILDS, Caches, simulated
from pmutop.training.fingerprints import Dataset, KeyEventTree
from pmutop.training.fingerprints_scores import folds_of, predicted
from pmutop.training.tiers import SIMULATED, TIERS, size_ranks

CACHES = Caches(first=48 << 10, second=1 << 20, third=32 << 20)


def test_simulated_features_need_nothing_but_what_the_simulator_counts():
    known = {event.name for event in PROC_EVENTS} | set(COUNTERS)
    assert {event for name in SIMULATED.features for event in needs(name)} <= known
    assert len(set(SIMULATED.features)) == len(SIMULATED.features)


@pytest.mark.parametrize("tier", TIERS.values(), ids=list(TIERS))
def test_every_label_of_a_tier_has_its_words(tier):
    labels = {workload.label for workload in tier.workloads()}
    assert labels <= tier.texts.keys()
    assert {label for label in labels if label.startswith("P_")} <= tier.advice.keys()


def test_simulated_workloads_have_each_size_once_and_all_builds():
    rows = simulated(CACHES)
    memory = [row for row in rows if row.size and row not in mixtures()]
    assert len({(row.program, row.body, row.size, row.variant) for row in memory}) == len(memory)
    for size in {row.size for row in memory}:
        assert {row.options for row in memory if row.size == size} == set(BUILDS)
    assert {row.twin for row in rows if row.twin} == {row.name for row in rows if not row.twin}


def mixtures():
    return [row for row in simulated(CACHES) if {"--between", "--step"} & set(row.arguments)]


def test_a_mixture_is_admitted_apart_and_its_healthy_twin_named_for_what_it_mostly_does():
    by_name = {row.name: row for row in simulated(CACHES)}
    plain = {SIMULATED.admit_by(row) for row in by_name.values() if row.twin and row not in mixtures()}
    for row in mixtures():
        if row.twin:
            assert SIMULATED.admit_by(row) not in plain
            expected = "N_CPU" if row.label != "P_CPU" else "N_Mem_"
            assert by_name[row.twin].label.startswith(expected) and by_name[row.twin].size == row.size


def test_size_ranks_hold_out_one_size_of_every_level():
    rows = simulated(CACHES)
    ranks = size_ranks(rows)
    assert set(ranks) == {"0", "1", "2"}
    of_size = {(row.size, rank) for row, rank in zip(rows, ranks, strict=True) if row.size}
    assert len(of_size) == 9  # three levels, three sizes, one rank each
    rank_of = {row.name: rank for row, rank in zip(rows, ranks, strict=True)}
    assert all(rank_of[row.name] == rank_of[row.twin] for row in rows if row.twin and row.size)


def test_a_held_out_group_is_never_learnt_from():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(12), 5)
    fold = folds_of(group)
    assert all(len(set(fold[group == one])) == 1 for one in range(12))
    # each group's label is its own secret: whoever has not seen the group cannot know it
    y = np.array([f"secret {one}" for one in group])
    X = rng.normal(size=(60, len(SIMULATED.features)))
    X[:, 0] = group
    data = Dataset(SIMULATED, X, y, group, [])
    assert (predicted(data, y, group) != y).all()


def test_what_is_rarer_than_a_cost_is_no_reason_for_a_label():
    """Traces separate these classes perfectly; what can cost anything does so nearly as well, and is what must be asked."""
    traces = np.where(np.arange(200) < 100, 0.0, 0.004)
    costly = np.where(np.arange(200) < 100, 0.0, 20.0)
    costly[:3], costly[-3:] = 20.0, 0.0
    X = np.column_stack([traces, costly])
    y = np.where(np.arange(200) < 100, "N_CPU", "P_Mem_M")
    names = ("l2-misses/ki", "l3-misses/ki")
    asked = [KeyEventTree(names, 0, 5, negligible).fit(X, y).tree.used_features for negligible in (0.0, 0.03)]
    assert [[names[one] for one in used] for used in asked] == [["l2-misses/ki"], ["l3-misses/ki"]]
