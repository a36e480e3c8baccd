"""The program as a person runs it: streams, exit codes, errors of one line, and what survives bad luck."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
WITHOUT_PERF = str(Path(__file__).parent.parent / "without_perf.py")
PMUTOP = [sys.executable, "-m", "pmutop"]


def pmutop(*arguments, **options):
    return subprocess.run(
        [*PMUTOP, *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A busy process recorded for six slices, and the log that the same slices gave live."""
    path = tmp_path_factory.mktemp("recording") / "busy.pmu"
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = pmutop("record", str(path), "--slices", "6")
    finally:
        spin.kill()
        spin.wait()
    assert done.returncode == 0, done.stderr
    return path


def test_log_starts_with_its_header_and_ends_each_slice_with_the_machine():
    done = pmutop("log", "--slices", "3")
    header, *rest = lines(done.stdout)
    assert done.returncode == 0 and header["schema"] == 1 and header["replayed"] is False
    assert [line["machine"]["slice"] for line in rest if "machine" in line] == [0, 1, 2]
    assert rest[-1]["machine"]["own_cpu"] > 0
    assert os.getpid() in {line.get("pid") for line in rest}


def test_log_loads_nothing_heavy():
    code = (
        "import sys; from pmutop.cli import main; main(['log','--slices','2']); "
        "heavy=[m for m in ('sklearn','scipy','joblib','textual','rich') if m in sys.modules]; sys.exit(','.join(heavy) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]


def test_a_busy_process_is_seen_by_the_kernels_clock():
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = pmutop("log", "--slices", "8", "--pid", str(spin.pid))
    finally:
        spin.kill()
        spin.wait()
    seen = [line for line in lines(done.stdout) if line.get("pid") == spin.pid][1:]
    assert len(seen) == 7
    # On a busy machine it may have to wait, and a wait is told when it ends: run and wait together fill the slices.
    assert 80 <= sum(line["cpu"] + line["wait"] for line in seen) / 7 <= 115
    ticks = sum(line["counts"]["user-time"] + line["counts"]["system-time"] for line in seen)
    assert ticks == pytest.approx(sum(line["counts"]["run-time"] for line in seen), abs=60_000_000)


def test_replaying_a_recording_gives_the_same_lines_every_time_and_the_same_bytes(recording, tmp_path):
    first, second = (pmutop("replay", str(recording), "--log").stdout for _ in range(2))
    assert first == second and '"replayed":true' in first
    again = pmutop("replay", str(recording), "--record", str(tmp_path / "again.pmu"))
    assert again.returncode == 0
    assert recording.read_bytes() == (tmp_path / "again.pmu").read_bytes()


@pytest.mark.parametrize("source", ["attach", "auto"])
def test_the_log_of_a_replay_is_the_live_log(source, tmp_path):
    """Recorded and logged live in one run; the recording, replayed, gives every one of its process lines."""
    path = str(tmp_path / "run.pmu")
    live = pmutop("log", "--source", source, "--record", path, "--slices", "6")
    replayed = pmutop("replay", path, "--log")
    assert live.returncode == replayed.returncode == 0, live.stderr + replayed.stderr
    lines_of = [
        [line for line in text.splitlines() if '"pid"' in line] for text in (live.stdout, replayed.stdout)
    ]
    assert len(lines_of[0]) > 100 and lines_of[0] == lines_of[1]


def test_a_launched_command_is_watched_with_its_children_and_gives_its_exit_code(tmp_path):
    script = f"{sys.executable} -c 'import time; end=time.time()+1.2\nwhile time.time()<end: pass'; echo said; exit 7"
    done = pmutop("log", "--child-output", str(tmp_path / "out"), "--", "sh", "-c", script)
    assert done.returncode == 7
    comms = {line["comm"] for line in lines(done.stdout) if "comm" in line}
    assert len(comms) == 2 and "sh" in comms and any(name.startswith("python") for name in comms)
    assert (tmp_path / "out").read_text() == "said\n"


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f"{' '.join(PMUTOP)} log --slices 20 | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0" and done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_a_recording_whole(number, tmp_path):
    path = tmp_path / "cut.pmu"
    process = subprocess.Popen([*PMUTOP, "record", str(path)], stderr=subprocess.PIPE, text=True)
    while not path.exists() or path.stat().st_size < 5000:
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 128 + number
    slices = int(re.search(r"(\d+) slices in", said)[1])
    replayed = pmutop("replay", str(path), "--log")
    assert replayed.returncode == 0 and replayed.stdout.count('{"machine":{"slice"') == slices >= 2


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["log", "--pid", "4194000"], 1, "there is no process 4194000"),
        (["log", "--pid", "x"], 2, "not a process number"),
        (["log", "--events", "nonsense"], 2, "unknown event 'nonsense'"),
        (["log", "--events", "cycle"], 2, "did you mean cycles"),
        (["log", "--events", "nopmu/x=1/"], 2, "no PMU called 'nopmu'"),
        (["log", "--interval", "0"], 2, "between 0.01 and 3600"),
        (["log", "--nonsense"], 2, "unrecognized arguments"),
        (["log", "--output", "/nonexistent/x"], 1, "cannot write /nonexistent/x"),
        (["log", "--", "no-such-command-here"], 1, "no such command"),
        (["log", "--"], 2, "no command behind --"),
        (["log", "--model", "/nonexistent"], 4, "cannot read /nonexistent"),
        (["replay", "/nonexistent", "--log"], 4, "cannot read /nonexistent"),
        (["replay", "/bin/true", "--log"], 4, "not a pmutop recording"),
        (["record", "/nonexistent/x"], 1, "cannot write /nonexistent/x"),
        (["models", "remove"], 2, "which one"),
        (["train", "fingerprints"], 2, "--yes"),
    ],
)
def test_what_goes_wrong_is_one_line_with_the_right_code(arguments, code, words):
    done = pmutop(*arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("usage:")][-3:]) <= 3


def test_a_full_disk_ends_the_log_with_the_reason():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PMUTOP, "log", "--slices", "3"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (
        done.returncode == 1 and done.stderr.strip() == "pmutop: cannot write stdout: No space left on device"
    )


def test_a_damaged_recording_is_replayed_up_to_the_damage(recording, tmp_path):
    data = recording.read_bytes()
    (tmp_path / "cut").write_bytes(data[:-20])
    done = pmutop("replay", str(tmp_path / "cut"), "--log")
    assert done.returncode == 4 and "damaged at byte" in done.stderr
    assert done.stdout.count('{"machine":{"slice"') == 5


def test_an_ordinary_user_who_may_open_no_perf_event_still_gets_labels():
    """The software bundles need /proc only; what is missing is null and its reason is told."""
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run(
            [sys.executable, WITHOUT_PERF, *PMUTOP, "log", "--slices", "4", "--pid", str(spin.pid)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        spin.kill()
        spin.wait()
    header, *rest = lines(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "software-fingerprints" in header["models"] and "task-clock" not in {
        event["name"] for event in header["events"]
    }
    seen = [line for line in rest if line.get("pid") == spin.pid][1:]
    assert len(seen) == 3 and all(line["labels"] and line["labels"][0]["model"] for line in seen)
