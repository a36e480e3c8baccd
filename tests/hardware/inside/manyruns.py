"""`pmutop validate` and `pmutop combine --runs` on the emulated PMU: instruction counts exact, merged profiles consistent."""

import csv
import json
import statistics

from commands import pmutop

JOBS = """
import subprocess
for passes in (400000, 100000, 1600000, 800000, 200000, 3200000, 50000, 6400000):
    subprocess.run(["spin", str(passes)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
"""
EVENTS = "instructions:u,cycles:u,page-faults,task-clock"
METHODS = ("lgl", "bc")
WITHIN = 0.001  # of four cycles an instruction


def validated(repetitions, *more):
    words = ("--tier", "hardware", "--program", "/opt/bin/micro", "--repetitions", str(repetitions), *more)
    done = pmutop("validate", "--json", *words)
    (tier,) = json.loads(done.stdout)["tiers"]
    return tier


def check_instructions_are_exact():
    """Behind what an interface adds every instruction is counted once: around the region to the digit, in every run; a whole
    process starts with some instructions more or less (random addresses, its arguments' length)."""
    tier = validated(3, "--only", "loop")
    assert tier["verdicts"] == {"instructions": "trust"}, tier
    process, region = sorted(tier["rows"], key=lambda row: row["interface"])
    assert abs(process["slope"] - 1) < 1e-4 and process["corrected"] == "trust", process
    assert abs(region["slope"] - 1) < 1e-9, region
    assert region["repeats"] and region["overhead"] < 100 and region["verdict"] == "trust", region
    header = json.loads(pmutop("log", "--slices", "1").stdout.splitlines()[0])
    trust = {event["name"]: event["trust"] for event in header["events"]}
    assert trust["instructions"] == "counted, trust" and trust["cycles"] == "counted"
    return {"rows": tier["rows"]}


def merged(method):
    """What each run but the first of `combine --runs` joins: cycles to instructions of the tasks called spin."""
    words = (
        "--runs",
        "--method",
        method,
        "--counters",
        "2",
        "--events",
        EVENTS,
        "--output",
        "/tmp/merged.csv",
    )
    pmutop("combine", *words, "--", "python3.11", "-S", "-c", JOBS)
    with open("/tmp/merged.csv") as file:
        tasks = [row for row in csv.DictReader(file) if row["type"] == "spin"]
    ratios = [float(row["cycles:u"]) / float(row["instructions:u"]) for row in tasks]
    return tasks, ratios


def check_runs_are_combined():
    """An instruction is four cycles here, so that a task joined from two runs tells by how much it was torn."""
    facts = {}
    for method in METHODS:
        tasks, ratios = merged(method)
        assert len(tasks) == 8, tasks
        assert all(abs(ratio / 4 - 1) < WITHIN for ratio in ratios), (method, ratios)
        facts[method] = [len(tasks), min(ratios), statistics.median(ratios), max(ratios)]
    return facts
