"""Who is held back by a CPU quota: control groups with a limit, and how long they were throttled (cgroup-v2.rst, cpu.stat;
scheduler/sched-bwc.rst for version 1). What the quota takes is no neighbour's doing, so the blame needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pmutop.kernelfiles import number, text

#: Where the cpu controller's tree may be, and the file that says whether a group is limited.
TREES = (("", "cpu.max"), ("cpu", "cpu.cfs_quota_us"), ("cpu,cpuacct", "cpu.cfs_quota_us"))
LOOK = 25  # reads between two looks for groups with a quota
MOST = 4096  # groups that a look visits
#: cpu.stat's line: version 2 in microseconds, version 1 in nanoseconds.
TIMES = {"throttled_usec": 1000, "throttled_time": 1}


class Quotas:
    """Remembers which groups are limited; `read` costs nothing where none is."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup")) -> None:
        self.tree, self.limit = next(
            (
                (root / tree, file)
                for tree, file in TREES
                if tree and (root / tree / "cpu.stat").exists() or (root / "cgroup.controllers").exists()
            ),
            (None, ""),
        )
        self.limited: dict[Path, int] = {}  # group -> ns throttled until the last read
        self.reads = 0

    def read(self) -> dict:
        """{"throttled": [[ns throttled in all, pids] per group that was throttled since the last read]}, for RawSlice.machine."""
        if self.tree is None:
            return {}
        if self.reads % LOOK == 0:
            now = {group: throttled_ns(group) for group in self.groups() if self.is_limited(group)}
            self.limited = now | {group: before for group, before in self.limited.items() if group in now}
        self.reads += 1
        found = []
        for group, before in self.limited.items():
            total = throttled_ns(group)
            if total > before:
                found.append([total - before, sorted(pids_below(group))])
                self.limited[group] = total
        return {"throttled": found} if found else {}

    def is_limited(self, group: Path) -> bool:
        if self.limit == "cpu.max":
            return not text(group / self.limit, "max").startswith("max")
        return number(group / self.limit) > 0

    def groups(self) -> Iterator[Path]:
        for visited, (folder, _, _) in enumerate(os.walk(self.tree)):
            if visited == MOST:
                return
            yield Path(folder)


def throttled_ns(group: Path) -> int:
    for line in text(group / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in TIMES:
            return int(value) * TIMES[name]
    return 0


def pids_below(group: Path) -> set[int]:
    """Every process of the group and of the groups in it."""
    return {int(pid) for folder, _, _ in os.walk(group) for pid in text(Path(folder, "cgroup.procs")).split()}
