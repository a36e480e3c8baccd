"""The log is a contract: golden bytes, a schema that its lines satisfy, and the same lines live and replayed."""

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from making import born, header, proc, raw, task

from pmutop import bundle
from pmutop.analysis.tree import C45Tree
from pmutop.moment import Rank
from pmutop.pipeline.engine import Engine
from pmutop.selection import Selection
from pmutop.sinks.log import FORMATS
from pmutop.sinks.schema import SCHEMA
from pmutop.slices import Exited

GOLDEN = Path(__file__).parent.parent / "golden"
MS = 1_000_000


def story():
    """Three slices: a storm, a quiet neighbour with a hostile name, an exit."""
    hostile = task(2, ppid=1001, comm='a"b\\c\n\x1b[31m\udcff', user="bob")
    return [
        raw(0, {1: (proc(), "R"), 2: (proc(), "S")}, born(task(1), hostile)),
        raw(
            1,
            {
                1: (proc(run_time=300 * MS, minor_faults=15000, run_delay=20 * MS), "R"),
                2: (proc(run_time=50 * MS), "S"),
            },
        ),
        raw(
            2,
            {
                1: (
                    proc(run_time=600 * MS, minor_faults=15010, run_delay=20 * MS) | {"task-clock": 400 * MS},
                    "D",
                )
            },
            [Exited(2)],
        ),
    ]


@pytest.fixture
def bundles(tmp_path):
    X = np.array([[0.1], [0.2], [0.3], [0.4], [40.0], [50.0], [60.0], [70.0]])
    y = np.repeat(["N_OS", "P_OS_MinorFault"], 4)
    facts = {
        "name": "golden-tree",
        "kind": "tree",
        "tier": "software",
        "features": ["minor-faults/ms"],
        "required": ["minor-faults", "run-time"],
        "optional": [],
        "classes": ["N_OS", "P_OS_MinorFault"],
        "labels": [{"label": "P_OS_MinorFault", "text": "", "normal": {"minor-faults/ms": 0.25}}],
        "blind": [],
        "machine": {},
        "scores": {},
    }
    return [bundle.write(tmp_path / "tree", facts, C45Tree(min_leaf=2).fit(X, y).to_arrays())]


RANKS = (
    Rank(
        2,
        1,
        1001,
        1001,
        "wo\udcffrk",
        "user-time",
        61,
        (("minor-faults", 71.257), ("run-delay", 28.743)),
        0.0312,
        0.4,
    ),
    Rank(2, 2, 1002, 1002, "idle", "user-time", 3, why="3 of the 60 slices"),
)


def written(bundles, form="jsonl", selection=None, **options):
    stream = io.BytesIO()
    engine = Engine(header(), bundles, per_thread=options.get("per_thread", False))
    log = FORMATS[form](stream, selection or Selection(), **options)
    log.begin(header(), bundles, replayed=False)
    for one in story():
        log.moment(replace(engine.moment(one), ranks=RANKS if one.number == 2 else ()))
    return stream.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_golden_bytes(bundles, form, request):
    """To accept a change of the contract: raise SCHEMA_VERSION, delete tests/golden/log.*, run twice, look at the diff."""
    path = GOLDEN / f"log.{form}"
    data = written(bundles, form)
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        pytest.fail(f"{path} did not exist and was written; look at it and run again")
    assert data == path.read_bytes()


@pytest.mark.parametrize("options", [{}, {"per_thread": True}, {"active": True}])
def test_every_line_satisfies_the_schema(bundles, options):
    check = jsonschema.Draft202012Validator(SCHEMA)
    lines = [json.loads(line) for line in written(bundles, **options).splitlines()]
    for line in lines:
        check.validate(line)
    assert len(lines) > 4 and ("tid" in lines[1]) == bool(options.get("per_thread"))


def test_the_schema_refuses_what_is_no_line():
    check = jsonschema.Draft202012Validator(SCHEMA)
    assert not check.is_valid({"pid": 1}) and not check.is_valid({})


def test_strings_of_others_are_json_that_any_reader_takes(bundles):
    text = written(bundles).decode("ascii")
    names = {json.loads(line).get("comm") for line in text.splitlines()}
    assert 'a"b\\c\n\x1b[31m\ufffd' in names and "\\ud" not in text.replace("\\ufffd", "")


def test_a_ranking_is_a_line_of_its_own_and_none_is_no_line(bundles):
    (line,) = [json.loads(line)["rank"] for line in written(bundles).splitlines() if b'{"rank"' in line]
    assert line["comm"] == "wo\ufffdrk" and line["events"][0] == {"name": "minor-faults", "importance": 71.26}
    assert (line["pid"], line["target"], line["slices"], line["error"]) == (1001, "user-time", 61, 0.0312)


def test_not_counted_is_null_and_a_counted_zero_is_zero(bundles):
    lines = [json.loads(line) for line in written(bundles).splitlines()]
    storm = next(line for line in lines if line.get("slice") == 1 and line.get("pid") == 1001)
    assert storm["counts"]["task-clock"] is None and storm["quality"]["task-clock"] == "uncounted"
    assert storm["counts"]["major-faults"] == 0 and storm["quality"]["major-faults"] == "exact"
    assert storm["ipc"] is None


def test_selection_by_user_and_by_family(bundles):
    def pids(chosen):
        return {
            json.loads(line)["pid"]
            for line in written(bundles, selection=chosen).splitlines()
            if b'"ppid"' in line
        }

    assert pids(Selection(users=frozenset({"bob"}))) == {1002}
    assert pids(Selection(root=1001)) == {1001, 1002}
    assert pids(Selection(pids=frozenset({1001}))) == {1001}
