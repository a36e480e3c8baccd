"""The flight recorder: hold the last minutes of raw slices, and write them out as a recording on SIGUSR1 or when a rule
of --when or --on holds. The path of each recording is a line on stdout; `pmutop replay` reads it."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time

from pmutop.bundle import Bundle
from pmutop.cli import say
from pmutop.cli.headless import Sink, hooks_of, watch
from pmutop.cli.log import positive
from pmutop.cli.wiring import add_alert_options, add_child_options, add_source_options, add_view_options, size
from pmutop.errors import PmutopError
from pmutop.moment import Moment
from pmutop.selection import Selection
from pmutop.sinks.alerts import Watch, parse_rule
from pmutop.sinks.ring import Ring, name_for
from pmutop.slices import Header

REST = 60.0  # seconds after a recording within which rules do not make another one


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=minutes, default=10.0, metavar="M", help="how far back (default 10)"
    )
    parser.add_argument(
        "--memory",
        type=size,
        default=64 << 20,
        metavar="SIZE",
        help="memory for it; the rest waits in a file (default 64M)",
    )
    parser.add_argument(
        "--to", default=".", metavar="FOLDER", help="where recordings are written (default: here)"
    )
    parser.add_argument(
        "--when",
        action="append",
        default=[],
        metavar="RULE",
        help="write when RULE holds for a process (repeatable)",
    )
    parser.add_argument(
        "--no-cmdline", action="store_true", help="leave command lines out: they may hold secrets"
    )
    parser.add_argument(
        "--slices", type=positive, metavar="N", help="stop after N slices (the first is the baseline)"
    )
    add_alert_options(parser)
    add_source_options(parser)
    add_view_options(parser, threads=False)
    add_child_options(parser)


def minutes(text: str) -> float:
    value = float(text)
    if not 0 < value <= 24 * 60:
        raise argparse.ArgumentTypeError("between 0 and 1440")
    return value


def run(options: argparse.Namespace) -> int:
    if not os.access(options.to, os.W_OK):
        raise PmutopError(
            f"cannot write to {options.to}", "name a folder that you may write to with --to FOLDER"
        )
    options.threads = False
    rules = Watch(parse_rule(text) for text in options.when)
    hooks = hooks_of(options)
    asked = threading.Event()
    signal.signal(signal.SIGUSR1, lambda number, frame: asked.set())
    made: list[Flight] = []

    def tap_of(header: Header):
        made.append(Flight(header, options))
        return made[0].ring.add

    def sink_of(header: Header, bundles: list[Bundle], chosen: Selection) -> Sink:
        say(
            f"pmutop: holding the last {options.minutes:g} minutes; kill -USR1 {os.getpid()} writes them to {options.to}"
        )

        def sink(moment: Moment) -> None:
            moment = moment if chosen.is_everything else moment.only(chosen.rows(moment))
            fired = rules.moment(moment) + (hooks.moment(moment) if hooks else [])
            if asked.is_set():
                asked.clear()
                made[0].write("SIGUSR1")
            elif fired:
                made[0].write(fired[0].rule.text, rest=REST)

        return sink

    try:
        return watch(options, sink_of, tap_of, hooks=False)
    finally:
        for flight in made:
            flight.finish()


class Flight:
    """The ring and the recordings made of it, each written by a thread so that no slice waits for the disk."""

    def __init__(self, header: Header, options: argparse.Namespace) -> None:
        self.ring = Ring(header, options.minutes, options.memory, cmdlines=not options.no_cmdline)
        self.folder = options.to
        self.written = 0
        self.last: float | None = None
        self.thread: threading.Thread | None = None

    def write(self, why: str, rest: float = 0.0) -> None:
        now = time.monotonic()
        if self.last is not None and now - self.last < rest:
            return
        if self.thread is not None and self.thread.is_alive():
            say(f"pmutop: still writing; not written again for {why}")
            return
        self.last = now
        self.thread = threading.Thread(target=self.write_now, args=(why,), name="pmutop-flight")
        self.thread.start()

    def write_now(self, why: str) -> None:
        path = name_for(self.folder)
        try:
            slices, seconds = self.ring.write(path)
        except (PmutopError, OSError) as error:
            say(f"pmutop: {error}")
            return
        say(f"pmutop: {slices} slices ({seconds:.0f} s) written for {why}")
        print(path, flush=True)

    def finish(self) -> None:
        if self.thread is not None:
            self.thread.join()
