"""Rotation loses no line, cuts none, and every file can be read on its own."""

import os
import resource
import subprocess
import sys

import pytest
from making import born, header, proc, raw, task

from pmutop import units
from pmutop.recording import Recorder
from pmutop.sinks.rotation import Rotating

HEADER = b'{"header":1}\n'


def files(path):
    """Oldest first."""
    kept = sorted(path.parent.glob(path.name + ".*"), key=lambda one: -int(one.suffix[1:]))
    return [*kept, path]


def lines(path):
    parts = [one.read_bytes() for one in files(path)]
    assert all(part.startswith(HEADER) and part.endswith(b"\n") for part in parts)
    return b"".join(part.removeprefix(HEADER) for part in parts).splitlines()


def test_a_hundred_rotations_lose_no_line(tmp_path):
    path = tmp_path / "log"
    stream = Rotating(str(path), size=200, keep=1000)
    stream.write(HEADER)
    said = []
    for number in range(1000):
        slice_ = [b"%d " % number + b"x" * (number % 50) for _ in range(1 + number % 3)]
        stream.write(b"\n".join(slice_) + b"\n")
        said += slice_
    assert lines(path) == said and len(files(path)) > 100
    assert all(one.stat().st_size <= 200 + 160 for one in files(path))


def test_a_reader_that_holds_the_old_file_and_then_opens_the_name_sees_every_line(tmp_path):
    path = tmp_path / "log"
    stream = Rotating(str(path), size=100, keep=1)
    stream.write(HEADER)
    reader, seen = open(path, "rb"), []
    for number in range(500):
        stream.write(b"%d\n" % number)
        seen += reader.readlines()
        if os.fstat(reader.fileno()).st_ino != path.stat().st_ino:
            reader.close()
            reader = open(path, "rb")
            seen += reader.readlines()
    reader.close()
    assert [line for line in seen if line != HEADER] == [b"%d\n" % number for number in range(500)]


def test_age_rotates_and_only_so_many_are_kept(tmp_path):
    now = [0.0]
    path = tmp_path / "log"
    stream = Rotating(str(path), age=10, keep=3, clock=lambda: now[0])
    stream.write(HEADER)
    for number in range(60):
        now[0] = float(number)
        stream.write(b"%d\n" % number)
    assert [one.name for one in files(path)] == ["log.3", "log.2", "log.1", "log"]
    assert lines(path) == [b"%d" % number for number in range(20, 60)]


def test_what_an_earlier_run_wrote_is_put_aside(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"before\n")
    Rotating(str(path), size=100).write(HEADER)
    assert (tmp_path / "log.1").read_bytes() == b"before\n" and path.read_bytes() == HEADER


def test_a_full_disk_leaves_whole_lines(tmp_path):
    path = tmp_path / "log"
    code = (
        "import sys, resource, signal; from pmutop.sinks.rotation import Rotating\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "stream = Rotating(sys.argv[1], age=1e9)\n"
        "stream.write(b'{\"header\":1}\\n')\n"
        "try:\n  while True: stream.write(b'a line\\n' * 9)\n"
        "except OSError as error: print(error.strerror)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() and set(lines(path)) == {b"a line"}
    assert path.stat().st_size <= 1000 and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("rotation") / "many.pmu"
    recorder = Recorder(str(path), header())
    everybody = [task(ref) for ref in range(1, 9)]
    for number in range(150):
        rows = {one.ref: (proc(run_time=number * one.ref * 10**6), "R") for one in everybody}
        recorder.write(raw(number, rows, born(*everybody) if number == 0 else []))
    recorder.close()
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_rotated_log_is_the_log(recording, form, tmp_path):
    """More than a hundred rotations by the command; the witness is the same log in one piece."""
    replay = [sys.executable, "-m", "pmutop", "replay", str(recording), "--log", "--format", form]
    whole = subprocess.run(replay, capture_output=True, check=True).stdout.splitlines(keepends=True)
    path = tmp_path / "log"
    subprocess.run(
        [*replay, "--output", str(path), "--rotate-size", "1K", "--keep", "1000"],
        capture_output=True,
        check=True,
    )
    parts = [one.read_bytes().splitlines(keepends=True) for one in files(path)]
    assert len(parts) > 100 and all(part[0] == whole[0] for part in parts)
    assert [line for part in parts for line in part[1:]] == whole[1:]


def test_stdout_is_not_rotated(recording):
    done = subprocess.run(
        [sys.executable, "-m", "pmutop", "replay", str(recording), "--log", "--rotate-size", "1M"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr == "pmutop: stdout cannot be rotated (add --output FILE)\n"


def test_sizes_and_lengths_of_time():
    assert [units.parse_size(text) for text in ("7", "2K", "10M", "1.5G", "1MiB")] == [
        7,
        2048,
        10 << 20,
        3 << 29,
        1 << 20,
    ]
    assert [units.parse_duration(text) for text in ("90", "400ms", ".5s", "5m", "1h", "2d")] == [
        90,
        0.4,
        0.5,
        300,
        3600,
        172800,
    ]
    for bad in ("", "x", "1X", "-1", "1 M", "nan"):
        with pytest.raises(ValueError):
            units.parse_size(bad)
        with pytest.raises(ValueError):
            units.parse_duration(bad)
