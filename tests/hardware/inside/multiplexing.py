"""The kernel's own multiplexing on the emulated PMU: error and run time against the number of events, the length of the task
and perf_event_mux_interval_ms (the study of "Fuse", section 5, on counters that are real to the kernel).

Every event counts user instructions, one as a pinned counter of its own (the truth) and the others in turns on what is
left. The task goes from stretches in user mode to stretches of system calls at random. Run time is guest time, which under
-icount is instructions executed, the kernel's included.
"""

import subprocess
import time
from dataclasses import replace
from glob import glob

from loops import named, state

from pmutop._perf import Group

EVENTS = (4, 8, 12, 16, 24, 33)
ROUNDS = (3, 10, 30, 100, 300)  # of the task, about 20 ms of guest time each
PERIODS = (1, 2, 4, 8, 16)  # ms; the kernel takes no fraction
SEEDS = 4
USUAL = {"events": 16, "rounds": 100, "period": 4}  # what stays while another is varied


def counted(events, rounds, seed):
    """(errors of the scaled counts, guest seconds) of one run; `events` 0 = only the truth."""
    command = ["phases", str(rounds), str(seed)]
    task = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert task.stdout.readline() == b"ready\n"
    while state(task.pid) != "S":
        time.sleep(0.001)
    (event,) = (replace(event, mode="u") for event in named("instructions"))
    truth = Group([event], task.pid, pinned=True)
    others = [Group([event], task.pid) for _ in range(events)]
    for group in (truth, *others):
        group.enable()
    started = time.monotonic()
    task.stdin.write(b"g")
    task.wait()
    seconds = time.monotonic() - started
    (exact, enabled, running) = truth.read()[0]
    assert exact and enabled == running, "the truth was multiplexed"
    readings = [group.read()[0] for group in others]
    for group in (truth, *others):
        group.close()
    task.stdin.close()
    task.stdout.close()
    assert all(running for _, _, running in readings), "some event never had its turn"
    scaled = [value * enabled / running for value, enabled, running in readings]
    return [abs(value / exact - 1) for value in scaled], seconds


def study(events, rounds, period):
    for path in glob("/sys/bus/event_source/devices/armv8*/perf_event_mux_interval_ms"):
        with open(path, "w") as file:
            file.write(str(period))
    errors, slower = [], []
    for seed in range(1, SEEDS + 1):
        _, alone = counted(0, rounds, seed)
        found, seconds = counted(events, rounds, seed)
        errors += found
        slower.append(seconds / alone)
    errors.sort()
    return {
        "events": events,
        "rounds": rounds,
        "period": period,
        "seconds": alone,
        "median": errors[len(errors) // 2],
        "most": errors[-1],
        "slower": sorted(slower)[len(slower) // 2],
    }


def varied(name, values):
    return {"rows": [study(**(USUAL | {name: value})) for value in values]}


def check_number_of_events():
    return varied("events", EVENTS)


def check_length_of_the_task():
    return varied("rounds", ROUNDS)


def check_period_of_the_rotation():
    return varied("period", PERIODS)
