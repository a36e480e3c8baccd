"""The attach reader on emulated counters: exact increases for the right task while others run, and what nobody gets."""

import json
import subprocess
import sys

from loops import setting
from readers import differences_are_exact

from pmutop.sources.attach import AttachSource


def check_difference_of_lengths_is_exact_for_each_task_while_others_run():
    return differences_are_exact(AttachSource)


def check_header_says_what_is_absent_and_why():
    source = AttachSource(interval=0.05)
    try:
        names = [event.name for event in source.events]
        assert "cycles" in names and "instructions" in names
        assert "branch-misses" in source.header.absent and "LLC" not in names
        assert "no such event" in source.header.absent["branch-misses"]
        return source.header.absent
    finally:
        source.close()


def check_too_many_events_by_name_take_turns_in_groups():
    raws = [f"r{code:x}" for code in (0x01, 0x03, 0x09, 0x1D, 0x00, 0x04)]
    source = AttachSource(0.1, ["cycles", "instructions", *raws, "r23", "r24"])
    try:
        assert [len(group) for group in source.groups] == [7, 3]
    finally:
        source.close()


NOBODY = """
import json, os, sys
os.setgid(65534); os.setuid(65534)
from pmutop.sources.attach import AttachSource
source = AttachSource(interval=0.05)
told = {"events": {event.name: event.mode for event in source.events if event.tier == "hardware"},
        "absent": source.header.absent}
slices = iter(source)
next(slices)
for _ in range(3):
    sum(range(20000))
    raw = next(slices)
told["rows"] = len(raw.refs) // 8
source.close()
print(json.dumps(told))
"""


def as_nobody():
    done = subprocess.run([sys.executable, "-c", NOBODY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_what_nobody_counts_at_each_paranoid_level():
    for level, mode in ((3, None), (2, "u"), (1, ""), (-1, "")):
        with setting("perf_event_paranoid", level):
            told = as_nobody()
        if mode is None:
            assert not told["events"] and "paranoid" in told["absent"]["cycles"], told
        else:
            assert {told["events"]["cycles"], told["events"]["instructions"]} == {mode}, (level, told)
        assert told["rows"] > 0
