"""Record raw slices to FILE (mode 0600), to be replayed, logged and judged later, also by better models. Stop it with
Ctrl-C; with a command it stops when the command does."""

from __future__ import annotations

import argparse
import time

from pmutop.cli import say
from pmutop.cli.log import positive
from pmutop.cli.wiring import (
    Launched,
    Stopper,
    add_child_options,
    add_source_options,
    open_source,
    with_launched,
)
from pmutop.recording import Recorder
from pmutop.selection import Selection


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write")
    add_source_options(parser)
    add_child_options(parser)
    parser.add_argument(
        "--slices", type=positive, metavar="N", help="stop after N slices (the first is the baseline)"
    )
    parser.add_argument(
        "--no-cmdline", action="store_true", help="leave command lines out: they may hold secrets"
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def run(options: argparse.Namespace) -> int:
    launched = Launched(options.launched, options.child_output) if options.launched is not None else None
    source = open_source(options)
    try:
        recorder = Recorder(options.file, source.header, cmdlines=not options.no_cmdline, force=options.force)
        stopper = Stopper(source)
        began, slices = time.monotonic(), 0
        for slices, raw in enumerate(with_launched(source, launched, Selection()), start=1):
            recorder.write(raw)
            if options.slices is not None and slices >= options.slices:
                break
        recorder.close()
    finally:
        source.close()
        if launched:
            launched.stop()
    say(f"pmutop: {slices} slices in {time.monotonic() - began:.1f} s written to {options.file}")
    if stopper.signal is not None:
        return stopper.exit_code
    return launched.exit_code or 0 if launched else 0
