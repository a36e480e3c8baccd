"""The process table as lines: the head, and the rows that are on the screen (only these are made)."""

from __future__ import annotations

from pmutop.tui import columns
from pmutop.tui.history import Row
from pmutop.tui.lines import Line
from pmutop.tui.state import State


def table(state: State, width: int, height: int) -> list[Line]:
    """`height` lines: the head and the visible part of `state.order`."""
    state.height = max(height - 1, 1)
    moment = state.moment
    has_ipc = moment is not None and any(event.name == "instructions" for event in moment.header.events)
    rows = [
        state.row(position) for position in range(state.top, min(state.top + height - 1, len(state.order)))
    ]
    state.widest = max(
        state.widest, *(len(str(row.task.tid)) for row in rows), 0
    )  # grows only: columns do not jump
    chosen = columns.layout(state.columns, width, has_ipc, state.widest)
    return [
        head(state, chosen),
        *(line(state, chosen, row, state.top + place) for place, row in enumerate(rows)),
    ]


def head(state: State, chosen: list[tuple[columns.Column, int]]) -> Line:
    spans: Line = []
    for column, cells in chosen:
        name = "INTERF." if column.name == "INTERFERENCE" and cells < 12 else column.name
        sorted_by = column.name == state.sort
        if sorted_by and len(name) < cells:
            up = column.descending == state.reversed
            name = f"{name}{'▲' if up else '▼'}"
        text = name[:cells].rjust(cells) if column.right else name[:cells].ljust(cells)
        if spans:
            spans.append((" ", "head"))
        spans.append((text, "sorted" if sorted_by else "head"))
    return spans


def line(state: State, chosen: list[tuple[columns.Column, int]], row: Row, position: int) -> Line:
    spans: Line = []
    for column, cells in chosen:
        if spans:
            spans.append((" ", ""))
        spans += column.cell(state, row, cells)
    if position == state.cursor:
        return [("".join(text for text, _ in spans), "cursor")]
    if row.task.ref in state.tagged:
        return [(text, "tagged") for text, _ in spans]
    if row.gone:
        return [("".join(text for text, _ in spans), "quiet")]
    return merged(spans)


def merged(spans: Line) -> Line:
    """Neighbouring spans of one style as one: fewer segments, fewer bytes; blanks take their neighbour's style."""
    joined: Line = []
    for text, style in spans:
        if joined and (joined[-1][1] == style):
            joined[-1] = (joined[-1][0] + text, style)
        else:
            joined.append((text, style))
    return joined
