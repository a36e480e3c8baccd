"""The look-back, written out, is a recording that says of its slices what the whole recording says of them."""

import io
import json
import os
import stat
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from making import NAMES, born, header, proc, raw, task

from pmutop.pipeline.engine import Engine
from pmutop.recording import Reader
from pmutop.selection import Selection
from pmutop.sinks import ring as ring_module
from pmutop.sinks.log import JsonLog
from pmutop.sinks.ring import Ring, name_for
from pmutop.slices import Exited, Renamed


def life(slices=60, seed=1):
    """A small machine on which tasks are born, renamed, rest, and die; all totals known."""
    random = np.random.default_rng(seed)
    alive, totals, last = {}, {}, 0
    for number in range(slices):
        records = []
        if number % 3 == 0:
            newcomers = [task(last + one + 1, comm=f"c{last + one + 1}") for one in range(4)]
            last += len(newcomers)
            records += born(*newcomers)
            for one in newcomers:
                alive[one.ref], totals[one.ref] = one, proc()
        if number % 7 == 3:
            ref = int(random.choice(list(alive)))
            alive[ref] = alive[ref]._replace(comm=f"renamed{number}")
            records.append(Renamed(alive[ref]))
        moving = [ref for ref in alive if random.random() < 0.5 or number == 0]
        rows = {}
        for ref in moving:
            for name in totals[ref]:
                totals[ref][name] += int(random.integers(0, 10**8))
            rows[ref] = (dict(totals[ref]), "R")
        while len(alive) > 25 or (
            number % 5 == 4 and len(alive) > 20
        ):  # half of them without their last counts
            ref = int(random.choice(list(alive)))
            records.append(Exited(ref))
            del alive[ref], totals[ref]
        yield raw(number, rows, records)


def lines(slices):
    """What the log says of them, by slice and pid; who hurts whom is learnt from minutes before, which the ring has not."""
    stream = io.BytesIO()
    log, engine = JsonLog(stream, Selection()), Engine(header(), [])
    log.begin(header(), [], False)
    for one in slices:
        log.moment(engine.moment(one))
    found = [json.loads(line) for line in stream.getvalue().splitlines()[1:]]
    return {(line["slice"], line["pid"]): line | {"interference": None} for line in found if "pid" in line}


@pytest.mark.parametrize("seconds", [4.0, 12.0, 1e9])
@pytest.mark.parametrize("memory", [1, 3000, 1 << 20])
def test_what_is_written_out_says_what_the_whole_recording_says(tmp_path, monkeypatch, seconds, memory):
    monkeypatch.setattr(ring_module, "SEGMENT", 2000)
    ring, everything = Ring(header(), minutes=seconds / 60, memory=memory), list(life())
    for one in everything:
        ring.add(one)
    path = tmp_path / "ring.pmu"
    slices, span = ring.write(str(path))
    reader = Reader(str(path))
    written = list(reader)
    assert reader.damage is None and reader.header == header()
    held = min(len(everything), int(seconds / 0.4) + 1)
    assert slices == held == len(ring) and span == pytest.approx((held - 1) * 0.4)
    whole, part = lines(everything), lines(written)
    if held < len(everything):
        assert len(written) == held + 1 and written[1:] == everything[-held:]
        first = everything[-held].number
    else:
        assert written == everything
        first = 0
    expected = {key: line for key, line in whole.items() if key[0] >= first}
    assert len(expected) > 50
    assert {key: line for key, line in part.items() if key[0] >= first} == expected
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_baseline_holds_every_living_task_and_only_those():
    ring, everything = Ring(header(), minutes=4 / 60), list(life())
    for one in everything:
        ring.add(one)
    alive = {}
    for one in everything[: -len(ring)]:
        for record in one.records:
            if isinstance(record, Exited):
                del alive[record.ref]
            else:
                alive[record.task.ref] = record.task
    assert {record.task for record in ring.baseline.slice().records} == set(alive.values()) and len(
        alive
    ) > 10
    assert set(ring.baseline.counts) <= set(alive)


def test_memory_is_what_was_asked_for_and_files_go_when_they_are_done_with(monkeypatch):
    monkeypatch.setattr(ring_module, "SEGMENT", 5000)
    before = len(os.listdir("/proc/self/fd"))
    ring = Ring(header(), minutes=12 / 60, memory=4000)
    most = 0
    for one in life(300):
        ring.add(one)
        assert ring.held <= 4000 and sum(block.size for block in ring.fresh) == ring.held
        most = max(most, len(os.listdir("/proc/self/fd")) - before)
    files = {id(block.segment) for block in ring.kept}
    assert len(ring) == 31 and 1 < most <= len(files) + 1
    del ring
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_no_file_can_be_made_the_oldest_go_and_the_rest_is_whole(tmp_path, monkeypatch):
    def full():
        raise OSError("no space")

    monkeypatch.setattr(ring_module, "Segment", full)
    ring, everything = Ring(header(), memory=6000), list(life(100))
    for one in everything:
        ring.add(one)
    assert 2 < len(ring) < 100 and ring.held <= 6000
    ring.write(str(tmp_path / "a"))
    written = list(Reader(str(tmp_path / "a")))
    assert written[1:] == everything[-len(ring) :]


def test_command_lines_can_be_left_out(tmp_path):
    ring = Ring(header(), cmdlines=False)
    ring.add(raw(0, {1: (proc(), "S")}, born(task(1, cmdline="--password=secret"))))
    ring.write(str(tmp_path / "a"))
    assert b"secret" not in b"".join(str(one.records).encode() for one in Reader(str(tmp_path / "a")))


@pytest.mark.slow
def test_ten_minutes_of_a_thousand_tasks_stay_within_the_memory(tmp_path):
    """1500 slices in which all of 1000 tasks move: the worst case of the budget (64 MB, the rest in a file)."""
    random = np.random.default_rng(3)
    tasks = [task(ref) for ref in range(1, 1001)]
    events, refs = len(header().events), np.arange(1, 1001)
    totals = np.zeros((1000, events, 3), np.uint64)
    ring = Ring(header(), minutes=10, memory=64 << 20)
    base = raw(0, {1: ({}, "S")}, born(*tasks))
    tracemalloc.start()
    for number in range(1600):
        totals[:, :, 0] += random.integers(0, 1 << 24, (1000, events), dtype=np.uint64)
        totals[:, :, 1:] = int((number + 1) * 4e8)
        ring.add(
            replace(base, number=number, start=int(number * 4e8), end=int((number + 1) * 4e8), records=base.records if not number else (),
                    refs=refs.tobytes(), counts=totals.tobytes(), levels=bytes(1000 * 32))
        )  # fmt: skip
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ring) == 1501 and ring.held <= 64 << 20
    assert peak < 70 << 20, f"{peak / 2**20:.1f} MB"
    assert ring.write(str(tmp_path / "big"))[0] == 1501
    assert sum(1 for _ in Reader(str(tmp_path / "big"))) == 1502


def test_names_do_not_collide(tmp_path, monkeypatch):
    monkeypatch.setattr(ring_module.time, "strftime", lambda form: "pmutop-now")
    first = name_for(str(tmp_path))
    open(first, "w").close()
    assert name_for(str(tmp_path)) == first.replace("now", "now-2") and NAMES
