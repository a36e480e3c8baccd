"""The checks of what this user may do: rights, limits, mounts. Each looks at a scene and returns one finding or None."""

from __future__ import annotations

import re

from pmutop._switches import ring_size
from pmutop.kernelfiles import names, text
from pmutop.scene import GOOD, NOTE, PROBLEM, Finding, Scene

RINGS = 64 << 20  # bytes that the system reader's rings may take, all CPUs together
PAGE = 4096  # the head of a ring
PER_CPU = 20  # descriptors of the system reader for each CPU: at most 16 events (6 without a PMU), two leaders, a dummy, a clock
PER_TASK = 16  # and of the attach reader for each task: its events (7 without a PMU), and a file of /proc


def paranoid(scene: Scene) -> Finding | None:
    level = scene.setting("perf_event_paranoid", 2)
    lower = "sudo sysctl kernel.perf_event_paranoid="
    if scene.rights.may("CAP_SYS_ADMIN") or (scene.rights.may("CAP_PERFMON") and level <= 2):
        return Finding(GOOD, f"perf_event_paranoid {level} does not bind this user")
    if level >= 3:  # Debian's 3 and Ubuntu's 4 are those distributions' own additions
        return Finding(
            PROBLEM,
            f"perf_event_paranoid {level} refuses every event to whoever lacks CAP_SYS_ADMIN",
            lower + "2",
        )
    if level >= 1:
        seen = "own tasks only, user mode only" if level == 2 else "own tasks only"
        return Finding(NOTE, f"perf_event_paranoid {level}: {seen}", lower + "0")
    return Finding(GOOD, f"perf_event_paranoid {level}: everybody may count whole CPUs")


def capabilities(scene: Scene) -> Finding | None:
    held = ", ".join(
        sorted(scene.rights.capabilities & {"CAP_PERFMON", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_BPF"})
    )
    if scene.whole_machine:
        return Finding(GOOD, f"may count the whole machine ({held or 'perf_event_paranoid allows it'})")
    return Finding(
        NOTE, "may count own processes only: CAP_PERFMON is not held", 'sudo "$(command -v pmutop)"'
    )


def container(scene: Scene) -> Finding | None:
    engine = next(
        (
            engine
            for path, engine in (("run/.containerenv", "podman"), (".dockerenv", "docker"))
            if (scene.root / path).exists()
        ),
        "",
    )
    filtered = scene.rights.seccomp and not scene.rights.may("CAP_PERFMON")
    if scene.rights.contained:
        said = "in a user namespace of its own: capabilities held here mean nothing to the kernel's counters"
        return Finding(PROBLEM, said, "sudo sysctl kernel.perf_event_paranoid=0   # on the host")
    if filtered:
        said = f"{'container: ' if engine else ''}a seccomp filter stands before perf_event_open (the usual one refuses it)"
        run = f"{engine or 'docker'} run --cap-add PERFMON --security-opt seccomp=unconfined --pid host ..."
        return Finding(PROBLEM, said, run)
    if engine and text(scene.root / "proc/2/comm") != "kthreadd":
        return Finding(
            NOTE, "in a container: only its own processes are seen", f"{engine} run --pid host ..."
        )
    return None


def descriptors(scene: Scene) -> Finding | None:
    soft, hard = scene.rights.open_files
    need = len(scene.machine.online) * PER_CPU + 64
    if hard is None or scene.rights.may("CAP_SYS_RESOURCE"):
        return Finding(GOOD, "open files: no limit that binds")
    if scene.whole_machine and hard < need:
        fix = f"sudo prlimit --pid $$ --nofile={need}:{need}"
        return Finding(
            PROBLEM, f"open files: at most {hard}, and {len(scene.machine.online)} CPUs need {need}", fix
        )
    room = max(hard - 64, 0) // PER_TASK
    if not scene.whole_machine and room < 200:
        return Finding(
            PROBLEM,
            f"open files: at most {hard}, room for {room} tasks",
            "sudo prlimit --pid $$ --nofile=65536:65536",
        )
    return Finding(
        GOOD, f"open files: {soft} raised to {hard} when needed (room for {room} tasks one by one)"
    )


def locked_memory(scene: Scene) -> Finding | None:
    """perf_mmap in kernel/events/core.c: mlock_kb for each CPU online, then the user's RLIMIT_MEMLOCK."""
    if (
        not scene.whole_machine
        or scene.setting("perf_event_paranoid", 2) == -1
        or scene.rights.may("CAP_IPC_LOCK")
    ):
        return None
    cpus = max(len(scene.machine.online), 1)
    if scene.rights.locked_memory is None:
        return None
    allowed = scene.setting("perf_event_mlock_kb", 516) * 1024 * cpus + scene.rights.locked_memory
    each = ring_size(RINGS, cpus)
    if allowed >= cpus * (each + PAGE):
        return Finding(GOOD, f"locked memory: {allowed >> 20} MiB allowed for rings")
    fix = f"sudo sysctl kernel.perf_event_mlock_kb={(each + PAGE) >> 10}"
    return Finding(
        NOTE,
        f"locked memory: rings of {allowed >> 10} KiB in all instead of {cpus * each >> 10}; more samples may be lost",
        fix,
    )


def tracefs(scene: Scene) -> Finding | None:
    for place in ("sys/kernel/tracing", "sys/kernel/debug/tracing"):
        if text(scene.root / place / "events/sched/sched_switch/id"):
            return Finding(GOOD, f"tracepoints readable in /{place}")
    if scene.rights.may("CAP_SYS_ADMIN"):
        return Finding(GOOD, "tracefs is mounted nowhere; this user may read one all the same")
    if names(scene.root / "sys/kernel/tracing") or not (scene.root / "sys/kernel/tracing").exists():
        mount = "sudo mount -o remount,mode=755 /sys/kernel/tracing"
    else:
        mount = "sudo mount -t tracefs -o mode=755 tracefs /sys/kernel/tracing"
    return Finding(NOTE, "tracefs is not readable: no system-call, futex and disk-wait events", mount)


def realtime(scene: Scene) -> Finding | None:
    if scene.setting("sched_rt_runtime_us", 950000) == 0:
        return Finding(
            NOTE,
            "real-time scheduling is switched off: slices may be late under load",
            "sudo sysctl kernel.sched_rt_runtime_us=950000",
        )
    if scene.rights.may("CAP_SYS_NICE") or scene.rights.realtime > 0:
        return Finding(GOOD, "the tick may run at real-time priority")
    return Finding(
        NOTE,
        "the tick runs at ordinary priority: slices may be late under load",
        "sudo prlimit --pid $$ --rtprio=10:10",
    )


def other_users(scene: Scene) -> Finding | None:
    mounts = text(scene.root / "proc/self/mounts")
    hidden = re.search(r"^\S+ /proc proc \S*hidepid=(?!0|off)", mounts, re.MULTILINE)
    if hidden and not scene.rights.may("CAP_SYS_PTRACE"):
        return Finding(NOTE, "/proc hides other users' processes", "sudo mount -o remount,hidepid=0 /proc")
    return None
