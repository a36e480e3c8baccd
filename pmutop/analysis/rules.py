"""Published thresholds as a fallback: labels from named rates where no model for this processor was trained.

A table of rules, each with its source; no rule was fitted to anything here, so a rule's label is marked `rule`, carries no
calibrated confidence, and is never mixed with a trained model's.

Sources
-------
issue: the threshold that practice and tuning guides share and that this project was given: more than 5 mispredicted
    branches in 1000 instructions.
TMA: A. Yasin, "A Top-Down Method for Performance Analysis and Counters Architecture", ISPASS 2014; the thresholds and
    formulas as the Linux tree publishes them (tools/perf/pmu-events/arch/x86/*/*-metrics.json, MetricThreshold): backend
    bound and memory bound 0.2, L2 bound 0.05, L3 bound 0.05, DRAM bound 0.1; the share of stalls that belongs to L3 and to
    memory is split by the formula l3_bound = stalls x l3_hits / (l3_hits + 7 x l3_misses).
PerfExpert: M. Burtscher et al., "PerfExpert: An Easy-to-Use Performance Diagnosis Tool for HPC Applications", SC 2010: an
    upper bound of the cycles lost is the count of events times their latency (its LCPI), set against the cycles spent.
AMD: amdzen5/pipeline.json of the same tree: stalls there are dispatch slots, 8 to a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmutop.vendor_events import KIN

#: Weight of a miss in the last level against a hit in it: TMA's (L3 against memory); L2 against L3 by the same reasoning
#: from the latencies that PerfExpert uses.
WEIGHTS = {"l2": 0.25, "l3": 1.0, "memory": 7.0}
#: Latency in cycles of what answers, for the upper bound where stalls cannot be counted.
LATENCIES = {
    "": {"l2": 12, "l3": 45, "memory": 250, "mispredict": 15},
    "intel": {"l2": 14, "l3": 50, "memory": 250, "mispredict": 16},
    "amd": {"l2": 14, "l3": 46, "memory": 300, "mispredict": 13},
    "arm": {"l2": 11, "l3": 60, "memory": 250, "mispredict": 11},
}


class Rule(NamedTuple):
    """`quantity` above `threshold` gives the label `P_place`; below it, `N_place` where the working set lies there."""

    label: str
    kind: str
    quantity: str
    threshold: float
    source: str


#: The first rule whose threshold is passed gives the label: the dearest place first, then the core itself.
RULES = (
    Rule("P_Mem_M", "", "memory_bound", 0.10, "TMA: dram_bound > 0.1 and backend_bound > 0.2"),
    Rule("P_Mem_L3", "", "l3_bound", 0.05, "TMA: l3_bound > 0.05 and backend_bound > 0.2"),
    Rule("P_CPU", "branch", "mispredicts_per_ki", 5.0, "issue: branch mispredicts > 5 per 1000 instructions"),
    Rule("P_CPU", "fpu", "assists_share", 0.10, "TMA: assists > 0.1 of the time"),
    Rule("P_Mem_L2", "", "l2_bound", 0.05, "TMA: l2_bound > 0.05 and backend_bound > 0.2"),
    Rule("P_CPU", "rs", "core_bound", 0.10, "TMA: core_bound > 0.1 and backend_bound > 0.2"),
)
BACKEND_BOUND = 0.20  # TMA: a part of the back end is looked at only where the whole is worth it
NEEDS_BACKEND = {"memory_bound", "l3_bound", "l2_bound", "core_bound"}
ASSIST_CYCLES = (
    100  # Intel 64 and IA-32 optimisation manual: an assist costs on the order of a hundred cycles or more
)
#: Misses in 1000 instructions from which a working set is said to lie beyond a level (one in a thousand: PerfExpert's
#: grain of a hundredth of a cycle for the cheapest of them).
BEYOND = 1.0


def quantities(counts: dict[str, np.ndarray], family: str = "", slots: int = 1) -> dict[str, np.ndarray]:
    """What the rules speak of, from counts by role.

    counts: role (vendor_events.ROLES) -> float64 (rows,), the increase of a slice; NaN or absent = not counted. Roles:
    instructions, cycles, branch-misses, l1d-misses, l2-misses, l3-misses, stalls-backend, fp-assists.
    slots: how many of stalls-backend make a cycle. Returns name -> float64 (rows,), NaN where it cannot be known; shares
    are of the cycles, `*_per_ki` per 1000 instructions.
    """
    rows = max((np.size(column) for column in counts.values()), default=0)
    nothing = np.full(rows, np.nan)

    def role(name: str) -> np.ndarray:
        return np.asarray(counts.get(name, nothing), dtype=float)

    latency = LATENCIES.get(KIN.get(family, family), LATENCIES[""])
    cycles, instructions = role("cycles"), role("instructions")
    with np.errstate(divide="ignore", invalid="ignore"):
        cycles = np.where(cycles > 0, cycles, np.nan)
        ki = np.where(instructions > 0, instructions, np.nan) / 1000
        memory = role("l3-misses")
        l3 = np.clip(role("l2-misses") - np.nan_to_num(memory), 0, None)
        l2 = np.clip(role("l1d-misses") - np.nan_to_num(role("l2-misses")), 0, None)
        bounds = {
            "memory": memory * latency["memory"] / cycles,
            "l3": l3 * latency["l3"] / cycles,
            "l2": l2 * latency["l2"] / cycles,
        }
        stalled = role("stalls-backend") / slots / cycles
        weighed = {"memory": memory, "l3": l3, "l2": l2}
        weighed = {place: np.nan_to_num(count) * WEIGHTS[place] for place, count in weighed.items()}
        total = sum(weighed.values())
        looked = np.any([~np.isnan(bound) for bound in bounds.values()], axis=0)
        data = np.clip(sum(np.nan_to_num(bound) for bound in bounds.values()), 0, 1)
        # Where stalls are counted they are the truth and are split; the latency bound only caps each part.
        parts = {
            place: np.where(
                np.isnan(stalled),
                np.minimum(bounds[place], 1),
                np.minimum(stalled * weighed[place] / total, bounds[place]),
            )
            for place in bounds
        }
        parts = {
            place: np.where(np.isnan(bounds[place]), np.nan, np.nan_to_num(part))
            for place, part in parts.items()
        }
        return {
            "memory_bound": parts["memory"],
            "l3_bound": parts["l3"],
            "l2_bound": parts["l2"],
            "core_bound": np.clip(stalled - data, 0, None),
            "backend_bound": np.where(np.isnan(stalled), np.where(looked, data, np.nan), stalled),
            "mispredicts_per_ki": role("branch-misses") / ki,
            "assists_share": role("fp-assists") * ASSIST_CYCLES / cycles,
            "l1_misses_per_ki": role("l1d-misses") / ki,
            "l2_misses_per_ki": role("l2-misses") / ki,
            "l3_misses_per_ki": memory / ki,
        }


def judge(
    counts: dict[str, np.ndarray], family: str = "", slots: int = 1
) -> list[tuple[str, str, Rule | None]]:
    """(label, kind, rule) per row, in the eight labels; label 'unknown' where cycles or instructions were not counted, or
    neither misses nor stalls: an N_ label is a look that found nothing, never no look.

    `rule` is the one that fired; None for an N_ label, which says where the working set lies and that no threshold was
    passed. See `quantities` for the arguments.
    """
    found = quantities(counts, family, slots)
    worth = found["backend_bound"] > BACKEND_BOUND
    verdicts: list[tuple[str, str, Rule | None]] = []
    for row in range(len(worth)):
        if (
            np.isnan(np.asarray(counts.get("cycles", [np.nan]), float)[row : row + 1]).all()
            or np.isnan(np.asarray(counts.get("instructions", [np.nan]), float)[row : row + 1]).all()
        ):
            verdicts.append(("unknown", "", None))
            continue
        for rule in RULES:
            value = found[rule.quantity][row]
            if value > rule.threshold and (worth[row] or rule.quantity not in NEEDS_BACKEND):
                verdicts.append((rule.label, rule.kind, rule))
                break
        else:
            verdicts.append((healthy(found, row), "", None))
    return verdicts


def healthy(found: dict[str, np.ndarray], row: int) -> str:
    """The N_ label: the place beyond which the working set does not reach; 'unknown' where nobody looked."""
    if np.isnan(found["backend_bound"][row]):
        return "unknown"
    for label, name in (
        ("N_Mem_M", "l3_misses_per_ki"),
        ("N_Mem_L3", "l2_misses_per_ki"),
        ("N_Mem_L2", "l1_misses_per_ki"),
    ):
        if found[name][row] > BEYOND:
            return label
    return "N_CPU"
