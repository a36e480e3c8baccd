"""The simulated reader: a launched command runs under QEMU with our plugin (ext/simulator), which models caches, TLBs,
branch prediction and chains of dependent instructions; its counters are polled from a shared page at each tick.

Slices, tasks and /proc columns are the attach reader's own; tasks that run under the simulator have the modelled columns
too, all others have them uncounted. User mode only; no cycles, no stalls, no contention between programs. Threads,
forked children and what they execute stay under the simulator.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import shutil
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pmutop.errors import PmutopError, UsageError
from pmutop.events import PROC_EVENTS, Event
from pmutop.slices import Record, Task
from pmutop.sources.attach import AttachSource
from pmutop.sources.identity import read_text
from pmutop.topology import Machine

MODELLED = -2  # Event.type: neither perf's nor /proc's

#: In the order of ext/simulator/counters.h; of user mode, running totals of each thread.
COUNTERS = (
    "instructions",
    "loads",  # instructions that read memory, once each however wide
    "stores",
    "l1d-misses",  # of loads and stores; what the prefetcher fetched is not among them
    "l2-misses",
    "l3-misses",
    "l1i-misses",
    "l2i-misses",
    "l3i-misses",
    "dtlb-misses",  # of the first level (64 pages)
    "dtlb-walks",  # of the second (2048) as well
    "itlb-misses",
    "itlb-walks",
    "prefetches",  # lines that the prefetcher brought into the first cache
    "prefetch-l2-misses",  # lines that it asked for and the second cache did not hold
    "prefetch-l3-misses",
    "branches",  # conditional ones
    "branch-misses",
    "indirect-branches",
    "indirect-misses",
    "calls",
    "fp-ops",
    "x87-ops",
    "microcoded-ops",
    "div-ops",
    "mul-ops",
    "wide-ops",  # carries, double shifts, bit scans: arithmetic on more than one word
    "string-ops",
    "atomic-ops",
    "path-instructions",  # a sample of the instructions, on which the two below are measured
    "path-depth",  # what they would take on an ideal core that waits for nothing but operands
    "path-loads",  # loads in their longest chain of loads that wait for one another
)
SIMULATED_EVENTS = tuple(Event(name, "count", "simulated", MODELLED, trust="modelled") for name in COUNTERS)

#: What the counters do not tell, for Header.absent.
ABSENT = dict.fromkeys(
    ("cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"),
    "the simulator models no time",
)

#: Used where sysfs does not describe a cache: bytes, ways.
USUAL_CACHES = {"l1d": (32 << 10, 8), "l1i": (32 << 10, 8), "l2": (1 << 20, 16), "l3": (0, 1)}

# ext/simulator/counters.h: the page's head, and of each slot
HEAD = struct.Struct("<QIIII")
SLOT = struct.Struct("<IIII")
MAGIC = 0x31304D49534D5550
FIRST_SLOT = 4096
PLACES = 512
SLOT_SIZE = SLOT.size + 8 * len(COUNTERS) + 8 + 8 * PLACES
NEXT = 16  # where the number of claimed slots stands
FREE, LIVE, ENDED = range(3)

#: Rough costs in cycles of this many of each counter, from which the slow-down is estimated (within a factor of 2 as a rule).
COSTS = {"l1d-misses": 4, "l2-misses": 25, "l3-misses": 150, "branch-misses": 15, "indirect-misses": 15}
CYCLES_PER_NS = 4.0


class SimulatedSource(AttachSource):
    """A Source of RawSlices of commands that were started as `wrap(command)` (see slices.Source).

    interval: seconds. caches: {"l1d" | "l1i" | "l2" | "l3": (bytes, ways)} instead of this machine's, size 0 for none.
    prefetch: whether sequential lines are fetched ahead. Raises PmutopError where QEMU or the plugin is missing.
    """

    def __init__(
        self,
        interval: float = 0.4,
        caches: Mapping[str, tuple[int, int]] | None = None,
        prefetch: bool = True,
    ) -> None:
        self.emulator, self.plugin = find_emulator(), find_plugin()
        super().__init__(interval, names=[])
        self.caches = machine_caches() | dict(caches or {})
        self.events = PROC_EVENTS + SIMULATED_EVENTS
        self.prefetch = prefetch
        told = {name: list(size) for name, size in self.caches.items()} | {"prefetch": prefetch}
        self.header = replace(
            self.header,
            source="simulated",
            why=f"modelled by our plugin in {Path(self.emulator).name}; the program runs slower than it is",
            events=self.events,
            absent=ABSENT,
            machine=self.header.machine | {"simulated": told},
        )
        self.folder = tempfile.mkdtemp(
            prefix="pmutop-simulated-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        )
        self.page: mmap.mmap | None = None
        self.claimed = 0  # slots of the page that were looked at
        self.place: dict[tuple[int, int], int] = {}  # (pid, tid) -> offset of its counters in the page
        self.before: dict[
            tuple[int, int], tuple[int, ...]
        ] = {}  # totals until a task executed another program
        self.read_places: dict[tuple[int, int], int] = {}
        self.estimate = (0.0, 0.0)  # run time and estimated native time until the last slice, ns
        self.slow_down: float | None = None

    # ------------------------------------------------------------------------------------------------ the command

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command line that runs `command` under the simulator; raises UsageError where it is no program that can."""
        return [*self.prefix, *program_of(list(command))]

    @property
    def prefix(self) -> list[str]:
        caches = ",".join(f"{name}={size}:{ways}" for name, (size, ways) in self.caches.items())
        page = os.path.join(self.folder, "page")
        return [
            self.emulator,
            "-cpu",
            "max",
            "-plugin",
            f"{self.plugin},page={page},{caches},prefetch={int(self.prefetch)}",
        ]

    def particulars(self, slot: int) -> Task:
        """The program's own name and command line, not the emulator's."""
        task = super().particulars(slot)
        words = read_text(f"/proc/{task.pid}/cmdline").rstrip("\0").split("\0")
        own = self.prefix
        if words[: len(own)] != own:
            self.place.pop((task.pid, task.tid), None)  # it has executed something else
            return task
        words = words[len(own) :]
        if words[0] == "-0":  # executed by a simulated program: what it calls itself, then its path
            words = [words[1], *words[3:]]
        renamed = task.comm != os.path.basename(self.emulator)[:15]
        comm = task.comm if renamed else os.path.basename(words[0])[:15]
        return task._replace(comm=comm, cmdline=" ".join(words) if task.is_process else "")

    # ------------------------------------------------------------------------------------------------ the counters

    def records(
        self, born: list[int], renamed: list[int], gone: list[int], rows: list[int]
    ) -> tuple[Record, ...]:
        """A task that executed another program has a new slot of the page, under the emulator's old name."""
        again = self.find_new()
        executed = [slot for slot in rows if self.scanner.task(slot)[:2] in again]
        return super().records(born, [*renamed, *executed], gone, rows)

    def blocks(self, rows: list[int]) -> tuple[bytes, bytes]:
        counts, levels = self.scanner.blocks()
        width, more = len(PROC_EVENTS) * 24, len(COUNTERS)
        open_for = self.scanner.stamp
        not_simulated = bytes(more * 24)
        emulators_own = (
            struct.pack("<QQQ", 0, open_for, open_for) * more
        )  # its threads that run nothing of the program
        simulated = {pid for pid, _ in self.place}
        run_time = native = 0.0
        parts = []
        for number, slot in enumerate(rows):
            parts.append(counts[number * width : (number + 1) * width])
            pid, tid = self.scanner.task(slot)[:2]
            place = self.place.get((pid, tid))
            if place is None:
                parts.append(emulators_own if pid in simulated else not_simulated)
                continue
            values = self.totals_at(pid, tid, place)
            parts.append(
                struct.pack(f"<{3 * more}Q", *(x for value in values for x in (value, open_for, open_for)))
            )
            run_time += struct.unpack_from("<Q", counts, number * width)[0]
            native += native_time(values)
        before, self.estimate = self.estimate, (run_time, native)
        spent, would = run_time - before[0], native - before[1]
        self.slow_down = round(spent / would, 1) if would > 0 and spent > 0 else None
        return b"".join(parts), levels

    def totals_at(self, pid: int, tid: int, place: int) -> tuple[int, ...]:
        """The task's running totals, those of the programs included that it was before it executed another."""
        values = struct.unpack_from(f"<{len(COUNTERS)}Q", self.page, place)
        before = self.before.get((pid, tid))
        return values if before is None else tuple(map(sum, zip(values, before, strict=True)))

    def find_new(self) -> set[tuple[int, int]]:
        """Look at the slots that were claimed since the last tick; one that is not filled in yet is left for the next.
        Returns the (pid, tid) that had a slot before: they have executed another program."""
        again: set[tuple[int, int]] = set()
        if self.page is None:
            self.page = open_page(os.path.join(self.folder, "page"))
            if self.page is None:
                return again
        slots = HEAD.unpack_from(self.page)[2]
        upto = struct.unpack_from("<I", self.page, NEXT)[0]
        while self.claimed < upto:
            offset = FIRST_SLOT + self.claimed % slots * SLOT_SIZE
            state, pid, tid, _ = SLOT.unpack_from(self.page, offset)
            if state == FREE or not tid:
                break
            if (pid, tid) in self.place:
                self.before[pid, tid] = self.totals_at(pid, tid, self.place[pid, tid])
                self.read_places.pop((pid, tid), None)
                again.add((pid, tid))
            self.place[pid, tid] = offset + SLOT.size
            self.claimed += 1
        return again

    def places(self) -> list[tuple[int, int]]:
        """(pid, address) where its threads were, noted by the plugin each time that so much had cost them; those since
        the last call, the last PLACES of each thread at most."""
        found = []
        for (pid, tid), place in self.place.items():
            start = place + 8 * len(COUNTERS)
            noted = struct.unpack_from("<Q", self.page, start)[0]
            first = max(self.read_places.get((pid, tid), 0), noted - PLACES)
            for number in range(first, noted):
                found.append((pid, struct.unpack_from("<Q", self.page, start + 8 + number % PLACES * 8)[0]))
            self.read_places[pid, tid] = noted
        return found

    def forget(self, slot: int) -> None:
        pid, tid = self.scanner.task(slot)[:2]
        self.place.pop((pid, tid), None)
        self.read_places.pop((pid, tid), None)
        self.before.pop((pid, tid), None)
        super().forget(slot)

    def totals(self) -> dict:
        return super().totals() | ({"slow_down": self.slow_down} if self.slow_down else {})

    def close(self) -> None:
        super().close()
        if self.page is not None:
            self.page.close()
            self.page = None
        shutil.rmtree(self.folder, ignore_errors=True)


def open_page(path: str) -> mmap.mmap | None:
    """The plugin's page once it is there; raises PmutopError where another version's plugin made it."""
    try:
        with open(path, "rb") as file:
            page = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except (OSError, ValueError):  # not there yet, or still empty
        return None
    magic, counted, _, _, _ = HEAD.unpack_from(page)
    if magic != MAGIC:
        return None
    names = bytes(page[HEAD.size : FIRST_SLOT]).split(b"\0")[0].decode().split()
    if counted != len(COUNTERS) or tuple(names) != COUNTERS:
        raise PmutopError("the simulator's plugin is of another version than pmutop", "install pmutop again")
    return page


def native_time(values: Sequence[int]) -> float:
    """About how many ns the counted instructions would have taken without the simulator."""
    count = dict(zip(COUNTERS, values, strict=True))
    depth = count["path-depth"] / max(1, count["path-instructions"])
    cycles = count["instructions"] * max(0.25, depth) + sum(
        count[name] * cost for name, cost in COSTS.items()
    )
    return cycles / CYCLES_PER_NS


# ------------------------------------------------------------------------------------------------ what it takes


def find_emulator() -> str:
    name = f"qemu-{os.uname().machine}"
    path = shutil.which(name)
    if path is None:
        raise PmutopError(f"{name} is not installed: nothing can be simulated", "apt install qemu-user")
    return path


def find_plugin() -> str:
    found = importlib.util.find_spec("pmutop._simulator")
    if found is None or not found.origin:
        raise PmutopError(
            "the simulator's plugin was not built", "install gcc and libc6-dev, then pmutop again"
        )
    return found.origin


def machine_caches(machine: Machine | None = None) -> dict[str, tuple[int, int]]:
    """Bytes and ways of the first CPU's caches; USUAL_CACHES where the kernel does not say."""
    machine = machine or Machine.read()
    cpu = machine.online[0] if machine.online else 0
    names = {(1, "Data"): "l1d", (1, "Instruction"): "l1i", (2, "Unified"): "l2", (3, "Unified"): "l3"}
    found = {}
    for cache in machine.caches:
        name = names.get((cache.level, cache.kind))
        if name and cpu in cache.cpus and cache.size > 0:
            found[name] = (cache.size, cache.ways if cache.ways > 0 else 8)
    return USUAL_CACHES | found


def parse_caches(text: str) -> dict[str, tuple[int, int]]:
    """'l1d=48K:12,l3=0' -> {"l1d": (49152, 12), "l3": (0, 1)}; raises UsageError for anything else."""
    found = {}
    for word in text.lower().split(","):
        name, _, value = word.partition("=")
        size, _, ways = value.partition(":")
        unit = {"k": 10, "m": 20}.get(size[-1:], 0)
        number = size[:-1] if unit else size
        if name not in USUAL_CACHES or not number.isdigit() or not (ways or "8").isdigit():
            raise UsageError(
                f"--caches {text}: '{word}' is no cache",
                "for instance --caches l1d=48K:12,l2=1M:16,l3=32M:16",
            )
        found[name] = (int(number) << unit, max(1, int(ways or 8)))
    return found


def program_of(command: list[str], depth: int = 4) -> list[str]:
    """The command with its program as a path that the emulator can load: scripts become their interpreter's argument."""
    path = shutil.which(command[0])
    if path is None:
        raise PmutopError(f"cannot run {command[0]}: no such command")
    with open(path, "rb") as file:
        start = file.read(256)
    if start[:4] == b"\x7fELF":
        with open("/proc/self/exe", "rb") as file:
            mine = file.read(20)
        if start[4:6] != mine[4:6] or start[18:20] != mine[18:20]:
            raise PmutopError(f"cannot simulate {command[0]}: it is built for another processor")
        return [path, *command[1:]]
    if depth == 0:
        raise PmutopError(f"cannot simulate {command[0]}: its interpreter is a script again")
    words = (
        start[2:].split(b"\n")[0].decode(errors="surrogateescape").split(None, 1)
        if start[:2] == b"#!"
        else ["/bin/sh"]
    )
    if not words:
        raise PmutopError(f"cannot simulate {command[0]}: its first line names no interpreter")
    return program_of([*words, path, *command[1:]], depth - 1)
