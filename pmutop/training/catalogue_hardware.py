"""Micro-benchmarks of the fingerprinting paper (its table 1), sized from the machine's caches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pmutop.training.labels import Workload

#: Compiler options that every micro-benchmark is built with in turn; hold one out to test on an unseen build.
BUILDS = (("-O2",), ("-O3", "-funroll-loops"), ("-Os",), ("-O1",))

# kind (the paper's names are Array, LL, Pointer, BranchMis, RS, FPU), program, bodies
_MEMORY_KINDS = (
    ("array", "hw_array", ("update", "gather", "scatter", "sum")),
    ("list", "hw_list", ("walk", "search", "queue", "both")),
    ("pointer", "hw_pointer", ("chase", "index", "offset")),
)
_CORE_KINDS = (
    ("branch", "hw_branch", ("flags", "compare", "switch", "calls")),
    ("rs", "hw_rs", ("multiply", "float", "mixed", "shift")),
    ("fpu", "hw_fpu", ("quad", "quotient", "polynomial", "sine", "logarithm", "denormal")),
)
_X86_BODIES = {"sine", "logarithm"}  # x87 microcode


@dataclass(frozen=True)
class Caches:
    """Bytes of one core's first data cache, its second cache and the last one; third 0 where there is none."""

    first: int
    second: int
    third: int

    @classmethod
    def of_this_machine(cls, root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches:
        """As sysfs tells it; where it does not, 32K, 512K and 8M, and the sizes below are guesses."""
        found = {}
        for index in root.glob("index*"):
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction":
                found[int(level)] = int(size.rstrip("K")) * 1024
        if not {1, 2} <= found.keys():
            return cls(32 << 10, 512 << 10, 8 << 20)
        return cls(found[1], found[2], found.get(3, 0))

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Working sets in bytes per level, in rising order: the paper's 128K-256K, 4M-8M and 128M-256M on 1M / 32M."""
        last = self.third or self.second
        levels = {
            "L2": tuple(
                max(part, 2 * self.first)
                for part in (self.second // 8, self.second * 3 // 16, self.second // 4)
            ),
            "L3": tuple(max(part, 2 * self.second) for part in (last // 8, last * 3 // 16, last // 4)),
            "M": (last * 4, last * 6, last * 8),
        }
        if not self.third:
            del levels["L3"]
        return levels


def hardware(caches: Caches | None = None, every: bool = False) -> tuple[Workload, ...]:
    """Micro-benchmarks of the fingerprinting paper for these caches (this machine's when None).

    Each body at each level comes in two sizes and builds, taken in turn; `every` gives all sizes and builds instead.
    """
    levels = (caches or Caches.of_this_machine()).sizes()
    rows: list[Workload] = []
    turn = 0
    for kind, program, bodies in _MEMORY_KINDS:
        for body in bodies:
            for level, sizes in levels.items():
                chosen = [(size, options) for size in sizes for options in BUILDS]
                if not every:
                    chosen = [(sizes[(turn + i) % 3], BUILDS[(turn + i) % 4]) for i in range(2)]
                    turn += 1
                for size, options in dict.fromkeys(chosen):
                    rows += _fingerprint(kind, program, body, f"Mem_{level}", options, size)
    for kind, program, bodies in _CORE_KINDS:
        for body in bodies:
            for i in range(4 if every else 2):
                rows += _fingerprint(kind, program, body, "CPU", BUILDS[(turn + i) % 4], 0)
            turn += 1
    return tuple(rows)


def simulated(caches: Caches | None = None) -> tuple[Workload, ...]:
    """The same for the simulator: every size of each body and level in one build, the builds taken in turn; what stays
    in the core in every build."""
    sizes = (caches or Caches.of_this_machine()).sizes()
    levels, turn = list(sizes), {program: number for number, (_, program, _) in enumerate(_MEMORY_KINDS)}
    chosen = []
    for workload in hardware(caches, every=True):
        if workload.size:
            level = workload.label.rpartition("_")[2]
            rank = [f"{size >> 10}K" for size in sizes[level]].index(workload.size)
            bodies = next(bodies for _, program, bodies in _MEMORY_KINDS if program == workload.program)
            place = rank + bodies.index(workload.body) + levels.index(level) + turn[workload.program]
            if BUILDS.index(workload.options) != place % len(BUILDS):
                continue
        chosen.append(workload)
    return tuple(chosen)


def _fingerprint(kind, program, body, group, options, size) -> tuple[Workload, Workload]:
    build = "".join(options).replace("-funroll-loops", "u").replace("-", "")
    name = f"{kind}-{body}-{size >> 10}K-{build}" if size else f"{kind}-{body}-{build}"
    twin = Workload(
        name=f"{name}-N",
        label=f"N_{group}",
        coarse=f"N_{group}",
        kind=kind,
        program=program,
        variant="N",
        arguments=("--body", body, *(("--size", str(size)) if size else ())),
        options=options,
        tier="hardware",
        size=f"{size >> 10}K" if size else "",
        body=body,
        needs=frozenset({"x86"}) if body in _X86_BODIES else frozenset(),
    )
    ours = replace(
        twin, name=f"{name}-P", label=f"P_{group}", coarse=f"P_{group}", variant="P", twin=twin.name
    )
    return ours, twin
