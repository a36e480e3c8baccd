"""Every CPU as a cell of a heat map, by socket, NUMA node and shared cache; for machines with too many CPUs for bars."""

from __future__ import annotations

from itertools import groupby

from pmutop.kernelfiles import cpu_ranges
from pmutop.moment import Moment
from pmutop.tui.lines import Line
from pmutop.tui.state import State

DENSITY = " ░▒▓█"  # the darker the busier: colours only repeat it
STEPS = (5.0, 30.0, 60.0, 90.0)  # % from which the next character stands


def domains_of(moment: Moment) -> list[tuple[dict, list[float]]]:
    """(socket, node and cpus; busy % of each of these CPUs) per shared cache; one domain where the machine does not tell."""
    busy = [float(value) for value in moment.machine.get("cpu_busy") or ()]
    told = moment.header.machine.get("domains") or []
    numbers = sorted(cpu for domain in told for cpu in domain["cpus"])
    if len(numbers) != len(busy):  # CPUs came or went since
        told = [{"socket": -1, "node": -1, "cpus": list(range(len(busy)))}]
        numbers = told[0]["cpus"]
    place = {cpu: at for at, cpu in enumerate(numbers)}
    return [(domain, [busy[place[cpu]] for cpu in domain["cpus"]]) for domain in told if busy]


def cell(value: float) -> tuple[str, str]:
    sign = DENSITY[sum(value >= step for step in STEPS)]
    return sign, "bad" if value >= STEPS[3] else "warn" if value >= STEPS[2] else "good"


def cells(values: list[float]) -> Line:
    """A cell per CPU, neighbours of one colour in one span."""
    found = [cell(value) for value in values]
    return [
        ("".join(sign for sign, _ in group), style) for style, group in groupby(found, key=lambda one: one[1])
    ]


def cores(state: State, width: int) -> list[Line]:
    if state.moment is None:
        return []
    found = domains_of(state.moment)
    if not found:
        return [[("this source does not say how busy each CPU was", "quiet")]]
    lines: list[Line] = [
        [(f"per CPU: [{' '.join(DENSITY[1:])}] busy from {', '.join(f'{step:.0f}%' for step in STEPS)} on; blank: idle", "quiet")]
    ]  # fmt: skip
    above = None
    for domain, values in found:
        here = domain["socket"], domain["node"]
        if here != above:
            members = [
                value for other, all_ in found for value in all_ if (other["socket"], other["node"]) == here
            ]
            lines += [
                [],
                [(place_of(domain), "strong"), (f"  {len(members)} CPUs  {mean(members):.0f}%", "")],
            ]
            above = here
        worst = max(range(len(values)), key=values.__getitem__)
        tail = f"] {mean(values):3.0f}%  busiest {domain['cpus'][worst]}: {values[worst]:.0f}%"
        head = f"  cpu {cpu_ranges(domain['cpus']):<16} ["
        room = max(width - len(head) - len(tail), 8)
        for first in range(0, len(values), room):
            last = first + room >= len(values)
            lines.append(
                [
                    (head if not first else " " * len(head), "quiet"),
                    *cells(values[first : first + room]),
                    (tail if last else "", "quiet"),
                ]
            )
    return lines


def place_of(domain: dict) -> str:
    parts = [f"{name} {domain[name]}" for name in ("socket", "node") if domain[name] >= 0]
    return ", ".join(parts) or "all CPUs"


def strip(moment: Moment, width: int) -> Line:
    """The head's short form: a cell per CPU where `width` has room for all, else one per shared cache; sockets between bars."""
    found = domains_of(moment)
    whole = sum(len(values) + 1 for _, values in found) <= width
    if not whole and (len(found) < 2 or len(found) > width):
        return []
    line: Line = []
    above = None
    for domain, values in found:
        if domain["socket"] != above:
            line.append(("[" if above is None else "|", "quiet"))
        elif whole:
            line.append((" ", ""))
        above = domain["socket"]
        line += cells(values if whole else [mean(values)])
    return [*line, ("]", "quiet")]


def lanes(shown: list[Moment], width: int) -> list[Line]:
    """The time line of many CPUs: a row per shared cache, a cell per slice."""
    slices = [domains_of(moment) for moment in shown]
    if not slices or not slices[-1]:
        return []
    lines: list[Line] = []
    for place, (domain, now) in enumerate(slices[-1]):
        past = [mean(found[place][1]) for found in slices if len(found) == len(slices[-1])]
        name = f"{place_of(domain)} cpu {cpu_ranges(domain['cpus'])}"
        head = f"{name[:35]:<36}"
        room = max(width - len(head) - 6, 1)
        gap = " " * (room - len(past))
        lines.append([(head + gap, ""), *cells(past[-room:]), (f" {mean(now):3.0f}%", "")])
    return lines


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
