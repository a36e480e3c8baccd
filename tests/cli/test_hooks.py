"""--on, live: a process that really spins fires a rule; a wrong rule is wrong usage."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.live
PMUTOP = [sys.executable, "-m", "pmutop"]


def test_a_busy_process_starts_the_command(tmp_path):
    (tmp_path / "hook").write_text(
        f'#!/bin/sh\necho "$PMUTOP_PID $PMUTOP_CPU" >> {tmp_path}/told\necho noise\n'
    )
    (tmp_path / "hook").chmod(0o755)
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        rule = ["--on", "cpu>=10 for 0.6s", str(tmp_path / "hook"), "--pid", str(spin.pid)]
        done = subprocess.run(
            [*PMUTOP, "log", "--slices", "7", *rule], capture_output=True, text=True, check=True
        )
    finally:
        spin.kill()
        spin.wait()
    told = (tmp_path / "told").read_text().split()
    assert told[0] == str(spin.pid) and float(told[1]) >= 10 and len(told) == 2
    assert "noise" not in done.stdout


@pytest.mark.parametrize("command", ["log", "export", "flight"])
def test_a_wrong_rule_is_wrong_usage_and_names_the_place(command):
    done = subprocess.run(
        [*PMUTOP, command, "--on", "label=x cpu=5", "true"], capture_output=True, text=True, check=False
    )
    assert (
        done.returncode == 2
        and "column 12: cpu is compared by >=" in done.stderr
        and len(done.stderr.splitlines()) == 1
    )


def test_a_live_log_is_whole_through_a_hundred_rotations_under_load(tmp_path):
    """Every CPU busy, a slice each 50 ms, a file per slice: each slice's machine line is there once, in order."""
    path = tmp_path / "log"
    spins = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    rotate = ["--rotate-size", "1K", "--keep", "1000"]
    try:
        subprocess.run(
            [*PMUTOP, "log", "--interval", "0.05", "--slices", "110", "--output", str(path), *rotate],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    finally:
        for spin in spins:
            spin.kill()
            spin.wait()
    files = [*sorted(tmp_path.glob("log.*"), key=lambda one: -int(one.suffix[1:])), path]
    parts = [[json.loads(line) for line in one.read_text().splitlines()] for one in files]
    assert len(parts) == 110 and all(part[0] == parts[0][0] and part[0]["schema"] for part in parts)
    slices = [
        line["machine"]["slice"] for part in parts for line in part if "slice" in line.get("machine", {})
    ]
    assert slices == list(range(110))
    assert all(
        {line["slice"] for line in part if "pid" in line} <= {part[-1]["machine"]["slice"]} for part in parts
    )
