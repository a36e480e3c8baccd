"""Who hurts whom: every victim on show with what it suffers, and who is suspected."""

from __future__ import annotations

from pmutop import units
from pmutop.tui.columns import harms
from pmutop.tui.history import Row
from pmutop.tui.lines import Line
from pmutop.tui.placement import advice
from pmutop.tui.state import State


def blame(state: State, width: int) -> list[Line]:
    moment = state.moment
    if moment is None:
        return []
    pairs = []
    for index, verdicts in moment.interference.items():
        for name, factor in harms(Row(moment, index)):
            pairs.append((factor or 1.0, name, index, verdicts.antagonist))
    if not pairs:
        unseen = all(v[0].verdict is None for v in moment.interference.values())
        text = (
            "this tier cannot see interference here"
            if moment.interference and unseen
            else "nobody is seen to slow another one in this slice"
        )
        return [[(text, "quiet")]]
    lines: list[Line] = [
        [
            (units.fit("victim", 30), "strong"),
            (units.fit("slowed", 8), "strong"),
            (units.fit("at", 8), "strong"),
            ("suspect: what the victim suffers while it rests -> while it runs", "strong"),
        ]
    ]
    for factor, name, index, other in sorted(pairs, key=lambda pair: -pair[0]):
        task = moment.tasks[index]
        line: Line = [
            (units.fit(f"{units.clean_text(task.comm)} {task.pid}", 29) + " ", ""),
            (units.fit(units.factor(factor), 8), "bad"),
            (units.fit(name, 8), ""),
        ]
        if other is None:
            line.append(("no single suspect", "quiet"))
        else:
            line += [
                (f"{units.clean_text(other.comm)} {other.pid}", "warn"),
                (
                    f" ({units.clean_text(other.resource)}): {units.count(other.before)} -> {units.count(other.during)}, score {units.ratio(other.score)}",
                    "",
                ),
            ]
        lines.append(line)
        lines += [[(f"    {text}"[:width], "quiet")] for text in advice(moment, index)]
    return lines
