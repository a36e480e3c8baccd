"""A process over the last minute up to the slice on show, a cell per slice: its labels, its CPU use, who disturbed it."""

from __future__ import annotations

from collections import Counter
from math import isnan

from pmutop import units
from pmutop.moment import UNKNOWN
from pmutop.tui.columns import BARS, harms
from pmutop.tui.history import SLICES, Row
from pmutop.tui.lines import Line
from pmutop.tui.state import State

HEAD = 11  # cells before the strip
MOST_NAMED = 6  # antagonists in the list
NONE = "·"


def strips(state: State, row: Row, width: int) -> list[Line]:
    rows = state.history.rows_of(row.task.ref, row.moment.number)
    cells = min(width - HEAD, SLICES)
    return [*label_strip(state, row, rows, cells), *cpu_strip(row, rows, cells), *disturbed(row, rows, cells)]


def label_strip(state: State, row: Row, rows: list[Row], cells: int) -> list[Line]:
    """The present at the right: a letter names the label; the legend below says which."""
    track = state.history.tracks.get(row.task.ref)
    if state.held is None:  # the marks reach further back than the Moments where there are many processes
        said = {number: label for number, label, _ in track.marks} if track else {}
    else:
        said = {
            past.moment.number: label.label for past in rows if (label := past.moment.first_label(past.index))
        }
    if not said:
        return []
    letters = letters_of(list(said.values()))
    line: Line = [("labels     ", "")]
    for number in range(row.moment.number - cells + 1, row.moment.number + 1):
        label = said.get(number)
        if not label:
            line.append((NONE if label is None else " ", "quiet"))
        else:
            line.append((letters[label], "bad" if label.startswith("P_") else "quiet"))
    shown = [label for label in dict.fromkeys(said.values()) if label]
    legend = "  ".join(f"{letters[label]} {units.clean_text(label)}" for label in shown)
    since = ""
    if state.held is None and track.since and track.shown.label:
        since = f"  since {units.clock(track.since)}"
    return [[], line, [(" " * HEAD, ""), (legend, "quiet"), (since, "")]]


def cpu_strip(row: Row, rows: list[Row], cells: int) -> list[Line]:
    use = {past.moment.number: float(past.moment.cpu[past.index]) for past in rows}
    newest = row.moment.number
    values = [use.get(number, float("nan")) for number in range(newest - cells + 1, newest + 1)]
    top = max((value for value in values if not isnan(value)), default=0.0)
    return [
        [
            ("CPU        ", ""),
            (sparkline(values, top or 1.0), "good"),
        ],
        [(" " * HEAD, ""), (f"at most {units.percent(top)}%", "quiet")],
    ]


def disturbed(row: Row, rows: list[Row], cells: int) -> list[Line]:
    """When it was slowed, how much, by whom: a bar and a letter a slice, then the antagonists, the most frequent first."""
    hurt: dict[int, float] = {}  # slice -> 0..1
    who: dict[int, tuple[int, str, str]] = {}
    factors: dict[int, float] = {}
    times: dict[int, float] = {}
    for past in rows:
        verdicts = past.moment.interference.get(past.index)
        if verdicts is None:
            continue
        number, found = past.moment.number, harms(past)
        other = verdicts.antagonist
        times[number] = past.moment.time
        if found:
            factors[number] = found[0][1] or 1.0
            hurt[number] = min(max((factors[number] - 1) / 2, 0.125), 1.0)  # a full bar is three times slower
        elif other is not None:
            hurt[number] = min(max(other.during, 0.125), 1.0)
        if other is not None:
            who[number] = other.pid, other.comm, other.resource
    if not hurt:
        return []
    newest = row.moment.number
    span = range(newest - cells + 1, newest + 1)
    counted = Counter(who.values())
    signs = {other: chr(ord("A") + place) for place, (other, _) in enumerate(counted.most_common(26))}
    bars = "".join(BARS[max(1, round(hurt[number] * 8))] if number in hurt else NONE for number in span)
    names = "".join(
        signs.get(who[number], "+") if number in who else ("?" if number in hurt else NONE) for number in span
    )
    worst = f"  worst {units.factor(max(factors.values()))}" if factors else ""
    lines: list[Line] = [
        [],
        [("slowed     ", ""), (bars, "bad")],
        [("by         ", ""), (names, "warn")],
        [(" " * HEAD, ""), (f"{len(hurt)} slices{worst}; ? = nobody could be named", "quiet")],
    ]
    for other, slices in counted.most_common(MOST_NAMED):
        pid, comm, resource = other
        when = [number for number, one in who.items() if one == other]
        known = [factors[number] for number in when if number in factors]
        much = (
            f"{units.factor(sum(known) / len(known))} on average, at most {units.factor(max(known))}"
            if known
            else "factor not known"
        )
        lines.append(
            [
                (f"  {signs.get(other, '+')} ", "warn"),
                (units.fit(f"{units.clean_text(comm)} {pid}", 24), "strong"),
                (f" {units.fit(units.clean_text(resource), 7)}", ""),
                (f"{units.clock(times[min(when)])} to {units.clock(times[max(when)])}", ""),
                (f"  {slices} slice{'s' * (slices > 1)}, {much}", "quiet"),
            ]
        )
    return lines


def letters_of(labels: list[str]) -> dict[str, str]:
    """A letter for each label: its own telling one where that is free."""
    table: dict[str, str] = {UNKNOWN: "?"}
    for label in labels:
        if label and label not in table:
            word = label.split("_")[-1]
            capitals = (word if label.startswith("P_") else word.lower()) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
            table[label] = next(
                (letter for letter in capitals if letter not in table.values() and letter.isascii()), "+"
            )
    return table


def sparkline(values: list[float], top: float) -> str:
    return "".join(
        " " if isnan(value) or not top else BARS[max(0, min(8, round(value / top * 8)))] for value in values
    )
