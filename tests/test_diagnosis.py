"""`pmutop doctor`'s table of checks on faked machines."""

import errno

import machines
import pytest

from pmutop.diagnosis import CHECKS, diagnose
from pmutop.refusal import MEANINGS, explain
from pmutop.rights import Rights
from pmutop.scene import LEVELS, NOTE, PROBLEM, scene_of


def findings(root, **measured):
    return dict(diagnose(scene_of(root.folder, **measured)))


EVERY_MACHINE = [
    machines.intel_server,
    machines.amd_server,
    machines.arm_server,
    machines.big_little,
    machines.hybrid_laptop,
    machines.cloud_vm,
    machines.container,
    machines.gvisor,
    machines.wsl2,
    machines.wsl1,
    machines.kvm_host,
]


@pytest.mark.parametrize("make", EVERY_MACHINE, ids=lambda make: make.__name__)
def test_every_machine_gets_an_answer_in_single_lines(tmp_path, make):
    found = findings(make(tmp_path))
    assert found
    for finding in found.values():
        assert finding.level in LEVELS and finding.text
        assert "\n" not in finding.text and "\n" not in finding.fix


def test_check_names_are_unique():
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_bare_metal_intel_as_root_lacks_only_what_the_watchdog_and_mounts_take(tmp_path):
    root = machines.intel_server(tmp_path)
    found = findings(root)
    assert not [name for name, finding in found.items() if finding.level == PROBLEM]
    assert found["NMI watchdog"].fix == "sudo sysctl kernel.nmi_watchdog=0"
    assert "resctrl" in found["resctrl"].fix
    root.settings(nmi_watchdog=0).put("sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", 1)
    found = findings(root)
    assert "NMI watchdog" not in found and found["resctrl"].level == "good"


def test_amd_server_names_its_pmu(tmp_path):
    assert "cpu (type 4, 8 CPUs)" in findings(machines.amd_server(tmp_path))["pmu"].text


def test_arm_server_at_debians_level_3(tmp_path):
    root = machines.arm_server(tmp_path)
    assert findings(root)["paranoid"].level == "good"  # root
    perfmon = f"{1 << 38:016x}"
    found = findings(root.process(perfmon, uid=1000))
    assert found["paranoid"].level == PROBLEM and "CAP_SYS_ADMIN" in found["paranoid"].text
    found = findings(root.settings(perf_event_paranoid=2))
    assert found["paranoid"].level == "good"


@pytest.mark.parametrize(
    "level, expected, words",
    [
        (4, PROBLEM, "every event"),
        (3, PROBLEM, "every event"),
        (2, NOTE, "user mode only"),
        (1, NOTE, "own tasks only"),
        (0, "good", "everybody"),
        (-1, "good", "everybody"),
    ],
)
def test_paranoid_levels_for_an_ordinary_user(tmp_path, level, expected, words):
    root = (
        machines.amd_server(tmp_path)
        .settings(perf_event_paranoid=level)
        .process(machines.NO_CAPABILITIES, uid=1000)
    )
    finding = findings(root)["paranoid"]
    assert finding.level == expected and words in finding.text
    assert (finding.fix != "") == (expected != "good")


def test_hybrid_laptop_of_an_ubuntu_user(tmp_path):
    found = findings(machines.hybrid_laptop(tmp_path))
    assert "2 kinds of cores" in found["pmu"].text
    assert found["paranoid"].fix == "sudo sysctl kernel.perf_event_paranoid=2"
    assert found["capabilities"].level == NOTE


def test_cloud_machine_without_pmu_names_the_hypervisor(tmp_path):
    found = findings(machines.cloud_vm(tmp_path))
    assert found["pmu"].level == PROBLEM and "Amazon EC2" in found["pmu"].text
    assert "1 offline, 1 isolated, 1 tickless" in found["CPUs"].text


def test_container_without_privilege(tmp_path):
    found = findings(machines.container(tmp_path))
    assert found["container"].level == PROBLEM and "seccomp" in found["container"].text
    assert found["container"].fix.startswith("docker run --cap-add PERFMON")


def test_capabilities_of_a_user_namespace_do_not_count(tmp_path):
    root = machines.amd_server(tmp_path).put("proc/self/uid_map", "0 1000 1")
    found = findings(root)
    assert "user namespace" in found["container"].text and found["capabilities"].level == NOTE


@pytest.mark.parametrize(
    "make, word", [(machines.gvisor, "gVisor"), (machines.wsl1, "WSL 1")], ids=["gvisor", "wsl1"]
)
def test_hopeless_kernels_get_one_clear_line(tmp_path, make, word):
    found = findings(make(tmp_path))
    assert word in found["kernel"].text
    assert [name for name, finding in found.items() if finding.level == PROBLEM] == ["kernel"]
    assert "pmu" not in found and "paranoid" not in found


def test_wsl2_has_software_events_only(tmp_path):
    found = findings(machines.wsl2(tmp_path))
    assert "WSL 2" in found["pmu"].text and ".wslconfig" in found["pmu"].fix


def test_kvm_host_keeps_a_reserve_only_while_guests_run(tmp_path):
    root = machines.kvm_host(tmp_path)
    assert "blinds" in findings(root)["KVM host"].text
    assert "KVM host" not in findings(root.put("sys/module/kvm_amd/refcnt", 0))


def test_locked_memory_limit_binds_whoever_lacks_ipc_lock(tmp_path):
    perfmon = f"{1 << 38:016x}"
    root = machines.amd_server(tmp_path).process(perfmon, uid=1000, memlock="65536")
    finding = findings(root)["locked memory"]
    assert finding.level == NOTE
    # the most that a ring takes, and the page that heads it; 8 CPUs do not need the 64 MiB
    assert finding.fix == "sudo sysctl kernel.perf_event_mlock_kb=2052" and "of 16384;" in finding.text
    assert findings(root.settings(perf_event_mlock_kb=2052))["locked memory"].level == "good"
    assert "locked memory" not in findings(root.settings(perf_event_paranoid=-1))
    assert "locked memory" not in findings(root.process())  # root


def test_descriptor_limit_that_cannot_hold_the_whole_machine(tmp_path):
    root = machines.intel_server(tmp_path, cores=8).process(f"{1 << 38:016x}", uid=1000, files=("256", "256"))
    finding = findings(root)["descriptors"]
    assert finding.level == PROBLEM and "32 CPUs need 704" in finding.text and "--nofile=704" in finding.fix


def test_mux_interval_against_the_slice(tmp_path):
    root = machines.amd_server(tmp_path)
    root.put("sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms", 125)
    assert "perf_event_mux_interval_ms" in findings(root)["mux interval"].fix
    assert "mux interval" not in findings(root, interval=2.0)


def test_tracefs_readable_or_not(tmp_path):
    root = machines.amd_server(tmp_path)
    assert findings(root)["tracefs"].level == "good"  # root reads one that is mounted nowhere
    root.process(machines.NO_CAPABILITIES, uid=1000)
    assert "mount -o remount" in findings(root)["tracefs"].fix
    (tmp_path / "sys/kernel/tracing").mkdir(parents=True)
    assert "mount -t tracefs" in findings(root)["tracefs"].fix
    assert (
        findings(root.put("sys/kernel/tracing/events/sched/sched_switch/id", 316))["tracefs"].level == "good"
    )


def test_hidden_processes_and_missing_statistics(tmp_path):
    root = machines.amd_server(tmp_path).process(machines.NO_CAPABILITIES, uid=1000)
    root.put("proc/self/mounts", "proc /proc proc rw,nosuid,hidepid=invisible 0 0").remove(
        "proc/pressure/cpu"
    )
    found = findings(root)
    assert found["other users"].level == NOTE and "/proc/pressure/cpu" in found["scheduler"].text


def test_measured_facts_are_judged(tmp_path):
    root = machines.amd_server(tmp_path)
    (tmp_path / "proc/77/fd").mkdir(parents=True)
    root.put("proc/77/comm", "rezolus")
    (tmp_path / "proc/77/fd/5").symlink_to("anon_inode:[perf_event]")
    found = findings(root, fits={"cpu": 2}, ipc=2600.0, probes={"cycles": errno.EMFILE, "instructions": 0})
    assert found["counters"].level == PROBLEM and "rezolus (77): 1" in found["counters"].text
    assert found["plausibility"].level == PROBLEM
    assert "descriptor table" in found["refusals"].text and "permi" not in found["refusals"].text
    assert findings(root, fits={"cpu": 6}, ipc=2.5)["plausibility"].level == "good"


def test_errno_is_told_apart_by_value():
    texts = {number: explain(number, "cycles", 2)[0] for number in MEANINGS}
    assert len(set(texts.values())) == len(MEANINGS)
    assert not [number for number, line in texts.items() if "permi" in line and number != errno.EPERM]
    assert "CAP_SYS_ADMIN" in explain(errno.EACCES, "cycles", 4)[0]
    assert "EXDEV" in explain(errno.EXDEV, "cycles", 2)[0]  # one that the table lacks still says what it is


def test_rights_of_this_process():
    import os
    import resource

    rights = Rights.read()
    assert rights.uid == os.getuid()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert rights.open_files == tuple(
        None if value == resource.RLIM_INFINITY else value for value in (soft, hard)
    )
