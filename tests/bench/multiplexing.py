"""The kernel's multiplexing studied on the emulated PMU (tests/hardware/inside/multiplexing.py): prints markdown tables.

python tests/bench/multiplexing.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hardware"))
import guest

COLUMNS = {
    "events": "events",
    "rounds": "rounds of the task",
    "seconds": "guest seconds",
    "period": "period, ms",
    "median": "error, median",
    "most": "error, most",
    "starved": "never ran",
    "slower": "run time / alone",
}
SHARES = ("median", "most", "starved")


def cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return (
        f"{value:.1%}" if name in SHARES else f"{value:.3f}" if name in ("slower", "seconds") else str(value)
    )


def main() -> int:
    result = guest.boot("multiplexing", limit=900)
    for check in result.checks.values():
        if not check["ok"]:
            print(check["trace"])
            continue
        print(f"\n{check['check'].partition('check_')[2].replace('_', ' ')}:\n")
        print(f"| {' | '.join(COLUMNS.values())} |\n|{'---|' * len(COLUMNS)}")
        for row in check["facts"]["rows"]:
            print(f"| {' | '.join(cell(name, row[name]) for name in COLUMNS)} |")
    print(f"\nThe guest ran for {result.seconds:.0f} s.")
    if result.status is None:
        print(result.output[-2000:])
    return 0 if result.status == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
