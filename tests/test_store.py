"""The store: two levels, whole after kill -9, and a clear refusal of what is not one."""

import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from pmutop.errors import BadInput, UsageError
from pmutop.store import Store, is_store, tables_of

EVENTS = ("cycles", "instructions", 'odd name, with "quotes"\'')


def test_what_goes_in_comes_out(tmp_path):
    values = np.array([[1, 2, np.nan], [0, 2**53, 7.25]])
    with Store(tmp_path / "s.db") as store:
        run = store.begin_run("gzip", EVENTS, "MLPX", 0.4, {"level": 9, "buffer": "64k"}, "host1", began=5.0)
        store.append(run, [5.4, 5.8], values, running=[[1, 0.5, 0], [1, 1, 1]])
        assert [r.state for r in store.runs()] == ["open"]
        store.finish(run)
        found = store.runs()[0]
        assert (found.program, found.mode, found.settings) == (
            "gzip",
            "MLPX",
            {"level": "9", "buffer": "64k"},
        )
        assert found.seconds == pytest.approx(0.4) and found.slices == 2 and found.events == EVENTS
        table = store.table(run)
    assert np.array_equal(table.values, values, equal_nan=True) and table.running[0, 1] == 0.5
    assert table.label.tolist() == ["gzip", "gzip"] and is_store(tmp_path / "s.db")


def test_the_two_levels_are_plain_sql(tmp_path):
    with Store(tmp_path / "s.db") as store:
        run = store.begin_run("a", EVENTS)
        store.append(run, 1.0, [1, 2, 3])
    database = sqlite3.connect(tmp_path / "s.db")
    (series,) = database.execute("select series from runs").fetchone()
    assert database.execute(f"select c0, c1, c2 from {series}").fetchall() == [(1, 2, 3)]
    assert database.execute("pragma journal_mode").fetchone() == ("wal",)


def test_kill_9_loses_nothing_that_was_appended_and_the_run_goes_on(tmp_path):
    program = (
        "import sys; from pmutop.store import Store; s = Store(sys.argv[1]); r = s.begin_run('p', ['e'])\n"
        "for at in range(10**9):\n    s.append(r, at, [at]); print(at, flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "s.db")], stdout=subprocess.PIPE, text=True
    )
    said = [int(writer.stdout.readline()) for _ in range(50)]
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Store(tmp_path / "s.db") as store:
        values = store.table(1).values[:, 0]
        assert len(values) > said[-1] and values.tolist() == list(range(len(values)))
        store.append(1, 99.0, [99])
        store.finish(1)
        assert store.table(1).values[-1, 0] == 99
        with pytest.raises(UsageError, match="not open"):
            store.append(1, 100.0, [1])


@pytest.mark.parametrize("bad", [-1, np.inf, 2.0**63])
def test_impossible_counts_are_refused_and_nothing_is_written(tmp_path, bad):
    with Store(tmp_path / "s.db") as store:
        run = store.begin_run("p", ["a", "b"])
        with pytest.raises(BadInput, match="row 1 of 2, event 1"):
            store.append(run, [0, 1], [[1, 2], [3, bad]])
        assert store.runs()[0].slices == 0


def test_other_versions_other_programs_and_half_files(tmp_path):
    path = tmp_path / "s.db"
    with Store(path) as store:
        for _ in range(40):
            store.append(store.begin_run("p", EVENTS), 0.0, [1, 2, 3])
    whole = path.read_bytes()
    sqlite3.connect(path).execute("pragma user_version = 9").connection.commit()
    with pytest.raises(BadInput, match="schema version 9"):
        Store(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"s\.db: "):
        list(tables_of(path))
    text = tmp_path / "text.db"
    text.write_bytes(b"not a database at all" * 100)
    with pytest.raises(BadInput, match="not a database"):
        Store(text)
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("create table t (x)")
    with pytest.raises(BadInput, match="no store of pmutop"):
        Store(other)
    with pytest.raises(BadInput, match="no such store"):
        Store(tmp_path / "none.db", create=False)
