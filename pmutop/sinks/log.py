"""The headless log: JSON lines (a versioned contract) or CSV, the same for a live source and for its replay."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import BinaryIO

from pmutop.bundle import Bundle
from pmutop.moment import QUALITIES, RESOURCES, UNSEEN, Interference, Moment, Rank, Resource
from pmutop.selection import Selection
from pmutop.slices import Header

SCHEMA_VERSION = 1


def header_line(header: Header, bundles: list[Bundle], replayed: bool) -> dict:
    """The first line: who wrote this, what was counted, which models judged."""
    return {
        "pmutop": header.version,
        "schema": SCHEMA_VERSION,
        "host": header.host,
        "boot": header.boot,
        "machine": header.machine,
        "tiers": sorted({event.tier for event in header.events}),
        "source": header.source,
        "replayed": replayed,
        "events": [{"name": event.name, "unit": event.unit, "trust": event.trust} for event in header.events],
        "models": [bundle.name for bundle in bundles],
    }


def process_line(moment: Moment, row: int, names: list[str], per_thread: bool) -> dict:
    """One process in one slice, in the order of the contract."""
    task = moment.tasks[row]
    line = {
        "slice": moment.number,
        "time": round(moment.time, 3),
        "seconds": round(moment.seconds, 6),
        "late": round(moment.late, 6),
        "pid": task.pid,
    }
    if per_thread:
        line["tid"] = task.tid
    line |= {
        "ppid": task.ppid,
        "start": task.start,
        "comm": readable(task.comm),
        "user": task.user,
        "cgroup": readable(task.cgroup),
        "state": moment.state[row],
        "threads": int(moment.threads[row]),
        "exited": bool(moment.exited[row]),
        "cpu": number(moment.cpu[row], 2),
        "wait": number(moment.wait[row], 2),
        "ipc": number(moment.ipc[row], 4),
        "counts": dict(zip(names, map(count, moment.counts[row].tolist()), strict=True)),
        "quality": dict(zip(names, (QUALITIES[code] for code in moment.quality[row].tolist()), strict=True)),
        "labels": [label._asdict() for label in moment.labels.get(row, ())],
        "interference": interference(moment.interference.get(row)),
        "events": [
            {
                "name": reason.name,
                "share": number(reason.share, 4),
                "value": number(reason.value, 6),
                "normal": number(reason.normal, 6),
            }
            for reason in moment.reasons.get(row, ())
        ],
    }
    return line


def machine_line(moment: Moment) -> dict:
    facts = {
        "slice": moment.number,
        "late": round(moment.late, 6),
        "lost": 0,
        "own_cpu": None,
        "own_rss": None,
        "switches": None,
    }
    return {"machine": facts | moment.machine}


def rank_line(rank: Rank, per_thread: bool = False) -> dict:
    """A ranking of the worker: importance in percent of all events, errors as shares (equation 14)."""
    line = {"slice": rank.slice, "pid": rank.pid}
    if per_thread:
        line["tid"] = rank.tid
    return {
        "rank": line
        | {
            "comm": readable(rank.comm),
            "target": rank.target,
            "slices": rank.slices,
            "events": [{"name": name, "importance": number(share, 2)} for name, share in rank.events],
            "error": number(rank.error, 4),
            "median_error": number(rank.median_error, 4),
        }
    }


def interference(found: Interference | None) -> dict | None:
    if found is None:
        return None
    line: dict = {
        name: resource(getattr(found, name))
        for name in RESOURCES
        if name != "progress" or found.progress != UNSEEN  # only where --progress tells it
    }
    who = found.antagonist
    line["antagonist"] = who and {
        "pid": who.pid,
        "comm": readable(who.comm),
        "resource": who.resource,
        "score": number(who.score, 4),
    }
    return line


def resource(verdict: Resource) -> dict:
    return {
        "verdict": verdict.verdict,
        "factor": number(verdict.factor, 3),
        "margin": number(verdict.margin, 4),
    }


def number(value: float | None, digits: int) -> float | None:
    """A JSON number; what is not known is null, never 0."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def count(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else round(value, 3)


def readable(text: str) -> str:
    """Bytes that are no UTF-8 become U+FFFD: a lone surrogate would be JSON that strict readers refuse."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


class JsonLog:
    """Writes Moments as JSON lines to a binary stream, one write per slice."""

    def __init__(
        self, stream: BinaryIO, selection: Selection, per_thread: bool = False, active: bool = False
    ) -> None:
        self.stream = stream
        self.selection = selection
        self.per_thread = per_thread
        self.active = active

    def begin(self, header: Header, bundles: list[Bundle], replayed: bool) -> None:
        self.names = [event.name for event in header.events]
        self.write([header_line(header, bundles, replayed)])

    def moment(self, moment: Moment) -> None:
        rows = self.selection.rows(moment)
        if self.active:
            rows = [
                row for row in rows if moment.cpu[row] > 0 or moment.wait[row] > 0 or row in moment.labels
            ]
        self.write(
            [process_line(moment, row, self.names, self.per_thread) for row in rows]
            + self.rank_lines(moment.ranks)
            + [machine_line(moment)]
        )

    def rank_lines(self, ranks: Iterable[Rank]) -> list[dict]:
        return [rank_line(rank, self.per_thread) for rank in ranks if rank.events]

    def write(self, lines: list[dict]) -> None:
        self.stream.write(
            b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        )
        self.stream.flush()


class CsvLog(JsonLog):
    """The same as wide CSV: a row per process and slice, a column per event; an empty cell was not counted."""

    COLUMNS = ("slice", "time", "seconds", "late", "pid", "ppid", "start", "comm", "user", "cgroup", "state", "threads",
               "exited", "cpu", "wait", "ipc", "label", "confidence", "tier", "core_factor", "antagonist")  # fmt: skip

    def begin(self, header: Header, bundles: list[Bundle], replayed: bool) -> None:
        self.names = [event.name for event in header.events]
        extra = ("tid",) if self.per_thread else ()
        self.rows([(*extra, *self.COLUMNS, *self.names)])

    def moment(self, moment: Moment) -> None:
        self.rows([self.row(moment, row) for row in self.selection.rows(moment)])

    def row(self, moment: Moment, row: int) -> list:
        line = process_line(moment, row, self.names, self.per_thread)
        first = line["labels"][0] if line["labels"] else {}
        found = line["interference"] or {}
        flat = line | {
            "label": first.get("label"),
            "confidence": first.get("confidence"),
            "tier": first.get("tier"),
            "core_factor": (found.get("core") or {}).get("factor"),
            "antagonist": (found.get("antagonist") or {}).get("pid"),
        }
        extra = [line["tid"]] if self.per_thread else []
        return [*extra, *(flat[name] for name in self.COLUMNS), *line["counts"].values()]

    def rows(self, rows: list) -> None:
        import csv
        import io

        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.stream.write(text.getvalue().encode(errors="replace"))
        self.stream.flush()


#: --format: name -> how it is written
FORMATS: dict[str, Callable] = {"jsonl": JsonLog, "csv": CsvLog}
