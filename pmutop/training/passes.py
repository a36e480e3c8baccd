"""Every event that a processor offers, in passes: each workload runs once a pass, under as many events as one slice holds.

The fingerprinting paper profiles its micro-benchmarks under all events before it chooses the key events (section 3.1,
figure 1a), several multiplex groups inside one slice of 400 ms. The passes lie beside each other in a training's folder
(`pass-N/`), and the slices of the runs of one workload are joined, the first with the first; what an event counted is
divided by the cycles of its own pass.
"""

from __future__ import annotations

import errno
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pmutop import events, libpfm, sysfs, vendor_events
from pmutop._perf import CountError
from pmutop.errors import BadInput, NoPermission, PmutopError, UsageError
from pmutop.events import Event
from pmutop.refusal import meaning, paranoid_level
from pmutop.slices import Source
from pmutop.sources import budget, cores
from pmutop.sources.attach import AttachSource
from pmutop.sources.system import SystemSource
from pmutop.topology import Machine, Pmu, processor
from pmutop.training.collect import Rows

#: Events of a pass beside its clock: below what the system reader keeps (ext/switch_rings.h, MOST_EVENTS).
EVENTS = 60
#: What the other counts are divided by, and its unit in the features: cycles, else instructions.
CLOCKS = {"cycles": "kc", "instructions": "ki"}
PLAN = "events.json"


def refusal() -> PmutopError | None:
    """Why no counter of the processor counts for us, as the error to raise; None where one does."""
    if not sysfs.core_pmus():
        return PmutopError(
            "there is no processor PMU here to train on", "use --tier software, or --tier simulated"
        )
    try:
        if any(budget.least_share([events.generic(name)], cores.kinds()) > 0 for name in CLOCKS):
            return None
        return PmutopError("others hold the processor's counters", "`pmutop doctor` says who")
    except CountError as error:
        cause, fix = meaning(error.errno or 0, paranoid_level())
        kind = NoPermission if error.errno in (errno.EACCES, errno.EPERM) else PmutopError
        return kind(f"the processor's counters: {cause}", fix)


def passes(folder: Path) -> list[tuple[Path, Callable[[], Source]]]:
    """(its folder, what opens its source) of each pass; those of an interrupted training again, else as fits now."""
    path, here = folder / PLAN, processor()
    if path.exists():
        try:
            plan = json.loads(path.read_text())
            there, names = plan["processor"], plan["passes"]
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{path} is not the plan of a training", "--fresh starts over") from None
        if there != here:
            raise PmutopError(f"{folder} holds runs of {there}, this is {here}", "--fresh starts over")
    else:
        if why := refusal():
            raise why
        names = fitting(offered(Machine.read()))
        path.write_text(json.dumps({"processor": here, "passes": names}, indent=1) + "\n")
    return [(folder / f"pass-{number}", functools.partial(reader, each)) for number, each in enumerate(names)]


def offered(machine: Machine) -> list[str]:
    """Names of all processor events here; libpfm's where the vendor's are not in a table of ours."""
    names = [name for name, _, _ in vendor_events.offered(machine)]
    if not vendor_events.TABLES.get(vendor_events.family_of_machine(machine)):
        names += [name for name, _ in libpfm.known()]
    return names


def fitting(names: Iterable[str]) -> list[list[str]]:
    """The events that count here, cut into passes as `budget.fitting` finds that they fit; each begins with the clock."""
    pmus = cores.kinds()
    alive = [event for event in map(resolved, names) if event and counts(event, pmus)]
    clock = next((event for name in CLOCKS for event in alive if event.name == name), None)
    if clock is None:
        raise PmutopError("neither cycles nor instructions are counted here", "`pmutop doctor` says why")
    left = [event for event in alive if event is not clock]
    found = []
    while left:
        groups, _ = budget.fitting([clock, *left[:EVENTS]], budget.TURNS, pmus)
        taken = [event.name for group in groups for event in group]
        if len(taken) > 1 and taken[0] == clock.name:
            found.append(taken)
            left = [event for event in left if event.name not in taken]
        else:  # counted a moment ago, and no more: whoever took the counters keeps them
            left = left[EVENTS:]
    return found


def resolved(name: str) -> Event | None:
    try:
        return sysfs.resolve(name)
    except PmutopError:  # a name of the list that wants a parameter, or that this kernel does not spell
        return None


def counts(event: Event, pmus: Sequence[Pmu]) -> bool:
    """Whether it is counted on every kind of core here, and is the processor's own."""
    try:
        return (
            event.tier == "hardware"
            and budget.least_share([event], pmus) > 0
            and not cores.lacking(event, pmus)
        )
    except CountError:
        return False


def reader(names: list[str]) -> Source:
    """The reader that the next start will use; nothing is shed, for a training may cost what it costs."""
    try:
        return SystemSource(names=names, budget=1.0)
    except UsageError:
        raise
    except PmutopError as error:
        return AttachSource(names=names, why=str(error))


def features(counted: Sequence[Event]) -> tuple[str, ...]:
    """Every processor event of a pass per 1000 of its clock."""
    names = [event.name for event in counted if event.tier == "hardware"]
    clock = next((name for name in CLOCKS if name in names), "")
    return tuple(f"{name}/{CLOCKS[clock]}" for name in names if name != clock) if clock else ()


def join(several: Sequence[tuple[Rows, np.ndarray]]) -> tuple[Rows, np.ndarray]:
    """(rows of the first pass, features float64 (rows, features of all passes)): the rows that every pass has.

    several: each pass's rows and its features (rows, features). A row is known by its run and its place in it.
    """
    places = [places_of(rows) for rows, _ in several]
    common = [key for key in places[0] if all(key in other for other in places)]
    first = several[0][0]
    at = [places[0][key] for key in common]
    kept = {name: getattr(first, name)[at] for name in ("counts", "state", "seconds", "run", "pid")}
    tables = [
        table[[place[key] for key in common]] for place, (_, table) in zip(places, several, strict=True)
    ]
    return replace(first, **kept), np.hstack(tables)


def places_of(rows: Rows) -> dict[tuple[str, int], int]:
    """(name of the run, place in it) -> row."""
    seen: Counter[str] = Counter()
    found = {}
    for row, run in enumerate(rows.run.tolist()):
        name = rows.runs[run].name
        found[name, seen[name]] = row
        seen[name] += 1
    return found
