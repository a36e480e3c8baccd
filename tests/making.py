"""Raw slices made by hand, for tests that know every number."""

import struct

from pmutop.events import PROC_EVENTS, SOFTWARE, Event
from pmutop.slices import Born, Header, RawSlice, Task

EVENTS = PROC_EVENTS + (Event("task-clock", "ns", "software", SOFTWARE, 1),)
NAMES = [event.name for event in EVENTS]


def header(events=EVENTS, source="attach", **more) -> Header:
    facts = {
        "version": "0.0.test",
        "host": "testhost",
        "boot": "boot",
        "machine": {"model": "test", "cpus": 2},
        "source": source,
        "why": "made by hand",
        "interval": 0.4,
        "events": events,
        "absent": {"cycles": "this machine does not have it"},
    }
    return Header(**(facts | more))


def task(ref, pid=None, tid=None, ppid=1, comm="work", user="alice", kernel=False, cmdline="") -> Task:
    pid = 1000 + ref if pid is None else pid
    return Task(
        ref,
        pid,
        tid if tid is not None else pid,
        ppid,
        1700000000.25,
        comm,
        user,
        "/test.slice",
        cmdline or comm,
        kernel,
    )


def raw(number, rows, records=(), events=EVENTS, end=None, seconds=0.4, machine=None) -> RawSlice:
    """rows: {ref: ({event: value or (value, enabled, running)}, state letter[, CPU])}; events not named are uncounted (0, 0, 0);
    a bare value was counted all the time."""
    end = int((number + 1) * 4e8) if end is None else end
    counts, levels = [], []
    for counted, state, *cpu in rows.values():
        for event in events:
            value = counted.get(event.name, (0, 0, 0))
            counts += value if isinstance(value, tuple) else (value, end, end)
        levels += [ord(state), *(cpu or [0]), 0, 4096]
    return RawSlice(
        number=number,
        start=end - int(seconds * 1e9),
        end=end,
        wall=1700000000 + number * 0.4,
        late=0.0001,
        records=tuple(records),
        refs=struct.pack(f"{len(rows)}q", *rows),
        counts=struct.pack(f"{len(counts)}Q", *counts),
        levels=struct.pack(f"{len(levels)}q", *levels),
        machine=machine
        or {"own_cpu_ns": number * 4_000_000, "own_rss": 40_000_000, "lost": 0, "switches": 100 * number},
    )


def born(*tasks):
    return [Born(one) for one in tasks]


def proc(**columns):
    """All /proc columns, 0 where not given (dashes written as underscores)."""
    return {event.name: columns.get(event.name.replace("-", "_"), 0) for event in PROC_EVENTS}
