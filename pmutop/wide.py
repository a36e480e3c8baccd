"""Wide CSV, the noun of the analysis commands: one row per slice (or task), one column per event.

Beside the event columns stand up to five optional ones: `time`, `run`, `type`, `path`, `label`. An empty cell
was not counted; it is NaN here and never a 0. Output of `perf stat -I -x,` and `perf stat -I -j` is read into
the same noun.
"""

from __future__ import annotations

import csv
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from pmutop.errors import BadInput, NoPermission

#: The optional columns in the order in which they are written; every other column is an event.
OPTIONAL = ("time", "run", "type", "path", "label")
#: Why a value is NaN, as `Table.marks` says it.
COUNTED, NOT_COUNTED, NOT_SUPPORTED = 0, 1, 2
#: A counter is 64 bits wide and the kernel hands it out as such; beyond 2^63 something was subtracted the
#: wrong way round.
LARGEST = 2.0**63
#: A group that is opened or read a moment beside the others is not multiplexed for it.
ALWAYS = 0.95
#: What is taken from a folder; a file that is named itself is read whatever its name.
SUFFIXES = {".csv", ".txt", ".json", ".jsonl", ".perf", ".stat"}


@dataclass(frozen=True, eq=False)
class Table:
    """Counted values of one file or run.

    `values` is float64 (rows, events), NaN = not counted. `label`, `run`, `type`, `path` are arrays of str and `time`
    of float64 seconds, each (rows,) or None where the file has no such column. `marks` uint8 (rows, events)
    tells NOT_COUNTED from NOT_SUPPORTED, and `running` float64 (rows, events) is the share of the slice in
    which the event was on a counter; both are None where the file does not say. `problems` are the malformed
    lines (number, what), `settings` the --param values of the run.
    """

    events: tuple[str, ...]
    values: np.ndarray
    label: np.ndarray | None = None
    run: np.ndarray | None = None
    time: np.ndarray | None = None
    type: np.ndarray | None = None
    path: np.ndarray | None = None
    source: str = ""
    marks: np.ndarray | None = None
    running: np.ndarray | None = None
    problems: tuple[tuple[int, str], ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, event: str) -> np.ndarray:
        """The values (rows,) of one event; BadInput where the table has no such event."""
        if event not in self.events:
            raise BadInput(f"{self.source or 'table'}: no event {event}", f"it has {', '.join(self.events)}")
        return self.values[:, self.events.index(event)]

    def shared(self) -> list[str]:
        """The events that had to share a counter: on one for less than ALWAYS of the slice, in most slices."""
        if self.running is None:
            return []
        known = ~np.isnan(self.running).all(axis=0)
        return [
            name
            for at, name in enumerate(self.events)
            if known[at] and np.nanmedian(self.running[:, at]) < ALWAYS
        ]

    def rows(self, chosen) -> Table:
        """The same table with only the `chosen` rows (mask, indices or slice)."""
        per_row = (*OPTIONAL, "values", "marks", "running")
        kept = {name: getattr(self, name)[chosen] for name in per_row if getattr(self, name) is not None}
        return replace(self, **kept)

    def only(self, events: Iterable[str]) -> Table:
        """The same table with only these event columns, in this order."""
        names = tuple(events)
        for name in names:
            self.column(name)
        at = [self.events.index(name) for name in names]
        per_event = ("values", "marks", "running")
        kept = {name: getattr(self, name)[:, at] for name in per_event if getattr(self, name) is not None}
        return replace(self, events=names, **kept)


def read_tables(paths: Iterable[str | os.PathLike]) -> list[Table]:
    """One table per file, folders recursively and in the order of names; the kind of a file is told by its
    content."""
    tables = [read_table(path) for given in paths for path in files_in(Path(given))]
    if not tables:
        raise BadInput("nothing to read", "name a wide CSV, a perf stat -I output or a folder of them")
    return tables


def read_table(path: str | os.PathLike) -> Table:
    """The table of one file: wide CSV, `perf stat -I -x,` or `perf stat -I -j`."""
    lines = lines_of(path)
    from pmutop.perfstat import FORMATS  # it makes Tables of this file

    for pattern, reader in FORMATS:
        head = [line for line in lines[:60] if line.strip() and not line.startswith("#")]
        if head and 2 * sum(bool(pattern.match(line)) for line in head) >= len(head):
            return reader(lines, str(path))
    return parse_wide(lines, str(path))


def read_wide(path: str | os.PathLike) -> Table:
    """The table of a wide CSV file; BadInput names the file and the line of whatever is wrong with it."""
    return parse_wide(lines_of(path), str(path))


def write_wide(table: Table, stream: IO[str]) -> None:
    """Write `table` as wide CSV; a whole number without a decimal point, a missing one as an empty cell."""
    columns = [name for name in OPTIONAL if getattr(table, name) is not None]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*columns, *table.events])
    for index, row in enumerate(table.values.tolist()):
        beside = [getattr(table, name)[index] for name in columns]
        writer.writerow([*(number(x) if isinstance(x, float) else x for x in beside), *map(number, row)])


@contextmanager
def write_atomically(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Open `path` for writing so that it appears whole or not at all (a file beside it, renamed at the end).

    What is not an ordinary file (a pipe, /dev/stdout) is written to directly: renaming would replace the
    device.
    """
    target = Path(os.path.realpath(path))
    binary = "b" in mode
    text = {} if binary else {"encoding": "utf-8", "newline": ""}
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        with open(target, mode, **text) as stream:
            yield stream
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise NoPermission(f"{path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


# ---- wide CSV ----


def parse_wide(lines: list[str], source: str) -> Table:
    """The table in the `lines` of a wide CSV."""
    if not any(line.strip() for line in lines):
        raise BadInput(f"{source}: empty file")
    reader = csv.reader(lines, strict=True)
    rows, numbers = [], []
    try:
        header = [name.strip() for name in next(reader)]
        check_header(header, source)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise BadInput(f"{source}:{reader.line_num}: {len(cells)} cells under {len(header)} columns")
            rows.append(cells)
            numbers.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{source}:{reader.line_num}: {error}") from error
    if not rows:
        raise BadInput(f"{source}: a header and no rows")
    events = [name for name in header if name not in OPTIONAL]
    values = np.empty((len(rows), len(events)))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    for at, name in enumerate(events):
        values[:, at] = counts_of(columns[name], name, numbers, source)
    beside = {name: np.array(columns[name]) for name in OPTIONAL if name in columns}
    if "time" in columns:
        beside["time"] = counts_of(columns["time"], "time", numbers, source)
    return Table(tuple(events), values, source=source, **beside)


def check_header(header: list[str], source: str) -> None:
    """BadInput unless `header` names every column once and at least one event."""
    for at, name in enumerate(header, 1):
        if not name:
            raise BadInput(f"{source}:1: column {at} has no name")
        if is_number(name):
            raise BadInput(
                f"{source}:1: {name} where a column name should stand", "the first line names the events"
            )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadInput(f"{source}:1: column {twice[0]} twice")
    if not set(header) - set(OPTIONAL):
        raise BadInput(f"{source}:1: no event column beside {', '.join(header)}")


def counts_of(cells: Iterable[str], name: str, numbers: list[int], source: str) -> np.ndarray:
    """The cells of one column as float64 (rows,), empty = NaN; BadInput at the first that no counter can have said."""
    try:
        column = np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        column = None
    written = np.array([bool(cell.strip()) for cell in cells])
    if column is not None and not np.any(written & ~((column >= 0) & (column < LARGEST))):
        return column
    for line, cell in zip(numbers, cells, strict=True):
        if cell.strip():
            count_of(cell, f"{source}:{line}: {name}")
    raise AssertionError("a bad column without a bad cell")


def count_of(cell: str, where: str) -> float:
    """The number in `cell`; BadInput, prefixed by `where`, unless it is finite, not negative and below
    2^63."""
    if not is_number(cell):
        raise BadInput(f"{where}: {cell.strip()!r} is not a number")
    value = float(cell)
    if not np.isfinite(value):
        raise BadInput(f"{where}: {cell.strip()}", "leave the cell empty where nothing was counted")
    if value < 0:
        raise BadInput(f"{where}: negative count {cell.strip()}")
    if value >= LARGEST:
        raise BadInput(f"{where}: {cell.strip()} is above 2^63")
    return value


# ---- files and numbers ----


def files_in(path: Path) -> list[Path]:
    """`path` itself, or the tables in the folder `path` in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(
        p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file() and not p.name.startswith(".")
    )
    if not found:
        raise BadInput(f"{path}: no table in this folder", f"taken are {' '.join(sorted(SUFFIXES))}")
    return found


def lines_of(path: str | os.PathLike) -> list[str]:
    """The lines of a text file, without their ends."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no such file") from error
    except PermissionError as error:
        raise NoPermission(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}:{line}: not text") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"{path}:{line}: not text")
    return text.replace("\r\n", "\n").split("\n")


def is_number(text: str) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def number(value: float) -> str:
    """`value` as text that reads back as the same float; NaN as nothing."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 2**63 else repr(float(value))


def umask() -> int:
    """The process's file mode mask (reading it means setting it)."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
