"""How far a merged (or multiplexed) profile is from reference runs that counted the same events at once.

Prints EPD (1 = as alike as two reference runs are; the geometric mean over all pairs of events of the calibrated Task
Mover's Distance), the correlation error (0 to 2), and with --pairs the distance of every pair. A reference may hold
two events only, as in the paper; at least two references of a pair are needed.
"""

from __future__ import annotations

import argparse
import json
import math

from pmutop.cli import say
from pmutop.errors import BadInput, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="wide CSV of the profile that is judged")
    parser.add_argument(
        "references", nargs="+", metavar="REFERENCE", help="wide CSV of reference runs, one run each"
    )
    parser.add_argument(
        "--events", metavar="A,B,...", help="judge these only (default: all events of the profile)"
    )
    parser.add_argument(
        "--bins", type=int, default=10, help="bins over the references' range (default: 10, and two outer)"
    )
    parser.add_argument("--pairs", action="store_true", help="one line per pair of events, worst first")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default: 1)")
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from pmutop.analysis.dissimilarity import correlation_error, epd
    from pmutop.wide import read_table, read_tables

    if options.bins < 1:
        raise UsageError(f"--bins {options.bins}: at least 1")
    profile = read_table(options.profile)
    events = tuple(options.events.split(",")) if options.events else profile.events
    if len(events) < 2:
        raise UsageError("a pair of events at least", "EPD is a mean over pairs of events")
    target = profile.only(events).values
    references = [in_columns(table, events) for table in references_of(read_tables(options.references))]
    if len(references) < 2:
        raise BadInput(
            "one reference run cannot tell how much runs differ by themselves", "give at least two"
        )
    found = epd(events, target, references, options.bins, options.jobs)
    error = correlation_error(target, references)
    for line in found.left_out:
        say(f"pmutop compare: left out {line}")
    lacking = int(np.isnan(target).any(axis=1).sum())
    if lacking:
        say(f"pmutop compare: {lacking} of {len(target)} tasks lack a count")
    worst = sorted(zip(found.tmd.tolist(), found.calibration.tolist(), found.pairs), reverse=True)
    if options.json:
        said = {
            "epd": nothing(found.epd),
            "correlation_error": nothing(error),
            "tasks": len(target),
            "references": len(references),
            "bins": options.bins,
            "pairs": [{"events": list(pair), "tmd": tmd, "calibration": own} for tmd, own, pair in worst],
            "left_out": list(found.left_out),
        }
        print(json.dumps(said))
        return 0
    print(f"EPD {found.epd:.3f} over {len(found.pairs)} pairs of events, {len(references)} references")
    print(f"correlation error {error:.3f}")
    for tmd, own, pair in worst if options.pairs else ():
        print(f"{tmd:10.3f}  {own:10.4f}  {' x '.join(pair)}")
    return 0


def references_of(tables: list) -> list:
    """One table per run: a table with a `run` column holds several."""
    runs = []
    for table in tables:
        names = dict.fromkeys(table.run.tolist()) if table.run is not None else [None]
        runs += [table if name is None else table.rows(table.run == name) for name in names]
    return runs


def in_columns(table, events: tuple[str, ...]):
    """The values of `events` in this order, float64 (tasks, events); NaN columns for those the table lacks.

    Tasks without a single one of them are left out.
    """
    import numpy as np

    values = np.full((len(table), len(events)), np.nan)
    for at, event in enumerate(events):
        if event in table.events:
            values[:, at] = table.column(event)
    return values[np.isfinite(values).any(axis=1)]


def nothing(value: float) -> float | None:
    """NaN has no place in JSON."""
    return None if math.isnan(value) else value
