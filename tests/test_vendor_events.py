"""Vendor names, key events per family, modes: on faked machines, and against libpfm where it is installed."""

import os
import subprocess
import sys

import machines
import pytest

from pmutop import libpfm, sysfs, vendor_events
from pmutop.errors import UsageError
from pmutop.topology import Machine, processor


@pytest.mark.parametrize(
    "make, family",
    [
        (machines.amd_server, "zen5"),  # family 0x1a, model 2
        (machines.big_little, "arm"),
        (machines.arm_server, "arm"),  # Neoverse V2: libpfm knows it
        (machines.hybrid_laptop, "intel"),
        (machines.gvisor, "intel"),
    ],
    ids=["zen5", "big.LITTLE", "v2", "hybrid", "sandbox"],
)
def test_family(tmp_path, make, family):
    make(tmp_path)
    assert vendor_events.family_of_machine(Machine.read(tmp_path)) == family


def test_families_by_number():
    assert vendor_events.family_of("GenuineIntel", 6, 0xCF, "x86_64") == "emeraldrapids"
    assert vendor_events.family_of("GenuineIntel", 6, 0xAD, "x86_64") == "graniterapids"
    assert vendor_events.family_of("AuthenticAMD", 0x19, 1, "x86_64") == "amd"
    assert vendor_events.family_of("AuthenticAMD", 0x1A, 0x50, "x86_64") == "amd"  # not Zen 5 any more
    assert vendor_events.family_of("0x41", 8, 0xD84, "aarch64") == "neoverse-v3"
    assert vendor_events.family_of("", -1, -1, "riscv64") == ""


def test_rows_are_unique_and_spelt_in_terms_of_the_format(tmp_path):
    for table in vendor_events.TABLES.values():
        names = [row.name for row in table]
        assert len(set(names)) == len(names)
        for row in table:
            terms = dict(term.split("=") for term in row.terms.split(","))
            assert set(terms) <= {"event", "umask", "cmask"} and "event" in terms
            assert row.text and row.file
    assert set(vendor_events.FOLDERS) == set(vendor_events.TABLES) < set(vendor_events.KEY_EVENTS)


def test_zen5_event_beyond_eight_bits_is_split_as_the_kernel_says(tmp_path):
    machines.amd_server(tmp_path)
    event = sysfs.resolve("de_no_dispatch_per_slot.backend_stalls", str(tmp_path))
    assert event.config == 1 << 32 | 0x1E << 8 | 0xA0 and event.type == 4
    assert event.name == "de_no_dispatch_per_slot.backend_stalls"


def test_vendor_names_of_another_processor_are_unknown_here(tmp_path):
    machines.amd_server(tmp_path)
    with pytest.raises(UsageError):
        sysfs.resolve("MEM_INST_RETIRED.ALL_LOADS", str(tmp_path))


def test_intel_counter_mask(tmp_path):
    root = machines.intel_server(tmp_path, sockets=1, cores=2)
    root.cpuinfo_x86(4, "GenuineIntel", 6, 0xCF, "INTEL(R) XEON(R) PLATINUM 8592+")
    assert sysfs.resolve("cycle_activity.stalls_total", str(tmp_path)).config == 4 << 24 | 4 << 8 | 0xA3


def test_every_key_event_of_every_family_can_be_spelt(tmp_path):
    for family, names in vendor_events.KEY_EVENTS.items():
        assert set(names) <= set(vendor_events.ROLES)
        vendor_names = {row.name for row in vendor_events.TABLES.get(family, ())}
        for role, name in names.items():
            assert name in vendor_names or "{pmu}/" in name or sysfs.events.generic(name), (
                family,
                role,
                name,
            )
    machines.big_little(tmp_path)
    keys = vendor_events.key_events(Machine.read(tmp_path))
    assert keys["l3-misses"] == "LLC-load-misses"  # two PMUs: names that both know
    assert list(keys)[:2] == ["instructions", "cycles"]


@pytest.mark.parametrize(
    "make", [machines.amd_server, machines.big_little, machines.arm_server, machines.intel_server]
)
def test_the_family_by_the_words_of_a_header(tmp_path, make):
    """A recording's header names the processor in numbers; it must be the same family as the machine itself."""
    make(tmp_path)
    machine = Machine.read(tmp_path)
    assert vendor_events.family_named(processor(tmp_path)) == vendor_events.family_of_machine(machine)


@pytest.mark.parametrize(
    "words", ["", "0x41", "GenuineIntel-6", "0x41-0xd07-", "a-b-c", None, ["0x41-0xd07"]]
)
def test_words_that_are_no_processor(words):
    assert vendor_events.family_named(words) in ("", "arm")


def test_what_each_key_event_counts_is_known_again_by_its_name():
    for family, names in vendor_events.KEY_EVENTS.items():
        for role, name in vendor_events.key_names(family, ["armv8_pmuv3_0"]).items():
            played = vendor_events.role_of(name, family)
            if (role, played) != ("l3-accesses", "l2-misses"):  # what reaches the L3 has missed the L2
                assert played == role or names[played] == names[role], (family, role)


def test_of_several_pmus_only_generic_names_are_taken():
    one = vendor_events.key_names("arm", ["armv8_cortex_a53"])
    two = vendor_events.key_names("arm", ["armv8_cortex_a53", "armv8_cortex_a72"])
    assert one["l1d-misses"] == "armv8_cortex_a53/l1d_cache_refill/" and "l2-misses" in one
    assert two["l1d-misses"] == "L1-dcache-load-misses" and "l2-misses" not in two
    assert not any("/" in name for name in two.values())


def test_modes_behind_a_name(tmp_path):
    root = machines.amd_server(tmp_path)
    assert sysfs.resolve("cycles:u").mode == "u" and sysfs.resolve("cycles:u").name == "cycles:u"
    assert sysfs.resolve("r1c2:k", str(root.folder)).mode == "k"
    event = sysfs.resolve("cpu/event=0x76/u", str(root.folder))
    assert (event.mode, event.config) == ("u", 0x76)
    assert sysfs.resolve("cycles").mode == ""


needs_libpfm = pytest.mark.skipif(libpfm.library() is None, reason="libpfm4 is not installed")


def encoded(*names):
    """Codes by libpfm, '' where it knows none; in a process of its own, as it reads its environment when it starts."""
    program = "import sys; from pmutop.libpfm import encode\nfor n in sys.argv[1:]: e = encode(n); print(e.config if e else '')"
    environment = {**os.environ, "LIBPFM_ENCODE_INACTIVE": "1"}
    command = [sys.executable, "-c", program, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [int(word) if word else None for word in done.stdout.split("\n")[:-1]]


@needs_libpfm
def test_libpfm_encodes_processors_that_are_not_here():
    names = ["skx::MEM_LOAD_RETIRED:L3_MISS", "amd64_fam19h_zen3::RETIRED_BRANCH_INSTRUCTIONS", "no_such"]
    assert encoded(*names) == [0x20D1, 0xC2, None]


@needs_libpfm
def test_our_rows_agree_with_libpfm_where_it_knows_a_relative():
    """Sapphire Rapids shares these events with its successors: an independent witness for our codes."""
    shared = ("MEM_LOAD_RETIRED.L1_MISS", "MEM_LOAD_RETIRED.L2_MISS", "LONGEST_LAT_CACHE.MISS", "ASSISTS.FP")
    shared += ("DTLB_LOAD_MISSES.WALK_COMPLETED", "ITLB_MISSES.WALK_COMPLETED", "CYCLE_ACTIVITY.STALLS_TOTAL")
    rows = {row.name: dict(term.split("=") for term in row.terms.split(",")) for row in vendor_events.RAPIDS}
    compared = 0
    for name, theirs in zip(
        shared, encoded(*(f"spr::{name.replace('.', ':')}" for name in shared)), strict=True
    ):
        if theirs is not None:
            event, umask, mask = (int(rows[name].get(term, "0"), 0) for term in ("event", "umask", "cmask"))
            assert theirs == event | umask << 8 | mask << 24, name
            compared += 1
    assert compared >= 4


def test_without_libpfm_nothing_breaks(monkeypatch):
    monkeypatch.setattr(libpfm, "library", lambda: None)
    assert libpfm.encode("skx::INST_RETIRED") is None and list(libpfm.known()) == []
