"""All about the process under the cursor: labels over time, the evidence in words, rates, who disturbs it, what helps."""

from __future__ import annotations

from math import isnan

from pmutop import units
from pmutop.moment import QUALITIES, RESOURCES, Resource
from pmutop.tui.columns import label_style
from pmutop.tui.history import Row
from pmutop.tui.hot import hot_functions
from pmutop.tui.lines import Line
from pmutop.tui.state import State
from pmutop.tui.strips import strips
from pmutop.tui.welcome import wrapped

#: How each quality of a number is marked before its digits; what is exact carries no mark.
MARKS = {
    "exact": " ",
    "estimated": "~",
    "first": "^",
    "replaced": "*",
    "impossible": "!",
    "uncounted": " ",
    "unsupported": " ",
}


IMPORTANT = 5  # events shown of a ranking


def details(state: State, width: int) -> list[Line]:
    row = state.current()
    if row is None:
        return [[("no process under the cursor", "quiet")]]
    lines = identity(state, row, width)
    lines += verdict(state, row, width)
    lines += advice(state, row, width)
    lines += hot_functions(state, row, width)
    lines += evidence(row, width)
    lines += importance(state, row)
    lines += interference(row, width)
    lines += strips(state, row, width)
    lines += rates(row, width)
    if state.child_output and row.task.ppid:
        lines += [[], [(f"output of the launched command: {units.clean_text(state.child_output)}", "quiet")]]
    return lines


def identity(state: State, row: Row, width: int) -> list[Line]:
    task, moment, index = row.task, row.moment, row.index
    facts = (
        f"pid {task.pid}" + (f" thread {task.tid}" if not task.is_process else ""),
        f"parent {task.ppid}",
        f"user {units.clean_text(task.user)}",
        f"started {units.clock(task.start)}" if task.start else "",
        f"state {'gone' if row.gone else units.clean_text(moment.state[index])}",
        f"threads {int(moment.threads[index])}",
        f"nice {int(moment.nice[index])}" if not isnan(float(moment.nice[index])) else "",
        f"memory {units.size(float(moment.rss[index]))}",
    )
    name = units.fit(units.clean_text(task.comm), 16).rstrip()
    lines = wrapped(f"{name}  ", ", ".join(f for f in facts if f), width)
    lines[0] = [(name, "title"), (lines[0][0][0][len(name) :], ""), *lines[0][1:]]
    lines += wrapped("command: ", units.clean_text(task.cmdline or f"[{task.comm}]"), width)[:3]
    if task.cgroup:
        lines.append([(f"cgroup: {units.clean_text(task.cgroup)}", "quiet")])
    lines.append(
        [
            (f"CPU {units.percent(float(moment.cpu[index]))}%", "strong"),
            (f"   waiting for a CPU {units.percent(float(moment.wait[index]))}%   ", ""),
            (f"IPC {units.ratio(float(moment.ipc[index]))}", ""),
        ]
    )
    return lines


def verdict(state: State, row: Row, width: int) -> list[Line]:
    labels = row.moment.labels.get(row.index)
    if not labels:
        why = "nothing may be said of it in this slice: it was idle, or its inputs are not counted"
        return [[], *wrapped("", why, width, "quiet")]
    lines: list[Line] = [[]]
    for place, label in enumerate(labels[:3]):
        lines.append(
            [
                ("this slice " if place == 0 else "           ", ""),
                (units.fit(units.clean_text(f"{label.label} {label.kind}"), 24), label_style(label)),
                (bar(label.confidence, 10), label_style(label)),
                (f" {units.share(label.confidence):>4}", ""),
                (f"  {units.clean_text(label.model)} ({label.tier})", "quiet"),
            ]
        )
    path = row.moment.paths.get(row.index)
    if path:
        lines += wrapped("   because ", " and ".join(units.clean_text(test) for test in path), width)
    return lines


def bar(share: float, cells: int) -> str:
    full = 0 if isnan(share) else max(0, min(cells, round(share * cells)))
    return "█" * full + "░" * (cells - full)


def interference(row: Row, width: int) -> list[Line]:
    verdicts = row.moment.interference.get(row.index)
    if verdicts is None:
        return []
    line: Line = [("slowed at  ", "")]
    for name, resource in zip(RESOURCES, verdicts):
        if name == "progress" and resource.verdict is None:
            continue  # not asked for
        line += [(f"{name} ", ""), resource_words(resource), ("  ", "")]
    lines = [[], line]
    other = verdicts.antagonist
    if other is not None:
        lines.append(
            [
                ("suspect    ", ""),
                (f"{units.clean_text(other.comm)} {other.pid}", "bad"),
                (f" over {units.clean_text(other.resource)}, score {units.ratio(other.score)}: ", ""),
                (
                    f"{units.count(other.before)} while it rests, {units.count(other.during)} while it runs",
                    "",
                ),
            ]
        )
    return lines


def resource_words(resource: Resource) -> tuple[str, str]:
    if resource.verdict is None:
        return ("cannot be seen", "quiet")
    if resource.verdict:
        return (f"YES {units.factor(resource.factor)}".rstrip(), "bad")
    return ("no", "good")


def evidence(row: Row, width: int) -> list[Line]:
    """The events that show the label: share as a bar, value beside the healthy twin's."""
    reasons = row.moment.reasons.get(row.index)
    if not reasons:
        return []
    lines: list[Line] = [
        [],
        [("evidence", "strong"), ("                    share      here      healthy", "quiet")],
    ]
    for reason in reasons:
        times = reason.value / reason.normal if reason.normal and not isnan(reason.normal) else float("nan")
        far = (
            f"{units.count(times)} times"
            if times >= 1.5
            else f"1/{units.count(1 / times)}"
            if 0 < times < 0.67
            else "as usual"
        )
        lines.append(
            [
                (f"  {units.fit(units.clean_text(reason.name), 20)} ", ""),
                (bar(reason.share, 8), "mark"),
                (f" {units.share(reason.share):>4} ", ""),
                (f"{units.count(reason.value):>7}", "strong"),
                (
                    f"   {units.count(reason.normal):>7}  {units.fit(units.clean_text(reason.unit), max(4, min(14, width - 68)))}",
                    "",
                ),
                ("" if isnan(times) else far, "quiet"),
            ]
        )
    return lines


def importance(state: State, row: Row) -> list[Line]:
    """The events that matter most to the performance figure, as the worker ranks them from the last slices."""
    rank = state.rank_of(row)
    if rank is None:
        return []
    target = units.clean_text(rank.target)
    title = [("importance", "strong"), (f" to its {target}", "")]
    if not rank.events:
        return [[], [*title, (f"  not ranked: {units.clean_text(rank.why)}", "quiet")]]
    errors = f"model error {units.share(rank.error)}, always the median {units.share(rank.median_error)}"
    lines: list[Line] = [[], [*title, (f"  last {rank.slices} slices, {errors}", "quiet")]]
    if not rank.is_telling:
        return [
            *lines,
            [("  no better than the median: no event here says what its figure will be", "quiet")],
        ]
    for name, share in rank.events[:IMPORTANT]:
        lines.append(
            [
                (f"  {units.fit(units.clean_text(name), 20)} ", ""),
                (bar(share / 100, 8), "mark"),
                (f" {units.share(share / 100):>4}", ""),
            ]
        )
    return lines


def advice(state: State, row: Row, width: int) -> list[Line]:
    label = state.label_of(row)
    if label is None:
        return []
    text = state.advice.get(label.label)
    if not text:
        return []
    return wrapped("   meaning ", units.clean_text(text), width)


def rates(row: Row, width: int) -> list[Line]:
    """Every counted event as a rate per second of this slice, with the mark of its quality."""
    events = row.moment.header.events
    if not events:
        return []
    lines: list[Line] = [
        [],
        [
            ("events per second of this slice", "strong"),
            ("  ~ estimated ^ first * replaced ! impossible", "quiet"),
        ],
    ]
    across = max(1, width // 38)
    line: Line = []
    for column, event in enumerate(events):
        value = float(row.moment.counts[row.index, column])
        quality = QUALITIES[int(row.moment.quality[row.index, column])]
        mark = MARKS[quality]
        if event.unit == "ns":
            text = f"{units.percent(value / row.moment.seconds / 1e7)}%"
        else:
            text = units.count(value / row.moment.seconds)
        if isnan(value):
            text = "not here" if quality == "unsupported" else "-"
        line += [
            (f"  {units.fit(units.clean_text(event.name), 22)} ", "" if value else "quiet"),
            (f"{mark}{text:>8}    ", "number" if value else "quiet"),
        ]
        if (column + 1) % across == 0:
            lines.append(line)
            line = []
    if line:
        lines.append(line)
    return lines
