"""What a live screen may do to the world; a replay is given none of it. Each returns '' or a line that says what went wrong.

A process is named by its PID only after its start time was compared: a PID that was given to another one meanwhile is
never signalled.
"""

from __future__ import annotations

import os
import signal

from pmutop.slices import Task

TOLERANCE = 2.0  # seconds between two computations of one start time (boot time is known to 10 ms, clocks are stepped)


def start_of(tid: int, pid: int) -> float:
    """Unix seconds when a task was started, from /proc (proc(5): field 22 of stat is in clock ticks since boot)."""
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    with open("/proc/stat", encoding="ascii") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def checked(task: Task) -> str:
    """'' if the PID still names this very task, or what happened to it."""
    try:
        start = start_of(task.tid, task.pid)
    except (OSError, ValueError, IndexError, StopIteration):
        return f"process {task.pid} is gone"
    if task.start and abs(start - task.start) > TOLERANCE:
        return f"PID {task.pid} names another process by now"
    return ""


def send_signal(task: Task, number: int) -> str:
    """Signal a process through a pidfd, so that no other one can take its PID between the check and the signal."""
    try:
        descriptor = os.pidfd_open(task.pid)
    except ProcessLookupError:
        return f"process {task.pid} is gone"
    try:
        wrong = checked(task)
        if not wrong:
            signal.pidfd_send_signal(descriptor, number)
        return wrong
    except PermissionError:
        return f"no right to signal {task.pid} (user {task.user}); try as root"
    except ProcessLookupError:
        return f"process {task.pid} is gone"
    finally:
        os.close(descriptor)


def renice(task: Task, nice: int) -> str:
    try:
        wrong = checked(task)
        if not wrong:
            os.setpriority(os.PRIO_PROCESS, task.tid, nice)
        return wrong
    except PermissionError:
        return f"no right to give {task.pid} nice {nice}; a lower value needs root (CAP_SYS_NICE)"
    except ProcessLookupError:
        return f"process {task.pid} is gone"


def set_affinity(task: Task, cpus: set[int]) -> str:
    """Let every thread of the process run on `cpus` only."""
    try:
        wrong = checked(task)
        if not wrong:
            for tid in os.listdir(f"/proc/{task.pid}/task") if task.is_process else [str(task.tid)]:
                os.sched_setaffinity(int(tid), cpus)
        return wrong
    except PermissionError:
        return f"no right to move {task.pid}; try as root"
    except (ProcessLookupError, FileNotFoundError):
        return f"process {task.pid} is gone"
    except OSError as error:
        return f"CPUs {sorted(cpus)}: {error.strerror}"


LIVE = {"signal": send_signal, "renice": renice, "affinity": set_affinity}
