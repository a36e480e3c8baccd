"""Micro-benchmarks of known counts through the real interfaces, and a counter that somebody skewed."""

import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from pmutop import trust
from pmutop._perf import CountError, Group
from pmutop.analysis.accuracy import Geometry
from pmutop.cli import main
from pmutop.cli.validate import table
from pmutop.errors import PmutopError
from pmutop.events import Event, generic
from pmutop.slices import Header
from pmutop.sources import simulated
from pmutop.training import validation
from pmutop.training.interfaces import Simulator, count_process, count_region
from pmutop.training.validation import TIERS, Validation
from pmutop.training.workloads import build

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
SOME = {"pages": (1, 30, 300, 1000, 3000), "loop": (10, 300, 3000), "linear": (100, 5000, 80000)}


@pytest.fixture(scope="module")
def program():
    return str(build(validation.MICRO))


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for benchmark, sizes in SOME.items():
        monkeypatch.setitem(validation.SIZES, benchmark, sizes)


@pytest.fixture
def countable():
    try:
        Group([generic("page-faults")], 0).close()
    except CountError as error:
        pytest.skip(f"software events cannot be counted here: {error}")


@pytest.fixture
def simulator():
    try:
        made = Simulator()
    except PmutopError as error:
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.mark.parametrize("kind", validation.SIZES)
def test_every_benchmark_does_what_it_says(program, kind):
    for size in (16, 160):
        subprocess.run([program, kind, str(size), "check"], check=True)
    assert subprocess.run([program, kind, "0"], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("tier", TIERS.values(), ids=TIERS)
def test_every_event_has_a_prediction_for_every_size(tier):
    for benchmark, events in tier.events.items():
        predicted = validation.predict(benchmark, validation.SIZES[benchmark], Geometry())
        for quantity in events.values():
            assert predicted[quantity].shape == (len(validation.SIZES[benchmark]),)
            assert (np.diff(predicted[quantity]) >= 0).all() and predicted[quantity][-1] > 0


def measured(program, interfaces, tmp_path, rounds=2):
    run = Validation(TIERS["software"], program, interfaces, tmp_path / "notes", ["pages"])
    assert [done for done, _ in run.measure(rounds)] == list(range(1, rounds + 1))
    return run


def skewed(interface, factor):
    """The fault: a counter of page faults that drops or invents some of each hundred."""

    def count(events, command):
        counts = interface(events, command)
        return [
            value * factor if event.name == "page-faults" else value for event, value in zip(events, counts)
        ]

    return count


def test_a_right_counter_is_trusted_by_either_interface(countable, program, tmp_path):
    run = measured(program, {"process": count_process, "region": count_region}, tmp_path)
    rows = {
        (row.accuracy.event, row.accuracy.interface): row.accuracy
        for row in validation.rows_of(run, Geometry())
    }
    assert set(rows) == {("page-faults", "process"), ("page-faults", "region"), ("minor-faults", "process")}
    assert all(row.slope == pytest.approx(1, abs=0.02) for row in rows.values())
    assert rows["page-faults", "region"].overhead < 10 < rows["page-faults", "process"].overhead
    assert rows["page-faults", "region"].corrected != "do not trust"
    assert rows["page-faults", "process"].within_5 > rows["page-faults", "region"].within_5


@pytest.mark.parametrize("factor", [0.5, 0.85, 1.3])
def test_a_skewed_counter_is_reported(countable, program, tmp_path, factor):
    run = measured(program, {"region": skewed(count_region, factor)}, tmp_path)
    assert validation.verdicts(validation.rows_of(run, Geometry())) == {"page-faults": "do not trust"}


def test_an_interrupted_validation_goes_on_where_it_stopped(countable, program, tmp_path):
    notes = tmp_path / "notes"
    run = Validation(TIERS["software"], program, {"region": count_region}, notes, ["pages"])
    next(run.measure(3))
    before = notes.read_text()
    again = Validation(TIERS["software"], program, {"region": count_region}, notes, ["pages"])
    assert [done for done, _ in again.measure(3)] == [2, 3]
    assert notes.read_text().startswith(before)
    other = Validation(TIERS["software"], program, {"process": count_process}, notes, ["pages"])
    assert [done for done, _ in other.measure(1)] == [1]  # another interface: from the start
    notes.write_text("{torn")
    assert [done for done, _ in other.measure(1)] == [1]


def test_a_program_that_fails_is_no_count(countable, program):
    for interface in (count_process, count_region):
        with pytest.raises(PmutopError, match="ended with 1"):
            interface([generic("page-faults")], [program, "nonsense", "1"])


def test_the_simulator_repeats_to_the_digit_and_counts_every_instruction(simulator, program):
    def counts(kind, size):
        return dict(
            zip(
                simulated.COUNTERS,
                simulator(simulated.SIMULATED_EVENTS, [program, kind, str(size)]),
                strict=True,
            )
        )

    short, long = counts("loop", 100), counts("loop", 300)
    assert counts("loop", 300) == long
    predicted = validation.predict("loop", (200,), Geometry())
    for event in ("instructions", "loads", "stores", "branches"):
        assert long[event] - short[event] == predicted[event][0], event


def test_a_large_program_is_held_against_the_simulator(simulator, program):
    """With the simulator itself, skewed, in the place of a PMU that is not here."""
    names = ("instructions", "L1-dcache-loads")
    groups = {"loop": [[generic(name) for name in names]]}
    right = dict(
        zip(simulated.COUNTERS, simulator(simulated.SIMULATED_EVENTS, [program, "loop", "50"]), strict=True)
    )

    def counters(events, command):
        assert [event.name for event in events] == list(names)
        return [1.25 * right["instructions"], right["loads"]]

    found = validation.large(groups, TIERS["hardware"], counters, simulator, [program, "loop", "50"])
    assert found == {
        "instructions": (1.25 * right["instructions"], right["instructions"]),
        "L1-dcache-loads": (right["loads"], right["loads"]),
    }
    shown = table({"tier": "hardware", "repetitions": 1, "rows": [], "large": found})
    assert "instructions" in shown and "+25.0% against the simulator" in shown


# ---- verdicts that are kept ----

HEADER = Header(
    "0", "h", "b", {"processor": "p-1", "kernel": "6"}, "attach", "", 0.4, (generic("task-clock"),)
)


def test_headers_carry_the_verdicts_of_their_machine_and_tier():
    assert trust.judged(HEADER) == HEADER
    trust.keep("p-1 6", "software", {"task-clock": "trust above 2.5e+06"})
    trust.keep("p-1 6", "hardware", {"task-clock": "do not trust"})
    assert trust.judged(HEADER).events[0].trust == "counted, trust above 2.5e+06"
    assert (
        trust.judged(replace(HEADER, machine={"processor": "p-1", "kernel": "7"})).events[0].trust
        == "counted"
    )
    modelled = Event("loads", "count", "simulated", -2, trust="modelled")
    assert trust.judged(replace(HEADER, events=(modelled,))).events == (modelled,)


@pytest.mark.parametrize(
    "text",
    ["{torn", "[1]", '{"p-1 6": 3}', '{"p-1 6": {"software": []}}', '{"p-1 6": {"software": {"task-clock": "\\u001b[2J"}}}'],
)  # fmt: skip
def test_a_damaged_file_says_nothing(text):
    trust.file().parent.mkdir(parents=True, exist_ok=True)
    trust.file().write_text(text)
    assert trust.judged(HEADER) == HEADER
    trust.keep("p-1 6", "software", {"task-clock": "trust"})
    assert trust.judged(HEADER).events[0].trust == "counted, trust"


def test_the_command_prints_stores_and_forgets(countable, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["validate", "--tier", "software", "--only", "pages", "--repetitions", "2"]
    assert main([*words, "--program", str(build(validation.MICRO)), "--json"]) == 0
    said = capsys.readouterr()
    (tier,) = json.loads(said.out)["tiers"]
    assert set(tier["verdicts"]) == {"page-faults", "minor-faults"} and tier["repetitions"] == 2
    assert "2 of 2 rounds" in said.err
    assert not list((tmp_path / "cache").rglob("*.jsonl"))  # finished: the next one measures anew
    assert main(["log", "--source", "attach", "--slices", "1"]) == 0
    events = {
        event["name"]: event["trust"]
        for event in json.loads(capsys.readouterr().out.splitlines()[0])["events"]
    }
    assert events["minor-faults"] == f"counted, {tier['verdicts']['minor-faults']}"
    assert events["run-delay"] == "counted"
    assert main(["validate", "--forget"]) == 0
    assert trust.judged(HEADER) == HEADER and not any(trust.read().values())
    assert main(["validate", "--only", "nonsense"]) == 2
    assert main(["validate", "--tier", "software", "--only", "loop"]) == 2
    assert main(["validate", "--repetitions", "0"]) == 2
