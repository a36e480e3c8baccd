"""Replace outliers and impossible values, fill what was not counted, and write wide CSV (CounterMiner,
section III-B). Empty cells are missing; in files without running times a zero may be one too."""

from __future__ import annotations

import argparse
import sys

from pmutop.cli import mining, say


def configure(parser: argparse.ArgumentParser) -> None:
    mining.add_tables(parser)
    parser.add_argument(
        "--donor",
        action="append",
        default=[],
        metavar="FILE",
        help="another run with the same events, best of the same program (may be repeated)",
    )
    parser.add_argument(
        "--method",
        choices=("robust", "paper"),
        default="robust",
        help="paper: to the letter, for comparison (default %(default)s)",
    )
    parser.add_argument(
        "--zeros",
        choices=("auto", "counted", "missing"),
        default="auto",
        help="what a 0 is (default: counted where the file has running times)",
    )
    parser.add_argument(
        "--width", type=float, metavar="N", help="instructions per cycle that this machine cannot exceed"
    )
    parser.add_argument("--output", metavar="FILE", help="where to write (default: stdout)")
    parser.add_argument(
        "--quality", metavar="FILE", help="write what became of each value, as CSV of the same shape"
    )


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from pmutop.analysis.cleaning import QUALITIES
    from pmutop.errors import BadInput
    from pmutop.wide import OPTIONAL, Table, write_atomically, write_wide

    tables, donors = mining.read(options.tables), mining.read(options.donor)
    events = mining.same_events([*tables, *donors])
    tables = [table.only(events) for table in tables]
    values, quality = [], []
    for table in tables:
        if np.isnan(table.values).all():
            raise BadInput(f"{table.source}: nothing in it was counted")
        done = mining.cleaned(table, donors, options.method, options.zeros, options.width)
        values.append(done.values)
        quality.append(done.quality)
        for event in np.array(events)[np.isnan(done.values).any(axis=0)]:
            say(f"pmutop: {table.source}: {event} was never counted and stays empty")
    quality = np.vstack(quality)
    beside = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in OPTIONAL
        if all(getattr(table, name) is not None for table in tables)
    }
    if len(tables) > 1 and "run" not in beside:
        beside["run"] = np.concatenate([[table.source] * len(table) for table in tables])
    if options.quality:
        with write_atomically(options.quality) as stream:
            stream.write(",".join(events) + "\n")
            stream.writelines(",".join(QUALITIES[mark] for mark in row) + "\n" for row in quality)
    whole = Table(events, np.vstack(values), **beside)
    if options.output:
        with write_atomically(options.output) as stream:
            write_wide(whole, stream)
    else:
        write_wide(whole, sys.stdout)
    counts = ", ".join(f"{(quality == mark).sum()} {name}" for mark, name in enumerate(QUALITIES) if mark)
    say(f"pmutop: {quality.size} values: {counts}")
    return 0
