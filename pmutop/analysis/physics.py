"""What a counter cannot say: rules between events that hold in every machine, and which of two values broke
one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Instructions per cycle that no core of today exceeds; a user who knows the machine names its own.
WIDTH = 8.0


@dataclass(frozen=True)
class Rule:
    """`part` can never exceed `factor` times `whole`; factor None = the width of the machine."""

    part: str
    whole: str
    factor: float | None = 1.0

    def __str__(self) -> str:
        return f"{self.part} > {self.whole}" if self.factor == 1.0 else f"{self.part} > width x {self.whole}"


#: Names as perf prints them, then the kernel's PMU names and Arm's; case does not matter, nor - against _.
RULES = (
    Rule("instructions", "cycles", None),
    Rule("instructions", "cpu-cycles", None),
    Rule("INST_RETIRED", "CPU_CYCLES", None),
    Rule("branches", "instructions"),
    Rule("BR_RETIRED", "INST_RETIRED"),
    Rule("branch-misses", "branches"),
    Rule("BR_MIS_PRED_RETIRED", "BR_RETIRED"),
    Rule("cache-misses", "cache-references"),
    Rule("L1-dcache-load-misses", "L1-dcache-loads"),
    Rule("L1-dcache-store-misses", "L1-dcache-stores"),
    Rule("L1-icache-load-misses", "L1-icache-loads"),
    Rule("LLC-load-misses", "LLC-loads"),
    Rule("LLC-store-misses", "LLC-stores"),
    Rule("dTLB-load-misses", "dTLB-loads"),
    Rule("dTLB-store-misses", "dTLB-stores"),
    Rule("iTLB-load-misses", "iTLB-loads"),
    Rule("branch-load-misses", "branch-loads"),
)


def folded(name: str) -> str:
    return name.lower().replace("_", "-")


def applicable(events, width: float = WIDTH, rules=RULES) -> list[tuple[int, int, float, Rule]]:
    """The rules whose two events are both in `events`: (column of the part, of the whole, factor, rule)."""
    where = {folded(name): at for at, name in enumerate(events)}
    found = []
    for rule in rules:
        part, whole = where.get(folded(rule.part)), where.get(folded(rule.whole))
        if part is not None and whole is not None:
            found.append((part, whole, width if rule.factor is None else rule.factor, rule))
    return found


def broken(values, events, width: float = WIDTH, rules=RULES) -> np.ndarray:
    """Which rules each row breaks: bool (rows, rules that apply), in the order of `applicable`; NaN breaks
    nothing."""
    each = [
        values[:, part] > factor * values[:, whole]
        for part, whole, factor, _ in applicable(events, width, rules)
    ]
    return np.array(each).T.reshape(len(values), len(each))


def obey(values, expected, events, width: float = WIDTH, rules=RULES) -> tuple[np.ndarray, np.ndarray]:
    """`values` with every broken rule mended by changing one value, and the mask (rows, events) of what was
    changed.

    Of the two values of a broken rule the one that lies farther (in ratio) from its `expected` value (rows,
    events) is the one to blame; it becomes what was expected, or just what the rule allows where that is not
    enough. The whole is only raised where that breaks no other rule. Without an expectation (NaN) the part
    gives way.
    """
    values, changed = np.array(values, float), np.zeros(np.shape(values), bool)
    known = applicable(events, width, rules)
    for _ in range(len(known)):
        for part, whole, factor, _ in known:
            rows = np.flatnonzero(values[:, part] > factor * values[:, whole])
            if not len(rows):
                continue
            a, b = values[rows, part], values[rows, whole]
            wanted_a = np.fmin(np.fmin(expected[rows, part], factor * b), a)
            wanted_b = np.fmax(expected[rows, whole], a / factor)
            off_a, off_b = ratio(a, expected[rows, part]), ratio(b, expected[rows, whole])
            raisable = np.ones(len(rows), bool)
            for other, limit, times, _ in known:
                if other == whole:
                    raisable &= ~(wanted_b > times * values[rows, limit])
            blame_whole = raisable & (off_b > off_a) & ~changed[rows, part]
            values[rows, part] = np.where(blame_whole, a, wanted_a)
            values[rows, whole] = np.where(blame_whole, wanted_b, b)
            changed[rows, part] |= ~blame_whole
            changed[rows, whole] |= blame_whole
    return values, changed


def ratio(value, expected) -> np.ndarray:
    """|log| of how far `value` is from `expected`; 0 where nothing was expected."""
    return np.nan_to_num(np.abs(np.log((value + 1) / (expected + 1))))
