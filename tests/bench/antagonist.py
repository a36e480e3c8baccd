"""Who does it, for real: the antagonist scenarios on two CPUs of this machine, as `pmutop log` sees them. Prints a table.

    python tests/bench/antagonist.py [seconds [attach]]      (root for the system reader and the uprobe; wants a quiet machine)

core      victim and culprit on CPU 0, the culprit 2 s on and 2 s off at a random phase, five innocents busy on CPU 1, five on
          CPU 0 at 1 % duty. Aim: named in at least 95 % of the slices in which it runs, nobody in 99 % of the others.
progress  a chase through 12 MB (and 4 MB) on CPU 0, a stream through 192 MB on CPU 1, on and off in the same way; the victim's own
          iterations tell (--progress, a uprobe). Aim: slowed is said in at least 95 % of the slices in which it is. Whether it
          is, the victim says itself, against its best: other machines of this host take the cache as well, stream or no stream.
"""

import contextlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from pmutop.training.workloads import build

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 512  # of the chase between two looks at its own clock: 35 ms alone
#: By its own clock the victim is slowed, or is not; between the two nothing is held against the verdict.
SLOW, FREE = 1.5, 1.1
HALF = 2.0  # seconds on, seconds off
SIZES = (
    "12M",
    "4M",
)  # of the chase; 4M is what stays in the last cache of a host shared with machines that we do not see


def program_of(name, cpu, *arguments) -> list[str]:
    return [str(build(name)), "--variant", "bench", "--cpus", str(cpu), "--nice", "0", *arguments]


def program(stack, name, cpu, *arguments):
    """A program pinned to one CPU, without end; ended with the stack."""
    process = stack.enter_context(
        subprocess.Popen(program_of(name, cpu, *arguments), stdout=subprocess.DEVNULL)
    )
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


def own_clock(victim: subprocess.Popen, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """(Unix seconds, rounds done until then) as the victim itself says at its end: the truth that nothing of pmutop made."""
    ended = time.time()
    victim.send_signal(signal.SIGTERM)
    said = json.loads(victim.communicate()[0])
    times = ended - said["seconds"] + np.cumsum(said["iterations"])
    return times, rounds * np.arange(1, len(times) + 1)


def progress(seconds: float, source: str, size: str) -> None:
    with contextlib.ExitStack() as stack:
        chase = program_of("app_chase", 0, "--size", size, "--count", "4K", "--repeat", str(ROUNDS))
        victim = stack.enter_context(subprocess.Popen(chase, stdout=subprocess.PIPE, text=True))
        stack.callback(victim.kill)
        culprit = program(stack, "app_triad", 1, "--size", "192M")
        time.sleep(1)
        found = watched(
            stack, culprit, victim.pid, seconds, source, "--progress", f"{build('app_chase')}:iteration"
        )
        times, done = own_clock(victim, ROUNDS)
    lines = [(on, line, (line["interference"] or {}).get("progress")) for on, _, line in found]
    lines = [(on, line, verdict) for on, line, verdict in lines if verdict]
    spans = np.array([(line["time"] - line["seconds"], line["time"]) for _, line, _ in lines])
    rate = np.diff(np.interp(spans, times, done), axis=1)[:, 0] / (spans[:, 1] - spans[:, 0])
    truth = np.percentile(rate, 95) / rate
    said = np.array([bool(verdict["verdict"]) for _, _, verdict in lines])
    factor = np.array([verdict["factor"] for _, _, verdict in lines])
    beside = np.array([on > 0.9 for on, _, _ in lines])
    right = np.array([named(line) == culprit for _, line, _ in lines])
    slow, free = truth >= SLOW, truth < FREE
    off = np.abs(factor / truth - 1)[slow]
    print(
        f"| progress, {size}, {source} | {beside.sum()}: {np.median(truth[beside]):.2f} | {slow.sum()} | {share(said[slow])} "
        f"| {share(right[slow & beside])} | {np.median(off) if len(off) else np.nan:.1%} | {free.sum()} | {share(~said[free])} |",
        flush=True,
    )


def share(which: np.ndarray) -> str:
    return f"{which.mean():.1%}" if len(which) else "-"


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
        f"\n| scenario | slices beside the stream: slower, by its own clock | slices in which it is {SLOW} times slower or more | "
        f"it is said | and the stream named | factor off by (median) | slices below {FREE} | not said |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        progress(seconds, source, size)


if __name__ == "__main__":
    main()
