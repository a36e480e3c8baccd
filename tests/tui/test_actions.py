"""On real processes of our own."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pmutop.slices import Task
from pmutop.tui import actions


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def task_of(process, **changes) -> Task:
    start = actions.start_of(process.pid, process.pid)
    return Task(1, process.pid, process.pid, os.getpid(), start, "python3", "me", "/", "", False)._replace(
        **changes
    )


def test_start_time_agrees_with_the_clock(child):
    assert abs(actions.start_of(child.pid, child.pid) - time.time()) < 10


def test_signal_reaches_the_process(child):
    assert actions.send_signal(task_of(child), signal.SIGTERM) == ""
    assert child.wait(10) == -signal.SIGTERM


def test_a_pid_that_names_another_process_is_left_alone(child):
    stale = task_of(child, start=1e9)
    for wrong in (
        actions.send_signal(stale, signal.SIGKILL),
        actions.renice(stale, 5),
        actions.set_affinity(stale, {0}),
    ):
        assert "another process" in wrong
    assert child.poll() is None


def test_renice_and_affinity(child):
    assert actions.renice(task_of(child), 5) == ""
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == 5
    assert actions.set_affinity(task_of(child), {0}) == ""
    assert os.sched_getaffinity(child.pid) == {0}
    assert "Invalid argument" in actions.set_affinity(task_of(child), {1000})


def test_what_is_gone_is_said_to_be_gone(child):
    gone = task_of(child)
    child.kill()
    child.wait()
    for wrong in (actions.send_signal(gone, 15), actions.renice(gone, 5), actions.set_affinity(gone, {0})):
        assert wrong == f"process {gone.pid} is gone"
