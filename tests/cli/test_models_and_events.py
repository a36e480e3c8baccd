"""`pmutop models install` on this and other processors, and what `pmutop events` says of scarce counters."""

import machines
import pytest

from pmutop import bundle
from pmutop.cli import events as events_command
from pmutop.cli import main
from pmutop.cli import models as models_command
from pmutop.events import generic
from pmutop.sources import budget
from pmutop.topology import Machine

CARD = {
    "name": "made-there",
    "kind": "tree",
    "tier": "hardware",
    "features": [],
    "required": ["cycles"],
    "optional": [],
    "labels": [],
    "blind": [],
    "machine": {"model": "Some CPU 9000", "processor": "GenuineIntel-6-207"},
    "scores": {},
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "user_folder", lambda: tmp_path / "user")
    return bundle.write(tmp_path / "made", CARD, {}).folder


def test_a_bundle_of_the_same_processor_is_installed_without_a_word(made, monkeypatch, capsys):
    monkeypatch.setattr(models_command, "describe", lambda: {"processor": "GenuineIntel-6-207"})
    assert main(["models", "install", str(made)]) == 0
    told = capsys.readouterr().out
    assert "installed made-there" in told and "not used" not in told
    assert (
        main(["models"]) == 0
        and "not used" not in capsys.readouterr().out.partition("made-there")[2].partition("needs")[0]
    )


def test_a_bundle_of_another_processor_says_so(made, monkeypatch, capsys):
    monkeypatch.setattr(models_command, "describe", lambda: {"processor": "GenuineIntel-6-173"})
    assert main(["models", "install", str(made)]) == 0
    told = capsys.readouterr().out
    assert "not used on this machine" in told and "Some CPU 9000" in told and "GenuineIntel-6-173" in told


def test_events_shows_the_drop_order(tmp_path, monkeypatch):
    """A PMU of two counters: what is most important is kept, what is least important goes first."""
    machines.intel_server(tmp_path, sockets=1, cores=2)
    monkeypatch.setattr(budget, "probe", lambda names: dict.fromkeys(names, 0))
    monkeypatch.setattr(budget, "share", lambda group: float(len(group) <= 2))
    monkeypatch.setattr(budget, "free_counters", lambda machine: {"cpu": 2})
    monkeypatch.setattr(
        events_command.sysfs,
        "resolve",
        lambda name: generic("cycles").__class__(name, "count", "hardware", 0),
    )
    told = events_command.listing(Machine.read(tmp_path))
    wanted = [key["event"] for key in told["key_events"]]
    assert told["kept"] == wanted[:2] == ["instructions", "cycles"]
    assert told["drop_order"] == wanted[::-1]
    text = "\n".join(events_command.report(told))
    assert f"drop order, the first to go first: {wanted[-1]}, " in text
    assert "as counters are free now: instructions, cycles" in text
