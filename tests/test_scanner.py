"""The /proc scanner against the kernel's own account, on real processes."""

import os
import struct
import subprocess
import sys
import threading
import time

import pytest

from pmutop._proc import Scanner
from pmutop.events import PROC_EVENTS
from pmutop.slices import LEVELS

pytestmark = pytest.mark.live
NAMES = [event.name for event in PROC_EVENTS]


def table(scanner, slots):
    """{tid: {column: value}} of the rows of the last scan."""
    counts, levels = scanner.blocks()
    width = len(NAMES)
    values = struct.unpack(f"{len(counts) // 8}Q", counts)
    assert len(levels) == len(slots) * len(LEVELS) * 8
    return {
        scanner.task(slot)[1]: dict(
            zip(NAMES, values[row * width * 3 : (row + 1) * width * 3 : 3], strict=True)
        )
        for row, slot in enumerate(slots)
    }


@pytest.fixture
def scanner():
    scanner = Scanner()
    yield scanner
    scanner.close()


def spin(seconds=0.3):
    return subprocess.Popen(
        [sys.executable, "-c", f"import time\nend=time.time()+{seconds}\nwhile time.time()<end: pass"]
    )


def test_the_first_scan_sees_everybody(scanner):
    born, renamed, gone, rows = scanner.scan()
    assert {scanner.task(slot)[0] for slot in born} >= {1, os.getpid()}
    assert sorted(born) == sorted(rows) and not renamed and not gone


def test_values_are_the_kernels(scanner):
    scanner.scan()
    child = spin(5)
    try:
        time.sleep(0.3)
        *_, rows = scanner.scan()
        seen = table(scanner, rows)[child.pid]
        text = open(f"/proc/{child.pid}/schedstat").read().split()
        status = dict(line.split(":", 1) for line in open(f"/proc/{child.pid}/status"))
        stat = open(f"/proc/{child.pid}/stat").read().rsplit(")", 1)[1].split()
    finally:
        child.kill()
        child.wait()
    assert 1e8 < seen["run-time"] <= int(text[0])
    assert seen["run-delay"] <= int(text[1]) and seen["timeslices"] <= int(text[2])
    assert 0 < seen["minor-faults"] <= int(stat[7])
    assert seen["voluntary-switches"] <= int(status["voluntary_ctxt_switches"])
    assert seen["involuntary-switches"] <= int(status["nonvoluntary_ctxt_switches"])
    assert seen["user-time"] + seen["system-time"] <= (int(stat[11]) + int(stat[12]) + 2) * 10_000_000


def test_a_task_that_sleeps_has_no_row(scanner):
    child = subprocess.Popen(["sleep", "5"])
    try:
        time.sleep(0.1)
        scanner.scan()
        time.sleep(0.1)
        *_, rows = scanner.scan()
        assert child.pid not in table(scanner, rows)
    finally:
        child.kill()
        child.wait()


def test_arrivals_and_departures(scanner):
    scanner.scan()
    child = subprocess.Popen(["sleep", "5"])
    born, _, _, _ = scanner.scan()
    assert child.pid in {scanner.task(slot)[0] for slot in born}
    child.kill()
    child.wait()
    _, _, gone, _ = scanner.scan()
    assert child.pid in {scanner.task(slot)[0] for slot in gone}
    assert child.pid not in {scanner.task(slot)[0] for slot in scanner.scan()[2]}


def test_exec_renames(scanner):
    reader, writer = os.pipe()
    child = subprocess.Popen(["sh", "-c", "read x; exec sleep 5"], stdin=reader)
    time.sleep(0.1)
    scanner.scan()
    os.write(writer, b"\n")
    time.sleep(0.2)
    _, renamed, _, _ = scanner.scan()
    names = {scanner.task(slot)[0]: scanner.task(slot)[4] for slot in renamed}
    child.kill()
    child.wait()
    os.close(reader), os.close(writer)
    assert names[child.pid] == b"sleep"


def test_threads_are_tasks(scanner):
    scanner.scan()
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        scanner.scan()
        known = {thread.native_id for thread in threads}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    while known & {int(tid) for tid in os.listdir("/proc/self/task")}:
        time.sleep(0.001)  # a joined thread may still be on its way out of the kernel
    _, _, gone, _ = scanner.scan()
    assert known <= {scanner.task(slot)[1] for slot in gone}


def test_hostile_names_are_taken_whole(scanner):
    code = "import ctypes,time; ctypes.CDLL(None).prctl(15, b') R \\x1b[31m(x', 0, 0, 0); time.sleep(9)"
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(0.4)
        born, *_ = scanner.scan()
        task = {scanner.task(slot)[0]: scanner.task(slot) for slot in born}[child.pid]
    finally:
        child.kill()
        child.wait()
    assert task[4] == b") R \x1b[31m(x" and task[2] == os.getpid()


def test_without_kept_descriptors_it_reads_the_same():
    few = Scanner(keep=0)
    few.scan()
    child = spin(5)
    try:
        time.sleep(0.2)
        *_, rows = few.scan()
        assert table(few, rows)[child.pid]["run-time"] > 5e7
    finally:
        child.kill()
        child.wait()
        few.close()


def test_waits_for_the_deadline_and_can_be_stopped(scanner):
    begin = time.monotonic_ns()
    scanner.scan(begin + 50_000_000)
    assert scanner.stamp >= begin + 50_000_000
    threading.Timer(0.1, scanner.stop).start()
    assert scanner.scan(time.monotonic_ns() + 3600 * 10**9) is None


def test_descriptors_stay_flat_under_a_stream_of_processes(scanner):
    scanner.scan()
    before = None
    for _ in range(30):
        for child in [subprocess.Popen(["true"]) for _ in range(10)]:
            child.wait()
        scanner.scan()
        now = len(os.listdir("/proc/self/fd"))
        before = now if before is None else before
    assert now <= before + 10
