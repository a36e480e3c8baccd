import os
import stat

import pytest
from making import born, header, proc, raw, task

from pmutop.errors import BadInput, PmutopError
from pmutop.recording import MAGIC, Reader, Recorder
from pmutop.slices import Exited, Renamed


@pytest.fixture
def slices():
    hostile = task(2, comm="\udcff\x1b[31m<b>", cmdline="--password=secret")
    return [
        raw(0, {1: (proc(run_time=5), "S"), 2: (proc(), "S")}, born(task(1), hostile)),
        raw(1, {1: (proc(run_time=2**63 + 7), "R")}, [Renamed(task(1, comm="x"))]),
        raw(2, {}, [Exited(2)]),
    ]


def write(path, slices, **options):
    recorder = Recorder(str(path), header(), **options)
    for one in slices:
        recorder.write(one)
    recorder.close()


def test_what_was_written_is_read(tmp_path, slices):
    write(tmp_path / "a", slices)
    reader = Reader(str(tmp_path / "a"))
    assert reader.header == header()
    assert list(reader) == slices and reader.damage is None


def test_recording_a_replay_gives_the_same_bytes(tmp_path, slices):
    write(tmp_path / "a", slices)
    reader = Reader(str(tmp_path / "a"))
    again = Recorder(str(tmp_path / "b"), reader.header)
    for one in reader:
        again.write(one)
    again.close()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_only_the_owner_may_read_it(tmp_path, slices):
    write(tmp_path / "a", slices)
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o600


def test_command_lines_can_be_left_out(tmp_path, slices):
    write(tmp_path / "a", slices, cmdlines=False)
    tasks = [
        record.task
        for one in Reader(str(tmp_path / "a"))
        for record in one.records
        if hasattr(record, "task")
    ]
    assert tasks and all(one.cmdline == "" for one in tasks)


def test_an_existing_file_is_not_overwritten_unasked(tmp_path, slices):
    write(tmp_path / "a", slices)
    with pytest.raises(PmutopError, match="exists already"):
        write(tmp_path / "a", slices)
    write(tmp_path / "a", slices[:1], force=True)
    assert len(list(Reader(str(tmp_path / "a")))) == 1


def test_everything_before_the_damage_is_replayed_wherever_it_is_cut(tmp_path, slices):
    write(tmp_path / "whole", slices)
    data = (tmp_path / "whole").read_bytes()
    seen = set()
    for size in range(len(MAGIC) + 400, len(data)):
        (tmp_path / "cut").write_bytes(data[:size])
        try:
            reader = Reader(str(tmp_path / "cut"))
        except BadInput:
            continue
        whole = list(reader)
        assert whole == slices[: len(whole)]
        assert reader.damage is None or "damaged at byte" in reader.damage
        seen.add((len(whole), reader.damage is None))
    assert {(0, False), (1, False), (2, False), (1, True), (2, True)} <= seen


def test_a_flipped_bit_is_found(tmp_path, slices):
    write(tmp_path / "a", slices)
    data = bytearray((tmp_path / "a").read_bytes())
    data[-3] ^= 1
    (tmp_path / "a").write_bytes(data)
    reader = Reader(str(tmp_path / "a"))
    assert len(list(reader)) == 2 and "checksum" in reader.damage


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x7fELF" * 100, MAGIC, MAGIC + b"\0" * 64])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(BadInput):
        Reader(str(tmp_path / "a"))


def test_a_full_disk_is_told_and_what_was_written_stays(slices):
    with pytest.raises(PmutopError, match="cannot write /dev/full: No space left"):
        Recorder("/dev/full", header(), force=True)
