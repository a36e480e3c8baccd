"""Advice on placement: the line that would separate a pair, and that nothing is done before it is chosen."""

from dataclasses import replace

import numpy as np
import pytest
from moments import World

from pmutop import moment as m
from pmutop.tui.app import PmutopApp
from pmutop.tui.blame import blame
from pmutop.tui.placement import advice, separation
from pmutop.tui.state import State

VICTIM, CULPRIT = 3, 7


def pair(resource="core", busy=(100.0, 20.0, 5.0, 60.0), where=((0, 0), (0, 0)), machine=None, cgroup="/"):
    """A Moment in which row 3 suffers from row 7; `where`: the CPUs of each."""
    made = World(12).moment(1)
    tasks = [task._replace(cgroup=cgroup if at == CULPRIT else "/") for at, task in enumerate(made.tasks)]
    other = m.Antagonist(tasks[CULPRIT].pid, tasks[CULPRIT].comm, resource, 0.9, 0.02, 0.48)
    found = m.Interference(m.Resource(True, 2.0, 1.0), *[m.UNSEEN] * 4, other)
    periods = [(cpu, tasks[row].ref, 0, 10**8) for row, cpus in zip((VICTIM, CULPRIT), where) for cpu in cpus]
    header = replace(made.header, machine=made.header.machine | (machine or {}))
    return replace(
        made,
        header=header,
        tasks=tasks,
        interference={VICTIM: found},
        machine=made.machine | {"cpu_busy": list(busy)},
        periods=np.array(periods, np.int64).reshape(-1, 4),
    )


def test_the_antagonist_goes_to_the_freest_cpu_apart_from_the_victims():
    found = separation(pair(), VICTIM)
    assert found.cpus == (2,) and found.commands == (f"taskset -acp 2 {found.task.pid}",)
    assert found.task == pair().tasks[CULPRIT]


def test_its_control_group_may_be_moved_instead():
    found = separation(pair(cgroup="/batch/a b"), VICTIM)
    assert found.commands[1] == "echo 2 > '/sys/fs/cgroup/batch/a b/cpuset.cpus'"


def test_without_room_there_is_no_move_but_a_weight():
    found = separation(pair(busy=(100.0, 95.0)), VICTIM)
    assert found.cpus == () and found.commands == (f"renice -n 10 -p {found.task.pid}",)


def test_a_cache_is_left_by_leaving_its_cpus():
    domains = {"domains": [{"cpus": [0, 1, 2]}, {"cpus": [3]}]}
    assert separation(pair("llc", machine=domains), VICTIM).cpus == (3,)
    assert separation(pair("llc"), VICTIM).cpus == ()  # nobody knows of another cache


def test_nobody_named_or_gone_is_no_advice():
    calm = replace(pair(), interference={})
    gone = pair()
    gone.exited[CULPRIT] = True
    assert (
        separation(calm, VICTIM) is None and separation(gone, VICTIM) is None and advice(calm, VICTIM) == []
    )


@pytest.mark.parametrize(
    "keys, moved", [(("enter",), False), (("escape",), False), (("down", "enter"), True)]
)
def test_it_is_done_only_when_chosen(keys, moved):
    done = []
    app = PmutopApp(
        State(pair().header), actions={"affinity": lambda *arguments: done.append(arguments) or ""}
    )
    app.state.add(pair())
    app.state.arrange(0.0)
    app.state.select(pair().tasks[VICTIM].ref, 0.0)
    app.do_separate()
    assert app.state.menu is not None and not done
    for key in keys:
        app.type_menu(key, None)
    assert done == ([(pair().tasks[CULPRIT], {2})] if moved else [])


def test_a_replay_moves_nothing():
    app = PmutopApp(State(pair().header))
    app.state.add(pair())
    app.state.arrange(0.0)
    app.state.select(pair().tasks[VICTIM].ref, 0.0)
    app.do_separate()
    assert app.state.menu is None and "not possible" in app.state.message


def test_the_panel_shows_it_cleaned():
    app = PmutopApp(State(pair().header))
    app.state.add(pair(cgroup="/x\x1b[2Jy"))
    text = "\n".join("".join(part for part, _ in line) for line in blame(app.state, 120))
    assert (
        f"taskset -acp 2 {pair().tasks[CULPRIT].pid}" in text and "\x1b" not in text and "cpuset.cpus" in text
    )
