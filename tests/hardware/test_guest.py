"""Hardware counters without hardware: pmutop on the emulated PMU of a Linux guest (see guest.py).

Seven boots: one CPU with counted instructions (exact figures; the commands; labels and the system reader; one profile from many
runs), two CPUs and eight by the clock, and no PMU as the control. Every check of `inside/` is a test here, found by reading its name, so a check that never ran is a
failure. What is measured there is an emulated PMU's and says nothing of performance.
"""

import ast
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guest
import image
import pytest

from pmutop import bundle
from pmutop.cli import main
from pmutop.sources import machine

pytestmark = [pytest.mark.hardware, pytest.mark.slow, pytest.mark.timeout(600)]

INSIDE = Path(guest.__file__).with_name("inside")
READERS = ("system", "attach")


def checks_of(boot):
    """'module.check_name' of every check of a boot."""
    names = []
    for module in guest.BOOTS[boot][0]:
        tree = ast.parse((INSIDE / f"{module}.py").read_text())
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        names += [f"{module}.{name}" for name in functions if name.startswith("check_")]
    return names


@pytest.fixture(scope="module")
def guests(request):
    """The boots that the chosen tests ask for, under way."""
    ours = [item for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(guest.AT_ONCE) as pool:
        yield guest.boots({name for item in ours for name in item.fixturenames}, pool)


def fixture_of(name):
    @pytest.fixture(scope="module", name=name)
    def booted(guests):
        try:
            result = guests[name].result()
        except image.Unavailable as error:
            pytest.skip(f"no guest: {error}")
        print(f"guest {name}: {result.seconds:.1f} s\n{result.output}")
        return result

    return booted


exact, commands, labels, many, without, two, eight = map(fixture_of, guest.BOOTS)


def passed(result, name):
    assert name in result.checks, f"never ran; the guest's last words:\n{result.output[-3000:]}"
    told = result.checks[name]
    print(name, told.get("facts"))
    assert told["ok"], told["trace"]


@pytest.mark.parametrize("name", checks_of("exact"))
def test_exact(exact, name):
    passed(exact, name)


@pytest.mark.parametrize("name", checks_of("commands"))
def test_commands(commands, name):
    passed(commands, name)


@pytest.mark.parametrize("name", checks_of("many"))
def test_many_runs(many, name):
    passed(many, name)


@pytest.mark.parametrize("name", checks_of("labels"))
def test_labels(labels, name):
    passed(labels, name)


def test_recording_of_the_guest_replays_here(commands, tmp_path, capsysbinary):
    """Made on aarch64 with a PMU that this machine lacks; replayed and logged here, line for line the same."""
    passed(commands, "commands.check_recording_is_made_here_and_replayed")
    here, there = replayed("guest", commands, tmp_path, capsysbinary)
    assert here[1:] == there[1:]
    busy = [line for line in here if line.get("comm") == "spin" and line["ipc"]]
    assert busy and all(abs(line["ipc"] - 0.25) < 0.002 for line in busy)


def test_a_model_trained_in_the_guest_is_refused_here(commands, tmp_path, capsys):
    passed(commands, "fingerprints.check_a_training_counts_every_event_in_passes_that_fit")
    for name in ("card.json", "arrays.npz"):
        (tmp_path / name).write_bytes(commands.files[name])
    assert "it was trained on" in bundle.read(tmp_path).foreign(machine.describe())
    capsys.readouterr()
    assert main(["log", "--slices", "1", "--model", str(tmp_path)]) == 4
    assert "model hardware-fingerprints cannot be used here" in capsys.readouterr().err


def replayed(name, result, folder, capsysbinary):
    """The lines of a recording made in the guest: (as this machine replays it, as the guest logged it)."""
    recording = folder / f"{name}.pmutop"
    recording.write_bytes(result.files[recording.name])
    capsysbinary.readouterr()
    assert main(["replay", str(recording), "--log"]) == 0
    here = capsysbinary.readouterr().out
    return [
        [json.loads(line) for line in text.splitlines()] for text in (here, result.files[f"{name}.jsonl"])
    ]


@pytest.mark.parametrize("reader", READERS)
def test_labels_of_the_guest_are_the_same_when_replayed_here(labels, reader, tmp_path, capsysbinary):
    """What was said live, by the model trained on x86 and by the rules, is said again from the recording."""
    passed(labels, f"labels.check_labels_through_the_{reader}_reader")
    here, there = replayed(reader, labels, tmp_path, capsysbinary)
    rows = [
        {(line["slice"], line["pid"]): line for line in lines[1:] if "pid" in line} for lines in (here, there)
    ]
    assert rows[1] and rows[1] == {
        key: rows[0][key] for key in rows[1]
    }  # live, only what was launched is shown
    said = {(label["label"], label["model"]) for line in here[1:] for label in line.get("labels", ())}
    assert {("P_OS_RunQueue", "software-fingerprints"), ("N_CPU", "rule")} <= said
    assert here[0]["replayed"] and here[0]["source"] == reader


@pytest.mark.parametrize("name", checks_of("two"))
def test_two_cpus(two, name):
    passed(two, name)


@pytest.mark.parametrize("name", checks_of("eight"))
def test_eight_cpus(eight, name):
    passed(eight, name)


@pytest.mark.parametrize("name", checks_of("without"))
def test_without_a_pmu_the_hardware_checks_fail(without, name):
    """A check that cannot fail is a defect; and what is left for such a machine still works."""
    if name.startswith("nopmu."):
        return passed(without, name)
    assert name in without.checks
    assert not without.checks[name]["ok"]
