"""The hardware tier's training: events cut into passes, passes joined, key events learnt, and what the next start counts.

No PMU is needed: what fits is told by a made-up PMU of three counters, what was counted by recordings made by hand.
"""

import errno
import json

import making
import numpy as np
import pytest

from pmutop import bundle, events
from pmutop._perf import CountError
from pmutop.errors import BadInput, PmutopError
from pmutop.events import PROC_EVENTS, Event
from pmutop.pipeline.classify import TreeModel
from pmutop.recording import Recorder
from pmutop.sources import attach, budget
from pmutop.training import fingerprints, passes
from pmutop.training.catalogue import Caches, hardware
from pmutop.training.collect import Run
from pmutop.training.tiers import HARDWARE

CACHES = Caches(first=48 << 10, second=1 << 20, third=32 << 20)
NAMES = list(events.HARDWARE_IDS)


@pytest.fixture
def three_counters(monkeypatch):
    """A PMU on which three events fit; one name never counts, one is refused."""

    def share(group, pmus):
        if any(event.name == "ref-cycles" for event in group):
            raise CountError(errno.ENOENT, "perf_event_open", "ref-cycles")
        return float(len(group) <= 3 and all(event.name != "bus-cycles" for event in group))

    monkeypatch.setattr(budget, "least_share", share)
    monkeypatch.setattr(passes.sysfs, "core_pmus", lambda root="/": ["cpu"])
    monkeypatch.setattr(passes, "offered", lambda machine: [*NAMES, "no-such-event", "page-faults"])
    monkeypatch.setattr(passes, "processor", lambda: "GenuineIntel-6-207")


def test_every_event_that_counts_is_in_one_pass_and_the_clock_in_all(three_counters, monkeypatch):
    monkeypatch.setattr(budget, "TURNS", 1)
    found = passes.fitting(passes.offered(None))
    assert all(names[0] == "cycles" and len(names) <= 3 for names in found)
    counted = [name for names in found for name in names[1:]]
    assert sorted(counted) == sorted(set(NAMES) - {"cycles", "bus-cycles", "ref-cycles"})
    monkeypatch.setattr(budget, "TURNS", 12)
    assert len(passes.fitting(NAMES)) == 1
    monkeypatch.setattr(passes, "EVENTS", 2)
    assert [len(names) for names in passes.fitting(NAMES)] == [3, 3, 3, 2]


def test_without_cycles_instructions_are_the_clock(three_counters):
    assert passes.fitting(["branches", "instructions"]) == [["instructions", "branches"]]
    with pytest.raises(PmutopError, match="neither cycles nor instructions"):
        passes.fitting(["branches"])


def test_a_training_goes_on_with_the_passes_that_it_began_with(three_counters, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "TURNS", 1)
    begun = passes.passes(tmp_path)
    monkeypatch.setattr(budget, "TURNS", 12)
    again = passes.passes(tmp_path)
    assert [(place, opens.args) for place, opens in again] == [(place, opens.args) for place, opens in begun]
    assert len({place for place, _ in begun}) == len(begun) > 1
    monkeypatch.setattr(passes, "processor", lambda: "AuthenticAMD-26-2")
    with pytest.raises(PmutopError, match="holds runs of GenuineIntel-6-207, this is AuthenticAMD-26-2"):
        passes.passes(tmp_path)
    (tmp_path / passes.PLAN).write_text("[]")
    with pytest.raises(BadInput, match="not the plan"):
        passes.passes(tmp_path)


def test_counters_that_others_hold_are_told_from_those_that_are_forbidden(three_counters, monkeypatch):
    assert passes.refusal() is None
    monkeypatch.setattr(budget, "least_share", lambda group, pmus: 0.0)
    assert passes.refusal().exit_code == 1 and "others hold" in str(passes.refusal())

    def forbidden(group, pmus):
        raise CountError(errno.EACCES, "perf_event_open", "cycles")

    monkeypatch.setattr(budget, "least_share", forbidden)
    assert passes.refusal().exit_code == 3 and "perf_event_paranoid" in str(passes.refusal())


def test_features_are_per_cycle_of_their_own_pass():
    counted = (*PROC_EVENTS, *map(events.generic, ("cycles", "instructions", "LLC-loads")))
    assert passes.features(counted) == ("instructions/kc", "LLC-loads/kc")
    assert passes.features(counted[:-3] + counted[-2:]) == ("LLC-loads/ki",)
    assert passes.features(PROC_EVENTS) == ()


# ---- learning from two passes

KINDS = ("array", "list", "pointer", "branch", "rs", "fpu")
LEVELS = {"CPU": 1, "Mem_L2": 2, "Mem_L3": 3, "Mem_M": 4}
#: What each pass counts per 1000 cycles, of a workload and its number.
COUNTED = (
    {"cpu/stuck/": lambda one, number: 40 if one.pathological else 10 + number % 3, "cpu/same/": lambda one, number: 7},
    {
        "cpu/level/": lambda one, number: 100 * LEVELS[one.label[2:]] + number % 5,
        "cpu/kind/": lambda one, number: 100 * KINDS.index(one.kind) + number % 5,
        "cpu/noise/": lambda one, number: number * 37 % 101,
    },
)  # fmt: skip


def hardware_event(name):
    return Event(name, "count", "hardware", events.RAW, pmu="cpu")


@pytest.fixture
def trained(tmp_path):
    """(workloads by name, folder): a training of two passes, the second in another order and without its last run."""
    workloads = [one for one in hardware(CACHES) if not one.needs]
    folder = tmp_path / "training"
    for number, rates in enumerate(COUNTED):
        place = folder / f"pass-{number}"
        place.mkdir(parents=True)
        counted = (*PROC_EVENTS, events.generic("cycles"), *map(hardware_event, rates))
        machine = {"model": "Some CPU 9000", "processor": "GenuineIntel-6-207"}
        recorder = Recorder(str(place / "part-0.pmu"), making.header(counted, "system", machine=machine))
        tasks = [making.task(ref + 1) for ref in range(len(workloads))]
        for at in range(5):
            rows = {}
            for ref, one in enumerate(workloads):
                told = {name: rate(one, ref) * 1000 * at for name, rate in rates.items()}
                rows[ref + 1] = (
                    making.proc(run_time=at * 400_000_000) | told | {"cycles": 1_000_000 * at},
                    "R",
                )
            recorder.write(making.raw(at, rows, making.born(*tasks) if at == 0 else (), counted))
        recorder.close()
        order = list(enumerate(workloads))[:: 1 - 2 * number][: len(workloads) - number]
        runs = [Run(one.name, "part-0.pmu", 1001 + ref, 2, 4, {}) for ref, one in order]
        index = "".join(json.dumps(vars(run)) + "\n" for run in runs)
        (place / "runs.jsonl").write_text(index)
    return {one.name: one for one in workloads}, folder


def test_the_slices_of_a_workload_are_joined_over_the_passes(trained):
    workloads, folder = trained
    rows, data = fingerprints.dataset(HARDWARE, folder, workloads)
    assert data.tier.features == (
        "cpu/stuck//kc",
        "cpu/same//kc",
        "cpu/level//kc",
        "cpu/kind//kc",
        "cpu/noise//kc",
    )
    assert data.X.shape == (3 * (len(workloads) - 1), 5) and len(rows.counts) == len(data.X)
    numbers = {name: number for number, name in enumerate(workloads)}
    for row, label, run in zip(data.X, data.y, data.run, strict=True):
        one = data.workloads[run]
        told = [rate(one, numbers[one.name]) for rates in COUNTED for rate in rates.values()]
        assert label == one.label and row.tolist() == pytest.approx(told)


def test_the_model_asks_for_what_its_tree_reads_and_for_no_other_processor(trained, tmp_path):
    workloads, folder = trained
    made, report = fingerprints.make_bundle(HARDWARE, tmp_path / "made", folder, workloads, [])
    assert (
        made.card["required"] == ["cpu/kind/", "cpu/level/", "cpu/stuck/", "cycles"]
        and made.card["optional"] == []
    )
    assert sorted(made.card["recordings"]) == ["pass-0/part-0.pmu", "pass-1/part-0.pmu"]
    assert made.card["scores"]["eight labels, unseen body of a program"] == 1
    assert "cpu/level//kc" in report and len(made.card["labels"]) == 8
    asked = map(hardware_event, ("cpu/kind/", "cpu/level/", "cpu/stuck/"))
    counted = (*PROC_EVENTS, *asked, events.generic("cycles"))
    machine = {"processor": "GenuineIntel-6-207"}
    assert made.refusal(making.header(counted, machine=machine)) is None
    assert "trained on" in made.refusal(making.header(counted, machine={"processor": "AuthenticAMD-26-2"}))
    assert "not counted here" in made.refusal(making.header(counted[:-1], machine=machine))


def test_the_second_tree_says_what_kind_of_pathology_it_is(trained, tmp_path):
    workloads, folder = trained
    made, _ = fingerprints.make_bundle(HARDWARE, tmp_path / "made", folder, workloads, [])
    names = ("cpu/kind/", "cpu/level/", "cpu/stuck/")
    counted = (*PROC_EVENTS, *map(hardware_event, names), events.generic("cycles"))
    model = TreeModel(made, making.header(counted, machine={"processor": "GenuineIntel-6-207"}))
    column = {event.name: at for at, event in enumerate(counted)}

    def said(kind, level, stuck):
        increase = np.full((1, len(counted)), 1.0)
        for name, per_kc in zip(names, (100 * KINDS.index(kind), 100 * LEVELS[level], stuck), strict=True):
            increase[0, column[name]] = per_kc * 1000
        increase[0, column["cycles"]] = 1_000_000
        (label,) = model.judge(increase, np.array([ord("R")]), 0.4).labels[0]
        return label.label, label.kind

    assert said("list", "Mem_L3", 40) == ("P_Mem_L3", "list")
    assert said("fpu", "CPU", 40) == ("P_CPU", "fpu")
    assert said("fpu", "CPU", 11) == ("N_CPU", ""), "what is healthy is of no kind"


def test_counters_that_tell_nothing_apart_make_a_model_that_says_so(trained, tmp_path, monkeypatch):
    workloads, folder = trained
    monkeypatch.setattr(
        passes,
        "features",
        lambda counted: ("cpu/same//kc",) if "cpu/same/" in {e.name for e in counted} else (),
    )
    made, report = fingerprints.make_bundle(HARDWARE, tmp_path / "made", folder, workloads, [])
    assert made.card["least_confidence"] > 1 and "do not tell the labels apart" in report
    assert made.card["required"] == ["cpu/same/", "cycles"]


# ---- the next start


def test_the_next_start_counts_what_the_model_of_this_processor_asks_for(trained, tmp_path, monkeypatch):
    workloads, folder = trained
    monkeypatch.setattr(bundle, "folders", lambda: [tmp_path / "models"])
    fingerprints.make_bundle(HARDWARE, tmp_path / "models" / "hardware-fingerprints", folder, workloads, [])
    assert bundle.learnt_on("AuthenticAMD-26-2") is None
    monkeypatch.setattr(attach.sysfs, "core_pmus", lambda root="/": ["cpu"])
    monkeypatch.setattr(attach, "processor", lambda: "GenuineIntel-6-207")
    assert attach.trained_events() == ["instructions", "cycles", "cpu/kind/", "cpu/level/", "cpu/stuck/"]
    known = {name: hardware_event(name) for name in ("cpu/kind/", "cpu/level/", "cpu/stuck/")}
    resolve = attach.resolve
    monkeypatch.setattr(attach, "resolve", lambda name: known.get(name) or resolve(name))
    monkeypatch.setattr(attach, "permitted", lambda event, *_: event)
    monkeypatch.setattr(budget, "least_share", lambda group, pmus: float(len(group) <= 2))
    groups, _ = attach.choose_groups(None)
    assert [[event.name for event in group] for group in groups[-3:]] == [
        ["instructions", "cycles"],
        ["cpu/kind/", "cpu/level/"],
        ["cpu/stuck/"],
    ]
    monkeypatch.setattr(attach, "processor", lambda: "AuthenticAMD-26-2")
    groups, dropped = attach.choose_groups(None)
    assert [event.name for event in groups[-1]] == ["instructions", "cycles"] and "cpu/level/" not in dropped
