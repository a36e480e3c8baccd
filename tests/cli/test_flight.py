"""`pmutop flight`, live: SIGUSR1 and rules make recordings that replay."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.live
PMUTOP = [sys.executable, "-m", "pmutop"]


def replayed(path):
    done = subprocess.run([*PMUTOP, "replay", str(path), "--log"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sigusr1_writes_the_look_back_again_and_again(tmp_path):
    process = subprocess.Popen(
        [
            *PMUTOP,
            "flight",
            "--to",
            str(tmp_path),
            "--minutes",
            "0.03",
            "--interval",
            "0.1",
            "--budget",
            "100",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while "holding" not in process.stderr.readline():
            assert process.poll() is None
        paths = []
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            paths.append(process.stdout.readline().strip())
        for _ in range(3):  # by now more than the two seconds that are held have passed
            process.send_signal(signal.SIGUSR1)
            paths.append(process.stdout.readline().strip())
            time.sleep(1)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=10)
    assert process.returncode == 143, said
    assert len(set(paths)) == 5
    lines = replayed(paths[-1])
    slices = [line["machine"]["slice"] for line in lines if "machine" in line and "slice" in line["machine"]]
    assert slices[0] > 0 and slices == list(range(slices[0], slices[-1] + 1)) and len(slices) <= 22
    assert os.getpid() in {line.get("pid") for line in lines}


def test_a_rule_writes_once(tmp_path):
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run(
            [*PMUTOP, "flight", "--to", str(tmp_path), "--when", "cpu>=10", "--pid", str(spin.pid), "--slices", "5"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    finally:
        spin.kill()
        spin.wait()
    (path,) = done.stdout.splitlines()
    assert spin.pid in {line.get("pid") for line in replayed(path)} and "written for cpu>=10" in done.stderr


def test_a_folder_that_is_not_there_is_told(tmp_path):
    done = subprocess.run(
        [*PMUTOP, "flight", "--to", str(tmp_path / "no")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "cannot write to" in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_screens_save_writes_every_slice_that_it_was_given(tmp_path, monkeypatch):
    """The key W: the Feed taps the raw slices before they are judged, whatever the view selects."""
    from making import born, header, proc, raw, task

    from pmutop.cli.screen import Feed
    from pmutop.recording import Reader
    from pmutop.selection import Selection

    class Screen:
        def __init__(self):
            self.seen = []
            self.offer = self.seen.append

        def ended(self, text):
            pass

        def fail(self, error):
            raise error

    slices = [raw(0, {1: (proc(), "S"), 2: (proc(), "S")}, born(task(1), task(2)))]
    slices += [raw(number, {1: (proc(run_time=number * 10**8), "R")}) for number in range(1, 9)]
    feed, screen = (
        Feed(header(), [], Selection(pids=frozenset({1001})), lambda: iter(slices), False),
        Screen(),
    )
    feed.run(screen)
    monkeypatch.chdir(tmp_path)
    said = feed.save()
    (path,) = tmp_path.glob("*.pmu")
    assert list(Reader(str(path))) == slices and path.name in said and "9 slices" in said
    assert len(screen.seen) == 9 and len(screen.seen[-1].tasks) == 1
    monkeypatch.chdir("/proc")
    assert "cannot write" in feed.save()
