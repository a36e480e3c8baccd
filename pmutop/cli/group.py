"""Group events that say the same in wide CSV (or perf stat -I) files, and name a leader for each group: count the leaders
and know the rest. Dead events are dropped; events are alike where they correlate with r at or above the cutoff."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator

from pmutop.cli import say

#: Repeats pmutop.analysis.grouping.METHODS, which a --help should not have to import; a test keeps them equal.
METHODS = (
    "cc",
    "min-clique",
    "approx-min-clique",
    "greedy-max-clique",
    "kmeans-euclid",
    "kmeans-correlation",
)
#: PCA errors for which the number of dimensions is printed (the thesis's own, and their K there: 4 and 7).
BOUNDS = (0.1, 0.01)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tables",
        nargs="+",
        metavar="FILE",
        help="wide CSV or perf stat -I -x, / -j output, or a folder of them",
    )
    parser.add_argument(
        "--method", choices=("all", *METHODS), default="greedy-max-clique", help="default %(default)s"
    )
    parser.add_argument(
        "--k", type=int, default=10, metavar="N", help="groups of k-means (default %(default)s)"
    )
    parser.add_argument(
        "--cutoff", type=float, default=0.9, metavar="R", help="related from this r on (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of k-means' 50 restarts (default %(default)s)")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="for the exact cover (default %(default)s)",
    )
    parser.add_argument(
        "--heatmap", action="store_true", help="print the correlation matrix, the events of a group together"
    )
    parser.add_argument("--svg", metavar="FILE", help="write that heat map as SVG (not with --method all)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from pmutop.analysis.dimensionality import dimensionality
    from pmutop.analysis.grouping import Events, group
    from pmutop.errors import UsageError
    from pmutop.wide import read_tables

    if options.svg and options.method == "all":
        raise UsageError("--svg draws one grouping", "choose it by --method")
    names, values = joined(read_tables(options.tables))
    events = Events.of(values, options.cutoff)
    plane = dimensionality(events.values)
    methods = METHODS if options.method == "all" else (options.method,)
    groupings = [group(events, method, options.k, options.seed, options.time_limit) for method in methods]
    if options.json:
        print(json.dumps(as_json(names, events, plane, groupings), ensure_ascii=False))
    else:
        for line in as_text(names, events, plane, groupings):
            print(line)
    for grouping in groupings:
        if not grouping.exact and not grouping.method.startswith("kmeans"):
            say(
                f"pmutop: {grouping.method} was cut short: {len(grouping.groups)} groups are not proven to be the best"
            )
    if options.heatmap:
        for line in heat_map(events, groupings[-1]):
            print(line)
    if options.svg:
        write_svg(options.svg, names, events, groupings[-1])
    return 0


def joined(tables):
    """All rows of the tables under all their events: (names, values (rows, events)), NaN where a table lacks an event."""
    import numpy as np

    names = list(dict.fromkeys(event for table in tables for event in table.events))
    values = np.full((sum(len(table.values) for table in tables), len(names)), np.nan)
    start = 0
    for table in tables:
        at = [names.index(event) for event in table.events]
        values[start : start + len(table.values), at] = table.values
        start += len(table.values)
    return names, values


def as_json(names, events, plane, groupings) -> dict:
    """What `as_text` prints, as one object."""
    from pmutop.analysis import similarity

    alive = set(events.columns.tolist())
    return {
        "slices": len(events.values),
        "events": names,
        "dead": [name for column, name in enumerate(names) if column not in alive],
        "related_pairs": int(events.adjacency.sum()) // 2,
        "transitivity_violations": similarity.transitivity_violations(events.adjacency),
        "uncorrelated": [names[events.columns[at]] for at in similarity.uncorrelated(events.adjacency)],
        "pca": {
            "error": [round(float(error), 6) for error in plane.error],
            "lost": [round(float(lost), 6) for lost in plane.lost],
            "k": {f"{bound:g}": plane.smallest(bound) for bound in BOUNDS},
        },
        "groupings": [
            {
                "method": grouping.method,
                "exact": grouping.exact,
                "groups": [
                    {"leader": names[first], "events": [names[member] for member in members]}
                    for first, members in zip(grouping.leaders, grouping.groups, strict=True)
                ],
            }
            for grouping in groupings
        ],
    }


def as_text(names, events, plane, groupings) -> Iterator[str]:
    """The report: what is in the table, PCA's error per K, then each grouping with its leaders."""
    from pmutop.analysis import similarity

    dead = len(names) - len(events.columns)
    yield f"{len(names)} events ({dead} never counted anything), {len(events.values)} slices"
    yield (
        f"{int(events.adjacency.sum()) // 2} related pairs, "
        f"{similarity.transitivity_violations(events.adjacency)} transitivity violations, "
        f"{len(similarity.uncorrelated(events.adjacency))} events related to no other"
    )
    yield ""
    yield "  K   error  (PCA; of K = 1)"
    last = plane.smallest(BOUNDS[-1])
    for k in range(1, last + 1):
        yield f"{k:3d}  {100 * plane.error[k - 1]:5.1f} %"
    yield "  ".join(f"below {100 * bound:g} % from K = {plane.smallest(bound)}" for bound in BOUNDS)
    for grouping in groupings:
        alone = sum(len(members) == 1 for members in grouping.groups)
        yield ""
        yield f"{grouping.method}: {len(grouping.groups)} groups, {alone} of a single event"
        for number, (first, members) in enumerate(zip(grouping.leaders, grouping.groups, strict=True), 1):
            others = ", ".join(names[member] for member in members if member != first)
            yield f"{number:4d} {len(members):4d}  {names[first]}" + (f"  = {others}" if others else "")


def heat_map(events, grouping) -> Iterator[str]:
    """The lines of the heat map, as wide as the terminal; colours only where a terminal shows them."""
    from pmutop.analysis import heatmap

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns
    matrix = heatmap.reordered(events.r, positions(events, grouping))
    yield ""
    yield from heatmap.text_lines(heatmap.shrunk(matrix, max(width // (1 if colour else 2), 2)), colour)


def write_svg(path: str, names, events, grouping) -> None:
    """The heat map as SVG in the file `path`."""
    from pmutop.analysis import heatmap
    from pmutop.wide import write_atomically

    shown = [names[column] for column in events.columns]
    with write_atomically(path) as stream:
        stream.writelines(heatmap.svg(events.r, positions(events, grouping), shown))


def positions(events, grouping) -> list[list[int]]:
    """The groups as positions among the live events, which is what `events.r` is indexed by."""
    at = {column: position for position, column in enumerate(events.columns.tolist())}
    return [[at[member] for member in members] for members in grouping.groups]
