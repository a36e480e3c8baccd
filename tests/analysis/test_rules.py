"""The published thresholds, on counts whose answer is known by construction."""

import numpy as np
import pytest

from pmutop.analysis.rules import RULES, judge, quantities
from pmutop.vendor_events import ROLES, SLOTS

KI = 1000.0


def counts(**roles):
    """A million instructions in half a million cycles, and what is given."""
    base = {
        "instructions": 1000 * KI,
        "cycles": 500 * KI,
        "branch-misses": 100.0,
        "l1d-misses": 100.0,
        "l2-misses": 50.0,
    }
    base |= {"l3-misses": 5.0, "fp-assists": 0.0}
    return {
        role: np.array([value])
        for role, value in (base | {name.replace("_", "-"): v for name, v in roles.items()}).items()
    }


CASES = {
    "P_Mem_M": counts(
        cycles=4000 * KI, l3_misses=40 * KI, l2_misses=45 * KI, l1d_misses=50 * KI, stalls_backend=3000 * KI
    ),
    "P_Mem_L3": counts(
        cycles=1500 * KI, l3_misses=10.0, l2_misses=40 * KI, l1d_misses=50 * KI, stalls_backend=900 * KI
    ),
    "P_Mem_L2": counts(cycles=1000 * KI, l1d_misses=60 * KI, l2_misses=50.0, stalls_backend=500 * KI),
    "P_CPU": counts(branch_misses=20 * KI, stalls_backend=50 * KI),
    "N_Mem_M": counts(l3_misses=1.5 * KI, l2_misses=2 * KI, l1d_misses=3 * KI, stalls_backend=40 * KI),
    "N_Mem_L3": counts(l2_misses=5 * KI, l1d_misses=9 * KI, stalls_backend=40 * KI),
    "N_Mem_L2": counts(l1d_misses=20 * KI, stalls_backend=40 * KI),
    "N_CPU": counts(stalls_backend=10 * KI),
}


@pytest.mark.parametrize("label", CASES)
@pytest.mark.parametrize("family", ["", "intel", "amd", "arm", "zen5", "graniterapids", "never heard of"])
def test_each_of_the_eight_labels(label, family):
    (verdict,) = judge(CASES[label], family)
    assert verdict[0] == label
    assert (verdict[2] is not None) == label.startswith("P_")


def test_kinds_of_a_busy_core():
    assert judge(CASES["P_CPU"])[0][1] == "branch"
    assert judge(counts(fp_assists=2 * KI, stalls_backend=10 * KI))[0][:2] == ("P_CPU", "fpu")
    assert judge(counts(stalls_backend=300 * KI))[0][:2] == ("P_CPU", "rs")


def test_the_threshold_of_mispredicts_is_five_in_a_thousand():
    assert judge(counts(branch_misses=4.9 * KI))[0][0] == "N_CPU"
    assert judge(counts(branch_misses=5.1 * KI))[0][0] == "P_CPU"


def test_without_stall_counts_the_upper_bound_decides():
    bare = {role: column for role, column in CASES["P_Mem_M"].items() if role != "stalls-backend"}
    assert judge(bare)[0][0] == "P_Mem_M"
    assert np.isnan(quantities(bare)["core_bound"][0])


def test_uncounted_is_never_no():
    nan = {role: np.array([np.nan]) for role in ("cycles", "instructions")}
    assert judge(nan)[0][0] == "unknown"
    bare = {role: np.array([1e6]) for role in ("cycles", "instructions", "branch-misses", "fp-assists")}
    assert judge(bare | {"branch-misses": np.array([0.0]), "fp-assists": np.array([0.0])})[0][0] == "unknown"
    assert judge(bare)[0][:2] == ("P_CPU", "branch")  # this one was looked for, and found
    assert np.isnan(quantities(counts() | {"branch-misses": np.array([np.nan])})["mispredicts_per_ki"][0])


def test_stalls_counted_in_slots():
    slots = SLOTS["zen5"]["stalls-backend"]
    as_slots = CASES["P_Mem_M"] | {"stalls-backend": CASES["P_Mem_M"]["stalls-backend"] * slots}
    assert (
        quantities(as_slots, "zen5", slots)["backend_bound"]
        == quantities(CASES["P_Mem_M"], "zen5")["backend_bound"]
    )


def test_rows_are_judged_apart_and_parts_never_exceed_the_stalls():
    table = {role: np.concatenate([case[role] for case in CASES.values()]) for role in CASES["N_CPU"]}
    assert [verdict[0] for verdict in judge(table)] == list(CASES)
    found = quantities(table)
    parts = found["memory_bound"] + found["l3_bound"] + found["l2_bound"]
    assert (parts <= found["backend_bound"] + 1e-12).all()


def test_every_rule_names_its_source_and_its_roles_exist():
    assert all(rule.source.split(":")[0] in ("TMA", "issue") for rule in RULES)
    assert set(CASES["P_Mem_M"]) <= set(ROLES)
