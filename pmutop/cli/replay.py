"""Replay a recording: the same screen, or with --log the same lines, as when it was live."""

from __future__ import annotations

import argparse

from pmutop.cli import say
from pmutop.cli.log import add_log_options, write_log
from pmutop.cli.wiring import Stopper, add_rank_options, add_view_options, selection
from pmutop.errors import BadInput
from pmutop.recording import Reader, Recorder


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording made by `pmutop record`")
    add_view_options(parser)
    parser.add_argument("--log", action="store_true", help="write lines instead of showing the screen")
    add_rank_options(parser, screen=True, log=True)
    add_log_options(parser)
    parser.add_argument("--record", metavar="FILE2", help="write the slices again, unchanged")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="how many times faster than it was"
    )


def run(options: argparse.Namespace) -> int:
    reader = Reader(options.file)
    try:
        if options.record:
            return rerecord(options, reader)
        if options.log:
            code = write_log(options, reader, selection(options), None, replayed=True)
        else:
            from pmutop.cli.screen import show_replay

            code = show_replay(options, reader)
        if reader.damage:
            raise BadInput(reader.damage)
        return code
    finally:
        reader.close()


def rerecord(options: argparse.Namespace, reader: Reader) -> int:
    recorder = Recorder(options.record, reader.header)
    stopper = Stopper(reader)
    for raw in reader:
        recorder.write(raw)
    recorder.close()
    if reader.damage:
        say(f"pmutop: {reader.damage}")
    return stopper.exit_code
