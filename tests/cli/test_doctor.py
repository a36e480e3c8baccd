"""`pmutop doctor` and `pmutop events` on this machine, whatever it is."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import making
import pytest

from pmutop.bundle import SHIPPED, read
from pmutop.cli import doctor, main
from pmutop.diagnosis import CHECKS
from pmutop.events import PROC_EVENTS, Event
from pmutop.scene import LEVELS
from pmutop.topology import Machine


def test_json_names_every_finding_and_tier(capsys):
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {finding["check"] for finding in told["findings"]} <= {check.name for check in CHECKS}
    assert all(finding["level"] in LEVELS and finding["text"] for finding in told["findings"])
    assert [tier["tier"] for tier in told["tiers"]] == ["hardware", "simulated", "software"]
    assert told["machine"]["cpus"] == len(Machine.read().online)
    for model in told["models"]:
        assert all(label["shown"] != bool(label["why"]) for label in model["labels"])


def test_text_pairs_each_problem_with_what_to_type(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "verdicts on this machine:" in text
    assert main(["doctor", "--json"]) == 0
    for finding in json.loads(capsys.readouterr().out)["findings"]:
        if finding["level"] != "good" and finding["fix"]:
            assert finding["fix"] in text


def test_labels_that_need_nothing_more_are_shown_without_perf_events(monkeypatch, capsys):
    """The shipped software model where only /proc may be read, and where every event is counted."""
    model = read(SHIPPED / "software-fingerprints")
    counted = (*PROC_EVENTS, *(Event(name, "count", "software", 1) for name in model.card["optional"]))
    shown = {}
    for events in (PROC_EVENTS, counted):
        source = SimpleNamespace(header=making.header(events), close=lambda: None)
        monkeypatch.setattr(doctor, "open_source", lambda options, source=source: source)
        assert main(["doctor", "--json"]) == 0
        tiers = {tier["tier"]: tier for tier in json.loads(capsys.readouterr().out)["tiers"]}
        shown[len(events)] = set(tiers["software"]["labels"])
    everybody = {one["label"] for one in model.card["labels"] if one["needs"].startswith("nothing")}
    assert everybody <= shown[len(PROC_EVENTS)] < shown[len(counted)]
    assert shown[len(counted)] >= {one["label"] for one in model.card["labels"]}


def interpreter_is_for_all() -> bool:
    try:
        return (
            subprocess.run(
                [sys.executable, "-c", "import pmutop"], user=65534, check=False, capture_output=True
            ).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become nobody")
def test_doctor_works_for_nobody_with_another_users_home(tmp_path):
    command = [sys.executable, "-m", "pmutop", "doctor", "--json"]
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    if not interpreter_is_for_all():
        pytest.skip("nobody may not run this interpreter")
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": str(home)},
        user=65534,
        group=65534,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert "CAP_SYS_ADMIN" not in found["capabilities"]["text"]


def test_events_lists_generic_names_and_says_what_opens(capsys):
    assert main(["events", "--json", "clock"]) == 0
    listed = {event["name"]: event["opens"] for event in json.loads(capsys.readouterr().out)["events"]}
    assert listed["task-clock"] and "cycles" not in listed
    assert main(["events", "clock"]) == 0
    assert "task-clock" in capsys.readouterr().out
