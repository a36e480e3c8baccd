"""The shipped simulated bundle, live: programs of sizes it has not seen get their labels through the whole pipeline."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pmutop import bundle
from pmutop.errors import BadInput, PmutopError
from pmutop.pipeline.engine import Engine
from pmutop.sources.simulated import SimulatedSource
from pmutop.training.catalogue import simulated
from pmutop.training.workloads import build, start

PHASES = Path(__file__).parent / "phases.c"
FOLDER = bundle.SHIPPED / "simulated-fingerprints"


def workload(kind: str, body: str, label: str, size: int = 0):
    row = next(one for one in simulated() if (one.kind, one.body, one.label) == (kind, body, label))
    return replace(row, arguments=("--body", body, *(("--size", str(size)) if size else ())))


@pytest.mark.slow
def test_labels_change_with_what_a_program_does():
    try:
        model = bundle.read(FOLDER)
        source = SimulatedSource()
    except (BadInput, PmutopError) as error:
        pytest.skip(str(error))
    last = source.caches["l3"][0] or source.caches["l2"][0]
    rows = [
        workload("list", "walk", "P_Mem_M", last * 5),
        workload("list", "walk", "N_Mem_M", last * 5),
        workload("branch", "flags", "P_CPU"),
        workload("branch", "flags", "N_CPU"),
        workload("pointer", "chase", "P_Mem_L2", source.caches["l2"][0] // 5),
    ]
    engine, slices = Engine(source.header, [model]), iter(source)
    engine.moment(next(slices))
    said: dict[str, Counter] = {}
    try:
        with ExitStack() as stack:
            running = [stack.enter_context(start(row, [0], under=source.wrap)) for row in rows]
            for one in running:
                one.wait_ready(120)
            for number in range(8):
                moment = engine.moment(next(slices))
                for row, labels in moment.labels.items():
                    for one in running:
                        if number > 1 and moment.tasks[row].pid == one.pid:
                            said.setdefault(one.workload.label, Counter())[labels[0].label] += 1
    finally:
        source.close()
    assert {label: counts.most_common(1)[0][0] for label, counts in said.items()} == {
        row.label: row.label for row in rows
    }


def test_the_model_is_refused_where_counters_are_not_simulated():
    try:
        model = bundle.read(FOLDER)
    except BadInput as error:
        pytest.skip(str(error))
    from pmutop.sources.attach import AttachSource

    source = AttachSource(names=[])
    source.close()
    assert model.refusal(source.header) == "it knows simulated counters only"


def test_the_model_is_refused_where_instructions_or_levels_of_caches_are_others():
    model = bundle.read(FOLDER)
    machine = model.card["machine"]
    assert model.foreign(machine) is None
    smaller = machine["simulated"] | {"l1d": [32 << 10, 8], "l3": [8 << 20, 16]}
    assert model.foreign(machine | {"simulated": smaller}) is None
    two_levels = machine["simulated"] | {"l3": [0, 1]}
    assert "here are l1d l1i l2" in model.foreign(machine | {"simulated": two_levels})
    assert "not of riscv64" in model.foreign(machine | {"architecture": "riscv64"})


@pytest.mark.slow
def test_labels_in_the_log_follow_the_phases_of_a_program():
    """Each phase has a name of its own: the log's labels are held against the name that the slice began and ended with."""
    caches = "l1d=32K:8,l2=512K:8,l3=8M:16"  # others than the model was trained on: its features are ratios
    words = ["log", "--source", "simulated", "--caches", caches, "--slices", "40", "--model", str(FOLDER)]
    done = subprocess.run(
        [sys.executable, "-m", "pmutop", *words, "--", str(build(str(PHASES)))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "not installed" in done.stderr or "was not built" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    rows = [row for row in map(json.loads, done.stdout.splitlines()) if row.get("labels")]
    said: dict[str, Counter] = {}
    for before, row, after in zip(rows, rows[1:], rows[2:]):
        if before["comm"] == row["comm"] == after["comm"]:
            said.setdefault(row["comm"], Counter())[row["labels"][0]["label"]] += 1
    assert {name: seen.most_common(1)[0][0] for name, seen in said.items() if name != "phases"} == {
        "chase": "P_Mem_M",
        "sums": "N_CPU",
        "guess": "P_CPU",
    }
