"""The tour, live: what it starts gets the label that it carries, and nothing is left behind."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc: the workloads cannot be built"),
]
DEMO = [sys.executable, "-m", "pmutop", "demo"]


def workloads_of(pid):
    """Processes that were started for (and would be ended with) process `pid`."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"--parent" in words and words[words.index(b"--parent") + 1] == str(pid).encode():
            found.append(int(name))
    return found


@pytest.mark.slow
def test_each_workload_is_called_by_its_label():
    process = subprocess.Popen(
        [*DEMO, "--seconds", "14"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    right = 0
    for line in out.splitlines():
        label, also, first = re.fullmatch(r"(\w+)(?: \(or (\w+)\))?: (\w+) .*", line).groups()
        right += first in (label, also)
    assert len(out.splitlines()) == err.count("/5 ") == 5 and right >= 3, (
        out
    )  # on a busy machine anybody waits, and is called so
    assert workloads_of(process.pid) == []


def test_on_a_terminal_the_screen_points_at_it_and_leaves_nothing_behind():
    pyte = pytest.importorskip("pyte")
    pid, master = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execv(sys.executable, [*DEMO, "--seconds", "10"])
    screen = pyte.Screen(80, 24)
    emulator = pyte.ByteStream(screen)

    def read_until(pattern, seconds=60.0):
        end = time.monotonic() + seconds
        while not re.search(pattern, "\n".join(screen.display)):
            assert time.monotonic() < end, "\n".join(screen.display)
            if select.select([master], [], [], 0.1)[0]:
                data = os.read(master, 1 << 16)
                emulator.feed(re.sub(rb"\x1b\[[<>=][\d;]*u|\x1b\[\?\d+\$p|\x1b\]22;[^\x07]*\x07", b"", data))

    try:
        read_until(r"1/5 P_OS_Switch: two hand one byte")
        read_until(r"os_switch")
        assert workloads_of(pid)
        read_until(r"that was the tour")
        assert workloads_of(pid) == []
        os.write(master, b"q")
        end = time.monotonic() + 10
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            assert time.monotonic() < end
            if select.select([master], [], [], 0.1)[0]:
                try:
                    os.read(master, 1 << 16)
                except OSError:
                    pass
        assert os.waitstatus_to_exitcode(ended[1]) == 0
    finally:
        os.close(master)
