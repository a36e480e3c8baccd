"""What this process may do, from its own /proc entry."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pmutop.kernelfiles import text

#: include/uapi/linux/capability.h: the ones that counting, reading other tasks and ticking on time depend on.
CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_KILL": 5,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
WHOLE_MAP = ("0", "0", "4294967295")  # uid_map of the initial user namespace


@dataclass(frozen=True, slots=True)
class Rights:
    """Limits are None where there is none; `open_files` is (soft, hard)."""

    uid: int
    capabilities: frozenset[str]
    contained: bool  # in a user namespace of its own, where capabilities do not reach the kernel's counters
    seccomp: bool  # a filter decides about system calls
    open_files: tuple[int | None, int | None]
    locked_memory: int | None  # bytes
    realtime: int  # highest real-time priority allowed without CAP_SYS_NICE

    @classmethod
    def read(cls, root: str | os.PathLike = "/") -> Rights:
        """The rights of the process that is `self` below this root."""
        folder = Path(root) / "proc/self"
        status = dict(line.split(":", 1) for line in text(folder / "status").splitlines() if ":" in line)
        held = int(status.get("CapEff", "0").strip() or "0", 16)
        limits = text(folder / "limits")
        return cls(
            uid=int(status.get("Uid", "65534").split()[0]),
            capabilities=frozenset(name for name, bit in CAPABILITIES.items() if held >> bit & 1),
            contained=tuple(text(folder / "uid_map").split()) not in (WHOLE_MAP, ()),
            seccomp=status.get("Seccomp", "0").strip() == "2",
            open_files=(limit(limits, "Max open files", 0), limit(limits, "Max open files", 1)),
            locked_memory=limit(limits, "Max locked memory", 0),
            realtime=limit(limits, "Max realtime priority", 0) or 0,
        )

    def may(self, *capabilities: str) -> bool:
        """Whether one of these capabilities is held where it counts. CAP_SYS_ADMIN stands for CAP_PERFMON."""
        wanted = set(capabilities) | ({"CAP_SYS_ADMIN"} if "CAP_PERFMON" in capabilities else set())
        return not self.contained and bool(wanted & self.capabilities)


def limit(limits: str, name: str, column: int) -> int | None:
    """One value of /proc/self/limits: 0 = soft, 1 = hard; None = unlimited or not told."""
    match = re.search(rf"^{name}\s+(\S+)\s+(\S+)", limits, re.MULTILINE)
    value = match[column + 1] if match else ""
    return int(value) if value.isdigit() else None
