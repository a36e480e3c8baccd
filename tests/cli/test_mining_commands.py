"""clean, rank and import from the command line: what they print, what they refuse, and that nothing is half written."""

import json
import os

import numpy as np
import pytest

from pmutop.cli import main
from pmutop.wide import Table, read_wide, write_atomically, write_wide

EVENTS = ("cycles", "instructions", "misses", "walks", "noise", "more-noise")


def counts(seed=0, rows=120, misses=1.0):
    """IPC falls with misses; a fault in one value, a hole in another."""
    rng = np.random.default_rng(seed)
    cycles = rng.normal(1e9, 1e6, rows)
    rate = misses * np.exp(rng.normal(0, 0.6, rows).cumsum() / 6 - 5)
    walks, noise, more = (np.exp(rng.normal(-7, 0.2, rows)) for _ in range(3))
    ipc = 1.5 / (1 + 60 * rate + 40 * walks)
    return np.column_stack(
        [cycles, ipc * cycles, rate * cycles, walks * cycles, noise * cycles, more * cycles]
    ).round()


def written(path, values, events=EVENTS, **beside):
    with write_atomically(path) as stream:
        write_wide(Table(tuple(events), np.asarray(values, float), **beside), stream)
    return str(path)


@pytest.fixture
def recording(tmp_path):
    return written(tmp_path / "a.csv", counts())


def test_clean_replaces_the_fault_and_fills_the_hole(tmp_path, capsys):
    values = counts()
    truth = values.copy()
    values[60, 4] *= 9
    values[70, 3] = np.nan
    path = written(tmp_path / "a.csv", values)
    assert (
        main(["clean", path, "--output", str(tmp_path / "b.csv"), "--quality", str(tmp_path / "q.csv")]) == 0
    )
    out = read_wide(tmp_path / "b.csv").values
    assert abs(np.log(out[60, 4] / truth[60, 4])) < 1 and abs(np.log(out[70, 3] / truth[70, 3])) < 1
    quality = [line.split(",") for line in (tmp_path / "q.csv").read_text().splitlines()]
    assert quality[0] == list(EVENTS) and quality[61][4] == "outlier" and quality[71][3] == "filled"
    said = capsys.readouterr()
    assert "1 filled" in said.err and said.out == ""


def test_rank_names_what_drives_ipc(recording, capsys):
    assert main(["rank", recording, "--json", "--jobs", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["events"][0]["event"] == "misses" and report["target"] == "IPC"
    assert not {"cycles", "instructions"} & {event["event"] for event in report["events"]}
    assert report["error"] < report["median_error"] / 2
    assert sum(pair["share"] for pair in report["interactions"]) == pytest.approx(100, abs=0.1)


def test_rank_prints_and_draws(recording, tmp_path, capsys):
    import xml.etree.ElementTree

    assert (
        main(["rank", recording, "--importance", "paper", "--svg", str(tmp_path / "r.svg"), "--jobs", "1"])
        == 0
    )
    text = capsys.readouterr().out
    assert "misses" in text and "most accurate" in text and "one to three" in text
    assert xml.etree.ElementTree.parse(tmp_path / "r.svg").getroot().tag.endswith("svg")


def test_rank_another_figure_without_cycles(tmp_path, capsys):
    rng = np.random.default_rng(0)
    faults = rng.lognormal(4, 1, 80)
    values = np.column_stack([1e4 / (1 + faults / 50), faults, rng.lognormal(3, 1, 80)])
    path = written(tmp_path / "r.csv", values, ("requests", "faults", "switches"))
    assert main(["rank", path, "--jobs", "1"]) == 4
    assert "no IPC without" in capsys.readouterr().err
    assert main(["rank", path, "--target", "requests", "--json", "--jobs", "1", "--raw"]) == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["event"] == "faults"


def test_rank_against_says_what_rose(recording, tmp_path, capsys):
    together = written(tmp_path / "b.csv", counts(1, misses=4.0))
    assert main(["rank", recording, "--against", together, "--json", "--jobs", "1"]) == 0
    rose = json.loads(capsys.readouterr().out)["against"]
    assert rose[0]["event"] == "misses" and rose[0]["factor"] > 1.5 and rose[0]["surer"] > 0.8


def test_settings_are_ranked_with_the_events(tmp_path, capsys):
    values = counts()
    page = np.repeat([1.0, 2.0, 4.0], 40)
    values[:, 1] = values[:, 0] * 1.5 / (1 + 300 * values[:, 2] / values[:, 0] / page)
    path = written(tmp_path / "p.csv", np.column_stack([values, page]), (*EVENTS, "page"))
    assert main(["rank", path, "--param", "page", "--json", "--jobs", "1"]) == 0
    pairs = json.loads(capsys.readouterr().out)["settings"]
    assert (pairs[0]["first"], pairs[0]["second"]) == ("misses", "page")


def test_dask_gives_the_same_numbers_as_loky(recording, capsys):
    distributed = pytest.importorskip("distributed")
    assert main(["rank", recording, "--each", "--json", "--jobs", "2"]) == 0
    alone = capsys.readouterr().out
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        assert main(["rank", recording, "--each", "--json", "--scheduler", cluster.scheduler_address]) == 0
    assert capsys.readouterr().out == alone


def test_import_and_rank_a_store(recording, tmp_path, capsys):
    store = str(tmp_path / "s.db")
    assert (
        main(["import", recording, "--store", store, "--program", "p", "--param", "level=9", "--list"]) == 0
    )
    assert "p\tOCOE\t120 slices\t6 events\tdone\tlevel=9" in capsys.readouterr().out
    assert main(["rank", store, "--json", "--jobs", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["event"] == "misses"


def bad_tables():
    whole = counts()
    nothing = np.full((40, 6), np.nan)
    return {
        "empty": (b"", "empty"),
        "one column": (b"cycles\n" + b"1\n" * 40, "one column"),
        "constant": (b"cycles,instructions,a,b\n" + b"1,2,3,4\n" * 40, "never changes"),
        "all missing": (nothing, "nothing in it was counted"),
        "nan": (b"cycles,instructions,a,b\n1,nan,3,4\n", ":2: instructions"),
        "inf": (b"cycles,instructions,a,b\n1,2,3,4\n1,2,inf,4\n", ":3: a"),
        "negative": (b"cycles,instructions,a,b\n1,2,-3,4\n", ":2: a: negative"),
        "too large": (b"cycles,instructions,a,b\n1,2,3,99999999999999999999\n", ":2: b"),
        "short": (whole[:10], "10 slices"),
        "half a store": (b"SQLite format 3\0" + b"\0" * 500, "a.csv"),
    }


@pytest.mark.parametrize("kind", bad_tables())
def test_bad_input_exits_with_4_and_writes_nothing(kind, tmp_path, capsys):
    content, place = bad_tables()[kind]
    path = tmp_path / "a.csv"
    path.write_bytes(content) if isinstance(content, bytes) else written(path, content)
    outputs = ["--svg", str(tmp_path / "out.svg"), "--jobs", "1"]
    assert main(["rank", str(path), *outputs]) == 4
    said = capsys.readouterr()
    assert place in said.err and str(path) in said.err and said.out == "" and said.err.count("\n") < 6
    if kind not in ("one column", "constant", "short"):  # these can be cleaned
        assert main(["clean", str(path), "--output", str(tmp_path / "out.csv")]) == 4
        assert main(["import", str(path), "--store", str(tmp_path / "out.db")]) == 4 or kind == "all missing"
    assert not {"out.svg", "out.csv"} & set(os.listdir(tmp_path))


def test_mixed_event_sets_are_named(recording, tmp_path, capsys):
    other = written(tmp_path / "b.csv", counts()[:, :5], EVENTS[:5])
    for command in ("rank", "clean"):
        assert main([command, recording, other]) == 4
        assert "b.csv: mixed event sets: more-noise" in capsys.readouterr().err
