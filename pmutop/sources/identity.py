"""What /proc tells of a process beside its numbers: whose it is, its control group and its command line.

Thousands of processes share few users and control groups, and pools of workers their command lines: each text is kept once.
"""

from __future__ import annotations

import functools
import os
import pwd
from pathlib import Path
from sys import intern

from pmutop.kernelfiles import cpu_list, cpu_ranges, text
from pmutop.topology import CPUS


class Users:
    """Names of users, each looked up once."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def of(self, pid: int) -> str:
        """The name of a process's user, its number if it has none, '' if the process is gone."""
        try:
            uid = os.stat(f"/proc/{pid}").st_uid
        except OSError:
            return ""
        if uid not in self.names:
            try:
                self.names[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                self.names[uid] = str(uid)
        return self.names[uid]


def cgroup_of(pid: int) -> str:
    """Path in the unified hierarchy (cgroups(7)); '' where there is none, or the process is gone."""
    return intern(read_text(f"/proc/{pid}/cgroup").rpartition("::")[2].strip())


def cmdline_of(pid: int) -> str:
    """Arguments joined by blanks; '' for kernel threads, zombies and those that are gone."""
    return intern(read_text(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " "))


def cpus_of(pid: int) -> str:
    """The CPUs that a process may use (sched_getaffinity(2)), '' where it may use all, or is gone."""
    try:
        allowed = os.sched_getaffinity(pid)
    except OSError:
        return ""
    return "" if allowed >= online() else intern(cpu_ranges(allowed))


@functools.cache
def online() -> frozenset[int]:
    return frozenset(cpu_list(text(Path("/") / CPUS / "online")) or range(os.cpu_count() or 1))


def read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode(errors="surrogateescape")
    except OSError:
        return ""
