"""pmutop combine and pmutop compare, from files to files."""

import json
import sys

import numpy as np
import pytest

from pmutop.cli import main
from pmutop.wide import read_wide


def write(file, events, values, /, **columns):
    names = [*columns, *events]
    rows = [
        [*(columns[name][at] for name in columns), *row] for at, row in enumerate(np.asarray(values).tolist())
    ]
    file.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    return str(file)


@pytest.fixture
def runs(tmp_path):
    paths = ["0", "0.0", "0.1", "0.2"]
    types = ["make", "cc1", "cc1", "cc1"]
    return [
        write(
            tmp_path / "a.csv",
            ["faults", "calls"],
            [[9, 90], [1, 10], [200, 20], [3, 30]],
            path=paths,
            type=types,
        ),
        write(
            tmp_path / "b.csv",
            ["faults", "clock"],
            [[9, 9], [198, 2], [3, 3], [1, 1]],
            path=paths,
            type=types,
        ),
    ]


def test_combine_by_place_and_by_behaviour(runs, tmp_path, capsys):
    out = tmp_path / "merged.csv"
    assert main(["combine", "--method", "lgl", *runs, "--output", str(out)]) == 0
    table = read_wide(out)
    assert table.events == ("faults", "calls", "clock")
    assert table.column("clock").tolist() == [9, 2, 3, 1]
    assert table.path.tolist() == ["0", "0.0", "0.1", "0.2"]

    assert main(["combine", *runs, "--output", str(out), "--provenance", str(tmp_path / "from.json")]) == 0
    table = read_wide(out)
    assert dict(zip(table.column("calls"), table.column("clock"))) == {90: 9, 10: 1, 20: 2, 30: 3}
    said = capsys.readouterr()
    assert "run 1: overlap faults" in said.err and not said.out
    traced = json.loads((tmp_path / "from.json").read_text())
    sources = [read_wide(path) for path in runs]
    for task, row in enumerate(traced["source"]):
        for event, (run, at) in zip(traced["events"], row):
            assert table.column(event)[task] == sources[run].column(event)[at]


def test_combine_slices_by_progress(tmp_path, capsys):
    slices = [
        write(tmp_path / "one.csv", ["CPU_CYCLES", "x"], [[10, 4]] * 6, type=["p"] * 6),
        write(tmp_path / "two.csv", ["CPU_CYCLES", "y"], [[10, 3]] * 8, type=["p"] * 8),
    ]
    assert main(["combine", "--method", "progress", "--drop-ends", *slices]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "type,path,CPU_CYCLES,x,y" and len(lines) == 1 + 4
    assert [float(cell) for cell in lines[1].split(",")[2:]] == pytest.approx([10, 4, 4])
    assert "estimates" in said.err


def test_combine_without_overlap_says_what_to_do(tmp_path, capsys):
    files = [write(tmp_path / f"{name}.csv", [name], [[1], [2]]) for name in "ab"]
    assert main(["combine", *files]) == 2
    assert "--method lgl" in capsys.readouterr().err


def test_compare_prints_and_orders_the_pairs(tmp_path, capsys):
    rng = np.random.default_rng(0)

    def run(name, torn=False):
        hidden = 1000 * rng.random(300)
        values = np.round(
            np.column_stack([hidden, 3 * hidden, 100 + rng.random(300)]) * rng.normal(1, 0.02, (300, 3))
        )
        if torn:
            values[:, 1] = rng.permutation(values[:, 1])
        return write(tmp_path / f"{name}.csv", ["a", "b", "c"], values)

    references = [run(f"reference{at}") for at in range(3)]
    assert main(["compare", run("good"), *references]) == 0
    good = float(capsys.readouterr().out.split()[1])
    assert main(["compare", run("bad", torn=True), *references, "--pairs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].split()[1]) > 1.3 * good
    assert lines[2].endswith("a x b") and len(lines) == 5
    assert float(lines[2].split()[0]) > 4 * float(lines[3].split()[0])
    assert main(["compare", run("again"), *references, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["references"] == 3
    assert main(["compare", references[0], references[1]]) == 4


PROGRAM = """
import mmap
from pmutop.region import region
for pages in (40, 10, 300):
    with region("task"):
        block = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            block[page * 4096] = 1
"""


@pytest.fixture
def countable():
    from pmutop._perf import CountError, Group
    from pmutop.events import generic

    try:
        Group([generic("page-faults")], 0).close()
    except CountError as error:
        pytest.skip(f"software events cannot be counted here: {error}")


@pytest.mark.parametrize("method", ["lgl", "bc"])
def test_a_command_runs_once_per_event_set(method, countable, tmp_path, capsys):
    out, runs = tmp_path / "merged.csv", tmp_path / "runs"
    words = ["combine", "--runs", "--count", "regions", "--method", method, "--counters", "2"]
    words += ["--output", str(out), "--keep", str(runs)]
    events = "page-faults,task-clock,minor-faults"
    assert main([*words, "--events", events, "--", sys.executable, "-c", PROGRAM]) == 0
    assert sorted(file.name for file in runs.iterdir()) == ["0.csv", "1.csv"]
    assert all(len(read_wide(file).events) <= 2 for file in runs.iterdir())
    table = read_wide(out)
    assert set(table.events) == set(events.split(","))
    faults = sorted(table.column("minor-faults"))
    assert all(pages <= counted <= pages + 20 for pages, counted in zip((10, 40, 300), faults))
    assert "run 2 of 2 counts" in capsys.readouterr().err


TREE = """
import os, sys
for pages in (1, 40, 300):
    if os.fork() == 0:
        block = bytearray(pages * 4096)
        os._exit(0)
    os.wait()
"""


@pytest.mark.live
def test_processes_are_the_tasks_and_the_kernel_s_own_accounts_agree(tmp_path):
    from pmutop.errors import PmutopError
    from pmutop.sources.system import SystemSource

    try:
        SystemSource(names=["page-faults"]).close()
    except PmutopError as error:
        pytest.skip(f"the system reader cannot be used here: {error}")
    out = tmp_path / "merged.csv"
    words = ["combine", "--runs", "--method", "lgl", "--counters", "1", "--events", "page-faults,task-clock"]
    assert main([*words, "--output", str(out), "--", sys.executable, "-S", "-c", TREE]) == 0
    table = read_wide(out)
    assert table.path.tolist() == ["0", "0.0", "0.1", "0.2"]
    faults, clock = table.column("page-faults"), table.column("task-clock")
    assert not (faults == 0).any() and not (clock <= 0).any()  # what could not be counted is missing, never 0
    if np.isnan(faults).any():
        pytest.skip("tasks left no samples on this machine (the reader counts them as missing)")
    small, middle, large = faults[1:]
    assert 39 <= middle - small <= 60 and 299 <= large - small <= 320


def test_a_command_that_fails_or_marks_nothing_is_said(countable, capsys):
    words = ["combine", "--runs", "--count", "regions", "--method", "lgl", "--events", "page-faults", "--"]
    assert main([*words, sys.executable, "-c", "raise SystemExit(3)"]) == 1
    assert "ended with 3" in capsys.readouterr().err
    assert main([*words, sys.executable, "-c", "pass"]) == 4
    assert "marks no regions" in capsys.readouterr().err
    assert main(["combine", "--runs", "--events", "page-faults"]) == 2
    assert main(["combine", "--", "true"]) == 2
