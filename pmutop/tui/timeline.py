"""The last minute of every CPU: a cell per slice, a letter and a colour per process; how busy, where only that is known."""

from __future__ import annotations

from collections import Counter

from pmutop import units
from pmutop.moment import Moment
from pmutop.slices import Task
from pmutop.tui import cores
from pmutop.tui.columns import BARS
from pmutop.tui.headline import MANY
from pmutop.tui.lines import Line
from pmutop.tui.state import State

COLOURS = ("c0", "c1", "c2", "c3", "c4", "c5")
UNKNOWN_WHO: list[Line] = [
    [],
    [("who was running is not known: the system reader (root or CAP_PERFMON) sees each switch", "quiet")],
]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def timeline(state: State, width: int) -> list[Line]:
    moment = state.moment
    if moment is None:
        return []
    cells = max(width - 14, 1)
    shown = state.history.until(moment.number)[-cells:]
    if any(past.periods is not None for past in shown):
        return by_process(state, shown, cells, width)
    if len(moment.machine.get("cpu_busy") or ()) > MANY:
        return cores.lanes(shown, width) + UNKNOWN_WHO
    return by_use(shown, cells)


def by_process(state: State, shown: list[Moment], cells: int, width: int) -> list[Line]:
    """Capital letters where a process held the CPU for most of the slice, small ones where only longest."""
    lanes = [state.history.lane(past) for past in shown]
    held: Counter[int] = Counter()
    for lane in lanes:
        for ref, share in lane:
            if ref:
                held[ref] += share
    ranked = [ref for ref, _ in held.most_common(len(LETTERS))]
    names = named(ranked, shown)
    signs = {ref: (LETTERS[place], COLOURS[place % len(COLOURS)]) for place, ref in enumerate(ranked)}
    many = len(shown[-1].machine.get("cpu_busy") or ()) > MANY
    lines: list[Line] = cores.lanes(shown, width) if many else []
    for cpu in range(0 if many else max(map(len, lanes), default=0)):
        line: Line = [(f"cpu {cpu:<4} ", ""), (" " * (cells - len(shown)), "")]
        for lane in lanes:
            ref, share = lane[cpu] if cpu < len(lane) else (0, 0.0)
            letter, colour = signs.get(ref, ("+" if ref else "·", "quiet"))
            line.append((letter if share >= 0.5 else letter.lower(), colour))
        now = lanes[-1][cpu] if lanes and cpu < len(lanes[-1]) else (0, 0.0)
        line.append((f" {units.share(now[1]):>4}", ""))
        lines.append(line)
    lines.append([])
    for ref in ranked:
        task = names.get(ref)
        name = f"{units.clean_text(task.comm)} {task.pid}" if task else "gone"
        part = held[ref] / max(len(lanes), 1)
        lines.append(
            [
                (f"{signs[ref][0]} ", signs[ref][1]),
                (units.fit(name, 28), ""),
                (f"{units.percent(part * 100):>6}% of one CPU", "quiet"),
            ]
        )
    return lines


def named(refs: list[int], shown: list[Moment]) -> dict[int, Task]:
    """Who they are, also those that lived between the first and the last Moment only."""
    left, found = set(refs), {}
    for past in (shown[-1], shown[0], *shown):
        if not left:
            break
        fresh = {task.ref: task for task in past.tasks if task.ref in left}
        found |= fresh
        left -= fresh.keys()
    return found


def by_use(shown: list[Moment], cells: int) -> list[Line]:
    """Only how busy each CPU was: a source without switch samples does not know by whom."""
    rows = max((len(past.machine.get("cpu_busy") or ()) for past in shown), default=0)
    if not rows:
        return [[("this source does not say which CPU was busy when", "quiet")]]
    lines: list[Line] = []
    for cpu in range(rows):
        values = [float(busy[cpu]) for past in shown if len(busy := past.machine.get("cpu_busy") or ()) > cpu]
        text = "".join(BARS[max(0, min(8, round(value / 12.5)))] for value in values)
        lines.append(
            [
                (f"cpu {cpu:<4} ", ""),
                (text.rjust(cells), "good"),
                (f" {values[-1] if values else 0:3.0f}%", ""),
            ]
        )
    return lines + UNKNOWN_WHO
