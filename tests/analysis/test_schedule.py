"""Scheduling history against a hand-traced run of the thesis's algorithm and against a simulated scheduler."""

import csv
import io
import json

import numpy as np
import pytest

from pmutop.analysis.schedule import Periods, as_csv, chrome_trace, from_samples, from_switches, occupancy
from pmutop.errors import BadInput

# (cpu, task, time): 7 starts on CPU 0, 8 takes it over, 7 appears on CPU 1 and goes on, 8 moves to CPU 1 over it.
STORY = [(0, 7, 1), (0, 7, 2), (0, 8, 3), (1, 7, 4), (1, 7, 6), (0, 8, 7), (1, 8, 9), (0, 9, 10)]


def rows(history: Periods) -> list[tuple]:
    return [tuple(row) for row in zip(*(column.tolist() for column in history), strict=True)]


def split(story):
    return (np.array(column) for column in zip(*story, strict=True))


def as_printed(samples):
    """Algorithms 1 and 2 line by line, for comparison."""
    finished, active, last_tids = [], {}, {}
    for cpu, tid, time in samples:
        prev_tid = last_tids.get(cpu)
        if prev_tid is not None and prev_tid != tid:
            finished.append(active[prev_tid])
            del active[prev_tid]
        period = active.get(tid)
        if period is not None and period["cpu"] == cpu:
            period["end"] = time
        else:
            if period is not None:
                finished.append(period)
                del last_tids[period["cpu"]]
            active[tid] = {"cpu": cpu, "tid": tid, "begin": time, "end": time}
            last_tids[cpu] = tid
    return [(one["cpu"], one["tid"], one["begin"], one["end"]) for one in finished]


def test_the_story_traced_by_hand():
    literal = [(0, 7, 1, 2), (1, 7, 4, 6), (0, 8, 3, 7)]
    assert rows(from_samples(*split(STORY), literal=True)) == literal == as_printed(STORY)
    assert rows(from_samples(*split(STORY))) == [*literal, (1, 8, 9, 9), (0, 9, 10, 10)]


@pytest.mark.parametrize("seed", range(10))
def test_literal_form_is_the_printed_algorithm(seed):
    generator = np.random.default_rng(seed)
    story = list(
        zip(
            generator.integers(0, 4, 400).tolist(),
            generator.integers(1, 9, 400).tolist(),
            range(400),
            strict=True,
        )
    )
    assert rows(from_samples(*split(story), literal=True)) == as_printed(story)


def test_idle_closes_a_period_and_is_none_itself():
    story = [(0, 5, 0), (0, 5, 10), (0, 0, 20), (1, 0, 20), (0, 0, 30), (0, 5, 40)]
    assert rows(from_samples(*split(story))) == [(0, 5, 0, 10), (0, 5, 40, 40)]


def test_a_silence_longer_than_the_gap_closes_a_period():
    story = [(0, 5, 0), (0, 5, 10), (0, 5, 90), (0, 5, 100)]
    assert rows(from_samples(*split(story))) == [(0, 5, 0, 100)]
    assert rows(from_samples(*split(story), gap=20)) == [(0, 5, 0, 10), (0, 5, 90, 100)]
    assert rows(from_samples(*split(story), gap=20, literal=True)) == []


def test_times_that_run_backwards_are_refused():
    with pytest.raises(BadInput, match="sample 2"):
        from_samples([0, 0, 0], [1, 1, 1], [5, 6, 4])
    with pytest.raises(BadInput, match="shapes"):
        from_samples([0, 0], [1], [5])


def simulated(seed: int, cpus=3, tasks=7, length=200_000):
    """A scheduler's true periods, idle included, in [0, length) microseconds; a task is on one CPU at a time."""
    generator, truth = np.random.default_rng(seed), []
    free, now = set(range(1, tasks + 1)), [(0, cpu, None) for cpu in range(cpus)]
    while now:
        time, cpu, leaving = min(now)
        now.remove((time, cpu, leaving))
        free |= {leaving} - {None, 0}
        if time >= length:
            continue
        choices = sorted(free - {leaving})
        task = 0 if not choices or generator.random() < 0.3 else int(generator.choice(choices))
        free -= {task}
        end = min(time + int(generator.integers(50, 4000)), length)
        truth.append((cpu, task, time, end))
        now.append((end, cpu, task))
    return truth, length


@pytest.mark.parametrize("seed", range(5))
def test_switches_give_the_truth_back(seed):
    truth, length = simulated(seed)
    switches = [(cpu, task, end) for cpu, task, _, end in truth if end < length]
    running = {cpu: task for cpu, task, _, end in truth if end == length}
    found = from_switches(*split(switches), begin=0, until=length, running=running)
    merged = []  # idle after idle is no switch to the scheduler, and idle has no period
    for one in sorted((start, cpu, task, end) for cpu, task, start, end in truth if task):
        merged.append((one[1], one[2], one[0], one[3]))
    assert rows(found) == merged
    without = from_switches(*split(switches))
    assert set(rows(without)) == {row for row in merged if row[2] > 0 and row[3] < length}


@pytest.mark.parametrize("seed", range(3))
def test_fine_samples_come_near_the_truth_and_the_literal_form_does_not(seed):
    truth, _ = simulated(seed, cpus=2, tasks=2)  # few tasks, so that one often comes back after a sleep
    step, samples = 20, []
    for cpu, task, start, end in truth:
        samples += [(cpu, task, time) for time in range(-(-start // step) * step, end, step)]
    samples.sort(key=lambda sample: (sample[2], sample[0]))
    idle_seen = from_samples(*split(samples))
    busy = [sample for sample in samples if sample[1]]  # as in the thesis: who does not run is not sampled
    literal = from_samples(*split(busy), literal=True)
    true_time = sum(end - start for _, task, start, end in truth if task)

    def share(found):
        return float((found.end - found.start + step).sum()) / true_time

    assert share(idle_seen) == pytest.approx(1, abs=0.02)
    assert share(literal) > 1.1  # sleeps are taken for running


def test_occupancy_is_the_time_inside_the_slice():
    history = from_switches([0, 0, 1, 0], [5, 6, 5, 5], [10, 30, 40, 60], begin=0)
    task, cpu, time = occupancy(history, 5, 50)
    found = {(t, c): float(x) for t, c, x in zip(task.tolist(), cpu.tolist(), time, strict=True)}
    assert found == {(5, 0): 25.0, (6, 0): 20.0, (5, 1): 35.0}


def test_occupancy_of_nothing_is_nothing():
    assert [len(column) for column in occupancy(from_samples([], [], []), 0, 1)] == [0, 0, 0]


def test_csv_reads_back():
    history, names = from_samples(*split(STORY)), {7: 'a "b", c', 8: "plain"}
    lines = list(csv.DictReader(io.StringIO("".join(as_csv(history, names)))))
    again = [tuple(int(line[key]) for key in ("cpu", "task", "start", "end")) for line in lines]
    assert again == rows(history)
    assert {line["name"] for line in lines if line["task"] == "7"} == {'a "b", c'}


def test_chrome_trace_is_json_with_a_lane_per_cpu_and_microseconds():
    history = from_switches([0, 1, 0], [5, 6, 7], [2000, 3000, 5500], begin=1000)
    trace = json.loads("".join(chrome_trace(history, {5: 'x"y'})))
    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert sorted((bar["tid"], bar["name"], bar["ts"], bar["dur"]) for bar in bars) == [
        (0, "7", 2.0, 3.5), (0, 'x"y', 1.0, 1.0), (1, "6", 1.0, 2.0),
    ]  # fmt: skip
    lanes = {
        event["tid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert lanes == {0: "CPU 0", 1: "CPU 1"}


def test_an_empty_trace_is_still_json():
    assert json.loads("".join(chrome_trace(from_samples([], [], []))))["traceEvents"]
