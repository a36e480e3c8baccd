"""Two CPUs that run in parallel, counting the host's time: per-CPU groups and hotplug."""

import errno
import os
import time

from loops import Spin, named

from pmutop._perf import CountError, Group
from pmutop.topology import Machine

CYCLES = named("cycles")
ONLINE = "/sys/devices/system/cpu/cpu1/online"


def switch(words):
    with open(ONLINE, "w") as file:
        file.write(words)


def check_each_cpu_counts_its_own_tasks():
    user = {"exclude_kernel": True}  # cycles are host time here, and pass while a CPU idles too
    with (
        Group(CYCLES, -1, 0, **user) as first,
        Group(CYCLES, -1, 1, **user) as second,
        Spin(20_000_000) as spin,
    ):
        os.sched_setaffinity(spin.pid, {1})
        os.sched_setaffinity(0, {0})
        time.sleep(0.05)  # let the migration settle
        first.enable()
        second.enable()
        spin.go()
        spin.process.stdout.readline()
        busy, idle = second.read()[0][0], first.read()[0][0]
        os.sched_setaffinity(0, {0, 1})
        assert busy > 2 * idle, (busy, idle)


def check_cpu_offline_breaks_its_group_and_a_new_one_counts():
    assert Machine.read().online == (0, 1)
    with Group(CYCLES * 2, -1, 1) as group:
        group.enable()
        switch("0")
        try:
            assert Machine.read().offline == (1,)
            assert len(group.read()) == 1  # the members are gone, without an error
            try:
                Group(CYCLES, -1, 1).close()
                raise AssertionError("a group opened on an offline CPU")
            except CountError as error:
                assert error.errno == errno.ENODEV
        finally:
            switch("1")
        time.sleep(0.05)
        dead = group.read()
        group.enable()
        time.sleep(0.05)
        assert group.read() == dead  # back online it stays dead: it must be opened again
    with Group(CYCLES * 2, -1, 1) as group:
        group.enable()
        os.sched_setaffinity(0, {1})
        deadline = time.monotonic() + 0.02
        while time.monotonic() < deadline:
            pass
        os.sched_setaffinity(0, {0, 1})
        readings = group.read()
        assert len(readings) == 2 and readings[0][0] > 0
