"""`pmutop doctor` on the emulated PMU, as root and as nobody at every paranoid level."""

import json

from commands import pmutop
from loops import setting


def check_doctor_as_root_and_as_nobody():
    told = json.loads(pmutop("doctor", "--json").stdout)
    found = {finding["check"]: finding for finding in told["findings"]}
    assert "armv8_pmuv3 (type" in found["pmu"]["text"] and found["pmu"]["level"] == "good"
    assert "7 of armv8_pmuv3" in found["counters"]["text"]
    assert found["plausibility"]["level"] == "good" and "0.25" in found["plausibility"]["text"]
    assert found["paranoid"]["level"] == "good"
    (tier,) = [tier for tier in told["tiers"] if tier["tier"] == "hardware"]
    assert not tier["labels"] and "marked `rule`" in tier["why"], tier
    for level, wanted in ((3, "problem"), (2, "note"), (1, "note"), (-1, "good")):
        with setting("perf_event_paranoid", level):
            told = json.loads(pmutop("doctor", "--json", user=65534).stdout)
        found = {finding["check"]: finding for finding in told["findings"]}
        assert found["paranoid"]["level"] == wanted, (level, found["paranoid"])
        if level == 3:
            assert "CAP_SYS_ADMIN" in found["refusals"]["text"] and "counters" not in found
        else:
            assert "7 of armv8_pmuv3" in found["counters"]["text"]
    text = pmutop("doctor").stdout
    assert "armv8_pmuv3" in text and "verdicts on this machine" in text
