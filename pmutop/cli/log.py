"""Log every process in every slice: JSON lines (default) or CSV on stdout. With a command: launch it, log it and what
it starts, and exit with its exit code."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from pmutop.bundle import Bundle
from pmutop.cli.headless import Listener, Sink, hooks_of, judge
from pmutop.cli.wiring import (
    Launched,
    Stopper,
    add_alert_options,
    add_child_options,
    add_rank_options,
    add_record_option,
    add_source_options,
    add_view_options,
    duration,
    open_source,
    recorder_of,
    selection,
    size,
)
from pmutop.errors import PmutopError, UsageError
from pmutop.moment import Moment
from pmutop.selection import Selection
from pmutop.slices import Header, Source

if TYPE_CHECKING:
    from pmutop.pipeline.hot import Hot
    from pmutop.pipeline.ranking import Ranker


def configure(parser: argparse.ArgumentParser) -> None:
    add_source_options(parser)
    add_view_options(parser)
    add_child_options(parser)
    add_rank_options(parser, log=True)
    add_log_options(parser)
    add_alert_options(parser)
    add_record_option(parser)
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of the lines and stop")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("jsonl", "csv"), default="jsonl", help="how lines are written (default jsonl)"
    )
    parser.add_argument(
        "--slices", type=positive, metavar="N", help="stop after N slices (the first is the baseline)"
    )
    parser.add_argument("--output", metavar="FILE", help="write there instead of to stdout")
    parser.add_argument(
        "--rotate-size", type=size, metavar="SIZE", help="begin a new FILE before it grows beyond SIZE (10M)"
    )
    parser.add_argument(
        "--rotate-age", type=duration, metavar="TIME", help="begin a new FILE when it is TIME old (1h)"
    )
    parser.add_argument(
        "--keep",
        type=positive,
        default=10,
        metavar="N",
        help="files kept beside FILE: FILE.1 ... (default 10)",
    )
    parser.add_argument(
        "--hot", action="store_true", help="end with the functions in which each label's slices were spent"
    )
    parser.add_argument(
        "--active", action="store_true", help="leave out processes that did nothing in the slice"
    )


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def run(options: argparse.Namespace) -> int:
    if options.schema:
        from pmutop.sinks.schema import SCHEMA

        print(json.dumps(SCHEMA, indent=1))
        return 0
    chosen, hooks = selection(options), hooks_of(options)
    launched = Launched(options.launched, options.child_output) if options.launched is not None else None
    source = open_source(options)
    try:
        return write_log(options, source, chosen, launched, replayed=False, hooks=hooks)
    finally:
        source.close()
        if launched:
            launched.stop()


def write_log(
    options: argparse.Namespace,
    source: Source,
    chosen: Selection,
    launched: Launched | None,
    replayed: bool,
    hooks: Listener | None = None,
) -> int:
    """Judge the source's slices and write them; the live log and the replayed one are this same loop."""
    from pmutop.sinks.log import FORMATS

    recorder = None if replayed else recorder_of(options, source.header)
    logs: list = []
    last: Moment | None = None

    def sink_of(header: Header, bundles: list[Bundle]) -> Sink:
        log = FORMATS[options.format](stream, chosen, options.threads, options.active)
        log.begin(header, bundles, replayed)
        logs.append(log)

        def sink(moment: Moment) -> None:
            nonlocal last
            if ranker:
                last = moment if chosen.is_everything else moment.only(chosen.rows(moment))
                moment = replace(moment, ranks=ranker.moment(last).ranks)
            log.moment(moment)
            if hot:
                hot.add(moment, chosen.rows(moment), places())

        return sink

    with ExitStack() as stack:
        hot, places = open_hot(options, source, stack)
        ranker = open_ranker(options, source.header, stack)
        stream = open_output(options)
        try:
            stopper = Stopper(source)
            code = judge(
                options, source, chosen, launched, sink_of, recorder and recorder.write, hooks, stopper
            )
            if ranker and last:
                logs[0].write(logs[0].rank_lines(ranker.last(last, over=lambda: stopper.signal is not None)))
            if hot:
                logs[0].write(hot.lines())
            return code
        except BrokenPipeError:
            raise
        except OSError as error:
            raise PmutopError(f"cannot write {options.output or 'stdout'}: {error.strerror}") from None


def open_ranker(options: argparse.Namespace, header: Header, stack: ExitStack) -> Ranker | None:
    """What --rank takes, closed with `stack`; its worker is started when the first process has slices enough."""
    if not getattr(options, "rank", False):
        return None
    from pmutop.pipeline.ranking import Ranker

    if options.format != "jsonl":
        raise UsageError("--rank goes with --format jsonl")
    return stack.enter_context(closing(Ranker(header, options.target, always=True)))


def open_hot(
    options: argparse.Namespace, source: Source, stack: ExitStack
) -> tuple[Hot | None, Callable[[], list[tuple[int, int]]]]:
    """What --hot takes: the one that joins, and where (pid, address) samples come from; (None, ...) without --hot.

    What must be opened for it is closed with `stack`."""
    if not getattr(options, "hot", False):
        return None, list
    from pmutop.cli.spots import places_of
    from pmutop.pipeline.hot import Hot

    if options.format != "jsonl":
        raise UsageError("--hot goes with --format jsonl")
    places, close = places_of(source)
    stack.callback(close)
    return Hot(), places


def open_output(options: argparse.Namespace) -> BinaryIO:
    path = options.output
    rotates = options.rotate_size is not None or options.rotate_age is not None
    if path is None:
        if rotates:
            raise UsageError("stdout cannot be rotated", "add --output FILE")
        return sys.stdout.buffer
    try:
        if not rotates:
            return open(path, "wb")
        from pmutop.sinks.rotation import Rotating

        return Rotating(path, options.rotate_size, options.rotate_age, options.keep)
    except OSError as error:
        raise PmutopError(
            f"cannot write {path}: {error.strerror}", "name a file in a folder that you may write to"
        ) from None
