"""What the commands without a screen share: slices from the source, judged, handed to a sink, until a signal or the end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol

from pmutop.bundle import Bundle
from pmutop.cli import say
from pmutop.cli.wiring import Launched, Stopper, choose_models, open_source, selection, with_launched
from pmutop.moment import Moment
from pmutop.selection import Selection
from pmutop.slices import Header, RawSlice, Source


class Listener(Protocol):
    """Given every Moment that the view selects; `say` is where it may speak (stderr, or a line of the screen)."""

    say: Callable[[str], None]

    def moment(self, moment: Moment) -> object: ...


STDERR = 2  # where alert commands speak: stdout is data

#: Made when the source is open: takes every Moment.
Sink = Callable[[Moment], None]


def watch(
    options: argparse.Namespace,
    sink_of: Callable[[Header, list[Bundle], Selection], Sink],
    tap_of: Callable[[Header], Callable[[RawSlice], None]] | None = None,
    hooks: bool = True,
) -> int:
    """Open the source, judge what it yields, close it again; returns the exit code.

    hooks: run the commands of --on here (False where the sink does it itself).
    """
    chosen = selection(options)
    alerts = hooks_of(options) if hooks else None
    launched = Launched(options.launched, options.child_output) if options.launched is not None else None
    source = open_source(options)
    try:
        tap = tap_of(source.header) if tap_of else None
        return judge(
            options,
            source,
            chosen,
            launched,
            lambda header, bundles: sink_of(header, bundles, chosen),
            tap,
            alerts,
        )
    finally:
        source.close()
        if launched:
            launched.stop()


def hooks_of(options: argparse.Namespace, output: int | None = STDERR) -> Listener | None:
    """The alert hooks of --on; make them before the source is opened, so that a wrong rule is told at once."""
    if not options.on:
        return None
    from pmutop.sinks.alerts import Hooks, parse_hook

    return Hooks([parse_hook(*words) for words in options.on], say, output)


def judge(
    options: argparse.Namespace,
    source: Source,
    chosen: Selection,
    launched: Launched | None,
    sink_of: Callable[[Header, list[Bundle]], Sink],
    tap: Callable[[RawSlice], None] | None = None,
    hooks: Listener | None = None,
    stopper: Stopper | None = None,
) -> int:
    """Judge the source's slices, each before the next is waited for; a live source and a replayed one are the same here."""
    from pmutop.pipeline.engine import Engine

    stopper = stopper or Stopper(source)
    bundles, notes = choose_models(options, source.header)
    for note in notes:
        say(f"pmutop: {note}")
    engine = Engine(source.header, bundles, per_thread=options.threads, tap=tap)
    sink = sink_of(source.header, bundles)
    for done, raw in enumerate(with_launched(source, launched, chosen), start=1):
        moment = engine.moment(raw)
        sink(moment)
        if hooks is not None:
            hooks.moment(moment if chosen.is_everything else moment.only(chosen.rows(moment)))
        if options.slices is not None and done >= options.slices:
            break
    if stopper.signal is not None:
        return stopper.exit_code
    return launched.exit_code or 0 if launched else 0
