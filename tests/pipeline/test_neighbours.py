"""From raw slices to a name: the gates are fed by what the sources read, and each blames wrongly without its input."""

import numpy as np
import pytest
from making import EVENTS, born, header, proc, raw, task

from pmutop.events import Event
from pmutop.pipeline.engine import Engine

MS = 1_000_000
STEP = Event("step", "count", "software", 8, path="/p", config2=1)


def machine(number, throttled=None, steal=(0, 0)):
    facts = {"lost": 0, "switches": 0, "cpu_steal_ns": [one * number for one in steal], "cpu_busy_ns": [0, 0]}
    return facts | ({"throttled": throttled} if throttled else {})


def told(run, delay, other_run, **more):
    """The names given to the victim (ref 1) in a dozen slices: it runs and waits so much, the other (ref 2) runs beside it
    (ms a slice). Without periods both are on the CPU they ran on last, 0."""
    engine, names = Engine(header(), []), []
    for number in range(12):
        rows = {
            1: (proc(run_time=run * MS * number, run_delay=delay * MS * number), "R"),
            2: (proc(run_time=other_run * MS * number), "R"),
        }
        people = born(task(1), task(2)) if number == 0 else ()
        moment = engine.moment(raw(number, rows, people, machine=machine(number, **more)))
        found = moment.interference.get(0)
        names.append(found.antagonist.pid if found and found.antagonist else None)
    return set(names[1:])


def test_a_neighbour_on_the_core_is_named():
    assert told(200, 200, 200) == {1002}


def test_gate_quota_the_wait_for_ones_own_quota_is_nobodys_fault():
    assert told(200, 200, 200, throttled=[[199 * MS, [1001]]]) == {None}
    assert told(200, 200, 200, throttled=[[199 * MS, [1003]]]) == {
        1002
    }  # another group's quota changes nothing


def test_gate_steal_what_the_hypervisor_took_is_nobodys_fault():
    assert told(200, 100, 80) == {1002}
    assert told(200, 100, 80, steal=(100 * MS, 0)) == {None}
    assert told(200, 100, 80, steal=(0, 100 * MS)) == {1002}  # stolen from the other CPU


def progress(pattern, faults=None, events=(*EVENTS, STEP), told_by="step"):
    """A victim that runs 200 ms a slice and makes 2000 steps, or fewer by `pattern`; the culprit runs when it is slowed.
    Returns (factor, name) of each slice."""
    engine, found = Engine(header(events, progress=told_by), []), []
    steps = storms = busy = 0
    for number, factor in enumerate(pattern):
        steps += round(2000 / factor)
        storms += round(200 / factor) * (faults[number] if faults else 1)
        busy += 100 * MS * (factor > 1.1)
        counted = proc(run_time=200 * MS * (number + 1), minor_faults=storms) | {"step": steps}
        rows = {1: (counted, "R"), 2: (proc(run_time=busy) | {"step": 0}, "R")}
        people = born(task(1), task(2)) if number == 0 else ()
        moment = engine.moment(raw(number, rows, people, events=events, machine=machine(number)))
        one = moment.interference.get(0)
        found.append((one and one.progress.factor, one and one.antagonist and one.antagonist.pid))
    return found


PULSING = [1.0] * 8 + ([2.0] * 5 + [1.0] * 5) * 5


def test_progress_gives_the_factor_and_names_who_comes_and_goes_with_it():
    found = progress(PULSING)
    slowed = [one for one, factor in zip(found, PULSING, strict=True) if factor > 1]
    assert all(factor == pytest.approx(2.0, rel=0.05) for factor, _ in slowed)
    assert {name for _, name in slowed[-15:]} == {1002}
    assert not any(
        name for one, factor in zip(found, PULSING, strict=True) if factor == 1 for name in one[1:]
    )


def test_gate_phase_its_own_other_work_is_no_slow_down():
    steady = progress(PULSING, faults=[1] * len(PULSING))
    assert max(factor or 1 for factor, _ in steady) > 1.9
    own = progress(PULSING, faults=[1 if factor == 1 else 9 for factor in PULSING])
    assert not any(factor and factor > 1.05 for factor, _ in own)
    assert not any(name for _, name in own)


def test_without_a_progress_event_nothing_is_said_of_progress():
    assert all(factor is None for factor, _ in progress(PULSING, told_by=""))


def test_cpus_with_gaps_in_their_numbers_are_no_trouble():
    """CPU 7 on a machine that shows two: numbers of CPUs are not their count."""
    import struct
    from dataclasses import replace

    engine = Engine(header((*EVENTS, STEP), progress="step"), [])
    for number in range(8):
        rows = {1: (proc(run_time=200 * MS * number) | {"step": 900 * number if number < 5 else 4000}, "R")}
        one = raw(
            number,
            rows,
            born(task(1)) if number == 0 else (),
            events=(*EVENTS, STEP),
            machine=machine(number),
        )
        levels = list(struct.unpack("4q", bytes(one.levels)))
        moment = engine.moment(replace(one, levels=struct.pack("4q", levels[0], 7, *levels[2:])))
    assert moment.interference[0].progress.verdict and np.isfinite(moment.interference[0].progress.factor)
