"""Merge runs that counted different events into one profile: by place, by behaviour, or by progress.

Each FILE (wide CSV or perf stat -I output; a folder means all in it) is one run, unless a `run` column tells several
apart. Columns `path` (0.1.2, place in the creation tree) and `type` tell which tasks correspond; without `path` the rows
are time slices, the n-th of each type. The merged profile is a wide CSV; what to know about it goes to stderr.

With --runs the wanted events are split into sets that fit the counters and COMMAND runs once per set. Its tasks are
its processes and threads, or with --count regions those that it marks itself (pmutop_region.h, pmutop.region).

  lgl           tasks at the same place are one (Fuse, algorithms 1 and 2); event sets need not overlap
  bc            tasks with similar counts of the events that both runs have are one (algorithms 3 and 4)
  bc-unlabelled the same, without using the places
  progress      time slices re-cut at equal shares of an event such as CPU_CYCLES; the counts are estimates
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from pmutop.cli import say
from pmutop.cli.wiring import Launched, add_child_options, split_events, with_launched
from pmutop.errors import BadInput, PmutopError, UsageError

if TYPE_CHECKING:
    from pmutop.analysis.plans import Fits, Plan
    from pmutop.wide import Table

#: Runs a command once with some events counted, and gives its tasks: (events, command) -> Table with `type` and `path`.
Count = Callable[[Sequence[str], Sequence[str]], "Table"]

METHODS = ("lgl", "bc", "bc-unlabelled", "progress")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="the runs, in the order in which they are taken"
    )
    parser.add_argument(
        "--method", choices=METHODS, default="bc", help="how tasks are found again (default: bc)"
    )
    parser.add_argument(
        "--progress", metavar="EVENT", default="CPU_CYCLES", help="what tells progress (default: %(default)s)"
    )
    parser.add_argument(
        "--shares",
        type=int,
        metavar="N",
        help="by progress: parts per type (default: slices of the shortest run)",
    )
    parser.add_argument(
        "--drop-ends", action="store_true", help="leave out the first and last slice of each type"
    )
    parser.add_argument("--seed", type=int, default=0, help="for bc-unlabelled (default: 0)")
    parser.add_argument("--output", metavar="FILE", help="where the merged wide CSV goes (default: stdout)")
    parser.add_argument(
        "--provenance", metavar="FILE", help="JSON that names the run and the row of every count"
    )

    live = parser.add_argument_group(
        "with --runs", "pmutop combine --runs --events A,B,... [options] -- COMMAND"
    )
    live.add_argument("--runs", action="store_true", help="run COMMAND once per event set")
    live.add_argument(
        "--count", choices=("tasks", "regions"), default="tasks", help="what is a task (default: tasks)"
    )
    live.add_argument("--events", metavar="A,B,...", help="the wanted events")
    live.add_argument(
        "--counters", type=int, metavar="N", help="events per run (default: as many as are found to fit)"
    )
    live.add_argument("--pilot", metavar="FILE", help="an earlier run, to tell which events are related (bc)")
    live.add_argument("--keep", metavar="FOLDER", help="keep what each run counted, as FOLDER/N.csv")
    add_child_options(live)


def run(options: argparse.Namespace) -> int:
    from pmutop.analysis.profiles import profiles_of, table_of
    from pmutop.wide import read_tables, write_atomically, write_wide

    if options.shares is not None and options.shares < 1:
        raise UsageError(f"--shares {options.shares}: at least 1 part")
    if options.runs:
        tables = planned_runs(options)
    elif options.launched is not None:
        raise UsageError(
            "a command is run with --runs only", "pmutop combine --runs --events A,B,... -- COMMAND"
        )
    else:
        tables = read_tables(options.files)
    profiles = profiles_of(tables)
    combined = combine(profiles, options)
    names = run_names(tables)
    for note in statement(combined, names):
        say(f"pmutop combine: {note}")
    output = write_atomically(options.output) if options.output else nullcontext(sys.stdout)
    with output as stream:
        write_wide(table_of(combined), stream)
    if options.provenance:
        with write_atomically(options.provenance) as stream:
            json.dump(provenance(combined, names, options.method), stream)
            stream.write("\n")
    return 0


def planned_runs(options: argparse.Namespace) -> list[Table]:
    """Plan the event sets, run the command once for each, and give one table per run."""
    from pmutop.analysis.plans import counters, plan_disjoint, plan_overlapping
    from pmutop.wide import read_table, write_atomically, write_wide

    if not options.events or not options.launched or options.files:
        raise UsageError(
            "--runs wants events and a command", "pmutop combine --runs --events A,B,... -- COMMAND"
        )
    if options.method == "progress":
        raise UsageError("regions are no time slices", "use --method lgl or bc with --runs")
    events = split_events(options.events)
    fits = counters(options.counters) if options.counters is not None else measured_fits()
    if options.method == "lgl":
        plan = plan_disjoint(events, fits)
    else:
        related, constant = relations(events, read_table(options.pilot)) if options.pilot else (None, [])
        plan = plan_overlapping(events, fits, related, constant)

    ways: dict[str, Callable] = {"tasks": count_tasks, "regions": count_regions}

    def count(chosen: Sequence[str], command: Sequence[str]) -> Table:
        return ways[options.count](chosen, command, options.child_output)

    tables = run_sets(plan, options.launched, count)
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        for number, table in enumerate(tables):
            with write_atomically(os.path.join(options.keep, f"{number}.csv")) as stream:
                write_wide(table, stream)
    return tables


def run_sets(plan: Plan, command: Sequence[str], count: Count) -> list[Table]:
    """Run `command` once per event set of `plan`, each run un-multiplexed; one table per run, in the plan's order."""
    tables = []
    for number, (chosen, overlap) in enumerate(zip(plan.sets, plan.overlap)):
        shared = f" (overlap {', '.join(overlap)})" if overlap else ""
        say(f"pmutop combine: run {number + 1} of {len(plan.sets)} counts {', '.join(chosen)}{shared}")
        tables.append(replace(count(chosen, command), source=f"run {number + 1} of {' '.join(command)}"))
    return tables


def count_tasks(chosen: Sequence[str], command: Sequence[str], output: str | None = None) -> Table:
    """Run `command` once; its processes and threads are the tasks, counted from birth to death (a `Count`).

    Needs the system reader, which alone sees tasks that live a millisecond. Raises NoPermission without it, PmutopError
    where the command fails or samples were lost.
    """
    from pmutop.analysis.lifetimes import Lifetimes
    from pmutop.selection import Selection
    from pmutop.sources.system import SystemSource

    launched = Launched(list(command), output)
    source = SystemSource(names=list(chosen), budget=1.0)
    try:
        lives, lost = Lifetimes(source.header), 0
        for raw in with_launched(source, launched, Selection()):
            lives.add(raw)
            lost += raw.machine.get("lost", 0)
    finally:
        source.close()
        launched.stop()
    check_ended(command, launched.exit_code)
    if lost:
        raise PmutopError(f"{lost} samples were lost", "try again on a quieter machine")
    table = lives.below(launched.process.pid, list(chosen))
    missed = sum(any(map(math.isnan, row)) for row in table.values.tolist())
    if missed:
        say(f"pmutop combine: {missed} of {len(table)} tasks could not be counted throughout and lack counts")
    return table


def count_regions(chosen: Sequence[str], command: Sequence[str], output: str | None = None) -> Table:
    """Run `command` once; the regions that it marks are the tasks (a `Count`). Raises PmutopError where it fails,
    BadInput where it marks none."""
    from pmutop.region import environment
    from pmutop.sysfs import resolve
    from pmutop.wide import read_wide

    with tempfile.TemporaryDirectory(prefix="pmutop-") as folder:
        file = os.path.join(folder, "regions.csv")
        try:
            variables = environment(file, [resolve(event) for event in chosen])
        except ValueError as error:
            raise UsageError(str(error), "leave it out of --events") from None
        launched = Launched(list(command), output, variables)
        launched.start()
        try:
            launched.process.wait()
        finally:
            launched.stop()
        check_ended(command, launched.exit_code)
        if not os.path.exists(file):
            raise BadInput(
                f"{command[0]} marks no regions", "mark them with pmutop_region.h or pmutop.region"
            )
        return replace(read_wide(file), events=tuple(chosen))


def check_ended(command: Sequence[str], code: int | None) -> None:
    if code:
        raise PmutopError(f"{command[0]} ended with {code}", "--child-output shows what it said")


def measured_fits() -> Fits:
    """Whether events are counted all the time when opened together here, found by trying."""
    from pmutop._perf import CountError
    from pmutop.sources.budget import ENOUGH, share
    from pmutop.sysfs import resolve

    def fits(chosen: Sequence[str]) -> bool:
        try:
            return share([resolve(event) for event in chosen]) >= ENOUGH
        except CountError:
            return False

    return fits


def relations(events: Sequence[str], pilot: Table):
    """Pearson's coefficients between `events` in an earlier run, NaN where it did not count them, and those it shows to be
    constant."""
    import numpy as np

    from pmutop.analysis.combination import constant_events

    known = [event for event in events if event in pilot.events]
    values = pilot.only(known).values
    whole = values[np.isfinite(values).all(axis=1)]
    at = [events.index(event) for event in known]
    related = np.full((len(events), len(events)), np.nan)
    with np.errstate(all="ignore"):
        related[np.ix_(at, at)] = np.corrcoef(whole.T)
    return related, constant_events(known, whole)


def combine(profiles: Sequence, options: argparse.Namespace):
    """The merged profile by `options.method`, its ends dropped where asked (by progress: the first and last share)."""
    from pmutop.analysis.combination import combine_bc, combine_lgl
    from pmutop.analysis.profiles import without_ends
    from pmutop.analysis.progress import combine_progress

    if options.method == "progress":
        combined = combine_progress(profiles, options.progress, options.shares)
        return without_ends(combined) if options.drop_ends else combined
    ways: dict[str, Callable] = {
        "lgl": combine_lgl,
        "bc": combine_bc,
        "bc-unlabelled": lambda runs: combine_bc(runs, labelled=False, seed=options.seed),
    }
    return ways[options.method](
        [without_ends(profile) for profile in profiles] if options.drop_ends else profiles
    )


def run_names(tables: Sequence) -> list[str]:
    """What the runs are called, in the order of `profiles_of`: the file, and the value of its `run` column."""
    names = []
    for table in tables:
        runs = dict.fromkeys(table.run.tolist()) if table.run is not None else [None]
        names += [table.source if run is None else f"{table.source} run {run}" for run in runs]
    return names


def statement(combined, names: Sequence[str]) -> list[str]:
    """What to know before believing the merged profile: its notes, and where each event's counts come from."""
    lines = list(combined.notes)
    for number, name in enumerate(names):
        theirs = [event for event, column in zip(combined.events, combined.run.T) if (column == number).any()]
        lines.append(
            f"run {number} is {name}: {', '.join(theirs) if theirs else 'none of its counts was needed'}"
        )
    return lines


def provenance(combined, names: Sequence[str], method: str) -> dict:
    """Plain JSON that traces every count: `source[task][event]` = [run, row], rows counted from 0 as the run holds them
    (without dropped ends); null = no count; a row of -1 = re-cut from several."""
    pairs = zip(combined.run.tolist(), combined.row.tolist())
    return {
        "method": method,
        "estimated": combined.estimated,
        "runs": list(names),
        "events": list(combined.events),
        "notes": list(combined.notes),
        "source": [
            [[run, row] if run >= 0 else None for run, row in zip(runs, rows)] for runs, rows in pairs
        ],
    }
