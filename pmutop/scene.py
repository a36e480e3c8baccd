"""What a diagnosis looks at and what it says: the scene, and one finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pmutop.kernelfiles import number, text
from pmutop.rights import Rights
from pmutop.topology import Machine

GOOD, NOTE, PROBLEM = LEVELS = ("good", "note", "problem")


class Finding(NamedTuple):
    level: str  # one of LEVELS
    text: str
    fix: str = ""  # one line for a shell, '' where there is nothing to fix


@dataclass(frozen=True)
class Scene:
    """Everything a check may look at."""

    root: Path
    machine: Machine
    rights: Rights
    interval: float = 0.4  # seconds of a slice
    probes: dict[str, int] = field(default_factory=dict)  # event -> errno of trying to open it, 0 = opened
    fits: dict[str, int] = field(default_factory=dict)  # PMU -> how many of its counters are free now
    ipc: float | None = None  # of our own known loop

    def setting(self, name: str, default: int = -100) -> int:
        return number(self.root / "proc/sys/kernel" / name, default)

    @property
    def release(self) -> str:
        return text(self.root / "proc/sys/kernel/osrelease") or text(self.root / "proc/version")

    @property
    def whole_machine(self) -> bool:
        """Whether per-CPU counting is allowed (kernel/events/core.c, perf_event_open)."""
        level = self.setting("perf_event_paranoid", 2)
        return self.rights.may("CAP_SYS_ADMIN" if level >= 3 else "CAP_PERFMON") or level <= 0


def scene_of(root: str | Path = "/", **measured) -> Scene:
    """The scene below a root; `measured` are the fields that only trying can fill."""
    return Scene(Path(root), Machine.read(root), Rights.read(root), **measured)
