"""Runs into a store: what a command and its children counted, slice by slice, whole after kill -9, and gone on with."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from making import EVENTS, born, header, proc, raw, task

from pmutop.cli import main
from pmutop.pipeline.series import tables_of
from pmutop.recording import Recorder
from pmutop.selection import Selection
from pmutop.sinks.runs import Runs
from pmutop.slices import Exited
from pmutop.store import Store

RUN = [event.name for event in EVENTS].index("run-time")
CLOCK = [event.name for event in EVENTS].index("task-clock")


def family():
    """A stranger (1), a command (2) from slice 1 on, its child (3) from slice 2 on, which outlives it."""
    child = task(3, ppid=1002, comm="child")
    orphan = child._replace(ppid=1)
    return [
        raw(0, {1: (proc(run_time=50), "R")}, born(task(1))),
        raw(1, {1: (proc(run_time=90), "R"), 2: (proc(run_time=7), "R")}, born(task(2, comm="cmd"))),
        raw(2, {2: (proc(run_time=9), "S"), 3: (proc(run_time=100), "R")}, born(child)),
        raw(3, {1: (proc(run_time=95), "R"), 3: (proc(run_time=130), "R")}),
        raw(4, {2: (proc(run_time=10), "R"), 3: (proc(run_time=131), "R")}, [Exited(2), *born(orphan)]),
        raw(5, {3: (proc(run_time=140), "R")}),
    ]


def stored(path, slices, chosen, **options):
    with Store(path) as store:
        runs = Runs(store, header(), chosen, **options)
        for one in slices:
            runs.write(one)
        runs.close()
        return [(run, store.table(run.id)) for run in store.runs()]


def test_a_command_and_its_children_are_one_run(tmp_path):
    ((run, table),) = stored(
        tmp_path / "s.db", family(), Selection(root=1002), program="make", settings={"jobs": "2"}
    )
    assert table.values[:, RUN].tolist() == [7, 102, 30, 2, 9], "the stranger is not in it"
    assert (run.program, run.state, run.settings, run.host) == ("make", "done", {"jobs": "2"}, "testhost")
    assert np.isnan(table.values[:, CLOCK]).all(), "not counted is no 0"
    assert table.time.tolist() == [pytest.approx(1700000000 + n * 0.4) for n in range(1, 6)]


def test_named_processes_are_a_run_each_and_end_when_they_exit(tmp_path):
    runs = stored(tmp_path / "s.db", family(), Selection(frozenset({1001, 1002})))
    assert [(run.program, run.state, table.values[:, RUN].tolist()) for run, table in runs] == [
        ("work", "done", [40, 5]),
        ("cmd", "done", [7, 2, 1]),
    ]


def test_the_same_numbers_as_from_a_recording(tmp_path):
    recorder = Recorder(str(tmp_path / "r.pmu"), header())
    for one in family():
        recorder.write(one)
    recorder.close()
    ((_, table),) = stored(tmp_path / "s.db", family(), Selection(frozenset({1003})))
    found = next(t for t in tables_of(tmp_path / "r.pmu", least=1) if t.label[0] == "child")
    assert np.array_equal(found.values, table.values, equal_nan=True)


@pytest.mark.parametrize(("running", "mode"), [(1.0, "OCOE"), (0.5, "MLPX")])
def test_the_mode_is_what_was_measured(tmp_path, running, mode):
    slices = [raw(0, {})]
    for number in range(1, 5):
        end = int((number + 1) * 4e8)
        cells = proc(run_time=number) | {"task-clock": (number * 100, end, int(end * running))}
        slices.append(raw(number, {1: (cells, "R")}, born(task(1)) if number == 1 else ()))
    ((run, table),) = stored(tmp_path / "s.db", slices, Selection(frozenset({1001})))
    assert run.mode == mode and table.running[2, CLOCK] == pytest.approx(running)
    assert table.values[2, CLOCK] == pytest.approx(100 / running)


def test_a_run_that_was_cut_off_is_gone_on_with(tmp_path):
    path = tmp_path / "s.db"
    everybody = {1: (proc(run_time=95), "R"), 2: (proc(run_time=9), "S"), 3: (proc(run_time=130), "R")}
    again = raw(0, everybody, born(task(1), task(2, comm="cmd"), task(3, ppid=1002, comm="child")))
    for part, slices in enumerate((family()[:4], [again, *family()[4:]])):
        with Store(path) as store:
            runs = Runs(store, header(), Selection(root=1002), "make", {"jobs": "2"}, resume=True)
            for one in slices:
                runs.write(one)
            if part:
                runs.close()
                assert runs.went_on == {1}
    with Store(path) as store:
        (run,) = store.runs()
        assert run.state == "done" and run.slices == 5
    other = stored(path, family(), Selection(root=1002), program="make", settings={"jobs": "3"}, resume=True)
    assert [run.id for run, _ in other] == [1, 2], "another setting is another run"


@pytest.mark.live
def test_record_store_survives_kill_9_and_goes_on(tmp_path):
    path = str(tmp_path / "s.db")
    command = [sys.executable, "-m", "pmutop", "record", "--store", path, "--interval", "0.1", "--param", "size=3", "--resume", "--program", "spin"]  # fmt: skip
    spin = [sys.executable, "-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"]
    recorder = subprocess.Popen([*command, "--", *spin], start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while slices_in(path) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(recorder.pid, signal.SIGKILL)
    recorder.wait()
    kept = slices_in(path)
    assert kept >= 4
    done = subprocess.run(
        [*command, "--slices", "6", "--", *spin],
        capture_output=True,
        text=True,
        check=False,
    )
    with Store(path) as store:
        (run,) = store.runs()
    assert (run.program, run.settings, run.state) == ("spin", {"size": "3"}, "done")
    assert run.slices > kept and "gone on with" in done.stderr


@pytest.mark.live
def test_ocoe_runs_the_command_once_for_each_group(tmp_path, monkeypatch):
    from pmutop.sources import budget

    monkeypatch.setattr(budget, "fitting", lambda wanted, **_: ([wanted[:1], wanted[1:]], {}))
    path = str(tmp_path / "s.db")
    words = [
        "--mode",
        "ocoe",
        "--events",
        "page-faults,context-switches",
        "--interval",
        "0.05",
        "--",
        "sleep",
        "0.2",
    ]
    assert main(["record", "--store", path, *words]) == 0
    with Store(path) as store:
        runs = store.runs()
    asked = [{"page-faults", "context-switches"} & set(run.events) for run in runs]
    assert asked == [{"page-faults"}, {"context-switches"}] and {run.mode for run in runs} == {"OCOE"}


def slices_in(path):
    if not os.path.exists(path):
        return 0
    with Store(path) as store:
        return max((run.slices for run in store.runs()), default=0)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "nowhere to record to"),
        (["--store", "s.db"], "runs of programs"),
        (["f", "--param", "a=1"], "go with --store"),
        (["--store", "s.db", "--pid", "1", "--", "true"], "--pid and a command"),
        (["--store", "s.db", "--mode", "ocoe", "--", "true"], "once for each group"),
        (["--store", "s.db", "--param", "a", "--", "true"], "NAME=VALUE"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(words, cause, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["record", *words]) == 2
    assert cause in capsys.readouterr().err and os.listdir(tmp_path) == []
