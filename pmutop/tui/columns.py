"""The columns of the process table, as a table: a new column is a row here."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from pmutop import units
from pmutop.moment import RESOURCES, UNKNOWN, Label
from pmutop.tui.lines import Span

if TYPE_CHECKING:
    from pmutop.tui.history import Row
    from pmutop.tui.state import State

#: What is slowed by less is slowed on paper only; the eye is not called for it, the log has it.
LEAST_HARM = 1.05
BARS = " ▁▂▃▄▅▆▇█"


class Column(NamedTuple):
    name: str
    width: int  # cells; for the elastic ones the least
    right: bool  # aligned to the right
    key: Callable[[State, Row], object]  # to sort by
    descending: bool  # biggest first
    cell: Callable[[State, Row, int], list[Span]]  # spans of exactly the width given
    priority: int  # 0 always there; a narrow screen drops the highest first
    grows: int  # cells it can make use of beyond `width`; the last column takes what is left
    help: str


def number(write: Callable[[float], str], value_of: Callable[[Row], float], style: str = "") -> Callable:
    """A cell for a number: '-' and quiet where there is none, quiet where it is nothing."""

    def cell(state: State, row: Row, cells: int) -> list[Span]:
        value = float(value_of(row))
        text = units.fit(write(value), cells, right=True)
        return [(text, "quiet" if isnan(value) or value == 0 else style)]

    return cell


def words(text_of: Callable[[Row], str], style: str = "", right: bool = False) -> Callable:
    def cell(state: State, row: Row, cells: int) -> list[Span]:
        return [(units.fit(units.clean_text(text_of(row)), cells, right), style)]

    return cell


def pid_cell(state: State, row: Row, cells: int) -> list[Span]:
    """The number; of a group how many rows it has, behind + while it is folded and - when it is not."""
    tid = row.task.tid
    if row.task.ref < 0:
        return [
            (
                units.fit(f"{'-' if row.task.ref in state.unfolded else '+'}{-tid}", cells, right=True),
                "strong",
            )
        ]
    return [(units.fit(str(tid), cells, right=True), "")]


def cpu_cell(state: State, row: Row, cells: int) -> list[Span]:
    value = float(row.moment.cpu[row.index])
    style = "strong" if value >= 50 else "" if value > 0 else "quiet"
    return [(units.fit(units.percent(value), cells, right=True), style)]


def wait_cell(state: State, row: Row, cells: int) -> list[Span]:
    value = float(row.moment.wait[row.index])
    style = "bad" if value >= 50 else "warn" if value >= 20 else "" if value >= 0.05 else "quiet"
    return [(units.fit(units.percent(value), cells, right=True), style)]


def label_style(label: Label) -> str:
    """Pathologies are loud, the sure ones louder; healthy is quiet."""
    if label.is_pathology:
        return "bad" if label.confidence >= 0.7 else "warn"
    return "quiet"


def label_cell(state: State, row: Row, cells: int) -> list[Span]:
    label = state.label_of(row)
    if label is None:
        return [(" " * cells, "")]
    if label.label == UNKNOWN:
        return [(units.fit(UNKNOWN, cells), "quiet")]
    name = units.clean_text(label.label)
    if label.kind and cells >= len(name) + len(label.kind) + 6:
        name = f"{name} {units.clean_text(label.kind)}"
    sure = units.share(label.confidence)
    style = label_style(label)
    return [(units.fit(name, cells - 5), style), (units.fit(sure, 5, right=True), style)]


def trouble(state: State, row: Row) -> float:
    """How much a row deserves the eye: pathologies by confidence and factor, then unknown, then healthy."""
    label = state.label_of(row)
    worst = max((suffered[1] or 1.0 for suffered in harms(row)), default=0.0)
    if label is None:
        return worst
    return worst + (10 + label.confidence if label.is_pathology else 0.5 if label.label == UNKNOWN else 0.1)


def harms(row: Row) -> list[tuple[str, float | None]]:
    """The shared resources that a row is harmed through: (name, factor), worst first."""
    verdicts = row.moment.interference.get(row.index)
    if verdicts is None:
        return []
    found = [
        (name, verdicts[place].factor) for place, name in enumerate(RESOURCES) if verdicts[place].verdict
    ]
    found = [harm for harm in found if harm[1] is None or harm[1] >= LEAST_HARM]
    return sorted(found, key=lambda harm: -(harm[1] or 1.0))


def interference_cell(state: State, row: Row, cells: int) -> list[Span]:
    found = harms(row)
    if not found:
        return [(" " * cells, "")]
    name, factor = found[0]
    text = f"{name} {units.factor(factor)}".rstrip()
    if cells > 24:
        text = " ".join(f"{name} {units.factor(factor)}".rstrip() for name, factor in found)
        antagonist = row.moment.interference[row.index].antagonist
        if antagonist:
            text += f" by {units.clean_text(antagonist.comm)} {antagonist.pid}"
    return [(units.fit(text, cells), "bad" if (factor or 1) >= 1.5 else "warn")]


def events_cell(state: State, row: Row, cells: int) -> list[Span]:
    """Up to three events, each after a bar of its share: what matters most to the target where that was ranked (it says
    so first, with the model's error), else the evidence of the label."""
    spans: list[Span] = []
    left = cells
    label = state.label_of(row)
    rank = state.rank_of(row)
    if rank is not None and rank.is_telling:
        title = f"{units.clean_text(rank.target)} err {units.share(rank.error)}: "
        spans, left = [(units.fit(title, min(len(title), cells)), "mark")], max(0, cells - len(title))
        shown = [(name, importance / 100) for name, importance in rank.events[:3]]
        loud = True
    else:
        shown = [(reason.name, reason.share) for reason in row.moment.reasons.get(row.index, ())[:3]]
        loud = label is not None and label.is_pathology
    first = len(spans)
    for name, share in shown:
        name = units.clean_text(name)
        if left < (len(name) + 2 if len(spans) > first else 2):
            break
        if len(spans) > first:
            spans.append((" ", ""))
            left -= 1
        bar = BARS[1] if isnan(share) else BARS[max(1, min(8, round(share * 8)))]
        text = units.fit(name, left - 1) if len(name) > left - 1 else name
        spans += [(bar, "mark" if loud else "quiet"), (text, "" if loud else "quiet")]
        left -= 1 + units.width(text)
    if left:
        spans.append((" " * left, ""))
    return spans


def command_cell(state: State, row: Row, cells: int) -> list[Span]:
    task = row.task
    branch = state.branches.get(task.ref, "")
    name = units.clean_text(task.comm)
    line = units.clean_text(task.cmdline) if cells > 24 and not row.gone else ""
    if not line:
        line = name if not task.kernel else f"[{name}]"
    if not task.is_process:
        line = name
    line = line[state.shift :]
    loud = "quiet" if task.kernel or not task.is_process else ""
    if row.gone:
        line = f"(gone) {line}"
    if not branch:
        return [(units.fit(line, cells), loud)]
    branch = branch[: max(cells - 8, 0)]
    return [(branch, "quiet"), (units.fit(line, cells - len(branch)), loud)]


def state_cell(state: State, row: Row, cells: int) -> list[Span]:
    letter = "gone"[0] if row.gone else row.moment.state[row.index][:1] or "?"
    return [
        (
            units.fit(units.clean_text(letter), cells),
            {"R": "good", "D": "bad", "Z": "bad"}.get(letter, "quiet"),
        )
    ]


def group_of(path: str) -> str:
    """The telling end of a cgroup path: the pod, the container or the unit."""
    parts = [part for part in path.split("/") if part]
    return parts[-1] if parts else "/"


def value(column: str) -> Callable[[State, Row], float]:
    """Sort key from a numeric column of the Moment; what is not known goes to the end."""

    def key(state: State, row: Row) -> float:
        found = float(getattr(row.moment, column)[row.index])
        return -1.0 if isnan(found) else found

    return key


COLUMNS = (
    Column("PID", 7, True, lambda s, r: (r.task.pid, r.task.tid), False,
           pid_cell, 0, 0, "process (or thread) number; of a group +rows, -rows once it is unfolded"),
    Column("USER", 6, False, lambda s, r: r.task.user, False,
           words(lambda r: r.task.user), 3, 4, "who runs it"),
    Column("S", 1, False, lambda s, r: r.moment.state[r.index], False, state_cell, 5, 0,
           "state: R runs, S sleeps, D waits for a device, Z zombie, T stopped, g gone"),
    Column("CPU%", 5, True, value("cpu"), True, cpu_cell, 0, 0, "% of one CPU in this slice"),
    Column("WAIT%", 5, True, value("wait"), True, wait_cell, 1, 0,
           "% of the slice that it could have run and did not get a CPU, over all its threads"),
    Column("IPC", 4, True, value("ipc"), True,
           number(units.ratio, lambda r: r.moment.ipc[r.index]), 2, 0, "instructions per cycle"),
    Column("LABEL", 20, False, trouble, True, label_cell, 0, 8,
           "what it is stuck on (P_...) or fine at (N_...), and how sure that is"),
    Column("INTERFERENCE", 9, False, lambda s, r: max((f or 1.0 for _, f in harms(r)), default=0.0), True,
           interference_cell, 1, 26, "the shared resource that slows it, how much, and who does it"),
    Column("EVENTS", 10, False, lambda s, r: -len(r.moment.reasons.get(r.index, ())), False, events_cell, 2, 34,
           "the events that show it, with their share of the evidence as a bar; behind a figure and a model's error: those that "
           "matter most to that figure, as ranked from its last slices while its details are open"),
    Column("THR", 4, True, value("threads"), True,
           number(lambda v: f"{v:.0f}", lambda r: r.moment.threads[r.index]), 6, 0, "threads"),
    Column("NI", 3, True, value("nice"), False,
           number(lambda v: f"{v:.0f}", lambda r: r.moment.nice[r.index]), 7, 0, "nice value"),
    Column("RES", 5, True, value("rss"), True,
           number(units.size, lambda r: r.moment.rss[r.index]), 4, 0, "resident memory"),
    Column("CGROUP", 12, False, lambda s, r: r.task.cgroup, False,
           words(lambda r: group_of(r.task.cgroup), "quiet"), 8, 12, "the end of its cgroup: unit, container or pod"),
    Column("COMMAND", 11, False, lambda s, r: r.task.comm.lower(), False, command_cell, 0, 14, "what runs"),
)  # fmt: skip

BY_NAME = {column.name: column for column in COLUMNS}
#: Who gets spare cells first; what is left after all have grown goes to the command.
GROWTH = ("COMMAND", "LABEL", "EVENTS", "INTERFERENCE", "CGROUP", "USER")
DEFAULT_COLUMNS = tuple(column.name for column in COLUMNS)


def layout(names: list[str], width: int, has_ipc: bool, pid_width: int = 7) -> list[tuple[Column, int]]:
    """Which columns fit into `width` cells, and how wide each is; COMMAND is always there and takes the rest."""
    chosen = [BY_NAME[name] for name in names if name in BY_NAME and (name != "IPC" or has_ipc)]
    if not any(column.name == "COMMAND" for column in chosen):
        chosen.append(BY_NAME["COMMAND"])
    least = {column.name: pid_width if column.name == "PID" else column.width for column in chosen}
    while len(chosen) > 1 and sum(least[c.name] + 1 for c in chosen) - 1 > width:
        worst = max(chosen, key=lambda column: column.priority)
        if worst.priority == 0:
            break
        chosen.remove(worst)
    spare = max(width - sum(least[c.name] + 1 for c in chosen) + 1, 0)
    widths = {column.name: least[column.name] for column in chosen}
    for name in GROWTH:
        if name in widths:
            give = min(BY_NAME[name].grows, spare)
            widths[name] += give
            spare -= give
    widths["COMMAND"] += spare
    return [(column, widths[column.name]) for column in chosen]
