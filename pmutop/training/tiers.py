"""What a fingerprint training takes, tier by tier: features, words, workloads, source, and what is held out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pmutop.slices import Source
from pmutop.training.catalogue import hardware, simulated, software
from pmutop.training.labels import HARDWARE_LABELS, SOFTWARE_LABELS, Workload


@dataclass(frozen=True)
class Tier:
    """One row of the table of tiers.

    required, optional: features; without the events of a required one the model is refused, those of an optional one
    may be missing; both empty: whatever the passes counted, per cycle (passes.features). plain: the feature that says
    whether the optional events were counted; a training row then counts a second time without them ("" where there are
    none). keep: how many key events are chosen from the features (0: all stay). least_leaf: rows of a leaf, more than one
    run gives: no rule for a single run. needs: what the labels take, in words. slices: kept of each run, unless told. negligible: events
    rarer than this per 1000 instructions or cycles are no reason for a label.
    passes: folder of the training -> (folder, what opens the source) for each time that the workloads run. groups: what
    whole runs are held out by, {what was unseen: one name a workload}; views: what is scored, {view: class of a workload
    and its row's label}. admit_by: workloads of one such name are admitted together, by the first. together: CPUs ->
    how many workloads may run at a time.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    plain: str
    keep: int
    least_leaf: int
    texts: dict[str, str]
    advice: dict[str, str]
    blind: tuple[str, ...]
    units: dict[str, str]
    needs: str
    slices: int
    negligible: float
    workloads: Callable[[], tuple[Workload, ...]]
    passes: Callable[[Path], list[tuple[Path, Callable[[], Source]]]]
    groups: dict[str, Callable[[Sequence[Workload]], list[str]]]
    views: dict[str, Callable[[Workload, str], str]]
    admit_by: Callable[[Workload], str]
    together: Callable[[int], int]

    @property
    def features(self) -> tuple[str, ...]:
        return self.required + self.optional


# ---- software: required features from /proc, which every user may read ...
FROM_PROC = (
    "run-delay/run-time+run-delay",
    "system-time/user-time+system-time",
    "minor-faults/ms",
    "major-faults/s",
    "child-minor-faults/ms",
    "child-user-time+child-system-time/run-time",
    "voluntary-switches/ms",
    "involuntary-switches/ms",
    "run-time/slice",
    "state=D",
    "counted=syscalls",
)
#: ... and optional ones from perf software events and tracepoints, missing where they may not be opened.
FROM_PERF = (
    "cpu-migrations/ms",
    "syscalls/ms",
    "futex-calls/ms",
    "futex-calls/syscalls",
    "forks/ms",
    "execs/ms",
    "disk-waits/ms",
    "disk-waits/voluntary-switches",
    "syscalls/voluntary-switches+involuntary-switches",
)

#: What usually helps, per label; shown in the details of a process.
SOFTWARE_ADVICE = {
    "P_OS_RunQueue": "More runnable threads than CPUs: spread them (taskset, cpuset), lower the neighbours' weight, or add CPUs.",
    "P_OS_MinorFault": "Memory is mapped and given back all the time: reuse buffers, raise M_TRIM_THRESHOLD, or pre-fault with MAP_POPULATE.",
    "P_OS_MajorFault": "Pages come back from the disk: not enough memory, or cold mapped files. Look at memory limits and PSI memory.",
    "P_OS_Switch": "Work is handed over in tiny pieces: batch messages, use bigger buffers, or do both halves in one thread.",
    "P_OS_Migration": "The task is moved from CPU to CPU and loses its caches: look at affinity calls, or pin it.",
    "P_OS_Fork": "Processes or threads are created for little work each: use a pool, or vfork/posix_spawn.",
    "P_OS_Syscall": "Most time goes into entering the kernel: larger reads and writes, buffering, io_uring or vDSO clocks.",
    "P_OS_Futex": "Threads fight over a lock: shorten the critical section, shard the lock, or hand work over in batches.",
    "P_OS_BlockIO": "Waits for the disk: fewer fsync, larger requests, read-ahead, or a faster device. Look at iostat.",
}


def attach() -> Source:
    from pmutop.sources.attach import AttachSource

    return AttachSource()


def one_pass(open_source: Callable[[], Source]) -> Callable:
    """All events in one reading: the runs lie in the training's own folder."""
    return lambda folder: [(folder, open_source)]


SOFTWARE = Tier(
    name="software",
    required=FROM_PROC,
    optional=FROM_PERF,
    plain="counted=syscalls",
    keep=0,
    least_leaf=10,  # 4 slices, each with and without the optional events
    texts=SOFTWARE_LABELS,
    advice=SOFTWARE_ADVICE,
    blind=(
        "Cache, memory-bandwidth, branch and floating-point trouble leaves no trace in software events: P_Mem_* and P_CPU "
        "need a PMU, or `--source simulated`.",
    ),
    units={"ms": "per millisecond of run time", "s": "per second of the slice"},
    needs="perf events and tracepoints (root or CAP_PERFMON and tracefs)",
    slices=4,
    negligible=0.0,
    workloads=software,
    passes=one_pass(attach),
    groups={
        "unseen body of a program": lambda all: [f"{one.program}/{one.body}" for one in all],
        "unseen size": lambda all: [f"{one.program}/{one.body}/{one.size}" for one in all],
        "unseen run": lambda all: [one.name for one in all],
    },
    views={"": lambda one, label: label},
    admit_by=lambda one: one.name,
    together=lambda cpus: 1,
)

# ---- simulated: ratios that survive another build, chosen by cause and none by the program's mix of instructions. What
# is "asked for" of a cache is what was missed and what the prefetcher brought in time; its share that was missed is what
# tells scattered from sequential. All stay: of redundant columns the key events keep the memory's and drop the core's.

MODELLED = (
    # how far down the program asks
    "l3-misses+prefetch-l3-misses/ki",
    "l2-misses+prefetch-l2-misses/ki",
    "l1d-misses+prefetches/ki",
    # what it waits for there
    "l3-misses/ki",
    "l2-misses/ki",
    "l1d-misses/ki",
    "l3-misses/l3-misses+prefetch-l3-misses",
    "l2-misses/l2-misses+prefetch-l2-misses",
    "l1d-misses/l1d-misses+prefetches",
    # what it waits for in the core
    "branch-misses+indirect-misses/ki",
    "path-depth/path-instructions",
    "path-loads/path-instructions",
    "x87-ops/ki",
    "microcoded-ops/ki",
    "div-ops/ki",
    "wide-ops/ki",
    "fp-ops/ki",
    "mul-ops/ki",
    "branches/ki",
    "indirect-branches/ki",
)

HARDWARE_ADVICE = {
    "P_Mem_L2": "The working set fits the second cache, but not the first, and is visited out of order: pack what is used "
    "together, walk it in order, or split it into blocks of the first cache's size.",
    "P_Mem_L3": "The working set fits the last cache, but not the second: block it, make elements smaller, or sort the accesses.",
    "P_Mem_M": "Scattered accesses wait for memory: arrays instead of pointers, batches with prefetch, huge pages, "
    "or a smaller working set.",
    "P_CPU": "The core waits for itself: unpredictable branches (sort, or compute without branching), long chains of dependent "
    "operations (several accumulators), or arithmetic that software or microcode does.",
}


def simulator() -> Source:
    from pmutop.sources.simulated import SimulatedSource

    return SimulatedSource()


def size_ranks(workloads: Sequence[Workload]) -> list[str]:
    """'0', '1', ... : which of its program's sizes on its level a workload has; what has no size is dealt out by name."""
    level = {one.name: one.label for one in workloads} | {
        one.twin: one.label for one in workloads if one.twin
    }
    sizes = defaultdict(set)
    for one in workloads:
        if one.size:
            sizes[one.program, level[one.name][2:]].add(int(one.size.rstrip("K")))
    names = sorted({one.name for one in workloads if not one.size})
    return [
        str(
            sorted(sizes[one.program, level[one.name][2:]]).index(int(one.size.rstrip("K"))) % 3
            if one.size
            else names.index(one.name) // 2 % 3
        )
        for one in workloads
    ]


def pair(one: Workload) -> str:
    """Sizes and builds of a body are admitted together, and so are all mixtures of a kind."""
    mixture = sorted({"--between", "--step"} & set(one.arguments))
    return "-".join((one.kind, *(mixture or (one.body,)), one.label[2:]))


BY_KIND = "12 kinds, "
#: What the micro-benchmarks of the paper are told apart by: its eight labels, healthy or not, or each kind.
VIEWS = {
    "eight labels, ": lambda one, label: label,
    "P against N, ": lambda one, label: label[0],
    BY_KIND: lambda one, label: f"{label[:2]}{one.kind}",
}
#: Whole runs are held out by these; builds and sizes are dealt out over the bodies.
UNSEEN = {
    "unseen size": size_ranks,
    "unseen build": lambda all: [one.build for one in all],
    "unseen body of a program": lambda all: [f"{one.program}/{one.body}" for one in all],
}

SIMULATED = Tier(
    name="simulated",
    required=MODELLED,
    optional=(),
    plain="",
    keep=0,
    least_leaf=5,
    texts=HARDWARE_LABELS,
    advice=HARDWARE_ADVICE,
    blind=(
        "The simulator models one program in user mode: no time, no other programs, no kernel, no memory bandwidth; a verdict "
        "says what the program asks of such caches and such a core.",
    ),
    units={"ki": "per 1000 instructions"},
    needs="nothing but --source simulated",
    slices=3,
    negligible=0.03,
    workloads=simulated,
    passes=one_pass(simulator),
    groups=UNSEEN,
    views=VIEWS,
    admit_by=pair,
    together=lambda cpus: 3 * cpus,
)

# ---- hardware: whatever this processor counts, of which 40 key events are chosen as in the paper, per cycle


def every_event(folder: Path) -> list[tuple[Path, Callable[[], Source]]]:
    from pmutop.training.passes import passes

    return passes(folder)


HARDWARE = Tier(
    name="hardware",
    required=(),
    optional=(),
    plain="",
    keep=40,
    least_leaf=5,
    texts=HARDWARE_LABELS,
    advice=HARDWARE_ADVICE,
    blind=(
        "Learnt on this processor, from programs of one thread: who shares its caches and memory is for the blame to say.",
    ),
    units={"kc": "per 1000 cycles", "ki": "per 1000 instructions"},
    needs="nothing but the processor's counters",
    slices=2,
    negligible=0.03,
    workloads=hardware,
    passes=every_event,
    groups=UNSEEN,
    views=VIEWS,
    admit_by=pair,
    together=lambda cpus: min(
        cpus, 2
    ),  # more would fight for the last cache and the memory that they are examples of
)

TIERS = {tier.name: tier for tier in (HARDWARE, SOFTWARE, SIMULATED)}
