"""What stands between this machine and its counters: a table of checks, each a look at files and rights.

Nothing here opens a counter; what was tried is handed in (`probes`, `fits`, `ipc` of a Scene), so every case can be
tested on a faked root. Each problem carries one line that can be pasted to fix it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pmutop import privileges
from pmutop.kernelfiles import names, number, text
from pmutop.refusal import explain
from pmutop.scene import GOOD, NOTE, PROBLEM, Finding, Scene
from pmutop.topology import PMUS


def sandbox(scene: Scene) -> Finding | None:
    version = text(scene.root / "proc/version")
    # The second is the version that gVisor has always told, whatever it ran on.
    if "gvisor" in version.lower() or version.startswith(
        "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
    ):
        return Finding(
            PROBLEM,
            "gVisor: this kernel has no perf_event_open; nothing but /proc can be seen from inside it",
        )
    if re.search(r"\d-Microsoft$", scene.release):
        return Finding(
            PROBLEM,
            "WSL 1: not a Linux kernel, it has no counters at all",
            "wsl.exe --set-version $WSL_DISTRO_NAME 2",
        )
    if scene.setting("perf_event_paranoid") == -100:
        return Finding(PROBLEM, "this kernel was built without perf events (CONFIG_PERF_EVENTS)")
    return None


def pmus(scene: Scene) -> Finding | None:
    found = scene.machine.core_pmus
    if found:
        told = ", ".join(f"{pmu.name} (type {pmu.type}, {len(pmu.cpus)} CPUs)" for pmu in found)
        kinds = " kinds of cores; a task's counts are summed over them" if len(found) > 1 else ""
        return Finding(GOOD, f"processor PMU: {told}" + (f"; {len(found)}{kinds}" if kinds else ""))
    if "microsoft" in scene.release.lower():
        fix = r"printf '[wsl2]\nhardwarePerformanceCounters=true\n' >> /mnt/c/Users/$USER/.wslconfig && wsl.exe --shutdown"
        return Finding(
            PROBLEM, "WSL 2: Windows keeps the processor's counters to itself; software events work", fix
        )
    if hypervisor := scene.machine.hypervisor:
        named = "" if hypervisor == "unknown" else f" ({hypervisor})"
        said = f"no processor PMU: this is a virtual machine{named} that hides the counters; software events work"
        fix = {
            "KVM": "qemu-system-x86_64 -cpu host,pmu=on ...   # on the host",
            "QEMU": "qemu-system-x86_64 -cpu host,pmu=on ...   # on the host",
            "VMware": 'vpmc.enable = "TRUE"   # in the machine\'s .vmx file',
            "Amazon EC2": "aws ec2 modify-instance-attribute --instance-type m7i.metal-24xl ...   # whole-socket or metal",
            "Google Compute Engine": "gcloud compute instances update NAME --performance-monitoring-unit=architectural",
        }.get(hypervisor, "")
        return Finding(PROBLEM, said, fix)
    return Finding(
        PROBLEM,
        "no processor PMU is registered",
        "sudo dmesg | grep -i -e 'Performance Events' -e perfevents",
    )


def hypervisor(scene: Scene) -> Finding | None:
    if scene.machine.hypervisor and scene.machine.core_pmus:
        return Finding(
            NOTE,
            f"virtual machine ({scene.machine.hypervisor}): its PMU may show fewer events than the processor has",
        )
    return None


def counters(scene: Scene) -> Finding | None:
    if not scene.fits:
        return None
    told = ", ".join(f"{count} of {pmu}" for pmu, count in scene.fits.items())
    holders = counter_holders(scene.root)
    held = f"; held besides by {', '.join(holders)}" if holders else ""
    if min(scene.fits.values()) < 3:
        return Finding(PROBLEM, f"counters free now: {told}{held}; groups must rotate and shares are small")
    return Finding(GOOD, f"counters free now: {told}{held}")


def counter_holders(root: Path) -> list[str]:
    """Processes with perf events open, as far as this user may look: 'comm (pid): n'."""
    found = []
    for pid in names(root / "proc"):
        if not pid.isdigit():
            continue
        folder = root / "proc" / pid / "fd"
        count = sum("perf_event" in link(folder / name) for name in names(folder))
        if count and (root / "proc" / pid).resolve() != (root / "proc/self").resolve():
            found.append((count, f"{text(root / 'proc' / pid / 'comm')} ({pid}): {count}"))
    return [told for _, told in sorted(found, reverse=True)[:5]]


def link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def resctrl(scene: Scene) -> Finding | None:
    offered = {"cqm_occup_llc", "cqm_mbm_total", "cqm_mbm_local"} & scene.machine.flags
    if names(scene.root / "sys/fs/resctrl/mon_data"):
        return Finding(GOOD, "resctrl is mounted: cache occupancy and memory bandwidth of groups can be read")
    if offered:
        return Finding(
            NOTE,
            "the processor meters caches and bandwidth, resctrl is not mounted",
            "sudo mount -t resctrl resctrl /sys/fs/resctrl",
        )
    return None


def mux_interval(scene: Scene) -> Finding | None:
    slow = [pmu for pmu in scene.machine.core_pmus if (pmu.mux_interval_ms or 0) > scene.interval * 1000 / 8]
    if not slow:
        return None
    fix = f"echo 4 | sudo tee /{PMUS}/{slow[0].name}/perf_event_mux_interval_ms"
    said = f"{slow[0].name} rotates every {slow[0].mux_interval_ms:g} ms: too few turns in a slice of {scene.interval * 1000:g} ms"
    return Finding(PROBLEM, said, fix)


def nmi_watchdog(scene: Scene) -> Finding | None:
    if scene.machine.core_pmus and scene.machine.arch == "x86_64" and scene.setting("nmi_watchdog") == 1:
        return Finding(
            NOTE, "the NMI watchdog holds one counter on every CPU", "sudo sysctl kernel.nmi_watchdog=0"
        )
    return None


def kvm_host(scene: Scene) -> Finding | None:
    running = [
        module
        for module in ("kvm_intel", "kvm_amd", "kvm")
        if number(scene.root / "sys/module" / module / "refcnt", 0) > 0
    ]
    if not (scene.root / "dev/kvm").exists() or not running or not scene.machine.core_pmus:
        return None
    return Finding(
        NOTE,
        "virtual machines run here: filling the PMU blinds their own counters; keep a reserve",
        "pmutop --events instructions,cycles",
    )


def cpus_apart(scene: Scene) -> Finding | None:
    machine = scene.machine
    told = [
        f"{len(cpus)} {word}"
        for cpus, word in (
            (machine.offline, "offline"),
            (machine.isolated, "isolated"),
            (machine.nohz_full, "tickless"),
        )
        if cpus
    ]
    return (
        Finding(NOTE, f"CPUs: {', '.join(told)}; tickless ones are disturbed as little as possible")
        if told
        else None
    )


def scheduler_statistics(scene: Scene) -> Finding | None:
    missing = [
        name for name in ("proc/self/schedstat", "proc/pressure/cpu") if not (scene.root / name).exists()
    ]
    if not missing:
        return Finding(GOOD, "scheduler statistics and pressure (PSI) are there for every user")
    fixes = {"proc/pressure/cpu": "psi=1   # on the kernel's command line"}
    said = " and ".join("/" + name for name in missing)
    return Finding(
        NOTE, f"absent: {said}; waiting cannot be told from sleeping there", fixes.get(missing[-1], "")
    )


def refusals(scene: Scene) -> Finding | None:
    refused = {event: number for event, number in scene.probes.items() if number}
    if not refused:
        return Finding(GOOD, f"opened: {', '.join(scene.probes)}") if scene.probes else None
    if not scene.machine.core_pmus:  # already said, and better, by `pmus`
        refused = {event: number for event, number in refused.items() if number != errno.ENOENT}
    by_errno: dict[int, list[str]] = {}
    for event, code in refused.items():
        by_errno.setdefault(code, []).append(event)
    level = scene.setting("perf_event_paranoid", 2)
    lines = [explain(number, ", ".join(events), level) for number, events in by_errno.items()]
    if not lines:
        return None
    return Finding(
        NOTE, "; ".join(dict.fromkeys(line for line, _ in lines)), next((fix for _, fix in lines if fix), "")
    )


def plausible(scene: Scene) -> Finding | None:
    if scene.ipc is None:
        return None
    if 0.05 <= scene.ipc <= 12:
        return Finding(GOOD, f"our own loop was counted believably ({scene.ipc:.2f} instructions per cycle)")
    return Finding(
        PROBLEM,
        f"our own loop was counted as {scene.ipc:.3g} instructions per cycle: these counters lie (a hypervisor?)",
    )


class Check(NamedTuple):
    name: str
    look: Callable[[Scene], Finding | None]  # None: nothing to say here
    counting: bool = True  # pointless where the kernel cannot count at all


CHECKS = (
    Check("kernel", sandbox, counting=False),
    Check("pmu", pmus),
    Check("hypervisor", hypervisor),
    Check("counters", counters),
    Check("plausibility", plausible),
    Check("refusals", refusals),
    Check("paranoid", privileges.paranoid),
    Check("capabilities", privileges.capabilities),
    Check("container", privileges.container),
    Check("descriptors", privileges.descriptors),
    Check("locked memory", privileges.locked_memory),
    Check("tracefs", privileges.tracefs),
    Check("resctrl", resctrl),
    Check("real time", privileges.realtime),
    Check("mux interval", mux_interval),
    Check("NMI watchdog", nmi_watchdog),
    Check("KVM host", kvm_host),
    Check("CPUs", cpus_apart),
    Check("other users", privileges.other_users, counting=False),
    Check("scheduler", scheduler_statistics, counting=False),
)


def diagnose(scene: Scene) -> list[tuple[str, Finding]]:
    """(check, finding) of every check that has something to say, in the table's order."""
    found: list[tuple[str, Finding]] = []
    hopeless = False
    for check in CHECKS:
        if hopeless and check.counting:
            continue
        finding = check.look(scene)
        if finding is not None:
            found.append((check.name, finding))
            hopeless |= check.look is sandbox
    return found
