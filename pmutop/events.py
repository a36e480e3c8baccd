"""The nouns of counting: what an event is, and the tables of those that every Linux kernel offers.

Sources of the codes: include/uapi/linux/perf_event.h (types, generic ids), Documentation/filesystems/proc.rst (/proc).
"""

from __future__ import annotations

from dataclasses import dataclass

# enum perf_type_id
HARDWARE, SOFTWARE, TRACEPOINT, HW_CACHE, RAW, BREAKPOINT = range(6)
#: Not a perf event: a column that the reader takes from /proc/PID/{stat,schedstat,status}.
PROC = -1

#: How far a column may be believed (DESIGN, 'The one hard fact').
TIERS = ("hardware", "simulated", "software")


@dataclass(frozen=True, slots=True)
class Event:
    """One column of counts. `type`, `config*` are perf_event_attr's own fields; `filter` is a tracepoint filter; `path` the
    file of a uprobe, to which config1 points when it is opened (config2 is the offset in it)."""

    name: str
    unit: str
    tier: str
    type: int
    config: int = 0
    config1: int = 0
    config2: int = 0
    filter: str = ""
    path: str = ""
    pmu: str = ""
    mode: str = ""  # 'u': in user mode only, 'k': in the kernel only, '': in both
    trust: str = "counted"  # counted | modelled; behind it what `pmutop validate` found here


def proc_event(name: str, unit: str) -> Event:
    return Event(name, unit, "software", PROC)


#: What /proc gives every user for every process, in the order in which pmutop._proc fills the columns.
#: Times are nanoseconds (utime and stime have the 10 ms grain of USER_HZ); `child_*` are of children waited for.
PROC_EVENTS = (
    proc_event("run-time", "ns"),  # schedstat 1
    proc_event("run-delay", "ns"),  # schedstat 2: runnable, waiting for a CPU
    proc_event("timeslices", "count"),  # schedstat 3
    proc_event("user-time", "ns"),
    proc_event("system-time", "ns"),
    proc_event("minor-faults", "count"),
    proc_event("major-faults", "count"),
    proc_event("child-minor-faults", "count"),
    proc_event("child-user-time", "ns"),
    proc_event("child-system-time", "ns"),
    proc_event("voluntary-switches", "count"),
    proc_event("involuntary-switches", "count"),
)

#: PERF_TYPE_SOFTWARE: perf's name -> (PERF_COUNT_SW_*, unit)
SOFTWARE_IDS = {
    "cpu-clock": (0, "ns"),
    "task-clock": (1, "ns"),
    "page-faults": (2, "count"),
    "context-switches": (3, "count"),
    "cpu-migrations": (4, "count"),
    "minor-faults": (5, "count"),
    "major-faults": (6, "count"),
    "alignment-faults": (7, "count"),
    "emulation-faults": (8, "count"),
    "dummy": (9, "count"),
    "bpf-output": (10, "count"),
    "cgroup-switches": (11, "count"),
}

#: PERF_TYPE_HARDWARE: PERF_COUNT_HW_*
HARDWARE_IDS = {
    "cycles": 0,
    "instructions": 1,
    "cache-references": 2,
    "cache-misses": 3,
    "branches": 4,
    "branch-misses": 5,
    "bus-cycles": 6,
    "stalled-cycles-frontend": 7,
    "stalled-cycles-backend": 8,
    "ref-cycles": 9,
}
HARDWARE_ALIASES = {
    "cpu-cycles": "cycles",
    "branch-instructions": "branches",
    "faults": "page-faults",
    "cs": "context-switches",
}

#: PERF_TYPE_HW_CACHE: config = cache | operation << 8 | result << 16
CACHES = {"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4, "branch": 5, "node": 6}
CACHE_OPERATIONS = {"load": 0, "store": 1, "prefetch": 2}


def cache_ids() -> dict[str, int]:
    """perf's names of the cache events, e.g. 'L1-dcache-load-misses', with their config."""
    table = {}
    for cache, c in CACHES.items():
        for operation, o in CACHE_OPERATIONS.items():
            plural = operation + ("es" if operation == "prefetch" else "s")
            table[f"{cache}-{plural}"] = c | o << 8
            table[f"{cache}-{operation}-misses"] = c | o << 8 | 1 << 16
    return table


CACHE_IDS = cache_ids()

#: Tracepoints that the software tier uses where tracefs may be read: short name -> (tracepoint, filter)
TRACEPOINTS = {
    "syscalls": ("raw_syscalls:sys_enter", ""),
    "futex-calls": ("syscalls:sys_enter_futex", ""),
    "forks": ("sched:sched_process_fork", ""),
    "execs": ("sched:sched_process_exec", ""),
    "disk-waits": ("sched:sched_switch", "prev_state == 2"),  # TASK_UNINTERRUPTIBLE: the kernel's 'D'
}


def generic(name: str) -> Event | None:
    """The event of a generic perf name or of one of our tracepoint names (its id filled in later); None if unknown."""
    name = HARDWARE_ALIASES.get(name, name)
    if name in SOFTWARE_IDS:
        config, unit = SOFTWARE_IDS[name]
        return Event(name, unit, "software", SOFTWARE, config)
    if name in HARDWARE_IDS:
        return Event(name, "count", "hardware", HARDWARE, HARDWARE_IDS[name])
    if name in CACHE_IDS:
        return Event(name, "count", "hardware", HW_CACHE, CACHE_IDS[name])
    return None
