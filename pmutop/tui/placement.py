"""Where an antagonist could run instead: the command that would separate it from its victim. Shown, and done only when
confirmed (the thesis's future work: placement by what was found)."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from pmutop import units
from pmutop.moment import Moment
from pmutop.slices import Task

FULL = 90.0  # % from which on a CPU has no room for a guest


class Separation(NamedTuple):
    """Move `task` to `cpus`; `commands` are what a person would type. No cpus: there is no room, and `why` says so."""

    task: Task
    cpus: tuple[int, ...]
    commands: tuple[str, ...]
    why: str


def separation(moment: Moment, victim: int) -> Separation | None:
    """What would part the victim in this row from its antagonist; None where nobody is named, or it has gone."""
    found = moment.interference.get(victim)
    other = found.antagonist if found else None
    row = next((at for at, task in enumerate(moment.tasks) if other and task.pid == other.pid), None)
    if row is None or moment.exited[row]:
        return None
    task = moment.tasks[row]
    busy = {cpu: float(value) for cpu, value in enumerate(moment.machine.get("cpu_busy") or ())}
    beside = shared(moment, victim, row, busy) if other.resource == "core" else domain(moment, victim, busy)
    free = sorted((value, cpu) for cpu, value in busy.items() if cpu not in beside and value < FULL)
    if not free:
        lower = f"renice -n 10 -p {task.pid}"
        return Separation(task, (), (lower,), "no CPU apart from the victim's has room: lower its weight")
    cpu = free[0][1]
    commands = [f"taskset -acp {cpu} {task.pid}"]
    own = task.cgroup.strip("/")
    if own and own != moment.tasks[victim].cgroup.strip("/"):
        commands.append(f"echo {cpu} > {shlex.quote(f'/sys/fs/cgroup/{own}/cpuset.cpus')}")
    return Separation(task, (cpu,), tuple(commands), f"CPU {cpu} was {busy[cpu]:.0f}% busy")


def shared(moment: Moment, victim: int, suspect: int, busy: dict[int, float]) -> set[int]:
    """The CPUs that both used in this slice, from its periods; where there are none, the busiest one."""
    if moment.periods is None or not len(moment.periods):
        return {max(busy, key=busy.get)} if busy else set()
    used = [
        set(moment.periods[moment.periods[:, 1] == moment.tasks[row].ref, 0].tolist())
        for row in (victim, suspect)
    ]
    return used[0] & used[1] or used[0]


def domain(moment: Moment, victim: int, busy: dict[int, float]) -> set[int]:
    """The CPUs that share the victim's last cache; all of them where the machine does not tell."""
    used = shared(moment, victim, victim, busy)
    parts = [set(part["cpus"]) for part in moment.header.machine.get("domains") or ()]
    return set().union(*(part for part in parts if part & used)) or set(busy)


def advice(moment: Moment, victim: int) -> list[str]:
    """The same as lines of text, cleaned: they hold names of other people's control groups."""
    found = separation(moment, victim)
    if found is None:
        return []
    return [f"{found.why} (S does the first, when confirmed)", *map(units.clean_text, found.commands)]
