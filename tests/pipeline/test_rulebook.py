import numpy as np
import pytest
from making import EVENTS, born, header, proc, raw, task

from pmutop.bundle import Bundle, left_to_rules
from pmutop.events import RAW, Event, generic
from pmutop.pipeline.engine import Engine

HARDWARE = EVENTS + tuple(
    generic(name) for name in ("cycles", "instructions", "branch-misses", "cache-misses")
)
INTEL, AMD, ZEN5, ARM = "GenuineIntel-6-85", "AuthenticAMD-25-1", "AuthenticAMD-26-2", "0x41-0xd07"


def moment(processor=INTEL, events=HARDWARE, **counts):
    spelt = {event.name.replace("-", "_"): event.name for event in events}
    numbers = proc(run_time=300_000_000) | {
        spelt[name]: value for name, value in counts.items() if name in spelt
    }
    engine = Engine(header(events=events, machine={"processor": processor}), [])
    engine.moment(raw(0, {1: (proc(), "R")}, born(task(1)), events=events))
    return engine.moment(raw(1, {1: (numbers, "R")}, events=events))


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


@pytest.mark.parametrize(
    "processor, label",
    [(INTEL, "P_Mem_M"), (AMD, "P_Mem_L3"), (ARM, "P_Mem_L2"), ("never heard of", "P_Mem_M")],
)
def test_the_generic_cache_misses_are_of_the_level_that_the_kernel_gives_them(processor, label):
    """The same counts: misses of the last level on Intel, of the L2 on AMD, of the first level on Arm."""
    seen = moment(processor, cycles=100_000_000, instructions=5_000_000, cache_misses=2_000_000)
    assert seen.labels[0][0].label == label


def test_without_misses_or_stalls_counted_nothing_is_called_healthy():
    events = EVENTS + tuple(generic(name) for name in ("cycles", "instructions", "branch-misses"))
    said = [
        moment(events=events, cycles=4_000_000, instructions=1_000_000, branch_misses=number).labels[0][0]
        for number in (0, 30_000)
    ]
    assert [(label.label, label.model) for label in said] == [("unknown", "rule"), ("P_CPU", "rule")]


def test_stalls_of_zen5_are_slots_eight_to_a_cycle():
    stalls = Event("de_no_dispatch_per_slot.backend_stalls", "count", "hardware", RAW, 0)
    events = EVENTS + (generic("cycles"), generic("instructions"), stalls)
    said = [
        moment(ZEN5, events, cycles=1_000_000, instructions=100_000, **{stalls.name: 800_000 * slots}).labels[
            0
        ][0]
        for slots in (1, 8)
    ]
    assert [(label.label, label.kind) for label in said] == [("N_CPU", ""), ("P_CPU", "rs")]


def test_rules_are_never_mixed_with_a_trained_model():
    facts = {"tier": "hardware", "kind": "tree"}
    assert left_to_rules(header(events=HARDWARE), []) and not left_to_rules(header(), [])
    assert not left_to_rules(header(events=HARDWARE), [Bundle(None, facts)])
