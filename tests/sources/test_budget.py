"""The measured budget, on software events (they always run) and on whatever PMU this machine has."""

import errno

from pmutop import events
from pmutop.sources import budget
from pmutop.topology import Machine

CLOCK = events.generic("task-clock")
ABSENT = events.Event("absent", "count", "hardware", 9999)


def test_software_events_always_run():
    assert budget.share([CLOCK]) == 1.0
    groups, dropped = budget.fitting([CLOCK, events.generic("page-faults")])
    assert [[event.name for event in group] for group in groups] == [
        ["task-clock", "page-faults"]
    ] and not dropped


def test_what_does_not_open_is_dropped_with_the_reason():
    groups, dropped = budget.fitting([ABSENT, CLOCK])
    assert [event.name for event in groups[0]] == ["task-clock"]
    assert "No such" in dropped["absent"]


def test_a_group_that_never_runs_is_split_and_what_is_over_is_dropped(monkeypatch):
    """A PMU of two counters: a third event in a group opens and never runs, as perf_event_open has it."""
    monkeypatch.setattr(budget, "share", lambda group: 1.0 if len(group) <= 2 else 0.0)
    wanted = [events.Event(name, "count", "hardware", 0) for name in "abcde"]
    groups, dropped = budget.fitting(wanted, groups=2)
    assert [[event.name for event in group] for group in groups] == [["a", "b"], ["c", "d"]]
    assert dropped == {"e": "no counter is left for it"}


def test_counters_that_others_hold(monkeypatch):
    monkeypatch.setattr(budget, "share", lambda group: 0.0)
    _, dropped = budget.fitting([CLOCK])
    assert "others hold the counters" in dropped["task-clock"]


def test_probe_tells_the_errno():
    told = budget.probe(["task-clock", "nobody knows this name"])
    assert told == {"task-clock": 0}
    if not Machine.read().core_pmus:
        assert budget.probe(["cycles"]) == {"cycles": errno.ENOENT}
        assert budget.free_counters(Machine.read()) == {} and budget.own_ipc() is None
