"""Faked /proc and /sys trees of machines that are not here: each function writes one below a folder.

The contents follow what such machines show (layout: Documentation/ABI/testing/sysfs-devices-system-cpu and
sysfs-bus-event_source-devices-*); only what pmutop reads is written.
"""

from __future__ import annotations

from pathlib import Path

BARE = "fpu vme sse2 constant_tsc"
ALL_CAPABILITIES = "000001ffffffffff"
NO_CAPABILITIES = "0000000000000000"
DOCKER_CAPABILITIES = "00000000a80425fb"
INTEL_FORMAT = {"event": "config:0-7", "umask": "config:8-15", "inv": "config:23", "cmask": "config:24-31"}
AMD_FORMAT = {
    "event": "config:0-7,32-35",
    "umask": "config:8-15",
    "inv": "config:23",
    "cmask": "config:24-31",
}


class FakeRoot:
    """A folder that files are put into; text ends with a newline as the kernel's do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, path: str, words: object = "") -> FakeRoot:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{words}\n" if str(words) else "")
        return self

    def remove(self, path: str) -> FakeRoot:
        (self.folder / path).unlink()
        return self

    def pmu(
        self, name: str, kind: int, cpus: str = "", mask: str = "", format=None, events=None, mux="4", **caps
    ):
        base = f"sys/bus/event_source/devices/{name}"
        self.put(f"{base}/type", kind)
        if mux:
            self.put(f"{base}/perf_event_mux_interval_ms", mux)
        for file, words in (("cpus", cpus), ("cpumask", mask)):
            if words:
                self.put(f"{base}/{file}", words)
        for folder, table in (("format", format), ("events", events), ("caps", caps)):
            for key, words in (table or {}).items():
                self.put(f"{base}/{folder}/{key.replace('_', '-') if folder == 'events' else key}", words)
        return self

    def process(
        self, capabilities=ALL_CAPABILITIES, uid=0, seccomp=0, files=("1024", "524288"), memlock="8388608"
    ):
        """The rights of /proc/self."""
        self.put(
            "proc/self/status",
            f"Name:\tpmutop\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\nSeccomp:\t{seccomp}",
        )
        self.put(
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            f"Max open files            {files[0]:<20} {files[1]:<20} files     \n"
            f"Max locked memory         {memlock:<20} {memlock:<20} bytes     \n"
            "Max realtime priority     0                    0                    ",
        )
        self.put("proc/self/uid_map", "         0          0 4294967295")
        self.put("proc/self/schedstat", "1 2 3")
        self.put("proc/self/mounts", "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0")
        return self

    def settings(self, release="6.8.0-45-generic", **values):
        self.put("proc/sys/kernel/osrelease", release)
        self.put("proc/version", f"Linux version {release} (builder@host) #1 SMP")
        self.put("proc/pressure/cpu", "some avg10=0.00")
        defaults = {
            "perf_event_paranoid": 2,
            "perf_event_mlock_kb": 516,
            "nmi_watchdog": 0,
            "sched_rt_runtime_us": 950000,
        }
        for name, value in {**defaults, **values}.items():
            self.put(f"proc/sys/kernel/{name}", value)
        return self

    def cpuinfo_x86(self, cpus, vendor, family, model, name, flags=BARE):
        one = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n"
        one += f"stepping\t: 1\nflags\t\t: {flags}"
        return self.put("proc/cpuinfo", "\n\n".join(f"processor\t: {cpu}\n{one}" for cpu in range(cpus)))

    def cpuinfo_arm(self, parts: list[int]):
        return self.put(
            "proc/cpuinfo",
            "\n\n".join(
                f"processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {part:#x}\nCPU revision\t: 1"
                for cpu, part in enumerate(parts)
            ),
        )

    def cpu(self, number: int, package: int, core: int, siblings: str, caches=(), **more):
        """`caches`: (level, kind, size, ways, sets, shared list)."""
        base = f"sys/devices/system/cpu/cpu{number}"
        self.put(f"{base}/topology/physical_package_id", package)
        self.put(f"{base}/topology/core_id", core)
        self.put(f"{base}/topology/core_cpus_list", siblings)
        for index, (level, kind, size, ways, sets, shared) in enumerate(caches):
            folder = f"{base}/cache/index{index}"
            rows = {
                "level": level,
                "type": kind,
                "size": size,
                "shared_cpu_list": shared,
                "coherency_line_size": 64,
            }
            rows |= {"ways_of_associativity": ways, "number_of_sets": sets}
            for file, words in rows.items():
                self.put(f"{folder}/{file}", words)
        for file, words in more.items():
            self.put(f"{base}/{file.replace('__', '/')}", words)
        return self

    def online(self, words: str, present: str = ""):
        self.put("sys/devices/system/cpu/online", words)
        return self.put("sys/devices/system/cpu/present", present or words)

    def node(self, number: int, cpus: str):
        return self.put(f"sys/devices/system/node/node{number}/cpulist", cpus)


def intel_server(folder: Path, sockets=2, cores=64) -> FakeRoot:
    """Two sockets of 64 cores, two hardware threads each, as Linux numbers them: the second threads come last."""
    root = FakeRoot(folder).settings(nmi_watchdog=1).process()
    total = sockets * cores
    root.cpuinfo_x86(
        2 * total,
        "GenuineIntel",
        6,
        207,
        "INTEL(R) XEON(R) PLATINUM 8592+",
        BARE + " cqm_occup_llc cqm_mbm_total",
    )
    root.online(f"0-{2 * total - 1}")
    for cpu in range(2 * total):
        place = cpu % total
        socket, core = divmod(place, cores)
        pair = f"{place},{place + total}"
        first = socket * cores
        shared = f"{first}-{first + cores - 1},{first + total}-{first + total + cores - 1}"
        caches = [(1, "Data", "48K", 12, 64, pair), (1, "Instruction", "32K", 8, 64, pair)]
        caches += [(2, "Unified", "2048K", 16, 2048, pair), (3, "Unified", "327680K", 20, 262144, shared)]
        root.cpu(cpu, socket, core, pair, caches)
    for socket in range(sockets):
        first = socket * cores
        root.node(socket, f"{first}-{first + cores - 1},{first + total}-{first + total + cores - 1}")
    root.pmu(
        "cpu",
        4,
        format=INTEL_FORMAT,
        events={"cpu_cycles": "event=0x3c", "instructions": "event=0xc0"},
        branches=32,
    )
    root.pmu("uncore_imc_0", 24, mask=f"0,{cores}", format=INTEL_FORMAT)
    root.pmu("software", 1, mux="").pmu("breakpoint", 5)
    return root


def amd_server(folder: Path) -> FakeRoot:
    """One socket of eight cores without SMT, two core complexes with an L3 each."""
    root = (
        FakeRoot(folder)
        .settings()
        .process()
        .cpuinfo_x86(8, "AuthenticAMD", 26, 2, "AMD EPYC 9575F", BARE + " cqm_mbm_total")
    )
    root.online("0-7").node(0, "0-7")
    for cpu in range(8):
        l3 = "0-3" if cpu < 4 else "4-7"
        caches = [
            (1, "Data", "48K", 12, 64, cpu),
            (2, "Unified", "1024K", 16, 1024, cpu),
            (3, "Unified", "32768K", 16, 32768, l3),
        ]
        root.cpu(cpu, 0, cpu, str(cpu), caches)
    root.pmu("cpu", 4, format=AMD_FORMAT, events={"cpu_cycles": "event=0x76"})
    return root.pmu("amd_l3", 12, mask="0,4").pmu("ibs_op", 11)


def arm_server(folder: Path) -> FakeRoot:
    """Four Neoverse V2 cores; the kernel says nothing of cache sizes."""
    root = (
        FakeRoot(folder)
        .settings(release="6.1.0-28-arm64", perf_event_paranoid=3)
        .process()
        .cpuinfo_arm([0xD4F] * 4)
    )
    root.online("0-3").node(0, "0-3")
    for cpu in range(4):
        root.cpu(
            cpu, 0, cpu, str(cpu), cpu_capacity=1024, regs__identification__midr_el1="0x00000000410fd4f1"
        )
    events = {"cpu_cycles": "event=0x0011", "inst_retired": "event=0x0008"}
    return root.pmu(
        "armv8_pmuv3_0", 8, cpus="0-3", format={"event": "config:0-15"}, events=events, slots="0x00000008"
    )


def big_little(folder: Path) -> FakeRoot:
    """Four small and two big cores, a PMU of its own for each kind."""
    root = FakeRoot(folder).settings(release="5.15.0-rk").process().cpuinfo_arm([0xD03] * 4 + [0xD08] * 2)
    root.online("0-5")
    for cpu in range(6):
        root.cpu(cpu, 0 if cpu < 4 else 1, cpu % 4, str(cpu), cpu_capacity=485 if cpu < 4 else 1024)
    root.pmu("armv8_cortex_a53", 7, cpus="0-3", format={"event": "config:0-15"})
    return root.pmu("armv8_cortex_a72", 8, cpus="4-5", format={"event": "config:0-15"})


def hybrid_laptop(folder: Path) -> FakeRoot:
    """Two performance cores with two threads each and four efficient ones; an ordinary user."""
    root = (
        FakeRoot(folder)
        .settings(perf_event_paranoid=4)
        .process(NO_CAPABILITIES, uid=1000, files=("1024", "4096"))
    )
    root.cpuinfo_x86(8, "GenuineIntel", 6, 154, "12th Gen Intel(R) Core(TM) i5-1240P")
    root.online("0-7").node(0, "0-7")
    for cpu in range(8):
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" if cpu < 4 else str(cpu)
        l2 = pair if cpu < 4 else "4-7"
        caches = [
            (2, "Unified", "1280K" if cpu < 4 else "2048K", 10, 2048, l2),
            (3, "Unified", "12288K", 12, 16384, "0-7"),
        ]
        root.cpu(cpu, 0, cpu, pair, caches)
    root.pmu("cpu_core", 4, cpus="0-3", format=INTEL_FORMAT, events={"cpu_cycles": "event=0x3c"})
    return root.pmu("cpu_atom", 10, cpus="4-7", format=INTEL_FORMAT, events={"cpu_cycles": "event=0x3c"})


def cloud_vm(folder: Path) -> FakeRoot:
    """Two CPUs, no PMU, one CPU offline, one isolated."""
    root = (
        FakeRoot(folder)
        .settings()
        .process()
        .cpuinfo_x86(4, "GenuineIntel", 6, 85, "Intel(R) Xeon(R)", BARE + " hypervisor")
    )
    root.online("0-2", present="0-3").node(0, "0-3")
    for cpu in range(3):
        root.cpu(cpu, 0, cpu, str(cpu), [(3, "Unified", "36608K", 11, 53248, "0-3")])
    root.put("sys/devices/system/cpu/isolated", "2").put("sys/devices/system/cpu/nohz_full", "2")
    root.put("sys/class/dmi/id/sys_vendor", "Amazon EC2").put("sys/class/dmi/id/product_name", "t3.large")
    return root.pmu("software", 1, mux="").pmu("msr", 9)


def container(folder: Path) -> FakeRoot:
    """Docker on an AMD server: its usual seccomp filter, its usual capabilities."""
    return amd_server(folder).process(DOCKER_CAPABILITIES, seccomp=2).put(".dockerenv")


def gvisor(folder: Path) -> FakeRoot:
    root = (
        FakeRoot(folder)
        .process()
        .put("proc/version", "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016")
    )
    return root.cpuinfo_x86(2, "GenuineIntel", 6, 85, "unknown").online("0-1")


def wsl2(folder: Path) -> FakeRoot:
    root = FakeRoot(folder).settings(release="5.15.167.4-microsoft-standard-WSL2").process()
    return root.cpuinfo_x86(
        2, "GenuineIntel", 6, 170, "Intel(R) Core(TM) Ultra 7 155H", BARE + " hypervisor"
    ).online("0-1")


def wsl1(folder: Path) -> FakeRoot:
    return (
        wsl2(folder).settings(release="4.4.0-19041-Microsoft").remove("proc/sys/kernel/perf_event_paranoid")
    )


def kvm_host(folder: Path) -> FakeRoot:
    return amd_server(folder).put("dev/kvm").put("sys/module/kvm_amd/refcnt", 12)
