"""The machine as read from faked trees of machines that are not here."""

import dataclasses
import json
import os

import machines
import pytest

from pmutop.kernelfiles import bits, cpu_list, size
from pmutop.topology import Machine, processor


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    machines.intel_server(folder)
    return Machine.read(folder)


def read(tmp_path, make):
    make(tmp_path)
    return Machine.read(tmp_path)


def test_two_sockets_of_64_cores_with_two_threads(server):
    assert len(server.online) == 256 and len(server.cores) == 128 and server.smt
    assert {package: len(cpus) for package, cpus in server.packages.items()} == {0: 128, 1: 128}
    assert server.cpus[64].package == 1 and server.cpus[64].siblings == (64, 192)
    assert {node: len(cpus) for node, cpus in server.nodes.items()} == {0: 128, 1: 128}
    assert server.cpus[200].node == 1


def test_each_cache_is_listed_once(server):
    assert sum(cache.level == 3 for cache in server.caches) == 2
    assert sum(cache.level == 2 for cache in server.caches) == 128
    last = server.last_level(70)
    assert (last.level, last.size, last.ways, last.sets) == (3, 320 << 20, 20, 262144)
    assert last.size == last.ways * last.sets * last.line and len(last.cpus) == 128


def test_core_pmu_without_a_cpus_file_counts_all_cpus_and_uncore_does_not(server):
    assert [pmu.name for pmu in server.core_pmus] == ["cpu"]
    assert len(server.core_pmus[0].cpus) == 256
    uncore = next(pmu for pmu in server.pmus if pmu.name == "uncore_imc_0")
    assert not uncore.core and uncore.cpus == (0, 64)
    assert next(pmu for pmu in server.pmus if pmu.name == "software").mux_interval_ms is None


def test_format_with_two_ranges_is_kept_in_order(tmp_path):
    pmu = read(tmp_path, machines.amd_server).core_pmus[0]
    assert pmu.format["event"] == (("config", 0, 7), ("config", 32, 35))
    assert pmu.events == {"cpu-cycles": "event=0x76"} and pmu.mux_interval_ms == 4


def test_two_last_level_caches_in_one_socket(tmp_path):
    machine = read(tmp_path, machines.amd_server)
    assert machine.last_level(0).cpus == (0, 1, 2, 3) and machine.last_level(7).cpus == (4, 5, 6, 7)
    assert not machine.smt and machine.hypervisor == ""
    assert (machine.vendor, machine.family, machine.model) == ("AuthenticAMD", 26, 2)


def test_hybrid_laptop_has_a_pmu_for_each_kind_of_core(tmp_path):
    machine = read(tmp_path, machines.hybrid_laptop)
    assert [(pmu.name, pmu.type, pmu.cpus) for pmu in machine.core_pmus] == [
        ("cpu_atom", 10, (4, 5, 6, 7)),
        ("cpu_core", 4, (0, 1, 2, 3)),
    ]
    assert machine.pmu_of(1).name == "cpu_core" and machine.pmu_of(5).name == "cpu_atom"
    assert machine.cores == ((0, 1), (2, 3), (4,), (5,), (6,), (7,))


def test_big_little(tmp_path):
    machine = read(tmp_path, machines.big_little)
    assert machine.pmu_of(0).type == 7 and machine.pmu_of(4).type == 8
    assert [cpu.capacity for cpu in machine.cpus] == [485] * 4 + [1024] * 2
    assert machine.arch == "aarch64" and machine.caches == () and machine.last_level(0) is None


def test_arm_server_is_not_called_cpu_nor_type_4(tmp_path):
    machine = read(tmp_path, machines.arm_server)
    (pmu,) = machine.core_pmus
    assert (pmu.name, pmu.type, pmu.caps) == ("armv8_pmuv3_0", 8, {"slots": "0x00000008"})
    assert machine.cpus[3].midr == 0x410FD4F1 and machine.model == 0xD4F


def test_virtual_machine_with_cpus_offline_and_isolated(tmp_path):
    machine = read(tmp_path, machines.cloud_vm)
    assert machine.hypervisor == "Amazon EC2" and machine.core_pmus == ()
    assert machine.online == (0, 1, 2) and machine.offline == (3,)
    assert machine.isolated == (2,) and machine.nohz_full == (2,)
    assert machine.pmu_of(0) is None


def test_an_empty_root_is_a_machine_of_one_cpu(tmp_path):
    machine = Machine.read(tmp_path)
    assert machine.online == (0,) and machine.pmus == () and machine.arch == ""


def test_is_frozen_and_plain_json(server):
    with pytest.raises(dataclasses.FrozenInstanceError):
        server.vendor = "other"
    told = json.loads(json.dumps(server.as_json()))
    assert told["cpus"] == 256 and told["nodes"]["1"][0] == 64
    assert [cache["shared"] for cache in told["caches"]] == [2, 2, 2, 128]


def test_this_machine_agrees_with_the_c_library():
    machine = Machine.read()
    assert len(machine.online) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert machine.kernel == os.uname().release
    assert {cpu for core in machine.cores for cpu in core} == set(machine.online)


@pytest.mark.parametrize(
    "words, expected",
    [("0-3,8", (0, 1, 2, 3, 8)), ("", ()), ("(null)", ()), ("5", (5,)), ("0-1,4-5", (0, 1, 4, 5))],
)
def test_cpu_list(words, expected):
    assert cpu_list(words) == expected


def test_small_formats():
    assert [size(words) for words in ("32K", "4M", "512", "", "lots")] == [32768, 4 << 20, 512, 0, 0]
    assert bits("config1:1") == (("config1", 1, 1),) and bits("") == ()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (machines.amd_server, "AuthenticAMD-26-2"),
        (machines.hybrid_laptop, "GenuineIntel-6-154"),
        (machines.arm_server, "0x41-0xd4f"),
        (machines.big_little, "0x41-0xd03-0xd08"),
    ],
)
def test_the_processor_in_numbers(tmp_path, make, word):
    make(tmp_path)
    assert processor(tmp_path) == word


def test_no_processor_where_cpuinfo_says_none(tmp_path):
    assert processor(tmp_path) == ""
