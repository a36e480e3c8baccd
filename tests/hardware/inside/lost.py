"""Rings too small for a flood of switches: PERF_RECORD_LOST is counted and shown, and counts are exact again afterwards.

As it happens to users: nobody's locked memory does not suffice for rings of the usual size, and smaller ones are taken.
"""

import contextlib
import json
import resource
import subprocess
import sys

from commands import pmutop
from loops import Spin, setting

RING = 16  # KiB: some 150 samples, 2 events each; one page more is the ring's own head
FLOOD = 1_000_000, 12_000  # passes, and the pieces between which each of two loops yields to the other


@contextlib.contextmanager
def little_memory_for_rings():
    """Nobody may sample all CPUs, in rings of RING KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, hard))
    try:
        with setting("perf_event_paranoid", 0), setting("perf_event_mlock_kb", RING + 4):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))


@contextlib.contextmanager
def flood():
    """Two loops that hand the CPU to each other all the time; they end with the block."""
    with Spin(*FLOOD) as one, Spin(*FLOOD) as other:
        one.go()
        other.go()
        yield one, other
        for spin in (one, other):
            assert spin.process.stdout.readline() == b"done\n"


def told_by_the_reader():
    """Runs as nobody: lost records during a flood and after it, and whether counts are exact then."""
    from readers import LENGTHS, PAIR, Watch, exact, increases_in

    from pmutop.sources.system import SystemSource

    watch = Watch(SystemSource(0.02, PAIR, budget=10.0))
    with contextlib.closing(watch.source):
        before = watch.tick().machine
        with flood():
            for _ in range(10):
                watch.tick()
        during = watch.catch_up().machine
        found = exact(*(increases_in(watch, lengths) for lengths in LENGTHS))
        after = watch.catch_up().machine
    told = ("lost", "missing", "unknown_ns", "ring_bytes")
    print(
        json.dumps(
            found | {"machine": [{name: row[name] for name in told} for row in (before, during, after)]}
        )
    )


def check_lost_records_are_counted_and_counts_are_exact_afterwards():
    with little_memory_for_rings():
        command = [sys.executable, "-c", "import lost; lost.told_by_the_reader()"]
        done = subprocess.run(
            command, cwd=__file__.rpartition("/")[0], capture_output=True, text=True, user=65534, check=False
        )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    before, during, after = told["machine"]
    assert before["ring_bytes"] == RING << 10, before
    assert before["lost"] == before["missing"] == 0 < during["lost"], told
    assert during["missing"] > 0 and during["unknown_ns"] > before["unknown_ns"], (
        told
    )  # nobody's, not the next task's
    assert after["lost"] == during["lost"], told
    return told


#: Two such loops, and when they are done one that does not switch.
LAUNCHER = f"""import os
flood = ["spin", *map(str, {FLOOD})]
for pid in [os.posix_spawn("/opt/bin/spin", flood, os.environ) for _ in range(2)]: os.waitpid(pid, 0)
os.execv("/opt/bin/spin", ["spin", "80000000"])"""


def check_lost_records_are_in_the_log_and_ipc_is_right():
    words = [
        "--source",
        "system",
        "--budget",
        "100",
        "--interval",
        "0.2",
        "--",
        sys.executable,
        "-ISc",
        LAUNCHER,
    ]
    with little_memory_for_rings():
        lines = [json.loads(line) for line in pmutop("log", *words, user=65534).stdout.splitlines()]
    lost = [line["machine"]["lost"] for line in lines if "lost" in line.get("machine", {})]
    assert max(lost) > 1000 and lost[-1] == 0, lost
    last = max(line["slice"] for line in lines if line.get("comm") == "spin" and line["ipc"] is not None)
    rates = [line["ipc"] for line in lines if line.get("comm") == "spin" and line["slice"] == last]
    assert rates and all(abs(rate - 0.25) < 0.002 for rate in rates), rates
    return {"lost": lost}
