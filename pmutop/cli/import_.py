"""Take wide CSV and perf stat -I output into a store of runs, or list what a store holds."""

from __future__ import annotations

import argparse
from pathlib import Path

from pmutop.cli import mining, say


def configure(parser: argparse.ArgumentParser) -> None:
    mining.add_tables(parser, "*")
    parser.add_argument(
        "--store", required=True, metavar="FILE.db", help="the store; made if it is not there"
    )
    parser.add_argument(
        "--program", help="its name in the catalogue (default: the label column, or the file's name)"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="a setting these runs had"
    )
    parser.add_argument("--list", action="store_true", help="print the runs of the store")


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from pmutop.errors import UsageError
    from pmutop.store import Store, parse_settings

    if not options.tables and not options.list:
        raise UsageError("nothing to import", "name files, or --list")
    settings = parse_settings(options.param)
    tables = mining.read(options.tables) if options.tables else []
    with Store(options.store, create=bool(tables)) as store:
        for table in tables:
            labels = set() if table.label is None else set(table.label.tolist())
            program = options.program or (labels.pop() if len(labels) == 1 else Path(table.source).stem)
            times = table.time if table.time is not None else np.arange(len(table), dtype=float)
            interval = float(np.median(np.diff(times))) if len(times) > 1 else None
            mode = "OCOE" if table.running is None else "MLPX"
            number = store.begin_run(program, table.events, mode, interval, settings)
            store.append(number, times, table.values, table.running, table.type)
            store.finish(number)
            mode = store.runs(program)[-1].mode
            say(
                f"pmutop: {table.source}: run {number}, {program}, {len(table)} slices, {len(table.events)} events, {mode}"
            )
        for kept in store.runs() if options.list else []:
            words = " ".join(f"{name}={value}" for name, value in kept.settings.items())
            print(
                f"{kept.id}\t{kept.program}\t{kept.mode}\t{kept.slices} slices\t{len(kept.events)} events\t{kept.state}\t{words}"
            )
    return 0
