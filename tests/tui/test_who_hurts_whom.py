"""Live, on this machine: two programs pinned on one CPU, and the screen names victim, factor and antagonist."""

import os
import subprocess

import pytest
from capabilities import needs_perf, needs_root

from pmutop.bundle import fitting
from pmutop.pipeline.engine import Engine
from pmutop.selection import Selection
from pmutop.sources.system import SystemSource
from pmutop.tui.blame import blame
from pmutop.tui.state import State

SLICES = 3
#: A session and a priority of its own (sched(7), autogroup): what else runs here takes little from it.
HOG = "echo -20 > /proc/self/autogroup && exec taskset -c {cpu} nice -n -20 sh -c 'while :; do :; done'"


def hog(cpu: int) -> subprocess.Popen:
    return subprocess.Popen(["sh", "-c", HOG.format(cpu=cpu)], start_new_session=True)


@needs_perf
@needs_root
def test_two_programs_on_one_cpu_are_on_the_screen_within_three_slices():
    if not os.path.exists("/proc/self/autogroup"):
        pytest.skip("needs sched_autogroup to stand out on a busy machine")
    cpu = min(os.sched_getaffinity(0))
    source = SystemSource(0.4)
    state = State(source.header)
    engine = Engine(source.header, fitting(source.header, ["software-interference"])[0])
    slices = iter(source)
    hogs = []
    try:
        for _ in range(3):
            state.add(engine.moment(next(slices)))
        hogs = [hog(cpu), hog(cpu)]
        engine.moment(next(slices))  # the slice in which they were started is theirs in part only
        pids = [one.pid for one in hogs]
        seen = []
        for _ in range(SLICES):
            moment = engine.moment(next(slices))
            state.add(moment.only(Selection(pids=frozenset(pids)).rows(moment)))
            seen.append("\n".join("".join(text for text, _ in line) for line in blame(state, 200)))
    finally:
        for one in hogs:
            one.kill()
            one.wait()
        source.close()
    rows = [line.split() for line in seen[-1].splitlines() if line.startswith("sh ")]
    named = {int(words[1]): (words[2], [int(word) for word in words[4:] if word.isdigit()]) for words in rows}
    for victim, culprit in (pids, pids[::-1]):
        factor, suspects = named[victim]
        assert 1.5 < float(factor.strip("x")) < 6, seen[-1]
        assert culprit in suspects, seen[-1]
