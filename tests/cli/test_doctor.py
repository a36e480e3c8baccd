"""`pmutop doctor` and `pmutop events` on this machine, whatever it is."""

import json
import os
import subprocess
import sys

import pytest

from pmutop.cli import main
from pmutop.cli.doctor import wanted
from pmutop.diagnosis import CHECKS
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


def test_needs_of_a_label_may_be_absent_a_name_or_a_list():
    assert wanted({"label": "P_OS_Wait"}) == [] and wanted({"needs": "syscalls"}) == ["syscalls"]
    assert wanted({"needs": ["a", "b"]}) == ["a", "b"] and wanted({"needs": None}) == []


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
