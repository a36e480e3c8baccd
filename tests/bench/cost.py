"""What pmutop costs beside its peers: the same terminals, the same minutes, the same sleeping processes.

    python tests/bench/cost.py [--tools pmutop,htop,...] [--sizes 200,1000,5000] [--seconds 30]
    python tests/bench/cost.py --switches [--rounds 9]

The first prints CPU, refreshes, memory and first frame of every tool in a tmux pane of 200 x 50; the second the CPU time that
each adds to a context switch. Needs tmux, cc and whichever peers are installed; runs them together, so only the figures of
one run may be compared. Medians where there are rounds;
'by the least' is the difference of the two smallest, which a busy neighbour disturbs less. Root, for pmutop's system reader and for perf.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EVENTS = "task-clock,page-faults,context-switches,cpu-migrations"
TOOLS = {
    "pmutop": [sys.executable, "-m", "pmutop"],
    "htop": ["htop", "-d", "4"],
    "btop": ["btop", "--utf-force"],
    "top": ["top", "-d", "0.4"],
    "tiptop": ["tiptop", "-d", "0.4", "-i"],
    "perf": ["perf", "stat", "-e", EVENTS, "--per-thread", "-a", "-I", "400"],
}
PAINTED = 25  # lines that are not empty: the list is there
SETTLE = 3.0  # seconds after the last first frame
BURST = 0.1  # a pause in the output that long ends a refresh
TICKS = os.sysconf("SC_CLK_TCK")
STAMP = """import os, sys, time
with open(sys.argv[1], "w") as file:
    while os.read(0, 65536):
        print(time.monotonic(), file=file, flush=True)
"""


def build(folder: Path) -> None:
    for name, flags in (("pool", []), ("pingpong", []), ("no_pmu", ["-shared", "-fPIC", "-ldl"])):
        subprocess.run(
            ["cc", "-O2", "-o", str(folder / name), str(HERE / "programs" / f"{name}.c"), *flags], check=True
        )


class Panes:
    """A tmux server of our own, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "config/btop").mkdir(parents=True)
        (folder / "config/btop/btop.conf").write_text("update_ms = 400\nproc_per_core = False\n")
        keep = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        self.environment = keep | {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONPATH": str(ROOT),
        }

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self.folder / "tmux"), "-f", "/dev/null", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        ).stdout.strip()

    def start(self, tool: str) -> int:
        command = " ".join(TOOLS[tool])
        if tool == "tiptop":
            command = f"env LD_PRELOAD={self.folder}/no_pmu {command}"
        self.tmux("new-session", "-d", "-s", tool, "-x", "200", "-y", "50", "exec " + command)
        return int(self.tmux("list-panes", "-t", f"={tool}:", "-F", "#{pane_pid}") or 0)

    def record(self, tool: str) -> Path:
        """From now on the time of everything the tool writes goes into a file."""
        file = self.folder / f"{tool}.times"
        stamp = self.folder / "stamp.py"
        stamp.write_text(STAMP)
        self.tmux("pipe-pane", "-t", f"={tool}:", f"exec {sys.executable} -S {stamp} {file}")
        return file

    def lines(self, tool: str) -> int:
        return sum(
            bool(line.strip()) for line in self.tmux("capture-pane", "-p", "-t", f"={tool}:").splitlines()
        )

    def close(self) -> None:
        self.tmux("kill-server")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its children included (those that it has waited for, and those that live)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    total = sum(map(int, fields[11:15])) / TICKS
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            total += cpu_seconds(int(child))
        except OSError:
            continue
    return total


def memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise OSError(f"{pid} has ended")


def bursts(file: Path, seconds: float) -> float:
    times = [float(word) for word in file.read_text().split()] if file.exists() else []
    return sum(later - sooner > BURST for sooner, later in zip(times, times[1:])) / seconds


def side_by_side(panes: Panes, tools: list[str], seconds: float) -> dict[str, dict]:
    """Every tool in its pane at once: {tool: {cpu, refreshes, rss, first}}; a tool that ended is left out."""
    pids, first = {}, {}
    for tool in tools:
        began = time.monotonic()
        pids[tool] = panes.start(tool)
        enough = 3 if tool == "perf" else PAINTED
        while time.monotonic() < began + 20:
            if panes.lines(tool) >= enough:
                first[tool] = time.monotonic() - began
                break
            time.sleep(0.005)
    time.sleep(SETTLE)
    files = {tool: panes.record(tool) for tool in tools}
    time.sleep(0.5)
    before = {}
    for tool in tools:
        try:
            before[tool] = (time.monotonic(), cpu_seconds(pids[tool]))
        except OSError:
            print(f"({tool} did not start)", file=sys.stderr)
    time.sleep(seconds)
    found = {}
    for tool, (began, used) in before.items():
        try:
            cpu = (cpu_seconds(pids[tool]) - used) / (time.monotonic() - began)
            found[tool] = {"cpu": 100 * cpu, "rss": memory(pids[tool]), "first": first.get(tool)}
        except OSError:
            print(f"({tool} ended by itself)", file=sys.stderr)
    for tool, row in found.items():
        row["refreshes"] = bursts(files[tool], seconds)
    for tool in tools:
        panes.tmux("kill-session", "-t", f"={tool}")
    return found


def table(folder: Path, tools: list[str], sizes: list[int], seconds: float) -> None:
    print("| processes | tool | CPU % | of htop's | refreshes/s | RSS MB | first frame s |")
    print("|---|---|---|---|---|---|---|")
    for size in sizes:
        with subprocess.Popen([str(folder / "pool"), str(size), "10"], stdout=subprocess.PIPE) as pool:
            try:
                pool.stdout.readline()
                panes = Panes(Path(tempfile.mkdtemp(dir=folder)))
                (panes.folder / "no_pmu").symlink_to(folder / "no_pmu")
                try:
                    found = side_by_side(panes, tools, seconds)
                finally:
                    panes.close()
            finally:
                pool.terminate()
        htop = found.get("htop", {}).get("cpu")
        for tool, row in found.items():
            ratio = f"{row['cpu'] / htop:.2f}" if htop else "-"
            began = f"{row['first']:.2f}" if row["first"] else "-"
            print(
                f"| {size} | {tool} | {row['cpu']:.2f} | {ratio} | {row['refreshes']:.2f} | {row['rss']:.0f} | {began} |",
                flush=True,
            )


# ------------------------------------------------------------------------------------------- cost of a context switch

READERS = {  # what runs while two processes pass a byte to and fro
    "groups of 4, per CPU (pmutop's system reader)": "reader 4",
    "the same, where the idle task is silent": "reader-records 4",
    "no events, only who ran": "reader 0",
    "pmutop log (default events)": "log",
    "perf stat --per-thread -a": "perf",
}


def reader(kind: str) -> None:
    """Runs in a process of its own until it is interrupted: the native core alone, ready when it says so."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit())
    sys.path.insert(0, str(ROOT))
    from pmutop._switches import Switches
    from pmutop.events import generic

    name, _, width = kind.partition(" ")
    names = ["page-faults", "cpu-migrations", "minor-faults", "major-faults"][: int(width)]
    events = [generic(name) for name in names] or [generic("task-clock")]
    with Switches(events, periods=0, records=name == "reader-records") as switches:
        switches.start()
        for _ in range(4):
            switches.next()
        print("ready", flush=True)
        while True:
            switches.next()


def observer(kind: str) -> subprocess.Popen:
    command = {
        "log": [sys.executable, "-m", "pmutop", "log", "--output", os.devnull],
        "perf": ["perf", "stat", "-o", os.devnull, *TOOLS["perf"][2:]],
    }.get(kind, [sys.executable, str(Path(__file__).resolve()), "--reader", kind])
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if kind.startswith("reader"):
        process.stdout.readline()
    else:
        time.sleep(2)
    return process


def switch_cost(folder: Path, cpu: int, seconds: float, rate: float) -> tuple[float, float]:
    out = subprocess.run(
        [str(folder / "pingpong"), str(cpu), str(seconds), str(rate)],
        capture_output=True,
        text=True,
        check=True,
    )
    cost, reached = out.stdout.split()
    return float(cost), float(reached)


def switch_table(
    folder: Path, rounds: int, seconds: float, cpu: int, rates: list[float], kinds: list[str]
) -> None:
    print(
        "| switches/s asked | observer | added ns per switch (median, quartiles) | by the least | bare ns | switches/s reached |"
    )
    print("|---|---|---|---|---|---|")
    for rate in rates:
        for title, kind in READERS.items():
            if (kinds and kind not in kinds) or (kind == "perf" and not shutil.which("perf")):
                continue
            added, bare, seen, reached = [], [], [], []
            for _ in range(rounds):
                before, _ = switch_cost(folder, cpu, seconds, rate)
                process = observer(kind)
                during, achieved = switch_cost(folder, cpu, seconds, rate)
                process.send_signal(signal.SIGINT)
                process.communicate()
                after, _ = switch_cost(folder, cpu, seconds, rate)
                added.append(during - (before + after) / 2)
                bare.extend((before, after))
                seen.append(during)
                reached.append(achieved)
            low, middle, high = statistics.quantiles(added, n=4) if len(added) > 1 else added * 3
            asked = f"{rate:,.0f}" if rate else "as many as can be"
            print(
                f"| {asked} | {title} | {middle:.0f} ({low:.0f}..{high:.0f}) | {min(seen) - min(bare):.0f} |"
                f" {statistics.median(bare):.0f} |"
                f" {statistics.median(reached):,.0f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sizes", default="200,1000,5000")
    parser.add_argument("--seconds", type=float, default=30, help="of measurement for each size")
    parser.add_argument(
        "--switches", action="store_true", help="measure the cost of a context switch instead"
    )
    parser.add_argument("--rates", default="0,10000,100000", help="switches a second, 0 = as many as can be")
    parser.add_argument(
        "--observers", action="append", choices=READERS.values(), help="with --switches: only these"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        return reader(options.reader)
    tools = [tool for tool in options.tools.split(",") if shutil.which(TOOLS[tool][0])]
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release()}\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))
        if options.switches:
            rates = [float(rate) for rate in options.rates.split(",")]
            switch_table(
                Path(scratch), options.rounds, min(options.seconds, 2), options.cpu, rates, options.observers
            )
        else:
            table(Path(scratch), tools, [int(size) for size in options.sizes.split(",")], options.seconds)


if __name__ == "__main__":
    main()
