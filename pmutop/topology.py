"""The machine as sysfs and /proc describe it: CPUs, caches, nodes, PMUs. Read from any root, so that tests can fake one.

Only files are read, nothing is opened or measured; a file that is absent is an empty answer, never an error: old
kernels, containers and virtual machines leave out whatever they like.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pmutop.kernelfiles import bits, cpu_list, names, number, size, text

CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"
PMUS = "sys/bus/event_source/devices"

#: DMI or device-tree words -> the hypervisor's name, most telling first.
HYPERVISORS = (
    ("Amazon EC2", "Amazon EC2"),
    ("Google", "Google Compute Engine"),
    ("Microsoft", "Hyper-V"),
    ("VMware", "VMware"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("OpenStack", "KVM"),
    ("Parallels", "Parallels"),
    ("Apple Virtualization", "Apple"),
)


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU. -1 where the kernel does not say; an offline CPU has no topology."""

    number: int
    online: bool
    package: int
    core: int  # unique within the package only: use `siblings` to compare
    node: int
    siblings: tuple[int, ...]  # hardware threads of the same core, itself included
    capacity: int  # arm64: relative to the biggest core's 1024
    midr: int  # arm64: MIDR_EL1, which processor this core is


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache and who shares it. `sets` is 0 where the kernel (mostly arm64 without ACPI) does not say."""

    level: int
    kind: str  # Data | Instruction | Unified
    size: int  # bytes
    ways: int
    sets: int
    line: int  # bytes
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pmu:
    """One PMU of /sys/bus/event_source/devices."""

    name: str
    type: int
    core: bool  # counts what tasks do; otherwise a device or uncore unit, countable per CPU only
    cpus: tuple[int, ...]  # core: whose events it counts; else the CPUs at which it may be opened
    format: dict[str, tuple[tuple[str, int, int], ...]]  # term -> ((attr word, first bit, last bit), ...)
    events: dict[str, str]  # sysfs name -> terms, e.g. 'event=0x3c'
    caps: dict[str, str]
    mux_interval_ms: float | None


@dataclass(frozen=True)
class Machine:
    """What `read` found. `vendor`, `family`, `model` are numbers of x86's CPUID, or implementer and part on arm64."""

    arch: str
    vendor: str
    family: int
    model: int
    stepping: int
    name: str
    kernel: str
    hypervisor: str  # '' on bare metal
    flags: frozenset[str] = field(repr=False)
    cpus: tuple[Cpu, ...]
    caches: tuple[Cache, ...]
    nodes: dict[int, tuple[int, ...]]
    isolated: tuple[int, ...]
    nohz_full: tuple[int, ...]
    pmus: tuple[Pmu, ...]

    @classmethod
    def read(cls, root: str | os.PathLike = "/") -> Machine:
        """Read the machine below `root`. Never raises for what is absent."""
        tree = Path(root)
        told = cpuinfo(tree)
        nodes = read_nodes(tree)
        cpus = read_cpus(tree, nodes, told["count"])
        online = tuple(cpu.number for cpu in cpus if cpu.online)
        return cls(
            **{key: told[key] for key in ("arch", "vendor", "family", "model", "stepping", "name", "flags")},
            kernel=text(tree / "proc/sys/kernel/osrelease"),
            hypervisor=read_hypervisor(tree, told["flags"]),
            cpus=cpus,
            caches=read_caches(tree, online),
            nodes=nodes,
            isolated=cpu_list(text(tree / CPUS / "isolated")),
            nohz_full=cpu_list(text(tree / CPUS / "nohz_full")),
            pmus=read_pmus(tree, online),
        )

    @cached_property
    def online(self) -> tuple[int, ...]:
        return tuple(cpu.number for cpu in self.cpus if cpu.online)

    @property
    def offline(self) -> tuple[int, ...]:
        return tuple(cpu.number for cpu in self.cpus if not cpu.online)

    @property
    def packages(self) -> dict[int, tuple[int, ...]]:
        """Package (socket) -> its online CPUs."""
        found: dict[int, list[int]] = {}
        for cpu in self.cpus:
            if cpu.online:
                found.setdefault(cpu.package, []).append(cpu.number)
        return {package: tuple(numbers) for package, numbers in sorted(found.items())}

    @property
    def cores(self) -> tuple[tuple[int, ...], ...]:
        """The online CPUs core by core."""
        return tuple(sorted({cpu.siblings for cpu in self.cpus if cpu.online}))

    @property
    def smt(self) -> bool:
        return any(len(core) > 1 for core in self.cores)

    @property
    def core_pmus(self) -> tuple[Pmu, ...]:
        """One on most machines, several on hybrid and big.LITTLE ones, none in most virtual machines."""
        return tuple(pmu for pmu in self.pmus if pmu.core)

    def pmu_of(self, cpu: int) -> Pmu | None:
        """The core PMU that counts what runs on this CPU."""
        return next((pmu for pmu in self.core_pmus if cpu in pmu.cpus), None)

    def last_level(self, cpu: int) -> Cache | None:
        """The biggest cache above this CPU."""
        above = [cache for cache in self.caches if cpu in cache.cpus and cache.kind != "Instruction"]
        return max(above, key=lambda cache: cache.level, default=None)

    def as_json(self) -> dict:
        """Plain JSON for a recording's header and for `doctor --json`."""
        return {
            "arch": self.arch,
            "vendor": self.vendor,
            "family": self.family,
            "model": self.model,
            "stepping": self.stepping,
            "name": self.name,
            "kernel": self.kernel,
            "hypervisor": self.hypervisor,
            "cpus": len(self.online),
            "packages": len(self.packages),
            "cores": len(self.cores),
            "smt": self.smt,
            "offline": list(self.offline),
            "isolated": list(self.isolated),
            "nohz_full": list(self.nohz_full),
            "nodes": {str(node): list(cpus) for node, cpus in self.nodes.items()},
            "caches": [
                {
                    "level": cache.level,
                    "kind": cache.kind,
                    "size": cache.size,
                    "ways": cache.ways,
                    "shared": len(cache.cpus),
                }
                for cache in self.caches
                if self.online and self.online[0] in cache.cpus
            ],
            "pmus": [
                {"name": pmu.name, "type": pmu.type, "core": pmu.core, "cpus": len(pmu.cpus)}
                for pmu in self.pmus
            ],
        }


# --- reading ----------------------------------------------------------------------------------------------------------


def cpuinfo(root: Path) -> dict:
    """Who made the processor, from /proc/cpuinfo, whose keys differ by architecture."""
    first: dict[str, str] = {}
    count = 0
    parts: set[str] = set()
    for line in text(root / "proc/cpuinfo").splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        parts |= {value} if key == "CPU part" else set()
        count += key == "processor" and value.isdigit()
        first.setdefault(key, value)

    def integer(key: str) -> int:
        try:
            return int(first.get(key, ""), 0)
        except ValueError:
            return -1

    if "CPU implementer" in first:
        return {
            "arch": "aarch64",
            "vendor": first["CPU implementer"],
            "family": integer("CPU architecture"),
            "model": integer("CPU part"),
            "stepping": integer("CPU revision"),
            "name": first.get("Model", first.get("model name", "")),
            "flags": frozenset(first.get("Features", "").split()),
            "count": count,
            "parts": tuple(sorted(int(part, 0) for part in parts)),
        }
    return {
        "arch": "x86_64" if "vendor_id" in first else "riscv64" if "isa" in first else "",
        "vendor": first.get("vendor_id", first.get("mvendorid", "")),
        "family": integer("cpu family"),
        "model": integer("model"),
        "stepping": integer("stepping"),
        "name": first.get("model name", first.get("uarch", "")),
        "flags": frozenset(first.get("flags", "").split()),
        "count": count,
        "parts": (),
    }


def processor(root: Path = Path("/")) -> str:
    """Which processor this is, in numbers: 'GenuineIntel-6-207', or the MIDR's implementer and parts '0x41-0xd03-0xd08'.

    Vendor, family and model as CPUID has them; on arm64 every kind of core that is online (MIDR_EL1; /proc/cpuinfo shows the
    same numbers). What counters mean is a matter of these, never of the marketing name. '' where /proc/cpuinfo says none.
    """
    told = cpuinfo(root)
    if told["parts"]:
        return "-".join([told["vendor"], *map(hex, told["parts"])])
    return (
        f"{told['vendor']}-{told['family']}-{told['model']}" if told["vendor"] and told["model"] >= 0 else ""
    )


def read_nodes(root: Path) -> dict[int, tuple[int, ...]]:
    found = {}
    for name in names(root / NODES):
        if re.fullmatch(r"node\d+", name):
            found[int(name[4:])] = cpu_list(text(root / NODES / name / "cpulist"))
    return dict(sorted(found.items()))


def read_cpus(root: Path, nodes: dict[int, tuple[int, ...]], counted: int) -> tuple[Cpu, ...]:
    node_of = {cpu: node for node, cpus in nodes.items() for cpu in cpus}
    online = set(cpu_list(text(root / CPUS / "online"))) or set(range(max(counted, 1)))
    present = set(cpu_list(text(root / CPUS / "present"))) | online
    found = []
    for cpu in sorted(present):
        folder = root / CPUS / f"cpu{cpu}"
        topology = folder / "topology"
        siblings = text(topology / "core_cpus_list") or text(topology / "thread_siblings_list")
        found.append(
            Cpu(
                number=cpu,
                online=cpu in online,
                package=number(topology / "physical_package_id"),
                core=number(topology / "core_id"),
                node=node_of.get(cpu, -1),
                siblings=cpu_list(siblings) or (cpu,),
                capacity=number(folder / "cpu_capacity"),
                midr=number(folder / "regs/identification/midr_el1"),
            )
        )
    return tuple(found)


def read_caches(root: Path, online: tuple[int, ...]) -> tuple[Cache, ...]:
    """Every cache once, though each of its CPUs has a folder of it."""
    found: dict[tuple[int, str, tuple[int, ...]], Cache] = {}
    for cpu in online:
        folder = root / CPUS / f"cpu{cpu}" / "cache"
        for name in names(folder):
            if not name.startswith("index"):
                continue
            index = folder / name
            level, kind = number(index / "level"), text(index / "type")
            sharing = cpu_list(text(index / "shared_cpu_list")) or (cpu,)
            if level > 0 and (level, kind, sharing) not in found:
                found[level, kind, sharing] = Cache(
                    level=level,
                    kind=kind,
                    size=size(text(index / "size")),
                    ways=number(index / "ways_of_associativity", 0),
                    sets=number(index / "number_of_sets", 0),
                    line=number(index / "coherency_line_size", 64),
                    cpus=sharing,
                )
    return tuple(sorted(found.values(), key=lambda cache: (cache.level, cache.kind, cache.cpus)))


def read_pmus(root: Path, online: tuple[int, ...]) -> tuple[Pmu, ...]:
    found = []
    for name in names(root / PMUS):
        folder = root / PMUS / name
        kind = number(folder / "type")
        if kind < 0:
            continue
        # perf's own rule (tools/perf/util/pmu.c, is_pmu_core): 'cpu', or a PMU with a file 'cpus'; s390 has its own name.
        core = name in ("cpu", "cpum_cf") or (folder / "cpus").exists()
        mask = text(folder / ("cpus" if core else "cpumask"))
        interval = text(folder / "perf_event_mux_interval_ms")
        found.append(
            Pmu(
                name=name,
                type=kind,
                core=core,
                cpus=cpu_list(mask) if mask else online if core else (),
                format={term: bits(text(folder / "format" / term)) for term in names(folder / "format")},
                events={
                    event: text(folder / "events" / event)
                    for event in names(folder / "events")
                    if not event.endswith((".scale", ".unit", ".per-pkg", ".snapshot"))
                },
                caps={cap: text(folder / "caps" / cap) for cap in names(folder / "caps")},
                mux_interval_ms=float(interval) if interval.replace(".", "", 1).isdigit() else None,
            )
        )
    return tuple(found)


def read_hypervisor(root: Path, flags: frozenset[str]) -> str:
    """The hypervisor's name, 'unknown' where only the processor's flag tells of one, '' on bare metal."""
    dmi = " ".join(
        text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name", "board_vendor")
    )
    kind = text(root / "sys/hypervisor/type")
    tree = text(root / "proc/device-tree/hypervisor/compatible")
    if "hypervisor" in flags or kind or tree or "QEMU" in dmi or "KVM" in dmi or "Virtual" in dmi:
        if kind == "xen" and "control_d" in text(root / "proc/xen/capabilities"):
            return ""  # dom0 sees the machine itself
        words = f"{dmi} {kind.title()} {tree.replace('kvm', 'KVM')}"
        return next((name for word, name in HYPERVISORS if word in words), "unknown")
    return ""
