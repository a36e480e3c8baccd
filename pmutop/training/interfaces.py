"""The interfaces that `pmutop validate` counts by: the whole process (perfex in the paper), the region around the work
(libperfex; pmutop_region.h) and the simulator (sim-outorder).

Source: Korn, Teller and Castillo, sections 2.3 and 2.4.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pmutop.analysis.accuracy import Geometry
from pmutop.errors import PmutopError
from pmutop.events import PROC, Event

#: Counts `events` over one run of a command, in their order; NaN where the interface cannot count one.
Interface = Callable[[Sequence[Event], list[str]], list[float]]


def count_process(events: Sequence[Event], command: list[str]) -> list[float]:
    """The whole process and its children, from its exec to its end; of /proc's columns the process's own."""
    from pmutop._perf import Group

    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execv(command[0], command)
        finally:
            os._exit(127)
    counted = [event for event in events if event.type != PROC]
    try:
        os.waitpid(child, os.WUNTRACED)
        before = accounts_of(child)  # of the fork; exec does not set them back
        with Group(counted, child, inherit=True, enable_on_exec=True) as group:
            os.kill(child, signal.SIGCONT)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            after, readings = accounts_of(child), group.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    check(command, status)
    values = {name: after[name] - before[name] for name in after}
    for event, (value, _, running) in zip(counted, readings):
        values[event.name] = value if running else float("nan")
    return [values[event.name] for event in events]


def accounts_of(pid: int) -> dict[str, float]:
    """What /proc says of a process that has ended and was not waited for yet (proc.rst, 1.1 to 1.3)."""
    with open(f"/proc/{pid}/stat") as file:
        stat = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/schedstat") as file:
        run_time = file.read().split()[0]
    with open(f"/proc/{pid}/status") as file:
        switches = file.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0]
    return {
        "minor-faults": float(stat[7]),
        "run-time": float(run_time),
        "voluntary-switches": float(switches),
    }


def count_region(events: Sequence[Event], command: list[str]) -> list[float]:
    """The region that the program marks, by a group of its own thread; /proc's columns have no regions."""
    from pmutop.region import environment

    counted = [event for event in events if event.type != PROC]
    with tempfile.TemporaryDirectory(prefix="pmutop-") as folder:
        path = Path(folder) / "regions.csv"
        done = subprocess.run(command, env=environment(path, counted), stdin=subprocess.DEVNULL, check=False)
        check(command, done.returncode)
        cells = path.read_text().splitlines()[1].split(",")[2:]
    values = {event.name: float(cell) if cell else float("nan") for event, cell in zip(counted, cells)}
    return [values.get(event.name, float("nan")) for event in events]


class Simulator:
    """The whole program under our QEMU plugin; `source` tells the caches it models. Close it."""

    def __init__(self) -> None:
        from pmutop.sources.simulated import SimulatedSource

        self.source = SimulatedSource()

    def __call__(self, events: Sequence[Event], command: list[str]) -> list[float]:
        from pmutop.sources.simulated import COUNTERS

        # an environment of its own: what stands there moves the stack, and with it the sets of the caches
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with subprocess.Popen(self.source.wrap(command), env={}, **quiet) as process:
            check(command, process.wait())
        self.source.find_new()
        place = self.source.place.pop((process.pid, process.pid))
        totals = dict(zip(COUNTERS, self.source.totals_at(process.pid, process.pid, place), strict=True))
        return [float(totals[event.name]) for event in events]

    @property
    def geometry(self) -> Geometry:
        caches = self.source.caches
        return Geometry(l1d=caches["l1d"][0], l2=caches["l2"][0])

    def close(self) -> None:
        self.source.close()


def check(command: list[str], status: int) -> None:
    if status:
        raise PmutopError(f"{' '.join(command)} ended with {status}: it did not do what was to be counted")
