"""perf groups on software events, which every machine with perf has."""

import errno
import gc
import os
import threading

import pytest
from capabilities import needs_perf, needs_root

from pmutop._perf import CountError, Group
from pmutop.events import HARDWARE, Event, generic

pytestmark = [pytest.mark.live, needs_perf]

CLOCK, FAULTS, SWITCHES = (generic(name) for name in ("task-clock", "page-faults", "context-switches"))
NOWHERE = Event("nowhere", "count", "hardware", 987654, 1)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def touch(pages):
    import mmap

    block = mmap.mmap(-1, pages * mmap.PAGESIZE)
    for at in range(0, pages * mmap.PAGESIZE, mmap.PAGESIZE):
        block[at] = 1
    block.close()


def test_stands_still_while_disabled_and_counts_while_enabled():
    with Group([CLOCK, FAULTS], 0) as group:
        touch(300)
        assert [value for value, _, _ in group.read()] == [0, 0]
        group.enable()
        touch(300)
        group.disable()
        (clock, enabled, running), (faults, _, _) = group.read()
        assert clock > 0 and enabled >= running > 0
        assert 300 <= faults < 400
        touch(300)
        assert group.read()[1][0] == faults


def test_page_faults_agree_with_the_kernels_own_account():
    import resource

    with Group([FAULTS], 0) as group:
        before = resource.getrusage(resource.RUSAGE_THREAD)
        group.enable()
        touch(2000)
        group.disable()
        after = resource.getrusage(resource.RUSAGE_THREAD)
        counted = group.read()[0][0]
    assert counted == pytest.approx(
        after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt, abs=60
    )


def test_reset_sets_values_to_zero():
    with Group([FAULTS], 0) as group:
        group.enable()
        touch(100)
        group.disable()
        group.reset()
        assert group.read()[0][0] == 0


def test_a_group_that_fails_half_way_leaves_nothing_open():
    before = descriptors()
    with pytest.raises(CountError) as caught:
        Group([CLOCK, FAULTS, NOWHERE], 0)
    assert caught.value.errno == errno.ENOENT
    assert (caught.value.call, caught.value.event) == ("perf_event_open", "nowhere")
    assert descriptors() == before


@pytest.mark.parametrize(
    "events, pid, number",
    [([CLOCK], 2**22 - 3, errno.ESRCH), ([Event("x", "count", "hardware", HARDWARE, 999)], 0, errno.EINVAL)],
)
def test_errno_is_kept(events, pid, number):
    with pytest.raises(CountError) as caught:
        Group(events, pid)
    assert caught.value.errno in (number, errno.ENOENT)  # without a PMU an impossible id is 'no such event'


def test_descriptor_limit_is_told_as_such():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    groups = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 6, hard))
        with pytest.raises(CountError) as caught:
            for _ in range(10):
                groups.append(Group([CLOCK, FAULTS], 0))
        assert caught.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for group in groups:
            group.close()


def test_closed_means_closed():
    group = Group([CLOCK], 0)
    group.close()
    group.close()
    assert group.leader == -1
    with pytest.raises(ValueError):
        group.read()


def test_another_thread_is_counted_by_its_tid():
    go, tid = threading.Event(), []

    def work():
        tid.append(threading.get_native_id())
        go.wait()
        touch(500)

    thread = threading.Thread(target=work)
    thread.start()
    while not tid:
        pass
    with Group([FAULTS], tid[0]) as group:
        group.enable()
        go.set()
        thread.join()
        assert group.read()[0][0] >= 500  # final values can be read after its death


@needs_root
def test_per_cpu_group_sees_every_task():
    with Group([SWITCHES], -1, cpu=0) as group:
        group.enable()
        reader, writer = os.pipe()
        os.close(reader), os.close(writer)
        assert group.read()[0][1] > 0


def test_no_descriptor_and_no_memory_leaks():
    import resource

    def rounds(count):
        for _ in range(count):
            with Group([CLOCK, FAULTS, SWITCHES], 0) as group:
                group.enable()
                group.read()
            try:
                Group([CLOCK, NOWHERE], 0)
            except CountError:
                pass
        gc.collect()

    rounds(500)
    before, fds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, descriptors()
    rounds(5000)
    assert descriptors() == fds
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024
    )  # KiB; a leak of 100 bytes a round shows
