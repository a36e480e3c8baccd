"""What an errno of perf_event_open means. Told apart by value: a full descriptor table is not 'permission denied'."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from pmutop.kernelfiles import text

#: errno -> (what it means for this event, what to type). {level} is filled in.
#: Sources: man 2 perf_event_open (ERRORS); kernel/events/core.c; measured on 6.1 and 6.12 where the man page is silent.
MEANINGS: dict[int, tuple[str, str]] = {
    errno.EACCES: (
        "refused at perf_event_paranoid {level} without CAP_PERFMON",
        "sudo sysctl kernel.perf_event_paranoid=0",
    ),
    errno.EPERM: (
        "not permitted: a seccomp filter, a security module or kernel lockdown stands before it",
        "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...",
    ),
    errno.EMFILE: (
        "the descriptor table of this process is full",
        "sudo prlimit --pid $$ --nofile=65536:65536",
    ),
    errno.ENFILE: ("the whole machine's file table is full", "sudo sysctl fs.file-max=1000000"),
    errno.ENOENT: ("this processor or its driver has no such event", "pmutop events"),
    errno.ENODEV: ("the CPU is offline or has no PMU for it", "cat /sys/devices/system/cpu/online"),
    errno.ENXIO: ("the PMU does not serve this event", "pmutop events"),
    errno.EOPNOTSUPP: (
        "the PMU cannot do this with the event (interrupts, precision, mode filter)",
        "",
    ),
    errno.EBUSY: ("somebody else holds the PMU exclusively", "sudo lsof -n | grep perf_event"),
    errno.EINVAL: (
        "the group does not fit the counters, or this kernel does not know a field of it",
        "pmutop events",
    ),
    errno.E2BIG: ("this kernel is too old for the attribute", "uname -r"),
    errno.ENOSYS: ("this kernel (or sandbox) has no perf_event_open", ""),
    errno.ESRCH: ("the task is gone", ""),
    errno.ENOSPC: ("no hardware slot is left for it", ""),
    errno.ENOMEM: ("the kernel has no memory for it", "free -m"),
    errno.EINTR: ("interrupted while a uprobe was being set", ""),
}


def meaning(number: int, level: int | str = "?") -> tuple[str, str]:
    """(the cause in a few words, what to type or '') of an errno of perf_event_open at this perf_event_paranoid."""
    cause, fix = MEANINGS.get(number, (f"{os.strerror(number)} ({errno.errorcode.get(number, number)})", ""))
    if number == errno.EACCES and isinstance(level, int) and level >= 3:
        cause = "refused at perf_event_paranoid {level} without CAP_SYS_ADMIN"
    return cause.format(level=level), fix


def explain(number: int, event: str, level: int | str = "?") -> tuple[str, str]:
    """`meaning` for one event by name: (one line with the cause, what to type or '')."""
    cause, fix = meaning(number, level)
    return f"{event}: {cause}", fix


def paranoid_level(root: Path = Path("/")) -> int | str:
    """perf_event_paranoid now; '?' where the kernel does not say."""
    told = text(root / "proc/sys/kernel/perf_event_paranoid")
    return int(told) if told.lstrip("-").isdigit() else "?"
