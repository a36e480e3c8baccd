"""Who does it, for real: the antagonist scenarios on two CPUs of this machine, as `pmutop log` sees them. Prints a table.

    python tests/bench/antagonist.py [seconds [attach]]      (root for the system reader and the uprobe; wants a quiet machine)

core      victim and culprit on CPU 0, the culprit 2 s on and 2 s off at a random phase, five innocents busy on CPU 1, five on
          CPU 0 at 1 % duty. Aim: named in at least 95 % of the slices in which it runs, nobody in 99 % of the others.
progress  a chase through 12 MB (and 8 MB) on CPU 0, a stream through 192 MB on CPU 1, on and off in the same way; the victim's own
          iterations tell (--progress, a uprobe). Aim: slowed in at least 95 % of the slices in which the stream runs.
"""

import contextlib
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from pmutop.training.workloads import build

ROOT = Path(__file__).parent.parent.parent
HALF = 2.0  # seconds on, seconds off
SIZES = ("12M", "8M")  # of the chase: what is left of the last cache on a shared host is less than lscpu says


def program(stack, name, cpu, *arguments):
    """A program pinned to one CPU, without end; ended with the stack."""
    command = [str(build(name)), "--variant", "bench", "--cpus", str(cpu), "--nice", "0", *arguments]
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
    stack.callback(process.kill)
    return process.pid


class Pulse(threading.Thread):
    """Stops and continues a process, 2 s each, from a random phase on; `on` holds (from, to) in Unix seconds."""

    def __init__(self, pid: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.phase, self.over, self.on = (
            pid,
            random.Random(seed).uniform(0, HALF),
            threading.Event(),
            [],
        )

    def run(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        wait = self.phase
        while not self.over.wait(wait):
            began = time.time()
            os.kill(self.pid, signal.SIGCONT)
            self.over.wait(HALF)
            os.kill(self.pid, signal.SIGSTOP)
            self.on.append((began, time.time()))
            wait = HALF


def watched(stack, culprit: int, victim: int, seconds: float, source: str, *options: str):
    """[(share of the slice in which the culprit was let run, its CPU %, the victim's line)] by a log of its own."""
    pulse = Pulse(culprit, seed=int(time.time()))
    pulse.start()
    stack.callback(lambda: (pulse.over.set(), pulse.join()))
    command = [sys.executable, "-m", "pmutop", "log", "--source", source, "--slices", str(round(seconds / 0.4)),
               "--pid", f"{victim},{culprit}", *options]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    pulse.over.set()
    pulse.join()
    slices: dict[int, dict[int, dict]] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if "pid" in line:
            slices.setdefault(line["slice"], {})[line["pid"]] = line
    found = []
    for lines in slices.values():
        if victim in lines and lines[victim]["wait"] is not None:
            end, length = lines[victim]["time"], lines[victim]["seconds"]
            on = sum(max(0.0, min(end, to) - max(end - length, begin)) for begin, to in pulse.on) / length
            found.append((on, (lines.get(culprit) or {}).get("cpu") or 0.0, lines[victim]))
    return found


def named(line) -> int | None:
    return ((line["interference"] or {}).get("antagonist") or {}).get("pid")


def suspect(line) -> str:
    """'name pid' of whoever is named, '' for nobody."""
    who = (line["interference"] or {}).get("antagonist")
    return f"{who['comm']} {who['pid']}" if who else ""


def core(seconds: float, source: str) -> None:
    with contextlib.ExitStack() as stack:
        victim = program(stack, "app_matrix", 0, "--side", "160")
        culprit = program(stack, "app_matrix", 0, "--side", "160")
        for _ in range(5):
            program(stack, "app_matrix", 1, "--side", "160")
            program(stack, "app_matrix", 0, "--side", "16", "--duty", "1")
        time.sleep(1)
        found = watched(stack, culprit, victim, seconds, source)
    runs = [line for _, cpu, line in found if cpu > 0]
    rests = [line for _, cpu, line in found if cpu == 0]
    right = sum(named(line) == culprit for line in runs)
    wrong = sum(named(line) not in (culprit, None) for line in runs)
    quiet = sum(named(line) is None for line in rests)
    print(
        f"| core, {source} | {len(runs)} | {right / len(runs):.1%} | {wrong / len(runs):.1%} | {len(rests)} "
        f"| {quiet / len(rests):.1%} |",
        flush=True,
    )
    others = Counter(suspect(line) for line in [*rests, *(one for one in runs if named(one) != culprit)])
    print("".join(f"<!-- {count} times {who} -->\n" for who, count in others.items() if who), end="")


def progress(seconds: float, source: str, size: str) -> None:
    with contextlib.ExitStack() as stack:
        victim = program(stack, "app_chase", 0, "--size", size, "--count", "4K")
        culprit = program(stack, "app_triad", 1, "--size", "192M")
        time.sleep(1)
        found = watched(
            stack, culprit, victim, seconds, source, "--progress", f"{build('app_chase')}:iteration"
        )
    told = [(on, line, (line["interference"] or {}).get("progress")) for on, _, line in found]
    whole = [one for one in told if one[0] > 0.9]
    rests = [one for one in told if one[0] == 0]
    known = [verdict for _, _, verdict in whole if verdict]
    slowed = sum(bool(verdict["verdict"]) for verdict in known)
    free = sum(not (verdict and verdict["verdict"]) for _, _, verdict in rests)
    right = sum(named(line) == culprit for _, line, _ in whole)
    factors = sorted(verdict["factor"] for verdict in known if verdict["factor"]) or [float("nan")]
    low, high = factors[len(factors) // 20], factors[-1 - len(factors) // 20]
    print(
        f"| progress, {size}, {source} | {len(whole)} | {slowed / max(1, len(whole)):.1%} | {statistics.median(factors):.2f} "
        f"({low:.2f}-{high:.2f}) | {right / max(1, len(whole)):.1%} | {len(rests)} | {free / max(1, len(rests)):.1%} |",
        flush=True,
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    source = sys.argv[2] if len(sys.argv) > 2 else "system"
    load = os.getloadavg()[0]
    print(
        f"{time.strftime('%Y-%m-%d')}, {platform.release()}, {os.cpu_count()} CPUs, load before: {load:.1f}\n"
    )
    print(
        "| scenario | slices in which it runs | it is named | another is | slices without it | nobody is named |"
    )
    print("|---|---|---|---|---|---|")
    core(seconds, source)
    print(
        "\n| scenario | slices with the stream | slowed | factor, median (5-95 %) | the stream is named | without | not slowed |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        progress(seconds, source, size)


if __name__ == "__main__":
    main()
