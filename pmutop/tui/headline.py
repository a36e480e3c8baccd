"""The head of the screen: which machine, what is counted and how well, what it costs, and what was found, worst first."""

from __future__ import annotations

from pmutop import units
from pmutop.moment import UNKNOWN
from pmutop.slices import Header
from pmutop.tui.columns import BARS, harms
from pmutop.tui.history import Row
from pmutop.tui.lines import Line
from pmutop.tui.state import State

MANY = 32  # CPUs from which on groups show instead of bars, here and in the time line
#: What a reader of each tier must know, in few words.
TIER_WORDS = {
    "hardware": "hardware counters",
    "simulated": "simulated counters: a model of the caches, not this CPU",
    "software": "no hardware counters: software events only",
}


def headline(state: State, width: int, height: int) -> list[Line]:
    """Lines of the head: 4 on a small screen, one more where there is room, and one while the screen is held."""
    lines = [machine_line(state, width), slice_line(state, width), cpu_line(state, width)]
    if height >= 30 and state.header is not None:
        lines.insert(
            1, [(units.fit(f"{state.header.source}: {units.clean_text(state.header.why)}", width), "quiet")]
        )
    if state.held is not None and state.newest is not None:
        from pmutop.tui.past import time_line

        lines.append(time_line(state, width))
    lines.append(finding_line(state, width))
    return lines


def tier_of(header: Header) -> str:
    """The best tier among the events that are counted."""
    tiers = {event.tier for event in header.events}
    return next((tier for tier in TIER_WORDS if tier in tiers), "software")


def machine_line(state: State, width: int) -> Line:
    header = state.header
    if header is None:
        return [("pmutop", "title")]
    machine = header.machine
    tier = tier_of(header)
    left = [("pmutop", "title"), (" ", ""), (units.clean_text(header.host), "strong")]
    facts = [
        units.clean_text(str(machine[name]))
        for name in ("model", "cpus", "kernel", "hypervisor")
        if machine.get(name)
    ]
    if machine.get("cpus"):
        facts[1 if machine.get("model") else 0] += " CPUs"
    tail = [
        (" tier ", ""),
        (tier, "good" if tier == "hardware" else "warn"),
        (f" via {header.source}", ""),
        (f" ({TIER_WORDS[tier]})", "quiet"),
    ]
    room = width - sum(units.width(text) for text, _ in left + tail) - 2
    text = "  " + "  ".join(facts)
    if room < 12:
        tail.pop()
        room = width - sum(units.width(text) for text, _ in left + tail) - 2
    return [*left, (units.fit(text, max(room, 0)), ""), *tail]


def slice_line(state: State, width: int) -> Line:
    """Slice, lateness, own cost, what was lost: the numbers that say how far to trust all others."""
    moment = state.moment
    if moment is None:
        return [("waiting for the first slice", "quiet")]
    m = moment.machine
    late = moment.late
    lost = m.get("lost") or 0
    spans: Line = [
        (units.clock(moment.time), "strong"),
        (f"  slice {moment.number} ", ""),
        (units.duration(moment.seconds), ""),
        (" late ", ""),
        (units.duration(late), "warn" if late > 0.1 else ""),
        (" lost ", ""),
        (units.count(lost), "bad" if lost else ""),
        ("  own ", ""),
        (f"{units.percent(m.get('own_cpu'))}% {units.size(m.get('own_rss'))}", "number"),
        (
            f"  {units.count(m['switches'] / moment.seconds)} switches/s"
            if "switches" in m and moment.seconds
            else "",
            "",
        ),
    ]
    if m.get("slow_down"):  # under the simulator, an estimate
        spans.append((f"  runs about {units.factor(m['slow_down'])} slower", "warn"))
    if m.get("why"):  # the reader sheds load
        spans.append((f"  {units.clean_text(m['why'])}", "warn"))
    if state.held is not None and state.newest is not None:
        behind = state.newest.time - moment.time
        spans.insert(0, (f" HELD -{units.duration(behind)} (l: live) ", "alert"))
    for text in (
        f"filter '{units.clean_text(state.filter)}'" if state.filter else "",
        f"user {state.user}" if state.user else "",
    ):
        if text:
            spans.append((f"  {units.clean_text(text)}", "message"))
    return spans


def cpu_line(state: State, width: int) -> Line:
    """Each CPU as a bar, many of them as a heat map by cache; pressure, and how many tasks there are."""
    moment = state.moment
    if moment is None:
        return []
    busy = [float(value) for value in moment.machine.get("cpu_busy") or ()]
    cells = max(min(len(busy), width // 3), 1)
    spans: Line = [("cpu ", "")]
    if len(busy) > MANY:
        from pmutop.tui.cores import strip

        groups = strip(moment, width - 90 if width > 130 else width // 3)
        spans, cells = spans + groups, 0 if groups else cells
    for cell in range(cells if busy else 0):
        group = busy[cell * len(busy) // cells : (cell + 1) * len(busy) // cells]
        mean = sum(group) / len(group)
        spans.append(
            (
                BARS[max(1, min(8, round(mean / 12.5)))],
                "bad" if mean > 95 else "warn" if mean > 80 else "good",
            )
        )
    if busy:
        spans.append((f" {sum(busy) / len(busy):.0f}%", ""))
    psi = moment.machine.get("psi") or {}
    if psi:
        spans.append(("  stalled:", ""))
        for name, short in (("cpu", "cpu"), ("io", "io"), ("memory", "mem")):
            if name in psi:
                value = float(psi[name])
                spans += [
                    (f" {short} ", ""),
                    (f"{value:.0f}%", "bad" if value >= 20 else "warn" if value >= 5 else ""),
                ]
    flagged = len(state.found)
    if flagged:
        spans += [("  ", ""), (f"{flagged} in trouble", "bad")]
    running = moment.state.count("R")
    spans.append((f"  {len(moment.tasks)} tasks, {running} running", ""))
    if (
        not state.kernel
        and (hidden := sum(task.kernel for task in moment.tasks) - len(state.kernel_busy)) > 0
    ):
        spans.append((f"  {hidden} kernel threads hidden (K)", "quiet"))
    return spans


def sentence(state: State, row: Row) -> str:
    """One finding in words: 'redis-server 1423: P_Mem_L3 87%, core x3.1, since 14:02:07, beside backup.sh 2210'."""
    task = row.task
    parts = []
    track = state.history.tracks.get(task.ref)
    label = state.label_of(row)
    if label is not None and label.is_pathology:
        parts.append(f"{units.clean_text(label.label)} {units.share(label.confidence)}")
    hurt = harms(row)
    if hurt:
        parts.append(
            "slowed at " + " and ".join(f"{name} {units.factor(factor)}".rstrip() for name, factor in hurt)
        )
    if state.held is None and track is not None and label is not None and label.is_pathology:
        parts.append(f"since {units.clock(track.since)}")
    antagonist = (
        row.moment.interference[row.index].antagonist if row.index in row.moment.interference else None
    )
    if antagonist is not None:
        parts.append(f"beside {units.clean_text(antagonist.comm)} {antagonist.pid}")
    return f"{units.clean_text(task.comm)} {task.pid}: {', '.join(parts)}"


def finding_line(state: State, width: int) -> Line:
    """One sentence, worst first, or that there is nothing to say."""
    if state.message:
        return [(units.fit(units.clean_text(state.message), width), "message")]
    if state.moment is None:
        return []
    found = state.found
    if found:
        place = min(state.finding, len(found) - 1)
        more = f" [n {place + 1}/{len(found)}]"
        return [(units.fit(sentence(state, found[place]), width - len(more)), "bad"), (more, "quiet")]
    shown = [label for index in state.moment.labels if (label := state.label_of(Row(state.moment, index)))]
    if not shown:
        return [
            (
                "no labels yet: a process must use a CPU, wait or block before anything can be said of it",
                "quiet",
            )
        ]
    unknown = sum(label.label == UNKNOWN for label in shown)
    text = f"no trouble found: {len(shown) - unknown} look healthy"
    return [(text + (f", {unknown} unknown" if unknown else ""), "good")]
