"""Many runs in one SQLite file, in CounterMiner's two levels (section III-A): a catalogue, and a table of series per run.

First level: programs, events, runs (when, how long, in which mode, with which settings, and the name of the second-level
table). Second level: one table per run, a row per slice, a column per event. The file is in WAL mode and every `append`
is one transaction, so that kill -9 loses at most what was not yet appended; a run that was cut off stays `open` and can
be resumed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from pmutop.errors import BadInput, NoPermission, PmutopError, UsageError
from pmutop.wide import LARGEST, Table

#: Marks the file as ours, and the schema it holds (SQLite keeps both in its header).
APPLICATION = 0x706D7574
SCHEMA = 1
#: One counter one event, or multiplexed (section II-A).
MODES = ("OCOE", "MLPX")
#: SQLite takes 2000 columns, and an event has two: its count and the share of the slice it was on a counter.
MOST_EVENTS = 990

#: Words of SQLite's operational errors that are not the file's fault.
REASONS = {
    "unable to open": NoPermission,
    "readonly": NoPermission,
    "full": PmutopError,
    "locked": PmutopError,
}

CATALOGUE = """
create table programs (id integer primary key, name text not null unique);
create table events (id integer primary key, name text not null unique);
create table runs (
    id integer primary key, program integer not null references programs, host text not null, mode text not null,
    began real not null, seconds real, interval real, settings text not null, series text not null,
    state text not null check (state in ('open', 'done')));
create table run_events (run integer not null references runs, position integer not null,
    event integer not null references events, primary key (run, position)) without rowid;
"""


@dataclass(frozen=True)
class Run:
    """One row of the catalogue; `settings` are the --param values, `seconds` None while it is open."""

    id: int
    program: str
    host: str
    mode: str
    began: float
    seconds: float | None
    interval: float | None
    settings: dict[str, str]
    state: str
    events: tuple[str, ...]
    slices: int


class Store:
    """A store of runs at `path`, made if it is not there; a context manager.

    BadInput where the file is no SQLite database, is damaged, belongs to another program or has another schema version.
    """

    def __init__(self, path: str | os.PathLike, create: bool = True) -> None:
        self.path = str(path)
        if not create and not Path(path).exists():
            raise BadInput(f"{path}: no such store")
        with self.guard():
            self.database = sqlite3.connect(self.path, isolation_level=None)
            try:
                self.check()
            except BaseException:
                self.database.close()
                raise

    def check(self) -> None:
        """Make the catalogue in an empty file; refuse whatever is not ours."""
        if self.is_new():
            self.tune()
            with self.transaction():
                if self.is_new():  # nobody else has made it meanwhile
                    for statement in CATALOGUE.strip().split(";\n"):
                        self.database.execute(statement)
                    self.database.execute(f"pragma application_id = {APPLICATION}")
                    self.database.execute(f"pragma user_version = {SCHEMA}")
        if self.one("pragma application_id") != APPLICATION:
            raise BadInput(f"{self.path}: an SQLite file, but no store of pmutop")
        version = self.one("pragma user_version")
        if version != SCHEMA:
            raise BadInput(f"{self.path}: schema version {version}, this pmutop reads {SCHEMA}")
        self.tune()

    def is_new(self) -> bool:
        return not any(
            self.one(what)
            for what in ("select count(*) from sqlite_master", "pragma application_id", "pragma user_version")
        )

    def tune(self) -> None:
        """A write-ahead log that is not synced at each slice: kill -9 loses nothing, only a power cut the last moments."""
        self.database.execute("pragma journal_mode = wal")
        self.database.execute("pragma synchronous = normal")

    def begin_run(
        self, program, events, mode="OCOE", interval=None, settings=None, host="", began=None
    ) -> int:
        """Begin a run and return its number; `settings` maps the names of --param to their values."""
        events = tuple(events)
        if mode not in MODES:
            raise UsageError(f"mode {mode} is neither {' nor '.join(MODES)}")
        if not events or len(events) > MOST_EVENTS or len(set(events)) != len(events):
            raise BadInput(f"{self.path}: a run has 1 to {MOST_EVENTS} events, each once; not {len(events)}")
        words = json.dumps({str(key): str(value) for key, value in (settings or {}).items()}, sort_keys=True)
        with self.guard(), self.transaction():
            for table, names in (("programs", (program,)), ("events", events)):
                self.database.executemany(
                    f"insert or ignore into {table} (name) values (?)", [(n,) for n in names]
                )
            run = self.one("select coalesce(max(id), 0) + 1 from runs")
            self.database.execute(
                "insert into runs select ?, id, ?, ?, ?, null, ?, ?, ?, 'open' from programs where name = ?",
                (
                    run,
                    host,
                    mode,
                    time.time() if began is None else began,
                    interval,
                    words,
                    f"series_{run}",
                    program,
                ),
            )
            self.database.executemany(
                "insert into run_events select ?, ?, id from events where name = ?",
                [(run, at, name) for at, name in enumerate(events)],
            )
            columns = ", ".join(f"c{at} real, s{at} real" for at in range(len(events)))
            self.database.execute(
                f"create table series_{run} (slice integer primary key, time real, task text, {columns})"
            )
        return run

    def open_run(self, program, events, settings=None) -> int | None:
        """The last run of `program` with these events and settings that was cut off, to be gone on with; None if none was."""
        wanted = {str(key): str(value) for key, value in (settings or {}).items()}
        alike = [
            run.id
            for run in self.runs(program)
            if run.state == "open" and run.events == tuple(events) and run.settings == wanted
        ]
        return alike[-1] if alike else None

    def append(self, run: int, times, values, running=None, tasks=None) -> None:
        """Append slices to an open run in one transaction: `times` (rows,), `values` and `running` (rows, events).

        NaN = not counted. BadInput for a negative or an infinite count, and for one above 2^63.
        """
        values = np.atleast_2d(np.asarray(values, float))
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~np.isnan(values) & ~((values >= 0) & (values < LARGEST)))
        if len(wrong):
            row, column = wrong[0]
            raise BadInput(
                f"{self.path}: run {run}, row {row} of {len(values)}, event {column}: {values[row, column]}"
            )
        shares = (
            np.full(values.shape, np.nan) if running is None else np.atleast_2d(np.asarray(running, float))
        )
        cells = np.stack([values, shares], axis=2).reshape(len(values), -1).tolist()
        tasks = [None] * len(values) if tasks is None else [str(task) for task in tasks]
        rows = [
            (float(when), task, *(None if cell != cell else cell for cell in row))  # noqa: PLR0124 (NaN)
            for when, task, row in zip(np.atleast_1d(times), tasks, cells, strict=True)
        ]
        marks = ", ".join("?" * (2 + 2 * values.shape[1]))
        with self.guard(), self.transaction():
            if self.one("select state from runs where id = ?", run) != "open":
                raise UsageError(f"{self.path}: run {run} is not open")
            self.database.executemany(f"insert into series_{run} values (null, {marks})", rows)

    def finish(self, run: int, seconds: float | None = None) -> None:
        """Close a run; its execution time is `seconds`, or what lies between its first and last slice.

        Where it is known how long each event was on a counter, that decides what the mode has been.
        """
        table = self.table(run)
        mode = None if table.running is None else "MLPX" if table.shared() else "OCOE"
        with self.guard(), self.transaction():
            if seconds is None:
                seconds = self.one(f"select max(time) - min(time) from series_{int(run)}")
            self.database.execute(
                "update runs set state = 'done', seconds = ?, mode = coalesce(?, mode) where id = ?",
                (seconds, mode, run),
            )

    def runs(self, program: str | None = None) -> list[Run]:
        """The catalogue, in the order in which the runs began; those that were cut off have state "open"."""
        with self.guard():
            rows = self.database.execute(
                "select runs.id, programs.name, host, mode, began, seconds, interval, settings, state from runs "
                "join programs on programs.id = program where ?1 is null or programs.name = ?1 order by runs.id",
                (program,),
            ).fetchall()
            return [
                Run(*row[:7], json.loads(row[7]), row[8], self.events_of(row[0]),
                    self.one(f"select count(*) from series_{row[0]}"))
                for row in rows
            ]  # fmt: skip

    def table(self, run: int) -> Table:
        """One run as a wide table: `run` its number, `label` its program, `type` the task where one was given."""
        with self.guard():
            found = self.database.execute(
                "select programs.name, settings from runs join programs on programs.id = program where runs.id = ?",
                (run,),
            ).fetchone()
            if found is None:
                raise BadInput(f"{self.path}: no run {run}", "pmutop import --list shows the runs")
            events = self.events_of(run)
            rows = self.database.execute(f"select * from series_{int(run)} order by slice").fetchall()
        cells = np.array([row[3:] for row in rows], float).reshape(len(rows), len(events), 2)
        tasks = [row[2] for row in rows]
        return Table(
            events,
            cells[:, :, 0],
            time=np.array([row[1] for row in rows], float),
            label=np.array([found[0]] * len(rows)),
            run=np.array([str(run)] * len(rows)),
            type=None if None in tasks else np.array(tasks),
            running=None if np.isnan(cells[:, :, 1]).all() else cells[:, :, 1],
            source=f"{self.path}, run {run}",
            settings=json.loads(found[1]),
        )

    def events_of(self, run: int) -> tuple[str, ...]:
        """The events of a run in the order of its columns."""
        rows = self.database.execute(
            "select name from run_events join events on events.id = event where run = ? order by position",
            (run,),
        )
        return tuple(name for (name,) in rows)

    def one(self, statement: str, *values):
        return self.database.execute(statement, values).fetchone()[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside, or nothing."""
        self.database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self.database.execute("rollback")
            raise
        self.database.execute("commit")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """SQLite's errors in our family, with the file's name."""
        try:
            yield
        except sqlite3.OperationalError as error:
            kind = next((kind for word, kind in REASONS.items() if word in str(error)), BadInput)
            raise kind(f"{self.path}: {error}") from error
        except (sqlite3.DatabaseError, TypeError) as error:
            raise BadInput(f"{self.path}: {error}", "the file is damaged or no store") from error

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """The --param options, NAME=VALUE each, as a mapping; UsageError for anything else."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--param {text} is not NAME=VALUE")
        settings[name] = value
    return settings


def is_store(path: str | os.PathLike) -> bool:
    """Whether `path` begins like an SQLite file."""
    try:
        with open(path, "rb") as stream:
            return stream.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def tables_of(path: str | os.PathLike, program: str | None = None) -> Iterable[Table]:
    """All runs of a store as tables, those without slices left out; BadInput where there is none."""
    with Store(path, create=False) as store:
        tables = [store.table(run.id) for run in store.runs(program) if run.slices]
    if not tables:
        raise BadInput(f"{path}: a store without a run{f' of {program}' if program else ''}")
    return tables
