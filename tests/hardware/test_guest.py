"""Hardware counters without hardware: pmutop on the emulated PMU of a Linux guest (see guest.py).

Five boots: one CPU with counted instructions (exact figures; then the commands and labels), two CPUs and eight by the clock,
and no PMU as the control. Every check of
`inside/` is a test here, found by reading its name, so a check that never ran is a failure. What is measured there is an
emulated PMU's and says nothing of performance.
"""

import ast
import json
from pathlib import Path

import guest
import image
import pytest

from pmutop.cli import main

pytestmark = [pytest.mark.hardware, pytest.mark.slow, pytest.mark.timeout(600)]

INSIDE = Path(guest.__file__).with_name("inside")
EXACT = ("groups", "attach", "cores", "doctor")
COMMANDS = ("commands", "labels", "system", "lost")
#: QEMU's richest processor counts stalls as well (always 0), so that the rules have something to go by.
RICH = "max,pauth=off"
CLOCK = ("cpus", "hotplug")
EIGHT = ("eight",)
HARDWARE = ("groups", "attach", "cores", "labels")
READERS = ("system", "attach")
WITHOUT = (*HARDWARE, "nopmu")


def checks_of(*modules):
    names = []
    for module in modules:
        tree = ast.parse((INSIDE / f"{module}.py").read_text())
        found = [
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
        ]
        names += [f"{module}.{name}" for name in found]
    return names


def booted(*modules, **options):
    if reason := image.reason_to_skip():
        pytest.skip(f"no guest: {reason}")
    try:
        result = guest.boot(*modules, **options)
    except image.Unavailable as error:
        pytest.skip(f"no guest: {error}")
    print(f"guest of {', '.join(modules)}: {result.seconds:.1f} s\n{result.output}")
    return result


@pytest.fixture(scope="module")
def exact():
    return booted(*EXACT, cpus=1, icount=True)


@pytest.fixture(scope="module")
def commands():
    return booted(*COMMANDS, cpus=1, icount=True, cpu=RICH)


@pytest.fixture(scope="module")
def clock():
    return booted(*CLOCK, cpus=2, icount=False)


@pytest.fixture(scope="module")
def eight():
    return booted(*EIGHT, cpus=8, icount=False)


@pytest.fixture(scope="module")
def without():
    return booted(*WITHOUT, cpus=1, icount=True, pmu=False)


def passed(result, name):
    assert name in result.checks, f"never ran; the guest's last words:\n{result.output[-3000:]}"
    told = result.checks[name]
    print(name, told.get("facts"))
    assert told["ok"], told["trace"]


@pytest.mark.parametrize("name", checks_of(*EXACT))
def test_exact(exact, name):
    passed(exact, name)


@pytest.mark.parametrize("name", checks_of(*COMMANDS))
def test_commands(commands, name):
    passed(commands, name)


def test_recording_of_the_guest_replays_here(commands, tmp_path, capsysbinary):
    """Made on aarch64 with a PMU that this machine lacks; replayed and logged here, line for line the same."""
    passed(commands, "commands.check_recording_is_made_here_and_replayed")
    here, there = replayed("guest", commands, tmp_path, capsysbinary)
    assert here[1:] == there[1:]
    busy = [line for line in here if line.get("comm") == "spin" and line["ipc"]]
    assert busy and all(abs(line["ipc"] - 0.25) < 0.002 for line in busy)


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
def test_labels_of_the_guest_are_the_same_when_replayed_here(commands, reader, tmp_path, capsysbinary):
    """What was said live, by the model trained on x86 and by the rules, is said again from the recording."""
    passed(commands, f"labels.check_labels_through_the_{reader}_reader")
    here, there = replayed(reader, commands, tmp_path, capsysbinary)
    rows = [
        {(line["slice"], line["pid"]): line for line in lines[1:] if "pid" in line} for lines in (here, there)
    ]
    assert rows[1] and rows[1] == {
        key: rows[0][key] for key in rows[1]
    }  # live, only what was launched is shown
    said = {(label["label"], label["model"]) for line in here[1:] for label in line.get("labels", ())}
    assert {("P_OS_MinorFault", "software-fingerprints"), ("N_CPU", "rule")} <= said
    assert here[0]["replayed"] and here[0]["source"] == reader


@pytest.mark.parametrize("name", checks_of(*CLOCK))
def test_two_cpus(clock, name):
    passed(clock, name)


@pytest.mark.parametrize("name", checks_of(*EIGHT))
def test_eight_cpus(eight, name):
    passed(eight, name)


@pytest.mark.parametrize("name", checks_of(*HARDWARE))
def test_without_a_pmu_the_hardware_checks_fail(without, name):
    """A check that cannot fail is a defect."""
    assert name in without.checks
    assert not without.checks[name]["ok"]


@pytest.mark.parametrize("name", checks_of("nopmu"))
def test_without_a_pmu_pmutop_still_works(without, name):
    passed(without, name)
