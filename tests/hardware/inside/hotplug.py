"""The system reader on two CPUs that run in parallel: one goes offline and comes back."""

import contextlib
import os
import time

from cpus import switch
from loops import Spin, named
from readers import Watch

from pmutop._perf import Group
from pmutop.sources.system import SystemSource

NAME = "cycles:u"


def cycles_on(watch, cpu):
    """What the reader counts of a loop pinned to this CPU: (value, time_enabled, time_running)."""
    with Spin(100_000_000, pieces=20) as spin:
        os.sched_setaffinity(spin.pid, {cpu})
        spin.work()
        watch.catch_up()
        return watch.total(spin.pid, NAME)


def check_groups_are_reopened_when_a_cpu_comes_back():
    watch = Watch(SystemSource(0.1, [NAME], budget=10.0))
    try:
        before = cycles_on(watch, 1)
        switch("0")
        try:
            away = cycles_on(watch, 0)
            assert away[0] > 0  # the other CPU is counted as ever
        finally:
            switch("1")
        deadline = time.monotonic() + 10
        back = (0, 0, 0)
        while back[2] == 0 and time.monotonic() < deadline:
            watch.catch_up()
            back = cycles_on(watch, 1)
    finally:
        watch.source.close()
    assert before[0] > 0 and back[0] > 0, (before, away, back)
    assert 0.5 < back[0] / before[0] < 2, (before, back)  # the same loop, by the host's clock
    return {"before": before, "away": away, "back": back}


def check_tasks_on_both_cpus_are_credited_what_their_own_counters_say():
    """Really in parallel: the reader's total of each task beside a counter of the task's own, within 2 %."""
    event = named(NAME)
    watch = Watch(SystemSource(0.1, [NAME], budget=10.0))
    told = []
    try:
        with contextlib.ExitStack() as stack:
            spins = [stack.enter_context(Spin(passes, pieces=30)) for passes in (300_000_000, 100_000_000)]
            own = [stack.enter_context(Group(event, spin.pid)) for spin in spins]
            for cpu, spin in enumerate(spins):
                os.sched_setaffinity(spin.pid, {cpu})
                own[cpu].enable()
            watch.catch_up()  # with what they counted while they started
            before = [watch.total(spin.pid, NAME)[0] for spin in spins]
            for spin in spins:
                spin.go()
            for spin in spins:
                assert spin.process.stdout.readline() == b"done\n"
            watch.catch_up()
            after = [watch.total(spin.pid, NAME)[0] for spin in spins]
            told = [(b - a) / group.read()[0][0] for a, b, group in zip(before, after, own, strict=True)]
    finally:
        watch.source.close()
    assert len(told) == 2 and all(abs(ratio - 1) < 0.02 for ratio in told), told
    return {"ratios": told}
