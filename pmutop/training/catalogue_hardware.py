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
    ("list", "hw_list", ("walk", "search", "queue", "both", "choose")),
    ("pointer", "hw_pointer", ("chase", "index", "offset")),
)
_CORE_KINDS = (
    ("branch", "hw_branch", ("flags", "compare", "switch", "calls")),
    ("rs", "hw_rs", ("multiply", "float", "mixed", "shift")),
    ("fpu", "hw_fpu", ("quad", "quotient", "polynomial", "sine", "logarithm", "denormal")),
)
#: Rounds of core work (about 8 instructions) per visit, beside which a miss of that level still shows.
_BETWEEN = {
    "array": {"L3": 5, "M": 18},
    "list": {"L2": 5, "L3": 18, "M": 150},
    "pointer": {"L2": 5, "L3": 18, "M": 150},
}
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
            try:
                kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
            except OSError:  # Arm firmware that says which caches there are, and not how large
                continue
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
    in the core in every build; and programs that do two things. The simulator forgets exactly what was used longest
    ago: twice the last cache is memory enough, and the long init phases of more are spared."""
    levels = (caches or Caches.of_this_machine()).sizes()
    levels["M"] = tuple(size // 2 for size in levels["M"])
    rows: list[Workload] = []
    for number, (kind, program, bodies) in enumerate(_MEMORY_KINDS):
        for place, body in enumerate(bodies):
            for at, (level, sizes) in enumerate(levels.items()):
                turn = number + place + at
                for rank, size in enumerate(sizes):
                    options = BUILDS[(rank + turn) % len(BUILDS)]
                    rows += _fingerprint(kind, program, body, f"Mem_{level}", options, size)
                # a healthy program that mostly computes is one that stays in the core
                if rounds := _BETWEEN[kind].get(level):
                    options, size = BUILDS[turn % len(BUILDS)], sizes[turn % len(sizes)]
                    more = ("--between", str(rounds))
                    rows += _fingerprint(
                        kind, program, body, f"Mem_{level}", options, size, more, healthy="N_CPU"
                    )
    for kind, program, bodies in _CORE_KINDS:
        for place, body in enumerate(bodies):
            for options in BUILDS:
                rows += _fingerprint(kind, program, body, "CPU", options, 0)
            for at, (level, sizes) in enumerate(levels.items()):
                if kind == "branch" and level != "L2":  # beside a stream: two to a line of 64 bytes
                    options, size = BUILDS[(place + at) % len(BUILDS)], sizes[(place + at) % len(sizes)]
                    more = ("--step", "32")
                    rows += _fingerprint(
                        kind, program, body, "CPU", options, size, more, healthy=f"N_Mem_{level}"
                    )
    return tuple(rows)


def _fingerprint(kind, program, body, group, options, size, more=(), healthy="") -> tuple[Workload, Workload]:
    """P and N of group; `more` options make a mixture, whose healthy twin may be called something else."""
    build = "".join(options).replace("-funroll-loops", "u").replace("-", "")
    parts = (kind, body, f"{size >> 10}K" if size else "", more[0].strip("-") if more else "", build)
    name = "-".join(filter(None, parts))
    twin = Workload(
        name=f"{name}-N",
        label=healthy or f"N_{group}",
        coarse=healthy or f"N_{group}",
        kind=kind,
        program=program,
        variant="N",
        arguments=("--body", body, *(("--size", str(size)) if size else ()), *more),
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
