"""Figures from the emulated PMU of the guest (tests/hardware/): prints markdown tables.

python tests/bench/emulated.py multiplexing   the kernel's own multiplexing: error and run time (some minutes)
python tests/bench/emulated.py validate       pmutop validate, 10 repetitions
python tests/bench/emulated.py combine        pmutop combine --runs: cycles to instructions of tasks joined from two runs
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hardware"))
import guest

from pmutop.cli.validate import table

COLUMNS = {
    "events": "events",
    "rounds": "rounds of the task",
    "seconds": "guest seconds",
    "period": "period, ms",
    "median": "error, median",
    "most": "error, most",
    "slower": "run time / alone",
}


def cell(name: str, value: float) -> str:
    if name in ("median", "most"):
        return f"{value:.1%}"
    return f"{value:.3f}" if name in ("slower", "seconds") else str(value)


def multiplexing(check: str, facts: dict) -> None:
    print(f"\n{check.partition('check_')[2].replace('_', ' ')}:\n")
    print(f"| {' | '.join(COLUMNS.values())} |\n|{'---|' * len(COLUMNS)}")
    for row in facts["rows"]:
        print(f"| {' | '.join(cell(name, row[name]) for name in COLUMNS)} |")


def validated(check: str, facts: dict) -> None:
    print(table(facts))


def combined(check: str, facts: dict) -> None:
    if not check.endswith("combined"):
        return
    print("| method | tasks | least | median | most |\n|---|---|---|---|---|")
    for method, (tasks, *ratios) in facts.items():
        print(f"| {method.upper()} | {tasks} | {' | '.join(f'{ratio:.6f}' for ratio in ratios)} |")


#: What is asked for -> (module of inside/, how its facts are shown).
FIGURES = {
    "multiplexing": ("multiplexing", multiplexing),
    "validate": ("validated", validated),
    "combine": ("manyruns", combined),
}


def main(what: str) -> int:
    module, show = FIGURES[what]
    result = guest.boot(module, limit=900)
    for check in result.checks.values():
        if check["ok"]:
            show(check["check"], check["facts"])
        else:
            print(check["trace"])
    print(f"\nThe guest ran for {result.seconds:.0f} s.")
    return 0 if result.status == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
