"""The simulated counters against independent oracles, and the source that reads them.

Twelve small programs run under our plugin with the prefetcher off, under valgrind's cachegrind (first and last level,
instructions and data apart) and, as the addresses that our plugin saw, through pycachesim (three levels).
"""

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pmutop.errors import PmutopError, UsageError
from pmutop.events import PROC_EVENTS
from pmutop.pipeline.clean import Cleaner
from pmutop.slices import Exited
from pmutop.sources import simulated
from pmutop.topology import Machine

KERNELS = range(12)
BUILD = [
    "-O1",
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-tree-loop-distribute-patterns",
]
SMALL = {"l1d": (4096, 4), "l1i": (4096, 4), "l2": (16384, 8), "l3": (65536, 16)}
TWO_LEVELS = SMALL | {"l2": (0, 1)}
NO_LINE = 3  # counts so small that 2 % is less than a line may differ by so much


def refusal() -> str:
    try:
        simulated.find_emulator(), simulated.find_plugin()
    except PmutopError as error:
        return str(error)
    return "" if shutil.which("gcc") else "there is no gcc"


needs_simulator = pytest.mark.skipif(bool(refusal()), reason=refusal() or "-")
needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    source = Path(__file__).parent / "kernels.c"
    running = [
        subprocess.Popen(
            ["gcc", *BUILD, f"-DKERNEL={number}", str(source), "-o", str(folder / f"kernel{number}")]
        )
        for number in KERNELS
    ]
    assert not any(one.wait() for one in running)
    return folder


def simulate(program: Path, caches: dict, *more: str) -> dict[str, int]:
    """Counters of the only thread of a short program, prefetcher off."""
    page = program.with_suffix(".page")
    page.unlink(missing_ok=True)
    told = ",".join(
        [
            f"page={page}",
            "prefetch=0",
            *(f"{name}={size}:{ways}" for name, (size, ways) in caches.items()),
            *more,
        ]
    )
    plugin = f"{simulated.find_plugin()},{told}"
    subprocess.run([simulated.find_emulator(), "-cpu", "max", "-plugin", plugin, str(program)], check=True)
    with simulated.open_page(str(page)) as read:
        values = struct.unpack_from(
            f"<{len(simulated.COUNTERS)}Q", read, simulated.FIRST_SLOT + simulated.SLOT.size
        )
    return dict(zip(simulated.COUNTERS, values, strict=True))


def cachegrind(program: Path) -> dict[str, int]:
    """Its totals by event, of the two-level geometry."""
    out = program.with_suffix(".cachegrind")
    sizes = [
        f"--{name}={size},{ways},64"
        for name, (size, ways) in zip(("D1", "I1", "LL"), [TWO_LEVELS[n] for n in ("l1d", "l1i", "l3")])
    ]
    options = [
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--branch-sim=yes",
        f"--cachegrind-out-file={out}",
        *sizes,
    ]
    subprocess.run(["valgrind", *options, str(program)], check=True, capture_output=True)
    lines = dict(
        line.split(": ", 1)
        for line in out.read_text().splitlines()
        if line.startswith(("events: ", "summary: "))
    )
    return dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))


def close(ours: int, theirs: int) -> bool:
    return abs(ours - theirs) <= max(0.02 * theirs, NO_LINE)


@needs_simulator
@needs_valgrind
@pytest.mark.parametrize("number", KERNELS)
def test_cachegrind_counts_the_same(built, number):
    program = built / f"kernel{number}"
    ours, theirs = simulate(program, TWO_LEVELS), cachegrind(program)
    pairs = {
        "instructions": (ours["instructions"], theirs["Ir"]),
        "I1": (ours["l1i-misses"], theirs["I1mr"]),
        "D1": (ours["l1d-misses"], theirs["D1mr"] + theirs["D1mw"]),
        "LL code": (ours["l3i-misses"], theirs["ILmr"]),
        "LL data": (ours["l3-misses"], theirs["DLmr"] + theirs["DLmw"]),
        "conditional branches": (ours["branches"], theirs["Bc"]),
        "indirect branches": (ours["indirect-branches"], theirs["Bi"]),
    }
    assert {name: pair for name, pair in pairs.items() if not close(*pair)} == {}
    assert theirs["D1mr"] + theirs["D1mw"] > 500, "a program that misses nothing tests nothing"


@needs_simulator
@pytest.mark.parametrize("number", KERNELS[:-1])  # the last one is about code
def test_pycachesim_misses_the_same_at_three_levels(built, number):
    cachesim = pytest.importorskip("cachesim")
    program = built / f"kernel{number}"
    trace = program.with_suffix(".trace")
    ours = simulate(
        program, SMALL | {"l1i": (1 << 20, 16)}, f"trace={trace}"
    )  # code out of the second cache's way
    memory, above, levels = cachesim.MainMemory(), None, []
    for name in ("l3", "l2", "l1d"):
        size, ways = SMALL[name]
        above = cachesim.Cache(name, size // ways // 64, ways, 64, "LRU", load_from=above, store_to=above)
        levels.append(above)
    memory.load_to(levels[0])
    memory.store_from(levels[0])
    simulator = cachesim.CacheSimulator(above, memory)
    for address, facts in struct.iter_unpack("<QQ", trace.read_bytes()):
        simulator.load(
            address, facts & 0xFFFFFFFF
        )  # stores too: our model fetches for them and writes nothing back
    theirs = [level.stats()["MISS_count"] for level in reversed(levels)]
    mine = [ours["l1d-misses"], ours["l2-misses"], ours["l3-misses"]]
    assert all(close(*pair) for pair in zip(mine, theirs, strict=True)), (mine, theirs)
    assert theirs[0] > 500


@needs_simulator
def test_prefetcher_takes_the_misses_of_a_sequence_and_leaves_random_ones(built):
    def misses(number: int, prefetch: int) -> int:
        program = built / f"kernel{number}"
        return simulate(program, SMALL, f"prefetch={prefetch}")["l1d-misses"]

    assert misses(0, prefetch=1) < 0.05 * misses(0, prefetch=0)
    assert misses(3, prefetch=1) > 0.95 * misses(3, prefetch=0)


PROGRAM = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static char memory[1 << 20];
static void *spin(void *from) { for (volatile char *at = from;; at += 64) { *at += 1; if (at >= memory + sizeof memory - 64) at = memory; } }
int main(void) { pthread_t thread; if (fork() == 0) spin(memory); pthread_create(&thread, 0, spin, memory); spin(memory); }
"""


@needs_simulator
def test_slices_of_threads_and_of_forked_children(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(
        ["gcc", "-O1", "-pthread", str(tmp_path / "program.c"), "-o", str(tmp_path / "program")], check=True
    )
    source = simulated.SimulatedSource(0.2)
    columns = [event.name for event in source.header.events]
    assert source.header.events[: len(PROC_EVENTS)] == PROC_EVENTS
    assert {event.tier for event in source.header.events[len(PROC_EVENTS) :]} == {"simulated"}
    assert "cycles" not in columns
    slices, cleaner, tasks, found = iter(source), Cleaner(len(columns)), {}, {}
    process = None
    try:
        for number in range(8):
            raw = next(slices)
            cleaned = cleaner.clean(raw)
            tasks |= {
                record.task.ref: record.task for record in raw.records if not isinstance(record, Exited)
            }
            if process is None:
                process = subprocess.Popen(
                    source.wrap([str(tmp_path / "program"), "an argument"]), start_new_session=True
                )
            for ref, increase in zip(cleaned.refs.tolist(), cleaned.increase, strict=True):
                if tasks[ref].comm == "program" and increase[columns.index("loads")] > 0 and number > 3:
                    found[tasks[ref].pid, tasks[ref].tid] = dict(zip(columns, increase.tolist(), strict=True))
                elif tasks[ref].comm != "program":
                    assert increase[columns.index("loads")] != increase[columns.index("loads")], (
                        "not under the simulator"
                    )
    finally:
        subprocess.run(["kill", "--", f"-{process.pid}"], check=False)
        process.wait()
        source.close()
    assert len({pid for pid, _ in found}) == 2 and len(found) == 3  # two threads here, one of the child
    assert [task.cmdline for task in tasks.values() if task.pid == process.pid and task.is_process][-1] == (
        f"{tmp_path / 'program'} an argument"
    )
    for counts in found.values():
        assert 0.9 < counts["loads"] / counts["stores"] < 1.1  # *at += 1
        assert counts["prefetches"] > 0.5 * counts["loads"]  # a line each, in order
        assert counts["l1d-misses"] < 0.05 * counts["loads"]


@needs_simulator
def test_what_a_simulated_program_executes_is_simulated_too(tmp_path):
    """A shell that starts a program, then becomes a script's interpreter: counts go on, names change."""
    (tmp_path / "loop").write_text("#!/bin/sh -e\nwhile :; do :; done\n")
    (tmp_path / "loop").chmod(0o755)
    source = simulated.SimulatedSource(0.2)
    names = [event.name for event in source.header.events]
    slices, cleaner, tasks, process, seen = iter(source), Cleaner(len(names)), {}, None, {}
    try:
        for _ in range(40):
            raw = next(slices)
            cleaned = cleaner.clean(raw)
            tasks |= {
                record.task.ref: record.task for record in raw.records if not isinstance(record, Exited)
            }
            if process is None:
                script = f"sleep 1; read line < /dev/zero & cd {tmp_path}; exec ./loop"
                process = subprocess.Popen(source.wrap(["sh", "-c", script]), start_new_session=True)
            for ref, increase in zip(
                cleaned.refs.tolist(), cleaned.increase[:, names.index("instructions")].tolist(), strict=True
            ):
                if increase > 0:
                    name = "loop" if tasks[ref].cmdline == "/bin/sh -e ./loop" else tasks[ref].comm
                    seen.setdefault(name, set()).add(tasks[ref].pid)
                    assert increase < 1e9, "totals must not go back"
            if "loop" in seen:
                break
    finally:
        subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
        process.wait()
        source.close()
    assert seen["loop"] == {process.pid}
    assert process.pid in seen["sh"] and len(seen["sh"] | seen["sleep"]) >= 3


def test_nothing_is_claimed_of_an_empty_page(tmp_path):
    (tmp_path / "page").write_bytes(bytes(8192))
    assert simulated.open_page(str(tmp_path / "page")) is None
    assert simulated.open_page(str(tmp_path / "absent")) is None


def test_a_page_of_another_version_is_refused(tmp_path):
    page = simulated.HEAD.pack(simulated.MAGIC, 2, 4, 0, 0) + b"instructions\nloads\n"
    (tmp_path / "page").write_bytes(page.ljust(8192, b"\0"))
    with pytest.raises(PmutopError, match="another version"):
        simulated.open_page(str(tmp_path / "page"))


def test_caches_from_the_option_and_from_sysfs():
    assert (
        simulated.parse_caches("L1D=48k:12,l3=0")
        == simulated.parse_caches("l1d=48K:12,l3=0")
        == {"l1d": (49152, 12), "l3": (0, 8)}
    )
    with pytest.raises(UsageError):
        simulated.parse_caches("l4=1M:2")
    bare = replace(Machine.read(), caches=())
    assert simulated.machine_caches(bare) == simulated.USUAL_CACHES


def test_scripts_become_their_interpreters_arguments(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    program = simulated.program_of([str(script), "x"])
    assert program[-2:] == [str(script), "x"] and Path(program[0]).read_bytes()[:4] == b"\x7fELF"
    with pytest.raises(PmutopError, match="no such command"):
        simulated.program_of(["no-such-command-here"])


def test_without_the_emulator_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PmutopError) as error:
        simulated.find_emulator()
    assert "qemu-user" in error.value.hint
