"""Rules: what they mean, where they are wrong, when they fire. Hooks: once, by environment, no shell, no zombies."""

import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from moments import World

from pmutop.errors import UsageError
from pmutop.moment import UNSEEN, Interference, Label, Resource
from pmutop.sinks.alerts import AT_ONCE, Hooks, Watch, parse_hook, parse_rule


def moment(number, labels=(), rows=3, **columns):
    """A quiet slice but for labels {row: name}, at 0.4 s each."""
    world = World(rows)
    made = replace(
        world.moment(1),
        number=number,
        time=1000 + 0.4 * number,
        seconds=0.4,
        labels={},
        interference={},
        cpu=np.zeros(rows),
        wait=np.zeros(rows),
    )
    found = {row: (Label(name, "", 0.9, "software", "m"),) for row, name in dict(labels).items()}
    return replace(made, labels=found, **columns)


def fires(rule, moments):
    watch = Watch([parse_rule(rule)])
    return [(one.number, fired.row) for one in moments for fired in watch.moment(one)]


def test_a_rule_fires_once_when_it_held_for_long_enough_and_again_after_a_break():
    storm = [moment(number, {0: "P_OS_Switch"}) for number in range(10)]
    assert fires("label=P_OS_Switch", storm) == [(0, 0)]
    assert fires("label=P_OS_Switch for 2s", storm) == [(4, 0)]
    broken = [*storm[:4], moment(4), *storm[5:]]
    assert fires("label=P_OS_Switch for 2s", broken) == [(9, 0)]
    assert fires("label=P_OS_Switch for 800ms", broken) == [(1, 0), (6, 0)]


def test_since_is_when_it_began():
    watch = Watch([parse_rule("label=P_* for 1s")])
    fired = [one for number in range(5) for one in watch.moment(moment(number, {1: "P_X"}))]
    assert (
        len(fired) == 1
        and fired[0].since == pytest.approx(1000 - 0.4)
        and fired[0].seconds == pytest.approx(1.2)
    )


def test_every_word_is_compared():
    slow = Interference(Resource(True, 2.5, 1.0), UNSEEN, Resource(True, 1.5, 1.0), UNSEEN, UNSEEN, None)
    one = moment(
        0,
        {0: "P_OS_Fork"},
        cpu=np.array([50.0, np.nan, 0]),
        wait=np.array([20.0, 0, 0]),
        interference={0: slow},
    )
    task = one.tasks[0]
    true = (f"comm={task.comm}", f"comm={task.comm[:3]}*", f"user={task.user}", "label=P_OS_Fork", "label=P_*", "cpu>=50", "wait>=19.5",
            "interference>=2.5", "confidence>=0.9", "cgroup=*/redis*")  # fmt: skip
    for rule in true:
        assert (0, 0) in fires(rule, [one]), rule
    assert fires(" ".join(true), [one]) == [(0, 0)]
    for rule in (
        "comm=nobody",
        "comm=redis",
        "label=P_OS",
        "cpu>=50.1",
        "interference>=2.6",
        "confidence>=0.91",
    ):
        assert fires(rule, [one]) == [], rule
    assert (0, 1) not in fires("cpu>=0", [one]), "what is not known does not hold"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1), ("for 5s", 1), ("labl=x", 1), ("label=x and cpu>=5", 9), ("label>=x", 6), ("cpu=5", 4), ("cpu>=much", 6),
        ("label=x for long", 13), ("  wait>=1  user", 12), ("label=x for", 9), ("label=", 1),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_told_with_its_place(text, column):
    with pytest.raises(UsageError, match=f"column {column}: "):
        parse_rule(text)


def test_a_pid_given_to_another_task_starts_anew():
    watch = Watch([parse_rule("label=P_X for 0.8s")])
    first = moment(0, {0: "P_X"})
    other = moment(1, {0: "P_X"})
    other = replace(other, tasks=[other.tasks[0]._replace(ref=999), *other.tasks[1:]])
    assert watch.moment(first) == watch.moment(other) == []


def ended(hooks):
    for process in hooks.running.values():
        process.wait(10)


def dump(path):
    """A command that appends its environment as PMUTOP_ lines and its arguments."""
    code = (
        "import os, sys, json\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('PMUTOP_')}\n"
        "open(sys.argv[1], 'a').write(json.dumps([told, sys.argv[2:]]) + '\\n')"
    )
    return [sys.executable, "-c", code, str(path)]


def test_the_command_is_told_by_its_environment_and_hostile_names_stay_there(tmp_path):
    import json

    path, evil = tmp_path / "told", f"$(touch {tmp_path}/evil);`id`\n'\""
    hooks = Hooks([(parse_rule("label=P_X"), [*dump(path), "$PMUTOP_PID"])], pytest.fail)
    one = moment(7, {0: "P_X"})
    one = replace(one, tasks=[one.tasks[0]._replace(comm=evil + "\0"), *one.tasks[1:]])
    assert len(hooks.moment(one)) == 1
    ended(hooks)
    told, arguments = json.loads(path.read_text())
    assert told["PMUTOP_COMM"] == evil and arguments == ["$PMUTOP_PID"] and not (tmp_path / "evil").exists()
    assert (
        told["PMUTOP_PID"] == str(one.tasks[0].pid)
        and told["PMUTOP_LABEL"] == "P_X"
        and told["PMUTOP_CONFIDENCE"] == "0.9"
    )
    assert float(told["PMUTOP_SINCE"]) == pytest.approx(one.time - 0.4) and told["PMUTOP_INTERFERENCE"] == ""


def test_one_run_per_process_and_rule_at_a_time_and_none_is_left_a_zombie(tmp_path):
    said = []
    hooks = Hooks(
        [(parse_rule("label=P_X"), ["sleep", "30"]), (parse_rule("label=P_*"), ["true"])], said.append
    )
    for number in range(9):  # three episodes
        hooks.moment(moment(number, {0: "P_X"} if number % 3 else {}))
    sleeping = [process for process in hooks.running.values() if process.args == ["sleep", "30"]]
    assert len(sleeping) == 1
    started = list(hooks.running.values())
    for process in started:
        if process in sleeping:
            process.terminate()
    deadline = time.monotonic() + 10
    while hooks.running and time.monotonic() < deadline:
        hooks.moment(moment(20))
    assert not hooks.running and not said
    for process in started:
        assert not os.path.exists(f"/proc/{process.pid}/stat"), "reaped"


def test_many_at_once_are_bounded_and_told():
    said = []
    hooks = Hooks([(parse_rule("cpu>=1"), ["sleep", "30"])], said.append)
    hooks.moment(moment(0, rows=40, cpu=np.full(40, 5.0)))
    assert len(hooks.running) == AT_ONCE and len(said) == 40 - AT_ONCE
    for process in hooks.running.values():
        process.kill()
    ended(hooks)


def test_a_command_that_is_not_there_is_told_at_once():
    assert parse_hook("label=x", "sh -c 'echo \"a b\"'")[1] == ["sh", "-c", 'echo "a b"']
    for command in ("no-such-program x", "", "sh 'open"):
        with pytest.raises(UsageError):
            parse_hook("label=x", command)
