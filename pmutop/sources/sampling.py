"""Where the processes of this machine are, 199 times a second of their CPU time (cpu-clock samples, user mode)."""

from __future__ import annotations

import os
from pathlib import Path

from pmutop._sampling import Sampler
from pmutop.errors import NoPermission
from pmutop.kernelfiles import cpu_list, text
from pmutop.topology import CPUS

MOST = 512  # descriptors for the threads of one process


class Sampling:
    """Samples every process where that is allowed, else the threads of `pid` and what they start from now on; without one
    what the calling thread starts. Raises NoPermission."""

    def __init__(self, pid: int | None = None) -> None:
        online = cpu_list(text(Path("/") / CPUS / "online")) or tuple(range(os.cpu_count() or 1))
        try:
            self.samplers = [Sampler(cpu) for cpu in online]
        except OSError:
            try:
                self.samplers = [
                    Sampler(cpu, tid) for tid in threads(pid)[: max(1, MOST // len(online))] for cpu in online
                ]
            except OSError as error:
                raise NoPermission(
                    f"cpu-clock cannot be sampled: {error.strerror}", "`pmutop doctor` says what to change"
                ) from None

    def places(self) -> list[tuple[int, int]]:
        """(pid, address) since the last call."""
        return [place for sampler in self.samplers for place in sampler.read()]

    def close(self) -> None:
        for sampler in self.samplers:
            sampler.close()


def threads(pid: int | None) -> list[int]:
    """The threads of a process as they are now, the main one first; [0], the calling thread, without a process."""
    return (
        [0] if pid is None else sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda tid: tid != pid)
    )
