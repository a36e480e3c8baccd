"""The system reader on eight CPUs that run in parallel: its rings, and which CPU it says that each task ran on."""

import contextlib
import os

from loops import Spin, named
from readers import Watch

from pmutop._perf import Group
from pmutop.sources.system import SystemSource
from pmutop.topology import Machine

NAME = "cycles:u"
CPUS = 8


def check_rings_of_all_cpus_stay_within_64_mib():
    assert Machine.read().online == tuple(range(CPUS))
    watch = Watch(SystemSource(0.1, [NAME], budget=10.0))
    with contextlib.closing(watch.source):
        machine = watch.tick().machine
        opened = sum("perf_event" in target(number) for number in os.listdir("/proc/self/fd"))
    assert 0 < machine["ring_bytes"] <= 64 << 20 and machine["ring_bytes"] % CPUS == 0
    assert len(machine["cpu_busy_ns"]) == CPUS and 0 < opened <= 8 * CPUS
    return {"MiB": machine["ring_bytes"] / (1 << 20), "descriptors": opened}


def target(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


def check_each_task_is_credited_on_its_own_cpu():
    """Eight loops of unlike lengths, one pinned on each CPU: periods on that CPU alone, cycles beside a counter of its own."""
    event = named(NAME)
    watch = Watch(SystemSource(0.1, [NAME], budget=10.0))
    with contextlib.closing(watch.source), contextlib.ExitStack() as stack:
        lengths = [20_000_000 + 10_000_000 * cpu for cpu in range(CPUS)]
        spins = [stack.enter_context(Spin(passes, pieces=10)) for passes in lengths]
        own = [stack.enter_context(Group(event, spin.pid)) for spin in spins]
        for cpu, spin in enumerate(spins):
            os.sched_setaffinity(spin.pid, {cpu})
            own[cpu].enable()
        watch.catch_up()  # with what they counted while they started
        before = [watch.total(spin.pid, NAME)[0] for spin in spins]
        for spin in spins:
            spin.go()
        for spin in spins:
            assert spin.process.stdout.readline() == b"done\n"
        raw = watch.catch_up()
        after = [watch.total(spin.pid, NAME)[0] for spin in spins]
        ratios = [(b - a) / group.read()[0][0] for a, b, group in zip(before, after, own, strict=True)]
        places = [watch.cpus.get(watch.refs[spin.pid], set()) for spin in spins]
    assert [cpu in place for cpu, place in enumerate(places)] == [True] * CPUS, places
    assert all(len(place) < CPUS / 2 for place in places), (
        places
    )  # where it was started, moved to, and pinned at last
    # By the host's clock: when it takes a CPU away amid a switch, that time is counted on one side only.
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    assert errors[CPUS // 2] < 0.02 and errors[-1] < 0.5, ratios
    return {
        "ratios": ratios,
        "lost": raw.machine["lost"],
        "missing": raw.machine["missing"],
        "unknown_ns": raw.machine["unknown_ns"],
    }
