"""A control group of one's own with a CPU weight: neighbours that outweigh the victim, or that it outweighs
(cgroup-v2.rst, cpu.weight; scheduler/sched-design-CFS.rst, cpu.shares for version 1)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

USUAL = 100
#: Where the cpu controller's tree may be, its file for the weight, and the value there for the usual weight.
TREES = (("cpu", "cpu.shares", 1024), ("cpu,cpuacct", "cpu.shares", 1024), ("", "cpu.weight", 100))
#: The shell joins the group before it becomes the program, so that all which that starts is in the group, too.
JOIN = ("sh", "-c", 'echo $$ >"$0" && exec "$@"')


@contextlib.contextmanager
def weighed(
    weight: int, root: Path = Path("/sys/fs/cgroup")
) -> Iterator[Callable[[list[str]], list[str]] | None]:
    """Yields what makes a command line join a new group of this weight (100 = the usual); None where no group may be made.

    The group is taken away at the end, when what ran in it has ended."""
    for tree, file, usual in TREES:
        group = root / tree / f"pmutop-{os.getpid()}-{weight}"
        try:
            group.mkdir(exist_ok=True)
        except OSError:
            continue
        try:
            (group / file).write_text(str(max(usual * weight // USUAL, 1)))
        except OSError:
            leave(group)
            continue
        try:
            yield lambda command: [*JOIN, str(group / "cgroup.procs"), *command]
        finally:
            leave(group)
        return
    yield None


def leave(group: Path) -> None:
    with contextlib.suppress(OSError):  # somebody still ends in there: an empty group costs nothing
        group.rmdir()


def allowed() -> bool:
    """May this process make such a group?"""
    with weighed(USUAL) as joined:
        return joined is not None
