"""Who ran on which CPU and when: the scheduling periods of a recording, exact from its switch samples, or by the thesis's
Algorithm 1 from where each task was seen at the end of each slice (--sampled)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pmutop.errors import BadInput
from pmutop.recording import Reader


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording made by `pmutop record`")
    parser.add_argument(
        "--format", choices=("table", "csv", "trace"), default="table", help="trace: Chrome JSON for Perfetto"
    )
    parser.add_argument(
        "--sampled", action="store_true", help="from samples at slice ends (attach recordings have no other)"
    )
    parser.add_argument(
        "--literal", action="store_true", help="Algorithm 1 as printed: open periods lost, idle time bridged"
    )


def run(options: argparse.Namespace) -> int:
    from pmutop.analysis import schedule

    reader = Reader(options.file)
    names: dict[int, str] = {}
    history = sampled(reader, names, options.literal) if options.sampled else exact(reader, names)
    if options.format == "table":
        lines = table(history, names)
    else:
        lines = (
            schedule.as_csv(history, names)
            if options.format == "csv"
            else schedule.chrome_trace(history, names)
        )
    for line in lines:
        print(line, end="")
    reader.close()
    if reader.damage:
        raise BadInput(reader.damage)
    return 0


def learn_names(raw, names: dict[int, str]) -> None:
    for record in raw.records:
        if hasattr(record, "task"):
            names[record.task.ref] = f"{record.task.comm} {record.task.tid}".encode(errors="replace").decode()


def exact(reader: Reader, names: dict[int, str]):
    """The periods that the source itself recorded, in ns."""
    import numpy as np

    from pmutop.analysis.schedule import Periods

    blocks = []
    for raw in reader:
        learn_names(raw, names)
        blocks.append(np.frombuffer(raw.periods, np.int64).reshape(-1, 4))
    found = np.concatenate(blocks) if blocks else np.empty((0, 4), np.int64)
    if not len(found):
        raise BadInput(
            f"{reader.path} has no scheduling records", "it was made by the attach reader: add --sampled"
        )
    return Periods(*found.T)


def sampled(reader: Reader, names: dict[int, str], literal: bool):
    """Periods from samples: each task that ran in a slice was seen at its end on the CPU it ran on last."""
    import numpy as np

    from pmutop.analysis.schedule import from_samples
    from pmutop.slices import LEVELS

    cpu, who, when = [], [], []
    for raw in reader:
        learn_names(raw, names)
        refs = np.frombuffer(raw.refs, np.int64)
        levels = np.frombuffer(raw.levels, np.int64).reshape(len(refs), len(LEVELS))
        cpu.append(levels[:, LEVELS.index("cpu")])
        who.append(refs)
        when.append(np.full(len(refs), raw.end))
    gap = 1.5e9 * reader.header.interval
    return from_samples(
        *(np.concatenate(column) for column in (cpu, who, when)),
        literal=literal,
        gap=None if literal else gap,
    )


def table(history, names: dict[int, str]) -> Iterator[str]:
    """CPU seconds and number of periods per task and CPU, the longest first."""
    import numpy as np

    yield f"{'seconds':>10}  {'periods':>8}  {'longest ms':>10}  cpu  task\n"
    places, where = np.unique(np.stack([history.task, history.cpu]), axis=1, return_inverse=True)
    spans = (history.end - history.start) / 1e9
    total = np.bincount(where.ravel(), weights=spans)
    count = np.bincount(where.ravel())
    longest = np.zeros(len(total))
    np.maximum.at(longest, where.ravel(), spans)
    for at in np.argsort(-total, kind="stable").tolist():
        task, cpu = places[:, at].tolist()
        yield f"{total[at]:10.4f}  {count[at]:8d}  {1000 * longest[at]:10.3f}  {cpu:3d}  {names.get(task, task)}\n"
