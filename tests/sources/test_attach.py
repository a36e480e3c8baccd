"""The attach reader on this machine, against the kernel's own accounts."""

import errno
import itertools
import os
import resource
import subprocess
import sys
import time

import pytest
from capabilities import needs_perf

from pmutop.pipeline.engine import Engine
from pmutop.slices import Born, Exited
from pmutop.sources import attach
from pmutop.sources.attach import AttachSource

pytestmark = pytest.mark.live


@pytest.fixture
def source():
    source = AttachSource(interval=0.1)
    yield source
    source.close()


def take(source, count):
    return list(itertools.islice(source, count))


def spin():
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def test_the_first_slice_holds_everybody(source):
    (first,) = take(source, 1)
    born = {record.task.pid for record in first.records if isinstance(record, Born)}
    assert {os.getpid(), 1} <= born and len(first.refs) // 8 >= len(born)


def test_deadlines_do_not_drift(source):
    slices = take(source, 11)
    assert (slices[10].end - slices[0].end) / 1e9 == pytest.approx(1.0, abs=0.15)
    assert all(after.start == before.end for before, after in itertools.pairwise(slices))
    assert [one.number for one in slices] == list(range(11))


def test_a_deadline_that_has_passed_is_skipped(source):
    slices = iter(source)
    next(slices)
    before = next(slices)
    time.sleep(0.35)
    late = next(slices)
    assert late.seconds > 0.3 and next(slices).seconds < 0.2
    assert late.number == before.number + 1


@needs_perf
def test_run_time_agrees_with_task_clock_and_with_getrusage(source):
    engine = Engine(source.header, [])
    names = [event.name for event in source.header.events]
    child = spin()
    slices = iter(source)
    moments = [engine.moment(next(slices)) for _ in range(12)]
    child.kill()
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = -9
    run = clock = 0.0
    for moment in moments[3:]:
        row = next(i for i, task in enumerate(moment.tasks) if task.pid == child.pid)
        run += moment.counts[row][names.index("run-time")]
        clock += moment.counts[row][names.index("task-clock")]
    assert run == pytest.approx(clock, rel=0.03, abs=8e6)
    assert run / 1e9 <= usage.ru_utime + usage.ru_stime + 0.02


def test_births_and_deaths_are_records(source):
    slices = iter(source)
    next(slices)
    child = spin()
    seen = next(slices)
    born = [
        record.task for record in seen.records if isinstance(record, Born) and record.task.pid == child.pid
    ]
    assert len(born) == 1 and born[0].ppid == os.getpid()
    child.kill()
    child.wait()
    gone = [
        record for record in next(slices).records if isinstance(record, Exited) and record.ref == born[0].ref
    ]
    assert len(gone) == 1


@needs_perf
def test_few_descriptors_make_a_small_hot_set_and_nothing_fails():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = """
import itertools, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
from pmutop.sources.attach import AttachSource
source = AttachSource(interval=0.1)
slices = list(itertools.islice(source, 8))
assert slices[-1].machine["attached"] * len(source.groups[0]) <= 160
assert slices[-1].machine["starved"] > 0 or len(slices[0].refs) // 8 < 20
"""
    children = [spin() for _ in range(25)]
    try:
        subprocess.run([sys.executable, "-c", code], check=True)
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_descriptors_are_given_back():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        source = AttachSource(interval=0.05)
        take(source, 3)
        source.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # tracefs may stay open


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.ENOENT, "no such event"),
        (errno.EACCES, "paranoid"),
        (errno.EMFILE, "descriptor"),
        (errno.ENOSYS, "sandbox"),
    ],
)
def test_reasons_are_told_apart_by_errno(number, words):
    assert words in attach.reason(attach.CountError(number, "perf_event_open", "x"))


def test_stop_ends_the_iteration_at_once():
    source = AttachSource(interval=3600)
    slices = iter(source)
    next(slices)
    source.stop()
    assert list(slices) == []
    source.close()
