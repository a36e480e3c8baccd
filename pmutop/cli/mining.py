"""What `clean`, `rank` and `import` share: where their tables come from, and where their models run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pmutop import store
from pmutop.cli import say
from pmutop.errors import BadInput, UsageError
from pmutop.wide import SUFFIXES, read_tables

#: Malformed lines of perf stat output that are named one by one before they are only counted.
NAMED = 5


def add_tables(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    parser.add_argument(
        "tables", nargs=nargs, metavar="FILE",
        help="wide CSV, perf stat -I -x, or -j output, a store of runs, or a folder of them",
    )  # fmt: skip


def add_spread(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", default="loky", help="joblib's: loky, threading, dask (default %(default)s)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a running Dask cluster; implies --backend dask"
    )
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="at once (default: as many as there are cores)"
    )


def read(paths) -> list:
    """All tables of the given files, recordings, stores, and folders of such; malformed lines are named on stderr."""
    tables = []
    for path in paths:
        files = sorted(p for p in Path(path).rglob("*") if p.is_file()) if Path(path).is_dir() else [path]
        inside = [(reader, file) for file in files if (reader := special(file))]
        for reader, file in inside:
            found = reader(file)
            if not found:
                raise BadInput(f"{file}: no process in it moved in enough slices")
            tables += found
        if Path(path).is_dir() and inside and not any(Path(file).suffix in SUFFIXES for file in files):
            continue
        if Path(path).is_dir() or not inside:
            tables += read_tables([path])
    for table in tables:
        for number, what in table.problems[:NAMED]:
            say(f"pmutop: {table.source}:{number}: left out: {what}")
        if len(table.problems) > NAMED:
            say(f"pmutop: {table.source}: {len(table.problems) - NAMED} more malformed lines left out")
    return tables


def special(path):
    """Who reads a file that is no text: a store or a recording; None for any other."""
    from pmutop.pipeline import series

    if store.is_store(path):
        return store.tables_of
    return series.tables_of if series.is_recording(path) else None


def same_events(tables) -> tuple[str, ...]:
    """The events that all tables share; BadInput naming the first table that has others."""
    events = tables[0].events
    for table in tables[1:]:
        if set(table.events) != set(events):
            odd = min(set(table.events) ^ set(events))
            raise BadInput(f"{table.source}: mixed event sets: {odd} is not in both this and {tables[0].source}",
                           "pmutop combine makes one table of runs that counted different events")  # fmt: skip
    return events


def cleaned(table, donors=(), method="robust", zeros="auto", width=None):
    """A table through the cleaner: (values, Cleaned). Zeros are believed where the file has running times."""
    from pmutop.analysis import cleaning, physics

    counted = {"auto": table.running is not None, "counted": True, "missing": False}[zeros]
    values = [donor.only(table.events).values for donor in donors]
    return cleaning.clean(table.values, table.events, values, method, counted, width or physics.WIDTH)


@contextmanager
def spread(options) -> Iterator[None]:
    """Run joblib's work inside as --backend, --scheduler and --jobs say."""
    from joblib import parallel_config

    if options.scheduler or options.backend == "dask":
        if not options.scheduler:
            raise UsageError("--backend dask needs a cluster", "--scheduler tcp://HOST:8786")
        try:
            from distributed import Client
        except ImportError:
            raise UsageError("Dask is not installed", "pip install 'pmutop[cluster]'") from None
        try:
            client = Client(options.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise UsageError(f"no Dask scheduler at {options.scheduler}: {error}") from error
        with client, parallel_config(backend="dask", n_jobs=options.jobs):
            yield
        return
    try:
        config = parallel_config(backend=options.backend, n_jobs=options.jobs)
    except ValueError as error:
        raise UsageError(f"joblib knows no backend {options.backend}", "loky, threading or dask") from error
    with config:
        yield
