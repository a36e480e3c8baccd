"""The output of `perf stat -I MS -x,` and `perf stat -I MS -j` as wide tables; malformed lines are kept by number."""

from __future__ import annotations

import json
import re

import numpy as np

from pmutop.errors import BadInput
from pmutop.wide import COUNTED, LARGEST, NOT_COUNTED, NOT_SUPPORTED, Table, is_number

#: perf's own words for the two kinds of missing value.
PERF_WORDS = {"<not counted>": NOT_COUNTED, "<not supported>": NOT_SUPPORTED}

# time,[cpu,]value,unit,event,run time,percent[,metric,unit]. The event is told by what follows it, for a raw
# event has commas in its own name (cpu/event=0x3c,umask=1/) and perf does not quote them.
PERF_CSV = re.compile(
    r"^\s*(?P<time>\d+\.\d+),(?:(?P<who>(?:CPU|S\d|D\d|N\d|C\d)[^,]*),(?:\d+,)?)?"
    r"(?P<value><not counted>|<not supported>|\d+(?:\.\d+)?),(?P<unit>[^,\d]*),"
    r"(?P<event>[A-Za-z_].*?),(?P<ran>\d+),(?P<percent>\d+(?:\.\d+)?)(?:,.*)?$"
)
# A line that carries only one more derived metric of the line before it.
PERF_METRIC_ONLY = re.compile(r"^\s*\d+\.\d+,(?:(?:CPU|S\d|D\d|N\d|C\d)[^,]*,(?:\d+,)?)?,,,,,")
PERF_WHO = ("cpu", "socket", "die", "core", "node")
PERF_JSON = re.compile(r'^\s*\{.*"(?:event|metric-value|interval)"')


def read_perf_csv(lines: list[str], source: str) -> Table:
    """The table in the `lines` of `perf stat -I MS -x,`."""
    counts, problems = [], []
    for line_number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#") or PERF_METRIC_ONLY.match(line):
            continue
        found = PERF_CSV.match(line)
        if found:
            time, who, event, value, percent = found.group("time", "who", "event", "value", "percent")
            counts.append((line_number, float(time), who, event, value, percent))
        else:
            problems.append((line_number, f"not a line of perf stat -I -x,: {line.strip()[:60]!r}"))
    return table_of_counts(counts, problems, source)


def read_perf_json(lines: list[str], source: str) -> Table:
    """The table in the `lines` of `perf stat -I MS -j`."""
    counts, problems = [], []
    for line_number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            said = json.loads(line)
            if "event" not in said and "metric-value" in said:
                continue
            who = next((str(said[key]) for key in PERF_WHO if key in said), None)
            time, value = float(said["interval"]), str(said["counter-value"]).strip()
            counts.append((line_number, time, who, said["event"], value, said.get("pcnt-running", 100.0)))
        except (ValueError, KeyError, TypeError) as error:
            problems.append((line_number, f"not a line of perf stat -I -j: {type(error).__name__} {error}"))
    return table_of_counts(counts, problems, source)


def table_of_counts(counts: list[tuple], problems: list[tuple[int, str]], source: str) -> Table:
    """One row per interval from (line, time, who, event, value, percent); what several CPUs counted is
    summed.

    An interval in which one CPU did not count has no sum: it is NaN like any other value that was not
    counted.
    """
    events = tuple(dict.fromkeys(event for _, _, _, event, _, _ in counts))
    times = list(dict.fromkeys(time for _, time, _, _, _, _ in counts))
    row_of, column_of = ({key: at for at, key in enumerate(keys)} for keys in (times, events))
    values = np.zeros((len(times), len(events)))
    marks = np.full(values.shape, NOT_COUNTED, np.uint8)
    running = np.zeros(values.shape)
    seen: dict[tuple, int] = {}
    for line_number, time, who, event, written, percent in counts:
        at = row_of[time], column_of[event]
        first = seen.setdefault((time, who, event), line_number)
        if first != line_number:
            problems.append(
                (line_number, f"{event} a second time in interval {time} (first on line {first})")
            )
            continue
        alone = values[at] == 0 and running[at] == 0 and marks[at] == NOT_COUNTED
        if written in PERF_WORDS:
            values[at], marks[at], running[at] = np.nan, PERF_WORDS[written], float(percent) / 100
        elif is_number(written) and 0 <= float(written) < LARGEST:
            values[at] += float(written)
            marks[at] = COUNTED if not np.isnan(values[at]) else marks[at]
            share = min(float(percent) / 100, 1.0)
            running[at] = share if alone else min(running[at], share)
        else:
            problems.append((line_number, f"{event}: {written!r} is no count"))
    if not np.any(marks == COUNTED):
        raise BadInput(f"{source}: no counted value in this perf stat output", problem_hint(problems))
    values[marks != COUNTED] = np.nan
    beside = {
        "time": np.array(times),
        "marks": marks,
        "running": running,
        "problems": tuple(sorted(problems)),
    }
    return Table(events, values, source=source, **beside)


def problem_hint(problems: list[tuple[int, str]]) -> str:
    return f"line {problems[0][0]}: {problems[0][1]}" if problems else "every event says <not counted>"


#: How a line of each format looks, and who reads a file of them.
FORMATS = ((PERF_JSON, read_perf_json), (PERF_CSV, read_perf_csv))
