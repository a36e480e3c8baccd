"""The main job's own numbers on this machine: first frame, memory, slices kept, time of the models. Prints Markdown.

    python tests/bench/main_job.py [--processes 200]

First frame: from exec to the first painted title inside tmux, median of 5 warm starts. Slices kept: the log for 20 s
with a spinner on each CPU. Memory: the screen after 20 slices with that many sleeping processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PMUTOP = [sys.executable, "-m", "pmutop"]
PANE = "pmutop-bench"


def tmux(*words: str) -> str:
    return subprocess.run(["tmux", "-L", PANE, *words], capture_output=True, text=True, check=False).stdout


def first_frame() -> tuple[float, float]:
    """Seconds from the start of the process until its first frame stands in the pane, and until a key is answered."""
    tmux("new-session", "-d", "-s", PANE, "-x", "120", "-y", "36", "sleep 60")
    time.sleep(0.3)
    start = time.monotonic()
    tmux("respawn-pane", "-k", "-t", PANE, "exec " + " ".join(PMUTOP))
    while "F10" not in tmux("capture-pane", "-p", "-t", PANE):
        time.sleep(0.02)
        if time.monotonic() - start > 20:
            raise SystemExit("no first frame within 20 s")
    took = time.monotonic() - start
    tmux("send-keys", "-t", PANE, "?")
    while "Keys" not in tmux("capture-pane", "-p", "-t", PANE):
        time.sleep(0.02)
    answered = time.monotonic() - start
    tmux("kill-server")
    time.sleep(0.5)  # a server on its way out would take the next start with it
    return took, answered


def screen_memory(seconds: float) -> tuple[float, float]:
    """(resident MB, CPU % of one core) of the screen after `seconds`."""
    tmux("new-session", "-d", "-s", PANE, "-x", "120", "-y", "36", " ".join(PMUTOP))
    time.sleep(2)
    pid = int(tmux("list-panes", "-t", PANE, "-F", "#{pane_pid}"))
    before = cpu_seconds(pid)
    time.sleep(seconds)
    used = cpu_seconds(pid) - before
    resident = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) / 1024
    tmux("kill-server")
    return resident, 100 * used / seconds


def cpu_seconds(pid: int) -> float:
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def slices_kept(seconds: float) -> tuple[float, float]:
    """(slices a second, worst lateness in ms) of the log with a spinner on every CPU."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
    ]
    try:
        log = subprocess.run(
            [*PMUTOP, "log", "--active", "--slices", str(int(seconds / 0.4))], capture_output=True, check=True
        )
    finally:
        for one in spinners:
            one.kill()
            one.wait()
    lines = [json.loads(line) for line in log.stdout.splitlines()]
    times = sorted({line["time"] for line in lines if "pid" in line})
    late = [line["machine"]["late"] for line in lines if "slice" in line.get("machine", {})]
    return (len(times) - 1) / (times[-1] - times[0]), 1000 * max(late[1:])


def model_time(rows: int = 1000) -> float:
    """Milliseconds for tree and SVM on `rows` rows (median of 200 calls each, added)."""
    import numpy as np

    from pmutop.analysis.interference import LinearVerdict
    from pmutop.analysis.tree import C45Tree
    from pmutop.bundle import installed

    rng = np.random.default_rng(0)
    total = 0.0
    for bundle in installed()[0]:
        if bundle.tier != "software":
            continue
        table = rng.lognormal(size=(rows, len(bundle.card["features"])))
        if bundle.card["kind"] == "tree":
            judge = C45Tree.from_arrays(
                bundle.arrays, bundle.card["classes"], bundle.card["features"]
            ).predict_proba
        else:
            judge = LinearVerdict.from_arrays(bundle.arrays).decide
        times = []
        for _ in range(200):
            start = time.perf_counter()
            judge(table)
            times.append(time.perf_counter() - start)
        total += 1000 * statistics.median(times)
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=200)
    options = parser.parse_args()
    first_frame()
    frames, answers = zip(*(first_frame() for _ in range(5)), strict=True)
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(options.processes)]
    try:
        resident, used = screen_memory(8)
    finally:
        for one in sleepers:
            one.kill()
            one.wait()
    rate, worst = slices_kept(20)
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    print(
        f"{model[1] if model else os.uname().machine}, {os.cpu_count()} CPUs, {os.uname().release}, {time.strftime('%Y-%m-%d')}\n"
    )
    print("| what | measured | asked |\n|---|---|---|")
    print(
        f"| first frame, median of 5 warm, in tmux | {statistics.median(frames):.2f} s ({min(frames):.2f}-{max(frames):.2f}) | 0.35 s |"
    )
    print(f"| first key answered, median of the same 5 | {statistics.median(answers):.2f} s | |")
    print(
        f"| resident memory of the screen, {options.processes} more processes | {resident:.1f} MB | 62 MB |"
    )
    print(f"| CPU of the screen, {options.processes} more processes | {used:.1f} % of one core | |")
    print(f"| slices a second with every CPU busy | {rate:.3f} (worst lateness {worst:.1f} ms) | 2.45 |")
    print(f"| tree and SVM, 1000 rows | {model_time():.2f} ms | 2 ms |")


if __name__ == "__main__":
    main()
