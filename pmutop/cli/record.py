"""Record raw slices to FILE (mode 0600), to be replayed, logged and judged later, also by better models; or, with --store,
what a command (or the processes of --pid) counted in each slice, to a store of many runs. Stop it with Ctrl-C; with a
command it stops when the command does."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from typing import TYPE_CHECKING

from pmutop.cli import say
from pmutop.cli.log import positive
from pmutop.cli.wiring import (
    NOBODY,
    Launched,
    Stopper,
    add_child_options,
    add_source_options,
    open_source,
    pids_of,
    split_events,
    with_launched,
)
from pmutop.errors import PmutopError, UsageError
from pmutop.recording import Recorder
from pmutop.selection import Selection

if TYPE_CHECKING:
    from pmutop.sinks.runs import Runs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to write raw slices")
    add_source_options(parser)
    add_child_options(parser)
    parser.add_argument(
        "--slices", type=positive, metavar="N", help="stop after N slices (the first is the baseline)"
    )
    parser.add_argument(
        "--no-cmdline", action="store_true", help="leave command lines out: they may hold secrets"
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--store", metavar="FILE.db", help="add a run to this store; made if it is not there")
    parser.add_argument("--program", metavar="NAME", help="its name in the store (default: the command's)")
    parser.add_argument(
        "--pid", metavar="P,Q,...", help="with --store and no command: a run for each of these"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting this run has (repeatable)",
    )
    parser.add_argument(
        "--mode",
        choices=("ocoe", "mlpx"),
        default="mlpx",
        help="mlpx: all events in one run, in turns where they must; ocoe: a run of the command for each group of --events "
        "that has a counter to every event (default %(default)s)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a run of the same kind that was cut off (kill -9)"
    )


def run(options: argparse.Namespace) -> int:
    check(options)
    code = 0
    for names in rounds(options):
        options.events = names
        code = record(options)
        if code:
            break
    return code


def check(options: argparse.Namespace) -> None:
    """UsageError for what does not fit together."""
    if not options.file and not options.store:
        raise UsageError("nowhere to record to", "name a FILE, or --store FILE.db")
    if options.store and options.launched is None and not options.pid:
        raise UsageError(
            "--store keeps the runs of programs", "name a command behind --, or processes by --pid"
        )
    if not options.store and (options.param or options.program or options.resume or options.pid):
        raise UsageError("--program, --param, --pid and --resume go with --store")
    if options.pid and options.launched is not None:
        raise UsageError("--pid and a command", "one or the other")
    if options.mode == "ocoe" and (not options.store or options.launched is None or not options.events):
        raise UsageError(
            "--mode ocoe runs a command once for each group of events", "--store, --events and a command"
        )
    if options.mode == "ocoe" and options.file:
        raise UsageError("--mode ocoe makes several runs, which one FILE cannot hold", "leave FILE out")


def rounds(options: argparse.Namespace) -> list[str | None]:
    """The --events of each run: all at once (MLPX), or as many runs as it takes for each to have a counter (OCOE)."""
    if options.mode == "mlpx":
        return [options.events]
    from pmutop.sources import budget, cores
    from pmutop.sysfs import resolve

    wanted = [resolve(name) for name in split_events(options.events)]
    groups, never = budget.fitting(wanted, groups=len(wanted), pmus=cores.kinds())
    for name, why in never.items():
        say(f"pmutop: {name} is left out: {why}")
    if not groups:
        raise PmutopError("none of the events can be counted here", "`pmutop events` lists those that can")
    return [",".join(event.name for event in group) for group in groups]


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """What --param says; read before anything is opened, so that a wrong word leaves nothing behind."""
    if not options.param:
        return {}
    from pmutop.store import parse_settings

    return parse_settings(options.param)


def record(options: argparse.Namespace) -> int:
    """One run."""
    settings = settings_of(options)
    chosen = Selection(pids_of(options.pid), root=None if options.launched is None else NOBODY)
    launched = Launched(options.launched, options.child_output) if options.launched is not None else None
    with contextlib.ExitStack() as opened:
        if launched:
            opened.callback(launched.stop)
        source = open_source(options)
        opened.callback(source.close)
        writers: list = []
        if options.file:
            recorder = Recorder(
                options.file, source.header, cmdlines=not options.no_cmdline, force=options.force
            )
            opened.callback(recorder.close)
            writers.append(recorder)
        runs = None
        if options.store:
            from pmutop.sinks.runs import Runs
            from pmutop.store import Store

            program = options.program or (os.path.basename(options.launched[0]) if launched else None)
            runs = Runs(
                opened.enter_context(Store(options.store)), source.header, chosen, program,
                settings, options.resume,
            )  # fmt: skip
            writers.append(runs)
        stopper = Stopper(source)
        began, slices = time.monotonic(), 0
        for slices, raw in enumerate(with_launched(source, launched, chosen), start=1):
            for writer in writers:
                writer.write(raw)
            if options.slices is not None and slices >= options.slices:
                break
        if runs:
            runs.close()
            say_runs(runs, options.store)
    if options.file:
        say(f"pmutop: {slices} slices in {time.monotonic() - began:.1f} s written to {options.file}")
    if stopper.signal is not None:
        return stopper.exit_code
    return launched.exit_code or 0 if launched else 0


def say_runs(runs: Runs, path: str) -> None:
    if not runs.done:
        say(f"pmutop: {path}: no run: it ended within its first slice, or never ran")
    for run in runs.store.runs():
        if run.id in runs.done:
            more = " (gone on with)" if run.id in runs.went_on else ""
            say(
                f"pmutop: {path}: run {run.id}, {run.program}, {run.slices} slices, {len(run.events)} events, {run.mode}{more}"
            )
