"""Who ran where and when: periods from samples (the thesis's algorithms 1 and 2) or, exactly, from context switches.

Source: "Black-boxing PMUs" (2016), section 3.5.2. A period is one stretch of one task on one CPU. Times are in whatever
unit the samples have (nanoseconds in recordings; `chrome_trace` is told how many make a microsecond).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pmutop.errors import BadInput

IDLE = 0  # the kernel's idle tasks all have this number


class Periods(NamedTuple):
    """Parallel arrays, one entry per period: `cpu`, `task` (int64), `start`, `end` (the dtype of the samples' times)."""

    cpu: np.ndarray
    task: np.ndarray
    start: np.ndarray
    end: np.ndarray


def from_samples(
    cpu: np.ndarray,
    task: np.ndarray,
    time: np.ndarray,
    literal: bool = False,
    idle: int = IDLE,
    gap: float | None = None,
) -> Periods:
    """Algorithm 1: periods from samples (slices of whatever length that say who was seen where), each array (samples,).

    Read literally, the periods still active at the end are never emitted, and a task that sleeps while nobody else runs on
    its CPU seems to run through. Here they are emitted, and a sample of the `idle` task closes the period of its CPU, as does
    a silence longer than `gap` where idle CPUs are not sampled. `literal` gives the algorithm as printed (idle samples are
    then tasks like others). In both a period ends at its task's last sample, and periods are listed in the order in which
    they closed. Raises BadInput where times run backwards.
    """
    cpu, task, time = columns(cpu, task, time)
    if len(time) and (np.diff(time) < 0).any():
        raise BadInput(
            f"sample {int((np.diff(time) < 0).argmax()) + 1} is older than the one before", "sort by time"
        )
    done: list[tuple] = []
    active: dict[int, list] = {}  # task -> [cpu, task, start, end]; a task or a CPU has at most one
    last: dict[int, int] = {}  # cpu -> task

    def close(one: int) -> None:
        period = active.pop(one)
        last.pop(period[0])
        done.append(tuple(period))

    for where, who, when in zip(cpu.tolist(), task.tolist(), time.tolist(), strict=True):
        before = last.get(where)
        silent = not literal and gap is not None and before is not None and when - active[before][3] > gap
        if before is not None and (before != who or silent):
            close(before)
        if not literal and who == idle:
            continue
        period = active.get(who)
        if period is not None and period[0] == where:
            period[3] = when
            continue
        if period is not None:
            close(who)
        active[who] = [where, who, when, when]
        last[where] = who
    if not literal:
        done += [tuple(period) for period in active.values()]
    return periods(done, time.dtype)


def from_switches(
    cpu: np.ndarray,
    task: np.ndarray,
    time: np.ndarray,
    begin: float | None = None,
    until: float | None = None,
    running: Mapping[int, int] | None = None,
    idle: int = IDLE,
) -> Periods:
    """Exact periods from switch samples: at `time` the task `task` left `cpu` (perf's context-switch event fires in the
    outgoing task), so it had the CPU since the switch before. Each array (switches,), in any order over CPUs.

    `begin`: since when the first outgoing task of each CPU is taken to have run (None: its period is dropped, for nothing
    says when it began); `running` {cpu: task} with `until`: who has each CPU at the end (None: unknown, no period).
    Sorted by start, then CPU; idle time has no period.
    """
    cpu, task, time = columns(cpu, task, time)
    order = np.lexsort((np.arange(len(time)), time, cpu))
    cpu, task, time = cpu[order], task[order], time[order]
    first = np.ones(len(cpu), dtype=bool)
    first[1:] = cpu[1:] != cpu[:-1]
    start = np.empty_like(time)
    start[1:] = time[:-1]
    start[first] = time[first] if begin is None else np.minimum(begin, time[first])
    known = ~first if begin is None else np.ones(len(cpu), dtype=bool)
    known &= (task != idle) & (time > start)
    found = [(cpu[known], task[known], start[known], time[known])]
    if running and until is not None:
        latest = dict(zip(cpu.tolist(), time.tolist(), strict=True))
        tails = [
            (one, who, latest.get(one, begin), until)
            for one, who in sorted(running.items())
            if who != idle and latest.get(one, begin) is not None and latest.get(one, begin) < until
        ]
        found.append(periods(tails, time.dtype))
    whole = Periods(*(np.concatenate(column) for column in zip(*found, strict=True)))
    order = np.lexsort((whole.cpu, whole.start))
    return Periods(*(column[order] for column in whole))


def occupancy(history: Periods, begin: float, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(task, cpu, time) within [begin, end): how long each task had each CPU, one entry per pair that met."""
    had = np.minimum(history.end, end) - np.maximum(history.start, begin)
    ran = had > 0
    pairs, inverse = np.unique(np.stack([history.task[ran], history.cpu[ran]]), axis=1, return_inverse=True)
    return pairs[0], pairs[1], np.bincount(inverse.ravel(), weights=had[ran], minlength=pairs.shape[1])


def as_csv(history: Periods, names: Mapping[int, str] | None = None) -> Iterator[str]:
    """Lines of CSV: cpu,task,start,end,name, in the order given; a name with a comma or a quote is quoted."""
    yield "cpu,task,start,end,name\n"
    for cpu, task, start, end in zip(*(column.tolist() for column in history), strict=True):
        name = (names or {}).get(task, "")
        if any(mark in name for mark in ',"\r\n'):
            name = '"' + name.replace('"', '""') + '"'
        yield f"{cpu},{task},{start},{end},{name}\n"


def chrome_trace(
    history: Periods, names: Mapping[int, str] | None = None, per_microsecond: float = 1000.0
) -> Iterator[str]:
    """Pieces of a Chrome trace (JSON, the "trace event format"; Perfetto opens it): a lane per CPU, a bar per period."""
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    yield json.dumps({"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "CPUs"}})
    for cpu in np.unique(history.cpu).tolist():
        yield ",\n" + json.dumps(
            {"ph": "M", "pid": 0, "tid": cpu, "name": "thread_name", "args": {"name": f"CPU {cpu}"}}
        )
    for cpu, task, start, end in zip(*(column.tolist() for column in history), strict=True):
        bar = {"ph": "X", "pid": 0, "tid": cpu, "name": (names or {}).get(task, str(task)), "cat": "task"}
        times = {"ts": start / per_microsecond, "dur": (end - start) / per_microsecond}
        yield ",\n" + json.dumps({**bar, **times, "args": {"task": task}})
    yield "\n]}\n"


def columns(*given: np.ndarray) -> list[np.ndarray]:
    """cpu, task and time as arrays of one length; BadInput otherwise."""
    arrays = [np.asarray(one) for one in given]
    if len({one.shape for one in arrays}) != 1 or arrays[0].ndim != 1:
        raise BadInput(f"cpu, task and time have shapes {', '.join(str(one.shape) for one in arrays)}")
    return [arrays[0].astype(np.int64), arrays[1].astype(np.int64), arrays[2]]


def periods(rows: list[tuple], times: np.dtype) -> Periods:
    """Rows of (cpu, task, start, end) as Periods."""
    kinds = (np.int64, np.int64, times, times)
    cells = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Periods(*(np.array(cell, dtype=kind) for cell, kind in zip(cells, kinds, strict=True)))
