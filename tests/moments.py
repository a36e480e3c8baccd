"""Made-up Moments for tests of the screen: plausible ones, and hostile ones. Nothing here is measured."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from pmutop import moment as m
from pmutop.events import PROC_EVENTS, generic
from pmutop.slices import Header, Task

EVENTS = PROC_EVENTS + (generic("context-switches"), generic("cpu-migrations"))
TWINS = EVENTS + (generic("instructions"), generic("cycles"))
NAMES = (
    "redis-server",
    "postgres",
    "nginx",
    "python3",
    "backup.sh",
    "kworker/0:1",
    "sshd",
    "java",
    "gzip",
    "systemd",
)
LABELS = ("P_OS_Faults", "P_OS_Switches", "P_OS_Wait", "P_OS_Forks", "N_OS_Compute", "N_OS_Stream", m.UNKNOWN)
HOSTILE = (
    "\x1b[31mred\x1b[0m", "a\nb\rc\td", "\x9b2J\x07", "[bold]x[/bold]", "\u202eexe.txt", "数据库サーバ", "bad\udcff", "Z\u0351\u036b",
    "x" * 400, "", "\u200b\u200d", "🔥🔥", "a\u1160b", "\0nul",
)  # fmt: skip


def header(ipc: bool = False, hostile: bool = False, cpus: int = 2) -> Header:
    return Header(
        version="0.1.0",
        host="db-7" if not hostile else "h\x1b[2Jost",
        boot="b007",
        machine={"model": "Example CPU 3000", "cpus": cpus, "kernel": "6.18.5", "hypervisor": "KVM"},
        source="attach",
        why="no right to read other users' counters (perf_event_paranoid 3)",
        interval=0.4,
        events=TWINS if ipc else EVENTS,
        absent={"LLC-load-misses": "this machine has no hardware PMU (virtual machine)"},
    )


class World:
    """A machine of `rows` processes; `moment(n)` is its slice n, the same for the same seed."""

    def __init__(
        self,
        rows: int = 60,
        seed: int = 1,
        hostile: bool = False,
        ipc: bool = False,
        change: float = 1.0,
        cpus: int = 2,
        history: bool = True,
    ):
        import numpy as np  # not at the top: the first frame does not wait for it

        self.np = np
        self.random = np.random.default_rng(seed)
        self.history = history  # are there exact periods?
        self.rows, self.hostile, self.change = rows, hostile, change
        self.header = header(ipc, hostile, cpus)
        names = HOSTILE if hostile else NAMES
        self.tasks = []
        for row in range(rows):
            pid = 100 + row * 7 if not hostile else 4_194_000 + row
            name = names[row % len(names)]
            kernel = name.startswith("kworker")
            self.tasks.append(
                Task(row + 1, pid, pid, self.tasks[row // 3].pid if row else 1, 1.7e9 + row, name[:15], "root" if row % 3 else "postgres",
                     f"/system.slice/{name}.service", "" if kernel else f"/usr/bin/{name} --number {row} --config /etc/{name}.conf", kernel)
            )  # fmt: skip
        self.base = np.where(self.random.random(rows) < 0.3, self.random.random(rows) * 60, 0.0)
        self.busy = np.flatnonzero(self.base)
        self.cpu = self.base.copy()
        self.kinds = self.random.integers(0, len(LABELS), rows)
        self.sure = 0.6 + 0.4 * self.random.random(rows)

    def moment(self, number: int, exited: tuple[int, ...] = ()) -> m.Moment:
        np = self.np
        rows, events, random = self.rows, len(self.header.events), self.random
        moving = self.busy[random.random(len(self.busy)) < self.change]
        self.cpu[moving] = np.clip(self.base[moving] + random.normal(0, 4, len(moving)), 0.1, 100)
        self.sure[moving] = 0.6 + 0.4 * random.random(len(moving))
        counts = np.where(
            self.cpu[:, None] > 0, random.integers(0, 100_000, (rows, events)).astype(float), 0.0
        )
        quality = np.zeros((rows, events), np.uint8)
        if events > 4:
            counts[:, 3], quality[:, 3] = np.nan, m.UNCOUNTED
        labels, reasons, interference, paths = {}, {}, {}, {}
        for row in self.busy.tolist():
            name = LABELS[self.kinds[row]]
            confidence = 0.0 if name == m.UNKNOWN else float(self.sure[row])
            labels[row] = (
                m.Label(name, "stride" if row % 2 else "", confidence, "software", "base-software"),
            )
            if name.startswith("P_"):
                reasons[row] = (
                    m.Reason("minor-faults", 0.62, 61000.0, 120.0, "1/s of run time"),
                    m.Reason("run-delay", 0.25, 3.1e8, 1e7, "ns/s"),
                    m.Reason("context-switches", 0.13, 900.0, 850.0, "1/s"),
                )
                paths[row] = ("minor-faults > 5 200 per second", "run-delay <= 12 %")
            if row % 4 == 0:
                other = m.Antagonist(self.tasks[-1].pid, self.tasks[-1].comm, "core", 0.83, 4.0, 61.0)
                interference[row] = m.Interference(
                    m.Resource(True, 2.13, 0.9),
                    m.Resource(False, 1.0, -1.2),
                    m.UNSEEN,
                    m.UNSEEN,
                    m.UNSEEN,
                    other,
                )
        gone = np.zeros(rows, bool)
        gone[list(exited)] = True
        nan = np.full(rows, np.nan)
        periods = [
            (cpu, self.tasks[self.busy[(number // 5 + cpu) % len(self.busy)]].ref, int(cpu * 1e6), int(cpu * 1e6 + 3e8)) for cpu in range(2)
        ] if self.history and len(self.busy) else None  # fmt: skip
        return m.Moment(
            header=self.header, number=number, time=1.75e9 + number * 0.4, seconds=0.4003, late=0.0001, tasks=self.tasks,
            state=["R" if value > 0 else "S" for value in self.cpu], threads=np.ones(rows, int), exited=gone, cpu=self.cpu.copy(),
            wait=np.where(self.cpu > 30, self.cpu / 3, 0.0), ipc=nan if len(self.header.events) == len(EVENTS) else self.cpu / 40,
            rss=np.arange(rows) * 1_000_000 + 4096.0, nice=np.zeros(rows), counts=counts, quality=quality, labels=labels,
            reasons=reasons, interference=interference, paths=paths,
            periods=np.array(periods, np.int64) if periods else None,
            machine={"own_cpu": 1.23, "own_rss": 47 << 20, "lost": 0, "switches": 1284, "cpu_busy": [float(value) for value in
                     random.random(self.header.machine["cpus"]) * 100], "psi": {"cpu": 12.0, "io": 0.3, "memory": 0.0}},
        )  # fmt: skip


NOTES = (
    "# Labels that can be given here (software tier)",
    "P_OS_Wait, P_OS_Faults, P_OS_Switches, P_OS_Forks and their healthy twins N_OS_...",
    "# Labels that cannot",
    "P_Mem_L2, P_Mem_L3, P_Mem_M, P_CPU: they need hardware counters, and this machine has none (KVM guest).",
    "# For more, type",
    "$ sudo sysctl kernel.perf_event_paranoid=1",
    "$ pmutop doctor",
)
ADVICE = {
    "P_OS_Faults": "The process takes page faults all the time. Look for memory that is mapped and unmapped in a loop; keep buffers."
}


def drive(app, world: World, interval: float = 0.4, slices: int = 10**9, film: int = 0) -> threading.Thread:
    """A thread that offers a Moment each interval, as the engine does; notes how long each hand-over took.

    With `film`, that many Moments are made beforehand and shown in turn, so that making them costs nothing meanwhile.
    """

    def run() -> None:
        reel = [world.moment(number) for number in range(film)]
        start = time.monotonic()
        for number in range(1, slices + 1):
            now = (
                replace(reel[number % film], number=number, time=1.75e9 + number * 0.4)
                if film
                else world.moment(number)
            )
            time.sleep(max(0.0, start + number * interval - time.monotonic()))
            before = time.monotonic()
            app.offer(now)
            app.handed.append((number, time.monotonic() - before))

    app.handed = []  # (slice, seconds that the hand-over took)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def main(rows: int = 60, interval: float = 0.4, seconds: float = 1e9, flavour: str = "") -> int:
    """The real screen on a made-up machine: `python tests/moments.py ROWS INTERVAL SECONDS [hostile,ipc,ascii,quiet]`."""
    from pmutop.tui.app import PmutopApp, run_screen
    from pmutop.tui.state import State

    def start() -> None:
        world = World(
            rows,
            hostile="hostile" in flavour,
            ipc="ipc" in flavour,
            change=0.1 if "quiet" in flavour else 1.0,
        )
        drive(app, world, interval, film=20 if "film" in flavour else 0)

    head = header(ipc="ipc" in flavour, hostile="hostile" in flavour)
    app = PmutopApp(State(head, NOTES, ADVICE), start, ascii_only="ascii" in flavour)
    app.handed = []
    if seconds < 1e8:
        threading.Timer(seconds, lambda: app.call_from_thread(app.exit)).start()
    code = run_screen(app)
    if "HANDED" in os.environ:
        Path(os.environ["HANDED"]).write_text("\n".join(f"{number} {took}" for number, took in app.handed))
    return code


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(*(kind(text) for kind, text in zip((int, float, float, str), arguments))))
