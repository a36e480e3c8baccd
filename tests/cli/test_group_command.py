"""`pmutop group` from the outside: wide CSV in, groups, JSON and pictures out."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pmutop.analysis import grouping
from pmutop.cli import group, main


@pytest.fixture
def tables(tmp_path):
    generator = np.random.default_rng(0)
    cause = generator.gamma(2.0, 1.0, (200, 2))
    columns = {
        "cycles": 1e9 * cause[:, 0],
        "instructions": 2e9 * cause[:, 0] * (1 + 0.01 * generator.normal(size=200)),
        "dead-event": np.zeros(200),
        "LLC-misses": 1e5 * cause[:, 1],
        "dram-reads": 9e4 * cause[:, 1] * (1 + 0.01 * generator.normal(size=200)),
    }
    for name, part in {"one.csv": slice(0, 120), "two.csv": slice(120, 200)}.items():
        rows = zip(*(column[part] for column in columns.values()), strict=True)
        lines = [
            ",".join([*columns, "label"]),
            *(",".join(f"{cell:.0f}" for cell in row) + ",x" for row in rows),
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]


def test_groups_and_leaders_as_text(tables, capsys):
    assert main(["group", *tables, "--method", "cc"]) == 0
    text = capsys.readouterr().out
    assert "5 events (1 never counted anything), 200 slices" in text
    assert "2 related pairs, 0 transitivity violations, 0 events related to no other" in text
    assert "cycles  = instructions" in text and "LLC-misses  = dram-reads" in text


def test_json_has_every_method(tables, capsys):
    assert main(["group", *tables, "--method", "all", "--k", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["dead"] == ["dead-event"] and said["slices"] == 200
    assert [one["method"] for one in said["groupings"]] == list(group.METHODS)
    for one in said["groupings"]:
        if one["method"] != "kmeans-euclid":  # which goes by size alone
            members = [sorted(each["events"]) for each in one["groups"]]
            assert sorted(members) == [["LLC-misses", "dram-reads"], ["cycles", "instructions"]]


def test_methods_offered_are_those_there_are():
    assert group.METHODS == grouping.METHODS


def test_an_event_that_one_file_lacks_is_missing_there_not_zero(tables, capsys):
    second = Path(tables[1])
    second.write_text(second.read_text().replace("LLC-misses", "other-event"))
    assert main(["group", *tables, "--method", "cc", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    parts = sorted(sorted(each["events"]) for each in said["groupings"][0]["groups"])
    # each half goes with dram-reads where both were counted; the halves never meet. Zeros would have parted all three.
    assert parts == [["LLC-misses", "dram-reads", "other-event"], ["cycles", "instructions"]]
    assert said["transitivity_violations"] == 1


def test_heat_map_without_a_terminal_has_no_escapes(tables, capsys):
    assert main(["group", *tables, "--method", "cc", "--heatmap"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text and text.rstrip().splitlines()[-1].endswith("####")


def test_svg_is_written_and_well_formed(tables, tmp_path):
    assert main(["group", *tables, "--svg", str(tmp_path / "map.svg")]) == 0
    assert ElementTree.parse(tmp_path / "map.svg").getroot().get("width") == "24"


def test_wrong_usage_and_bad_input_have_their_exit_codes(tables, tmp_path, capsys):
    assert main(["group", *tables, "--method", "all", "--svg", "x.svg"]) == 2
    assert main(["group", *tables, "--method", "kmeans-euclid", "--k", "99"]) == 2
    assert main(["group", str(tmp_path / "absent.csv")]) == 4
    assert len(capsys.readouterr().err.splitlines()) == 3
