"""pmutop's own commands on the emulated PMU, as root and as nobody; and a recording to be replayed on the host."""

import json
import os
import subprocess
import sys

from loops import setting
from run import keep

PMUTOP = [sys.executable, "-m", "pmutop"]


def pmutop(*words, user=None, status=0):
    done = subprocess.run(
        [*PMUTOP, *words], capture_output=True, text=True, check=False, user=user, group=user
    )
    assert done.returncode == status, (words, done.returncode, done.stderr[-2000:], done.stdout[-500:])
    return done


def logged(*words, **options):
    """(header, lines of processes, lines of the machine) of `pmutop log`."""
    lines = [json.loads(line) for line in pmutop("log", *words, **options).stdout.splitlines()]
    return (
        lines[0],
        [line for line in lines[1:] if "pid" in line],
        [line["machine"] for line in lines if "machine" in line][1:],
    )


def spinning(processes):
    return [line for line in processes if line["comm"] == "spin" and line["cpu"] and line["cpu"] > 20]


def check_log_as_root_gives_ipc_of_a_launched_loop():
    header, processes, _ = logged("--interval", "0.2", "--", "spin", "80000000")
    assert {"cycles", "instructions"} <= {event["name"] for event in header["events"]}
    busy = spinning(processes)
    assert len(busy) >= 2, processes
    for line in (
        busy
    ):  # by construction of the emulator, never a figure of performance; the kernel's share is counted too
        assert line["ipc"] is None or abs(line["ipc"] - 0.25) < 0.002, line
        assert line["quality"].get("branch-misses") != "exact"
    told = [line for line in busy if line["ipc"] is not None]
    assert told and all(line["counts"]["instructions"] > 0 for line in told)
    assert all(line["quality"]["instructions"] in ("exact", "estimated") for line in told)
    return {"lines": len(processes), "ipc": told[0]["ipc"], "source": header["source"]}


def check_log_as_nobody_at_each_paranoid_level():
    facts = {}
    for level in (3, 2, 1, -1):
        with setting("perf_event_paranoid", level):
            header, processes, _ = logged("--interval", "0.2", "--", "spin", "60000000", user=65534)
        busy = spinning(processes)
        assert busy, (level, processes)
        rates = [line["ipc"] for line in busy if line["ipc"] is not None]
        if level == 3:
            assert not rates and "cycles" not in {event["name"] for event in header["events"]}
        else:
            assert rates and all(abs(rate - 0.25) < 0.002 for rate in rates), (level, rates)
        facts[level] = header["source"], rates[:1]
    return facts


def check_event_that_never_runs_is_null_and_uncounted():
    """Pinned counters of somebody else take the PMU: what is left for us is time_running = 0, which is never a 0."""
    from pmutop._perf import Group
    from pmutop.sysfs import resolve

    hog = Group([resolve("cycles")] * 7, -1, 0, pinned=True)
    try:
        hog.enable()
        _, processes, _ = logged(
            "--source",
            "attach",
            "--interval",
            "0.2",
            "--events",
            "cycles,instructions",
            "--",
            "spin",
            "60000000",
        )
    finally:
        hog.close()
    busy = spinning(processes)
    assert busy
    for line in busy:
        assert line["counts"].get("instructions") is None and line["ipc"] is None, line
    assert "uncounted" in {line["quality"].get("instructions") for line in busy}, busy[-1]


def check_events_lists_what_fits():
    told = json.loads(pmutop("events", "--json").stdout)
    assert told["pmus"][0]["name"] == "armv8_pmuv3" and told["pmus"][0]["fits"] == 7
    listed = {event["name"]: event for event in told["events"]}
    assert listed["instructions"]["opens"] and not listed["branch-misses"]["opens"]
    assert "armv8_pmuv3/inst_retired/" in listed
    assert told["groups"][0][:2] == ["instructions", "cycles"] and all(
        len(group) <= 7 for group in told["groups"]
    )
    assert set(told["drop_order"]) == {name for group in told["groups"] for name in group} | set(
        told["dropped"]
    )
    assert told["kept"] == told["groups"][0] and told["drop_order"][-2:] == ["cycles", "instructions"]
    assert (
        "cycles, instructions\n"
        in pmutop("events", "branch").stdout.partition("drop order, the first to go first:")[2]
    )
    pmutop("events", user=65534)
    return {"groups": told["groups"], "dropped": told["dropped"]}


def check_recording_is_made_here_and_replayed():
    pmutop("record", "/tmp/guest.pmutop", "--interval", "0.2", "--", "spin", "60000000")
    assert os.stat("/tmp/guest.pmutop").st_mode & 0o777 == 0o600
    told = pmutop("replay", "/tmp/guest.pmutop", "--log").stdout
    with open("/tmp/guest.jsonl", "w") as file:
        file.write(told)
    assert any('"comm": "spin"' in line or '"comm":"spin"' in line for line in told.splitlines())
    keep("/tmp/guest.pmutop")
    keep("/tmp/guest.jsonl")
