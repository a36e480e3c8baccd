"""Vendor events of recent processors that libpfm 4.13 does not know, and the key events of each processor family.

Every row was read in the Linux tree's public event lists, tools/perf/pmu-events/arch/ARCH/FAMILY/FILE.json (FILE stands in
the row); what could not be read there is left out. Codes go through the kernel's own format files, never through a layout
of ours, so that a row is spelt `event=0x43,umask=0x1` as in sysfs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pmutop.events import CACHE_IDS, HARDWARE_IDS
from pmutop.topology import Machine


class VendorEvent(NamedTuple):
    name: str
    terms: str  # in the words of the PMU's format folder
    file: str  # of the family's folder in the kernel's lists
    text: str


ZEN5 = (
    VendorEvent(
        "ls_dispatch.all",
        "event=0x29,umask=0x7",
        "load-store",
        "memory operations dispatched to the load-store unit",
    ),
    VendorEvent(
        "ls_any_fills_from_sys.all", "event=0x44,umask=0xff", "load-store", "data cache fills from anywhere"
    ),
    VendorEvent(
        "ls_any_fills_from_sys.dram_io_all",
        "event=0x44,umask=0x48",
        "load-store",
        "data cache fills from memory",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.all",
        "event=0x43,umask=0xff",
        "load-store",
        "demand data cache fills from anywhere",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.local_l2",
        "event=0x43,umask=0x1",
        "load-store",
        "demand data cache fills from the L2",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.local_ccx",
        "event=0x43,umask=0x2",
        "load-store",
        "demand fills from the L3 or another L2 of the complex",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.near_cache",
        "event=0x43,umask=0x4",
        "load-store",
        "demand fills from another complex, same node",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.far_cache",
        "event=0x43,umask=0x10",
        "load-store",
        "demand fills from another complex, other node",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.dram_io_near",
        "event=0x43,umask=0x8",
        "load-store",
        "demand fills from memory of this node",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.dram_io_far",
        "event=0x43,umask=0x40",
        "load-store",
        "demand fills from memory of another node",
    ),
    VendorEvent(
        "ls_dmnd_fills_from_sys.dram_io_all",
        "event=0x43,umask=0x48",
        "load-store",
        "demand fills from any memory",
    ),
    VendorEvent(
        "ls_hw_pf_dc_fills.local_l2",
        "event=0x5a,umask=0x1",
        "load-store",
        "hardware prefetch fills from the L2",
    ),
    VendorEvent("ls_l1_d_tlb_miss.all", "event=0x45,umask=0xff", "load-store", "L1 data TLB misses"),
    VendorEvent(
        "ls_l1_d_tlb_miss.all_l2_miss",
        "event=0x45,umask=0xf0",
        "load-store",
        "data TLB misses that walk the page table",
    ),
    VendorEvent(
        "ls_bad_status2.stli_other", "event=0x24,umask=0x2", "load-store", "loads held up by an older store"
    ),
    VendorEvent("ls_locks.all", "event=0x25,umask=0x1f", "load-store", "lock instructions retired"),
    VendorEvent(
        "ls_mab_alloc.load_store_allocations",
        "event=0x41,umask=0x7",
        "load-store",
        "miss buffers taken by loads and stores",
    ),
    VendorEvent(
        "bp_l1_tlb_miss_l2_tlb_miss.all",
        "event=0x85,umask=0xf",
        "branch-prediction",
        "instruction TLB misses that walk the page table",
    ),
    VendorEvent(
        "bp_redirects.ex_redir",
        "event=0x9f,umask=0x2",
        "branch-prediction",
        "predictor redirected by a mispredict",
    ),
    VendorEvent(
        "bp_redirects.resync",
        "event=0x9f,umask=0x1",
        "branch-prediction",
        "predictor redirected by a pipeline restart",
    ),
    VendorEvent(
        "ic_tag_hit_miss.instruction_cache_miss",
        "event=0x18e,umask=0x18",
        "inst-cache",
        "instruction cache misses",
    ),
    VendorEvent("op_cache_hit_miss.op_cache_miss", "event=0x28f,umask=0x4", "inst-cache", "op cache misses"),
    VendorEvent("de_src_op_disp.all", "event=0xaa,umask=0x7", "decode", "ops dispatched"),
    VendorEvent(
        "de_no_dispatch_per_slot.no_ops_from_frontend",
        "event=0x1a0,umask=0x1",
        "decode",
        "dispatch slots empty for want of ops (8 a cycle)",
    ),
    VendorEvent(
        "de_no_dispatch_per_slot.backend_stalls",
        "event=0x1a0,umask=0x1e",
        "decode",
        "dispatch slots lost to back-end stalls (8 a cycle)",
    ),
    VendorEvent(
        "de_no_dispatch_per_slot.smt_contention",
        "event=0x1a0,umask=0x60",
        "decode",
        "dispatch slots that went to the other thread",
    ),
    VendorEvent(
        "de_dispatch_stall_cycle_dynamic_tokens_part2.retq",
        "event=0xaf,umask=0x20",
        "decode",
        "cycles without retire queue tokens",
    ),
    VendorEvent("fp_ret_x87_fp_ops.all", "event=0x2,umask=0x7", "floating-point", "x87 operations retired"),
    VendorEvent(
        "fp_ret_sse_avx_ops.all", "event=0x3,umask=0xf", "floating-point", "SSE and AVX operations retired"
    ),
)

RAPIDS = (  # these rows are the same in both families' lists
    VendorEvent("MEM_LOAD_RETIRED.L1_HIT", "event=0xd1,umask=0x1", "cache", "loads that hit the L1"),
    VendorEvent("MEM_LOAD_RETIRED.L1_MISS", "event=0xd1,umask=0x8", "cache", "loads that missed the L1"),
    VendorEvent("MEM_LOAD_RETIRED.L2_HIT", "event=0xd1,umask=0x2", "cache", "loads that hit the L2"),
    VendorEvent("MEM_LOAD_RETIRED.L2_MISS", "event=0xd1,umask=0x10", "cache", "loads that missed the L2"),
    VendorEvent(
        "MEM_LOAD_RETIRED.FB_HIT", "event=0xd1,umask=0x40", "cache", "loads that met a miss already under way"
    ),
    VendorEvent("MEM_INST_RETIRED.ALL_LOADS", "event=0xd0,umask=0x81", "cache", "loads retired"),
    VendorEvent("MEM_INST_RETIRED.ALL_STORES", "event=0xd0,umask=0x82", "cache", "stores retired"),
    VendorEvent("MEM_INST_RETIRED.LOCK_LOADS", "event=0xd0,umask=0x21", "cache", "locked loads retired"),
    VendorEvent(
        "MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD",
        "event=0xd2,umask=0x4",
        "cache",
        "loads answered by another core's modified line",
    ),
    VendorEvent(
        "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM",
        "event=0xd3,umask=0x1",
        "cache",
        "loads from this socket's memory",
    ),
    VendorEvent(
        "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM",
        "event=0xd3,umask=0x2",
        "cache",
        "loads from another socket's memory",
    ),
    VendorEvent("L2_RQSTS.REFERENCES", "event=0x24,umask=0xff", "cache", "requests to the L2"),
    VendorEvent("L2_RQSTS.MISS", "event=0x24,umask=0x3f", "cache", "read requests that missed the L2"),
    VendorEvent("LONGEST_LAT_CACHE.REFERENCE", "event=0x2e,umask=0x4f", "cache", "requests to the L3"),
    VendorEvent("LONGEST_LAT_CACHE.MISS", "event=0x2e,umask=0x41", "cache", "requests that missed the L3"),
    VendorEvent(
        "DTLB_LOAD_MISSES.WALK_COMPLETED", "event=0x12,umask=0xe", "virtual-memory", "page walks for loads"
    ),
    VendorEvent(
        "DTLB_STORE_MISSES.WALK_COMPLETED", "event=0x13,umask=0xe", "virtual-memory", "page walks for stores"
    ),
    VendorEvent(
        "ITLB_MISSES.WALK_COMPLETED", "event=0x11,umask=0xe", "virtual-memory", "page walks for code"
    ),
    VendorEvent(
        "ASSISTS.FP", "event=0xc1,umask=0x2", "floating-point", "microcode assists for floating point"
    ),
    VendorEvent("BR_MISP_RETIRED.ALL_BRANCHES", "event=0xc5", "pipeline", "mispredicted branches retired"),
    VendorEvent(
        "BR_MISP_RETIRED.INDIRECT",
        "event=0xc5,umask=0x80",
        "pipeline",
        "mispredicted indirect branches retired",
    ),
    VendorEvent(
        "CYCLE_ACTIVITY.STALLS_TOTAL",
        "event=0xa3,umask=0x4,cmask=0x4",
        "pipeline",
        "cycles in which nothing executed",
    ),
    VendorEvent(
        "CYCLE_ACTIVITY.STALLS_L1D_MISS",
        "event=0xa3,umask=0xc,cmask=0xc",
        "pipeline",
        "stalled on a load that missed the L1",
    ),
    VendorEvent(
        "CYCLE_ACTIVITY.STALLS_L2_MISS",
        "event=0xa3,umask=0x5,cmask=0x5",
        "pipeline",
        "stalled on a load that missed the L2",
    ),
)

NEOVERSE_V3 = (  # beyond what the Arm driver itself names in sysfs
    VendorEvent("L2D_CACHE_L1HWPRF", "event=0x1b8", "l2_cache", "L2 accesses by the L1's prefetcher"),
    VendorEvent(
        "L2D_CACHE_REFILL_L1HWPRF", "event=0x1b9", "l2_cache", "L2 refills asked for by the L1's prefetcher"
    ),
    VendorEvent(
        "DISPATCH_STALL_IQ_SX", "event=0x15c", "stall", "dispatch stalled: simple integer queues full"
    ),
    VendorEvent(
        "DISPATCH_STALL_IQ_MX", "event=0x15d", "stall", "dispatch stalled: complex integer queues full"
    ),
    VendorEvent(
        "DISPATCH_STALL_IQ_LS", "event=0x15e", "stall", "dispatch stalled: load and store queues full"
    ),
    VendorEvent("DISPATCH_STALL_IQ_VX", "event=0x15f", "stall", "dispatch stalled: vector queues full"),
    VendorEvent("DISPATCH_STALL_MCQ", "event=0x160", "stall", "dispatch stalled: commit queue full"),
)

TABLES: dict[str, tuple[VendorEvent, ...]] = {
    "zen5": ZEN5,
    "emeraldrapids": RAPIDS,
    "graniterapids": RAPIDS,
    "neoverse-v3": NEOVERSE_V3,
}
FOLDERS = {
    "zen5": "x86/amdzen5",
    "emeraldrapids": "x86/emeraldrapids",
    "graniterapids": "x86/graniterapids",
    "neoverse-v3": "arm64/arm/neoverse-v3",
}

#: (vendor, family, models) -> family's name; None = any model. Numbers: arch/x86/include/asm/intel-family.h,
#: arch/x86/kernel/cpu/amd.c (Zen 5's ranges of family 0x1a), arch/arm64/include/asm/cputype.h. First match wins.
FAMILIES = (
    ("GenuineIntel", 6, (0xCF,), "emeraldrapids"),
    ("GenuineIntel", 6, (0xAD, 0xAE), "graniterapids"),
    ("GenuineIntel", 6, None, "intel"),
    ("AuthenticAMD", 0x1A, (*range(0x30), *range(0x40, 0x50), *range(0x60, 0x80)), "zen5"),
    ("AuthenticAMD", None, None, "amd"),
    ("0x41", None, (0xD84,), "neoverse-v3"),
)


def family_of(vendor: str, family: int, model: int, arch: str) -> str:
    """The processor family by the name used here; 'arm' for whatever else is aarch64, '' where nothing is known."""
    for known_vendor, known_family, models, name in FAMILIES:
        if vendor == known_vendor and known_family in (None, family) and (models is None or model in models):
            return name
    return "arm" if arch == "aarch64" else ""


def family_named(processor: object) -> str:
    """The family of a processor in `topology.processor`'s words, as a recording's header carries them; '' if they say none."""
    if match := re.fullmatch(r"(0x[0-9a-f]+)((?:-0x[0-9a-f]+)+)", str(processor)):
        parts = match[2].split("-")[1:]
        return family_of(match[1], -1, int(parts[0], 0) if len(parts) == 1 else -1, "aarch64")
    if match := re.fullmatch(r"(.+)-(\d+)-(\d+)", str(processor)):
        return family_of(match[1], int(match[2]), int(match[3]), "x86_64")
    return ""


def family_of_machine(machine: Machine) -> str:
    return family_of(machine.vendor, machine.family, machine.model, machine.arch)


def source_of(family: str, event: VendorEvent) -> str:
    """Where the row was read, below the Linux tree."""
    return f"tools/perf/pmu-events/arch/{FOLDERS[family]}/{event.file}.json"


#: The events that the features and rules are made of, most important first: when counters are scarce the last are dropped.
ROLES = (
    "instructions",
    "cycles",
    "l3-misses",
    "l2-misses",
    "branch-misses",
    "l1d-misses",
    "stalls-backend",
    "stalls-frontend",
    "dtlb-misses",
    "l3-accesses",
    "l2-accesses",
    "branches",
    "fp-assists",
    "itlb-misses",
    "l1d-accesses",
)

GENERIC = {  # perf's generic names; the kernel maps them for most processors
    "instructions": "instructions",
    "cycles": "cycles",
    "branches": "branches",
    "branch-misses": "branch-misses",
    "l1d-accesses": "L1-dcache-loads",
    "l1d-misses": "L1-dcache-load-misses",
    "l3-accesses": "LLC-loads",
    "l3-misses": "LLC-load-misses",
    "dtlb-misses": "dTLB-load-misses",
    "itlb-misses": "iTLB-load-misses",
    "stalls-frontend": "stalled-cycles-frontend",
    "stalls-backend": "stalled-cycles-backend",
}
GENERIC_ROLES = {name: role for role, name in GENERIC.items()}
INTEL = GENERIC | {"l3-accesses": "cache-references", "l3-misses": "cache-misses"}  # there these are the L3's
#: Names of the Arm driver's events folder (drivers/perf/arm_pmuv3.c); {pmu} because the PMU is called differently everywhere.
ARM = GENERIC | {
    "l1d-accesses": "{pmu}/l1d_cache/",
    "l1d-misses": "{pmu}/l1d_cache_refill/",
    "l2-accesses": "{pmu}/l2d_cache/",
    "l2-misses": "{pmu}/l2d_cache_refill/",
    "l3-accesses": "{pmu}/ll_cache_rd/",
    "l3-misses": "{pmu}/ll_cache_miss_rd/",
    "dtlb-misses": "{pmu}/dtlb_walk/",
    "itlb-misses": "{pmu}/itlb_walk/",
    "stalls-frontend": "{pmu}/stall_frontend/",
    "stalls-backend": "{pmu}/stall_backend/",
}
RAPIDS_KEYS = INTEL | {
    "l1d-accesses": "MEM_INST_RETIRED.ALL_LOADS",
    "l1d-misses": "MEM_LOAD_RETIRED.L1_MISS",
    "l2-accesses": "L2_RQSTS.REFERENCES",
    "l2-misses": "L2_RQSTS.MISS",
    "dtlb-misses": "DTLB_LOAD_MISSES.WALK_COMPLETED",
    "itlb-misses": "ITLB_MISSES.WALK_COMPLETED",
    "stalls-backend": "CYCLE_ACTIVITY.STALLS_TOTAL",
    "fp-assists": "ASSISTS.FP",
}
ZEN5_KEYS = GENERIC | {
    "l1d-accesses": "ls_dispatch.all",
    "l1d-misses": "ls_dmnd_fills_from_sys.all",
    "l2-accesses": "ls_dmnd_fills_from_sys.local_l2",  # nearest kin: fills that the L2 answered
    "l2-misses": "{pmu}/event=0x43,umask=0xfe/",  # ls_dmnd_fills_from_sys, every answer but the L2's own
    "l3-misses": "ls_dmnd_fills_from_sys.dram_io_all",
    "dtlb-misses": "ls_l1_d_tlb_miss.all_l2_miss",
    "itlb-misses": "bp_l1_tlb_miss_l2_tlb_miss.all",
    "stalls-frontend": "de_no_dispatch_per_slot.no_ops_from_frontend",
    "stalls-backend": "de_no_dispatch_per_slot.backend_stalls",
    "fp-assists": "fp_ret_x87_fp_ops.all",  # nearest kin: there is no event for assists
}
KEY_EVENTS = {
    "": GENERIC,
    "intel": INTEL,
    "amd": GENERIC,
    "arm": ARM,
    "neoverse-v3": ARM,
    "emeraldrapids": RAPIDS_KEYS,
    "graniterapids": RAPIDS_KEYS,
    "zen5": ZEN5_KEYS,
}
#: Slots per cycle of the events that count slots instead of cycles, to make shares of them.
SLOTS = {
    "zen5": {"stalls-frontend": 8, "stalls-backend": 8}
}  # amdzen5/pipeline.json: 8 dispatch slots a cycle


#: What perf's two generic cache events are, by the level that the kernel maps them to: the last one (man perf_event_open) but
#: for AMD (arch/x86/events/amd/core.c, amd_zen1_perfmon_event_map) and Arm (drivers/perf/arm_pmuv3.c, armv8_pmuv3_perf_map).
#: What reaches the L3 has missed the L2.
LAST_LEVEL = {"cache-references": "l2-misses", "cache-misses": "l3-misses"}
CACHE_ROLES = {
    "amd": {"cache-references": "l2-accesses", "cache-misses": "l2-misses"},
    "arm": {"cache-references": "l1d-accesses", "cache-misses": "l1d-misses"},
}
#: Whose generic names these processors share.
KIN = {"emeraldrapids": "intel", "graniterapids": "intel", "zen5": "amd", "neoverse-v3": "arm"}


def key_names(family: str, pmus: Sequence[str]) -> dict[str, str]:
    """Role -> the name under which a family's processor counts it, in the order of ROLES; roles it lacks are absent.

    Of several PMUs none can speak for the others: then names that one of them defines give way to perf's generic ones.
    """
    names = KEY_EVENTS.get(family, GENERIC)
    if len(pmus) > 1:
        names = {role: GENERIC.get(role, "") if "{pmu}" in name else name for role, name in names.items()}
    return {role: names[role].format(pmu=(*pmus, "cpu")[0]) for role in ROLES if names.get(role)}


def key_events(machine: Machine) -> dict[str, str]:
    """`key_names` of this machine."""
    return key_names(family_of_machine(machine), [pmu.name for pmu in machine.core_pmus])


def offered(machine: Machine) -> list[tuple[str, str, str]]:
    """(name, where it stands, its text) of every processor event that perf, the core PMUs' sysfs or the vendor's list names;
    whether it can be counted, only trying tells."""
    family = family_of_machine(machine)
    sysfs = [
        (f"{pmu.name}/{event}/", "sysfs", terms)
        for pmu in machine.core_pmus
        for event, terms in pmu.events.items()
    ]
    vendor = [(row.name, source_of(family, row), row.text) for row in TABLES.get(family, ())]
    return [*((name, "generic", "") for name in (*HARDWARE_IDS, *CACHE_IDS)), *sysfs, *vendor]


def role_of(name: str, family: str) -> str:
    """What an event counts, as the features and rules call it (ROLES); its own name where it is none of them."""
    spelt = re.sub(r"^[^/]+/", "{pmu}/", name)
    cache = CACHE_ROLES.get(KIN.get(family, family), LAST_LEVEL)
    own = {event: role for role, event in KEY_EVENTS.get(family, GENERIC).items()}
    return cache.get(name) or own.get(spelt) or own.get(name) or GENERIC_ROLES.get(name, name)
