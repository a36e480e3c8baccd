"""What is read of the machine as a whole: once for the header, and running totals at every tick."""

from __future__ import annotations

import os
import resource
import socket
import time
from pathlib import Path

from pmutop.domains import domains
from pmutop.topology import processor

PRESSURES = ("cpu", "io", "memory")


def describe() -> dict:
    """The header's `machine`: model, CPUs, kernel, hypervisor; plain JSON.

    `processor` is what hardware models are matched by: see topology.processor. `domains`: see domains.domains.
    """
    model = first_field("/proc/cpuinfo", ("model name", "Model", "CPU part")) or os.uname().machine
    flags = first_field("/proc/cpuinfo", ("flags",)).split()
    return {
        "model": model,
        "processor": processor(),
        "cpus": os.cpu_count(),
        "domains": domains(),
        "kernel": os.uname().release,
        "architecture": os.uname().machine,
        "virtual": "hypervisor" in flags or Path("/sys/hypervisor/type").exists(),
    }


def host() -> str:
    return socket.gethostname()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def boot_time() -> float:
    """Unix time at which the machine booted: what /proc/PID/stat's starttime counts from."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def first_field(path: str, names: tuple[str, ...]) -> str:
    try:
        with open(path) as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in names:
                    return value.strip()
    except OSError:
        pass
    return ""


def totals() -> dict:
    """Running totals of the machine: CPU busy and steal time (ns, per CPU), PSI (us), switches, forks, our own cost."""
    return {**cpu_times(), "psi": pressures(), **own_cost()}


def cpu_times() -> dict:
    """/proc/stat (proc.rst, 1.7): busy = everything but idle and iowait, in ns with a 10 ms grain; steal by CPU number."""
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    busy, steal, found = [], [], {}
    with open("/proc/stat", "rb") as lines:
        for line in lines:
            words = line.split()
            if words[0].startswith(b"cpu") and len(words[0]) > 3:
                user, nice, system, idle, iowait, irq, softirq, stolen = (int(word) for word in words[1:9])
                busy.append((user + nice + system + irq + softirq) * tick)
                number = int(words[0][3:])  # CPUs that are offline have no line
                steal.extend([0] * (number + 1 - len(steal)))
                steal[number] = stolen * tick
            elif words[0] in (b"ctxt", b"processes"):
                found[words[0]] = int(words[1])
    return {
        "cpu_busy_ns": busy,
        "steal_ns": sum(steal),
        "cpu_steal_ns": steal,
        "switches": found.get(b"ctxt", 0),
        "forks": found.get(b"processes", 0),
    }


def pressures() -> dict[str, int]:
    """PSI 'some' totals in us; a file that cannot be read is left out (Documentation/accounting/psi.rst)."""
    found = {}
    for name in PRESSURES:
        try:
            with open(f"/proc/pressure/{name}", "rb") as lines:
                found[name] = int(lines.readline().rsplit(b"total=", 1)[1])
        except (OSError, IndexError, ValueError):
            continue
    return found


def own_cost() -> dict:
    with open("/proc/self/statm", "rb") as statm:
        pages = int(statm.read().split()[1])
    return {"own_cpu_ns": time.process_time_ns(), "own_rss": pages * resource.getpagesize()}
