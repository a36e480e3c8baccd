import numpy as np
from making import EVENTS, born, header, proc, raw, task

from pmutop.bundle import Bundle, left_to_rules
from pmutop.events import generic
from pmutop.pipeline.engine import Engine

HARDWARE = EVENTS + tuple(
    generic(name) for name in ("cycles", "instructions", "branch-misses", "cache-misses")
)


def moment(**counts):
    numbers = proc(run_time=300_000_000) | {name.replace("_", "-"): value for name, value in counts.items()}
    engine = Engine(header(events=HARDWARE), [])
    engine.moment(raw(0, {1: (proc(), "R")}, born(task(1)), events=HARDWARE))
    return engine.moment(raw(1, {1: (numbers, "R")}, events=HARDWARE))


def test_branch_misses_above_five_in_a_thousand():
    label = moment(cycles=4_000_000, instructions=2_000_000, branch_misses=30_000, cache_misses=0).labels[0][
        0
    ]
    assert (label.label, label.kind, label.model, label.confidence) == ("P_CPU", "branch", "rule", 0.0)


def test_waiting_for_memory():
    seen = moment(cycles=100_000_000, instructions=5_000_000, branch_misses=100, cache_misses=300_000)
    assert seen.labels[0][0].label == "P_Mem_M" and "dram_bound" in seen.paths[0][0] and seen.ipc[0] == 0.05


def test_nothing_to_complain_of():
    seen = moment(cycles=4_000_000, instructions=8_000_000, branch_misses=100, cache_misses=10)
    assert seen.labels[0][0].label == "N_CPU" and seen.ipc[0] == 2


def test_without_cycles_the_rules_abstain():
    seen = moment(cycles=(0, 0, 0), instructions=8_000_000, branch_misses=100, cache_misses=10)
    assert seen.labels[0][0].label == "unknown" and np.isnan(seen.ipc[0])


def test_rules_are_never_mixed_with_a_trained_model():
    facts = {"tier": "hardware", "kind": "tree"}
    assert left_to_rules(header(events=HARDWARE), []) and not left_to_rules(header(), [])
    assert not left_to_rules(header(events=HARDWARE), [Bundle(None, facts)])
