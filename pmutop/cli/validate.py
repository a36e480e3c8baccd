"""Tell how far each counter can be trusted: small programs whose counts can be predicted, counted and compared.

Straight code, a loop and an array in about 25 sizes (Korn, Teller and Castillo), and their like for what the kernel counts:
page faults, switches, forks, system calls, CPU time. Measured for the whole process and around the marked region; the
simulator's counters for the whole program, twice, which must agree to the digit. The verdicts are kept for this machine, and
the headers of logs and recordings carry them behind each event. An interrupted validation goes on where it stopped.

  size 5 %, 10 %  the smallest size from which on the count is that close to the prediction (- = never)
  error           smallest and largest over all sizes    overhead  events that the interface adds, whatever the size
  slope           counts per predicted one behind that   spread    of repetitions ("same": every run counted the same)
  verdict         as it is read, and with the overhead subtracted; N is a count of the event
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pmutop import trust, units
from pmutop.cli import say
from pmutop.errors import PmutopError, UsageError

if TYPE_CHECKING:
    from pmutop.analysis.accuracy import Geometry
    from pmutop.training.interfaces import Interface
    from pmutop.training.validation import Row, Tier, Validation

TIERS = ("software", "simulated", "hardware")
TOLD = 10  # times that the time left is said


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tier",
        action="append",
        choices=TIERS,
        help="which counters (repeatable; default: all there are here)",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        default=100,
        metavar="N",
        help="runs of each size (default 100; the simulator does 2)",
    )
    parser.add_argument(
        "--only",
        metavar="A,B,...",
        help="these benchmarks only: linear loop array shuffled pages switches forks syscalls clock",
    )
    parser.add_argument(
        "--program", metavar="FILE", help="the built training/micro.c (default: built here, with gcc)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="forget what an interrupted validation has measured"
    )
    parser.add_argument(
        "--forget", action="store_true", help="measure nothing, remove this machine's verdicts"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the tables")


def run(options: argparse.Namespace) -> int:
    from pmutop.sources.attach import AttachSource
    from pmutop.training import validation
    from pmutop.training.workloads import build

    if options.repetitions < 1:
        raise UsageError(f"--repetitions {options.repetitions}: at least 1")
    only = options.only.split(",") if options.only else []
    if unknown := set(only) - set(validation.SIZES):
        raise UsageError(
            f"--only {min(unknown)}: no such benchmark", f"there are {' '.join(validation.SIZES)}"
        )
    reader = AttachSource(names=[])
    header = reader.header
    reader.close()
    machine = trust.machine_of(header)
    if options.forget:
        trust.forget(machine)
        return 0
    program = options.program or str(build(validation.MICRO))
    told = []
    for name in options.tier or TIERS:
        try:
            told.append(validate(validation.TIERS[name], program, only, options))
        except PmutopError as error:
            if options.tier:
                raise
            say(f"pmutop validate: {name} tier left out: {error}")
            continue
        trust.keep(machine, name, told[-1]["verdicts"])
    if not told:
        raise PmutopError("nothing can be validated here", "pmutop doctor says why")
    if options.json:
        print(json.dumps({"schema": 1, "machine": header.machine, "tiers": told}, allow_nan=False))
    else:
        print("\n\n".join(table(one) for one in told))
    say(f"pmutop validate: the verdicts are in {trust.file()}; headers carry them from now on")
    return 0


def validate(tier: Tier, program: str, only: Sequence[str], options: argparse.Namespace) -> dict:
    """Measure and judge one tier; plain JSON."""
    from platformdirs import user_cache_path

    from pmutop.training.validation import SIMULATED_RUNS, Validation, rows_of, verdicts

    notes = Path(user_cache_path("pmutop")) / "validate" / f"{tier.name}.jsonl"
    with interfaces_of(tier) as (interfaces, geometry):
        validation = Validation(tier, program, interfaces, notes, only)
        for event, why in validation.absent.items():
            say(f"pmutop validate: {event} left out: {why}")
        rounds = SIMULATED_RUNS if tier.name == "simulated" else options.repetitions
        try:
            for done, left in validation.measure(rounds, options.fresh):
                if done in (1, 2) or done * TOLD // rounds != (done - 1) * TOLD // rounds:
                    say(
                        f"pmutop validate: {tier.name}, {done} of {rounds} rounds, {units.duration(left)} left"
                    )
        except KeyboardInterrupt:
            say(
                f"pmutop validate: stopped; the same command goes on behind {len(validation.done) - 1} rounds"
            )
            raise
        rows = rows_of(validation, geometry)
        repetitions = len(validation.done) - 1
        notes.unlink()
    return {
        "tier": tier.name,
        "large": against_simulator(validation) if tier.name == "hardware" else {},
        "repetitions": repetitions,
        "geometry": asdict(geometry),
        "rows": [told(row) for row in rows],
        "verdicts": verdicts(rows),
    }


def against_simulator(validation: Validation) -> dict[str, tuple[float, float]]:
    """A large program by the counters and by the simulator; nothing where it cannot be built or simulated here."""
    from pmutop.training.interfaces import Simulator, count_process
    from pmutop.training.validation import LARGE, large
    from pmutop.training.workloads import build

    try:
        command = [str(build(LARGE[0])), *LARGE[1:]]
        simulator = Simulator()
    except PmutopError as error:
        say(f"pmutop validate: no large program against the simulator: {error}")
        return {}
    try:
        say(f"pmutop validate: {' '.join(LARGE)} by the counters and by the simulator")
        return large(validation.groups, validation.tier, count_process, simulator, command)
    finally:
        simulator.close()


@contextmanager
def interfaces_of(tier: Tier) -> Iterator[tuple[dict[str, Interface], Geometry]]:
    """The tier's interfaces by name, and the sizes that predictions are made with."""
    from pmutop.analysis.accuracy import Geometry
    from pmutop.sources.simulated import machine_caches
    from pmutop.training.interfaces import Simulator, count_process, count_region

    if tier.interfaces == ("simulator",):
        simulator = Simulator()
        try:
            yield {"simulator": simulator}, simulator.geometry
        finally:
            simulator.close()
        return
    caches = machine_caches()
    known = {"process": count_process, "region": count_region}
    yield (
        {name: known[name] for name in tier.interfaces},
        Geometry(l1d=caches["l1d"][0], l2=caches["l2"][0]),
    )


def told(row: Row) -> dict:
    """Plain JSON of one row; what is not a number is null."""
    flat = asdict(row.accuracy) | {
        "benchmark": row.benchmark,
        "aside": row.aside,
        "majority": row.majority,
        "smallest": row.loader,
        "repeats": row.repeats,
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in flat.items()
    }


HEAD = (
    "event",
    "benchmark",
    "interface",
    "size 5 %",
    "10 %",
    "error",
    "overhead",
    "slope",
    "spread",
    "verdict",
    "corrected",
)


def table(found: dict) -> str:
    """Table 2 as text, columns in line."""
    lines = [HEAD]
    for row in found["rows"]:
        low, high = (number(row[name], percent=True) for name in ("error_low", "error_high"))
        spread = "same" if row["repeats"] else number(row["spread"], percent=True)
        lines.append(
            (
                row["event"],
                row["benchmark"] + (" (shown only)" if row["aside"] else ""),
                row["interface"],
                number(row["within_5"]),
                number(row["within_10"]),
                f"{low}-{high} %",
                number(row["overhead"]),
                f"{row['slope']:.3f}",
                spread if spread in ("same", "-") else spread + " %",
                row["verdict"],
                row["corrected"],
            )
        )
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    text += [
        f"large program: {event} {number(counted)}, {counted / modelled - 1:+.1%} against the simulator"
        for event, (counted, modelled) in found["large"].items()
        if modelled
    ]
    return "\n".join([f"{found['tier']} tier, {found['repetitions']} repetitions", *text])


def number(value: float | None, percent: bool = False) -> str:
    if value is None:
        return "-"
    value = value * 100 if percent else value
    return f"{value:.3g}" if percent and abs(value) < 1000 else f"{value:.6g}"
