"""Say which events matter to the IPC (or to --target): boosted trees, refined by dropping the least important
events, judged on runs they have not seen (CounterMiner, section III-C and III-D)."""

from __future__ import annotations

import argparse
import json
import sys

from pmutop.cli import mining, rank_text, say

#: From this many events on one set of counters multiplexing was too wrong to be cleaned (section V-A).
SHARING = 20


def configure(parser: argparse.ArgumentParser) -> None:
    mining.add_tables(parser)
    mining.add_spread(parser)
    parser.add_argument(
        "--target",
        metavar="EVENT",
        help="what is to be explained (default: IPC, without a PMU user-time/run-time)",
    )
    parser.add_argument(
        "--per",
        choices=("cycle", "instruction", "slice"),
        default="cycle",
        help="what the events are divided by (default %(default)s, slice where there are no cycles)",
    )
    parser.add_argument(
        "--drop", type=int, metavar="N", help="events dropped a round (default 10, or a tenth)"
    )
    parser.add_argument(
        "--importance",
        choices=("friedman", "paper"),
        default="friedman",
        help="paper: equations 10 and 11 to the letter (default %(default)s)",
    )
    parser.add_argument(
        "--against", nargs="+", metavar="FILE", help="the same program with others: which events rose"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME",
        help="this column, or --param of a store's runs, is a setting: rank its pairs with the events (repeatable; "
        "default: every setting in which the runs differ)",
    )
    parser.add_argument("--each", action="store_true", help="rank every file, or run of a store, by itself")
    parser.add_argument("--raw", action="store_true", help="take the values as they are, not cleaned")
    parser.add_argument(
        "--width", type=float, metavar="N", help="instructions per cycle this machine cannot exceed"
    )
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="events and pairs shown (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the models (default %(default)s)")
    parser.add_argument("--svg", metavar="FILE", help="also draw the ranking and the refinement's curve")
    parser.add_argument("--json", action="store_true", help="one JSON object per ranking instead of text")


def run(options: argparse.Namespace) -> int:
    from pmutop.analysis.importance import rank_all
    from pmutop.errors import BadInput, UsageError
    from pmutop.wide import write_atomically

    if options.drop is not None and options.drop < 1:
        raise UsageError("--drop below 1 never ends")
    tables = mining.read(options.tables)
    groups = [[table] for table in tables] if options.each else [tables]
    prepared = [prepare(group, options) for group in groups]
    others = prepare(mining.read(options.against), options) if options.against else None
    try:
        with mining.spread(options):
            found = rank_all(
                [one[:4] for one in prepared],
                drop=options.drop,
                measure=options.importance,
                seed=options.seed,
                name=prepared[0][5],
            )
    except ValueError as error:
        raise BadInput(f"{tables[0].source}: {error}") from error
    for group, one, ranking in zip(groups, prepared, found, strict=True):
        source = ", ".join(dict.fromkeys(table.source for table in group))
        report = {"source": source, **rank_text.as_json(ranking, options.top), **pairs(one, ranking, options)}
        if others is not None:
            report["against"] = risen(one, others, options.top)
        if options.json:
            print(json.dumps(report, ensure_ascii=False))
        else:
            print("\n".join(rank_text.as_text(report, ranking)))
    if options.svg:
        with write_atomically(options.svg) as stream:
            stream.write(rank_text.as_svg(found[0], options.top))
    sys.stdout.flush()
    return 0


def prepare(tables, options):
    """The tables of one ranking as (inputs, target, events, runs, settings, figure); BadInput names the file with which
    it is not possible."""
    import numpy as np

    from pmutop.analysis import figure
    from pmutop.analysis.interactions import numbered
    from pmutop.errors import BadInput

    events = mining.same_events(tables)
    source = tables[0].source
    if len(events) < 2:
        raise BadInput(
            f"{source}: one column ({events[0]}) ranks nothing", "a target and at least two events are needed"
        )
    settings = options.param or differing(tables)
    inner = [name for name in events if name not in settings]
    blocks, runs, set_to = [], [], {name: [] for name in settings}
    for table in tables:
        for name in settings:
            set_to[name] += setting_of(table, name)
        table = table.only(inner)
        if np.isnan(table.values).all():
            raise BadInput(f"{table.source}: nothing in it was counted")
        warn_of_sharing(table)
        blocks.append(table.values if options.raw else mining.cleaned(table, width=options.width).values)
        runs += (
            [table.source] * len(table) if table.run is None else [f"{table.source} {r}" for r in table.run]
        )
    counts = np.vstack(blocks)
    try:
        aim = figure.choose(inner, options.target)
    except ValueError as error:
        raise BadInput(
            f"{source}: {error}", f"--target EVENT names another figure: {', '.join(inner)}"
        ) from error
    inputs, target, names = figure.explain(counts, inner, aim, options.per)
    inputs = np.column_stack([inputs, *(numbered(set_to[name])[0] for name in settings)])
    names += settings
    whole = np.isfinite(inputs).all(axis=0)
    for name in np.array(names)[~whole]:
        say(f"pmutop: {source}: {name} has slices in which it was not counted; left out")
    still = whole & (np.ptp(np.nan_to_num(inputs), axis=0) == 0)
    for name in np.array(names)[still]:
        say(f"pmutop: {source}: {name} is constant; left out")
    keep = whole & ~still
    rows = np.isfinite(target)
    if keep.sum() < 2 or np.ptp(target[rows]) == 0 if rows.any() else True:
        what = "the target" if keep.sum() >= 2 else f"all but {keep.sum()} of its {len(names)} events"
        raise BadInput(f"{source}: {what} never changes or was not counted, so there is nothing to rank")
    return (
        inputs[rows][:, keep],
        target[rows],
        tuple(np.array(names)[keep].tolist()),
        np.array(runs)[rows],
        settings,
        aim,
    )


def differing(tables) -> list[str]:
    """The settings in which the runs differ."""
    names = sorted({name for table in tables for name in table.settings})
    return [name for name in names if len({table.settings.get(name) for table in tables}) > 1]


def setting_of(table, name: str) -> list:
    """A setting for every row: the run's, or a column of the table; BadInput where it is neither."""
    if name in table.settings:
        return [table.settings[name]] * len(table)
    return table.column(name).tolist()


def warn_of_sharing(table) -> None:
    """Say so where more events than the paper's limit took turns on the counters."""
    shared = len(table.shared())
    if shared > SHARING:
        say(
            f"pmutop: {table.source}: {shared} events shared the counters; above {SHARING} even cleaned values are far off"
        )


def pairs(one, ranking, options) -> dict:
    """The strongest interactions of the most important events, and with the settings where there are some."""
    import numpy as np

    from pmutop.analysis.interactions import interactions, with_settings

    inputs, _, events, _, settings, _ = one
    model_order = [
        name for name in events if name in set(ranking.best.events)
    ]  # the columns the model was fitted on
    columns = inputs[:, [events.index(name) for name in model_order]]
    order = [model_order.index(name) for name in ranking.best.events]

    def predict(points):
        back = np.empty_like(points)
        back[:, order] = points
        return ranking.model.predict(back)

    ordered, names = columns[:, order], list(ranking.best.events)
    found = interactions(predict, ordered, names, options.top) if len(names) > 1 else []
    out = {"interactions": [rank_text.as_pair(pair) for pair in found[: options.top]]}
    known = [name for name in settings if name in names]
    if known:
        mixed = with_settings(predict, ordered, names, known, options.top)
        out["settings"] = [rank_text.as_pair(pair) for pair in mixed[: options.top]]
    return out


def risen(one, others, top: int) -> list[dict]:
    """The events that rose from the first recordings to --against."""
    from pmutop.analysis.colocation import changes

    names = [name for name in one[2] if name in others[2]]
    sides = [side[0][:, [side[2].index(name) for name in names]] for side in (one, others)]
    return [
        {
            "event": c.event,
            "alone": c.alone,
            "together": c.together,
            "factor": c.factor,
            "surer": round(c.surer, 4),
        }
        for c in changes(*sides, names)[:top]
        if c.factor > 1
    ]
