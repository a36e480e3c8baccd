"""Micro-benchmarks of known counts, run and counted: what `analysis/accuracy.py` judges the counters by.

Source: Korn, Teller and Castillo, section 2.2. micro.c holds the benchmarks; here stand their sizes and which events they are
to judge on which tier; interfaces.py counts them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pmutop.analysis.accuracy import (
    Accuracy,
    Geometry,
    judge,
    majority_error,
    predict_array,
    predict_linear,
    predict_loop,
)
from pmutop.errors import PmutopError, UsageError
from pmutop.events import PROC_EVENTS, Event
from pmutop.training.interfaces import Interface

MICRO = str(Path(__file__).with_name("micro.c"))

STEPS = 25  # sizes of each benchmark, as in the paper
SIMULATED_RUNS = 2  # the second proves that the first is no accident
INSTRUCTION = 4  # bytes of each of Linear's, on every architecture that micro.c knows
TRIPLES = 33  # loads, additions and stores of a turn of Loop
SECOND_TLB = 2048  # pages, of the simulator
LARGE = ("app_stencil", "--side", "1000", "--iterations", "4")  # in the place of the paper's Sweep3D


def sizes_of(smallest: int, largest: int, unit: int = 1) -> tuple[int, ...]:
    """About STEPS sizes at equal ratios, in multiples of `unit`."""
    steps = np.geomspace(smallest / unit, largest / unit, STEPS)
    return tuple((np.unique(steps.round().astype(int)) * unit).tolist())


#: The benchmarks of micro.c by name, each with its sizes.
SIZES = {
    "linear": sizes_of(100, 500_000),
    "loop": sizes_of(10, 200_000),
    "array": sizes_of(512, 1 << 20, 16),
    "shuffled": sizes_of(512, 1 << 20, 16),
    "pages": sizes_of(1, 10_000),
    "switches": sizes_of(1, 300),
    "forks": sizes_of(1, 100),
    "syscalls": sizes_of(1, 100_000),
    "clock": sizes_of(10, 20_000),
}


def predict(benchmark: str, sizes: Sequence[int], geometry: Geometry) -> dict[str, np.ndarray]:
    """Quantity -> predicted counts (sizes,) of one benchmark."""
    count = np.asarray(sizes, float)
    match benchmark:
        case "linear":
            return predict_linear(count * INSTRUCTION, count, geometry)
        case "loop":
            body = {"instructions": 3 * TRIPLES + 2, "loads": TRIPLES, "stores": TRIPLES, "branches": 1}
            return predict_loop(count, body, {})
        case "array" | "shuffled":
            shuffled = benchmark == "shuffled"
            second = replace(geometry, tlb=SECOND_TLB)
            again = predict_array(count, 4, second, shuffled)
            return predict_array(count, 4, geometry, shuffled) | {"dtlb-walks": again["dtlb-misses"]}
        case "clock":
            return {"time": count * 1000}
        case _:
            return {"times": count}


@dataclass(frozen=True)
class Tier:
    """events: benchmark -> {event: the quantity that it should count}. A benchmark in `aside` is shown and stores no verdict:
    Array in order is what the prediction is written for, but a prefetcher makes it hold of no counter of demand misses."""

    name: str
    interfaces: tuple[str, ...]
    events: Mapping[str, Mapping[str, str]]
    aside: tuple[str, ...] = ("array",)


def same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


HARDWARE_ARRAY = {"L1-dcache-load-misses": "l1d-misses", "dTLB-load-misses": "dtlb-misses"}
SIMULATED_ARRAY = same("l1d-misses", "l2-misses", "dtlb-misses", "dtlb-walks") | {"l3-misses": "l2-misses"}
TIERS = {
    tier.name: tier
    for tier in (
        Tier(
            "software",
            ("process", "region"),
            {
                "pages": {"page-faults": "times", "minor-faults": "times"},
                "switches": {"context-switches": "times", "voluntary-switches": "times"},
                "forks": {"forks": "times"},
                "syscalls": {"syscalls": "times"},
                "clock": {"task-clock": "time", "cpu-clock": "time", "run-time": "time"},
            },
        ),
        Tier(
            "simulated",
            ("simulator",),
            {
                "linear": {
                    "l1i-misses": "l1i-misses",
                    "l2i-misses": "l2-misses",
                    "l3i-misses": "l2-misses",
                    "itlb-misses": "itlb-misses",
                },
                "loop": same("instructions", "loads", "stores", "branches"),
                "array": SIMULATED_ARRAY,
                "shuffled": SIMULATED_ARRAY,
            },
        ),
        Tier(
            "hardware",
            ("process", "region"),
            {
                "linear": {"L1-icache-load-misses": "l1i-misses", "iTLB-load-misses": "itlb-misses"},
                "loop": {
                    "instructions": "instructions",
                    "L1-dcache-loads": "loads",
                    "L1-dcache-stores": "stores",
                    "branches": "branches",
                },
                "array": HARDWARE_ARRAY,
                "shuffled": HARDWARE_ARRAY,
            },
        ),
    )
}


def events_of(tier: Tier) -> tuple[dict[str, list[list[Event]]], dict[str, str]]:
    """benchmark -> groups of its events that are counted all the time when together, and {event: why it is left out}."""
    from pmutop.sources.budget import fitting
    from pmutop.sources.simulated import SIMULATED_EVENTS
    from pmutop.sysfs import resolve

    known = {event.name: event for event in (*PROC_EVENTS, *SIMULATED_EVENTS)}
    groups, absent = {}, {}
    for benchmark, quantities in tier.events.items():
        fixed = [known[name] for name in quantities if name in known and tier.name != "hardware"]
        wanted = []
        for name in quantities:
            try:
                if tier.name == "hardware":
                    wanted.append(replace(resolve(name), mode="u"))
                elif name not in known:
                    wanted.append(resolve(name))
            except PmutopError as error:
                absent[name] = str(error)
        formed, dropped = fitting(wanted, groups=len(wanted)) if wanted else ([], {})
        absent |= dropped
        if tier.name == "simulated":
            formed = [fixed]
        elif formed:  # /proc's columns ride along
            formed[0] = [*fixed, *formed[0]]
        if formed:
            groups[benchmark] = formed
    return groups, absent


class Validation:
    """One tier measured: rounds of one run of every benchmark, size and interface, so that what else happens on the machine
    disturbs all alike. Each finished round is a line of `notes`, and an interrupted validation goes on behind the last."""

    def __init__(
        self,
        tier: Tier,
        program: str,
        interfaces: Mapping[str, Interface],
        notes: Path,
        only: Sequence[str] = (),
    ) -> None:
        self.tier, self.program, self.interfaces, self.notes = tier, program, dict(interfaces), notes
        if only and not set(only) & set(tier.events):
            raise UsageError(
                f"{' '.join(only)}: no benchmark of the {tier.name} tier", f"it has {' '.join(tier.events)}"
            )
        groups, self.absent = events_of(tier)
        self.groups = {name: held for name, held in groups.items() if not only or name in only}
        if not self.groups:
            raise PmutopError(
                f"nothing of the {tier.name} tier can be counted here", "pmutop doctor says why"
            )
        self.title = {
            "program": program,
            "interfaces": list(self.interfaces),
            "events": {
                name: [[event.name for event in group] for group in held]
                for name, held in self.groups.items()
            },
        }

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        return [
            (benchmark, interface, size)
            for benchmark in self.groups
            for interface in self.interfaces
            for size in SIZES[benchmark]
        ]

    def measure(self, rounds: int, fresh: bool = False) -> Iterator[tuple[int, float]]:
        """Run what is missing to `rounds`; yields (rounds done, seconds still to go) after each."""
        if fresh or not self.done:
            self.notes.parent.mkdir(parents=True, exist_ok=True)
            self.notes.write_text(json.dumps(self.title) + "\n")
        first = number = len(self.done) - 1
        started = time.monotonic()
        while number < rounds:
            line = json.dumps([self.run(*cell) for cell in self.cells])
            with self.notes.open("a") as file:
                file.write(line + "\n")
            number += 1
            yield number, (time.monotonic() - started) / (number - first) * (rounds - number)

    @property
    def done(self) -> list:
        """The title and the finished rounds; nothing where another program or other events were measured."""
        try:
            lines = [json.loads(line) for line in self.notes.read_text().splitlines()]
        except (OSError, ValueError):
            return []
        right = lines and lines[0] == self.title and all(len(line) == len(self.cells) for line in lines[1:])
        return lines if right else []

    def run(self, benchmark: str, interface: str, size: int) -> list[float]:
        command = [self.program, benchmark, str(size)]
        return [
            value for group in self.groups[benchmark] for value in self.interfaces[interface](group, command)
        ]

    def measured(self) -> dict[tuple[str, str, str], np.ndarray]:
        """(benchmark, interface, event) -> counts (rounds, sizes)."""
        rounds = self.done[1:]
        found: dict[tuple[str, str, str], list] = {}
        for at, (benchmark, interface, _) in enumerate(self.cells):
            events = [event.name for group in self.groups[benchmark] for event in group]
            for column, event in enumerate(events):
                found.setdefault((benchmark, interface, event), []).append(
                    [line[at][column] for line in rounds]
                )
        return {key: np.array(columns, float).T for key, columns in found.items()}


@dataclass(frozen=True)
class Row:
    """A row of table 2. aside: shown only. majority: the error that nine of ten sizes stay within; loader: what the
    smallest size counted, the loader's and the library's start included. repeats: every run counted the same."""

    benchmark: str
    accuracy: Accuracy
    aside: bool
    majority: float
    loader: float
    repeats: bool


def rows_of(validation: Validation, geometry: Geometry) -> list[Row]:
    """Judge what was measured; what an interface cannot count at all has no row."""
    rows = []
    for (benchmark, interface, event), counts in validation.measured().items():
        if np.isnan(counts).all():
            continue
        sizes = np.array(SIZES[benchmark], float)
        predicted = predict(benchmark, SIZES[benchmark], geometry)[validation.tier.events[benchmark][event]]
        rows.append(
            Row(
                benchmark,
                judge(event, interface, sizes, predicted, counts),
                benchmark in validation.tier.aside,
                majority_error(counts.mean(axis=0), predicted),
                float(counts.mean(axis=0)[0]),
                bool((counts == counts[0]).all()) and len(counts) > 1,
            )
        )
    return rows


def large(
    groups: Mapping[str, list[list[Event]]],
    tier: Tier,
    count: Interface,
    simulator: Interface,
    command: list[str],
) -> dict[str, tuple[float, float]]:
    """The last step (section 4): a program whose counts nobody can predict, event -> (counted, the simulator's); what
    `count` could not count is left out."""
    from pmutop.sources.simulated import SIMULATED_EVENTS

    modelled = dict(zip((event.name for event in SIMULATED_EVENTS), simulator(SIMULATED_EVENTS, command)))
    found = {}
    for benchmark, formed in groups.items():
        for group in formed:
            for event, value in zip(group, count(group, command)):
                quantity = tier.events[benchmark][event.name]
                if quantity in modelled and not np.isnan(value):
                    found[event.name] = (value, modelled[quantity])
    return found


def verdicts(rows: Sequence[Row]) -> dict[str, str]:
    """event -> what to think of a slice's count of it.

    pmutop reads tasks from outside and takes differences, so that what an interface adds once cancels: the verdict is the
    corrected one, of the region where there is one (the process otherwise).
    """
    order = {"region": 0, "process": 1, "simulator": 1}
    best = sorted(
        (row for row in rows if not row.aside), key=lambda row: order[row.accuracy.interface], reverse=True
    )
    return {row.accuracy.event: row.accuracy.corrected for row in best}
