"""Programs that training never sees, and what each should be called: EXPECTED.md as a table for tests and benchmarks.

Load it by path (tests/ is no package): `sys.path.insert(0, "tests/programs"); import expected`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pmutop.training.labels import Workload

HERE = Path(__file__).parent


class Unseen(NamedTuple):
    program: str
    arguments: tuple[str, ...]
    expected: str
    defensible: tuple[str, ...]  # other labels that are no mistake; counted apart

    @property
    def name(self) -> str:
        return " ".join((self.program, *self.arguments))

    @property
    def source(self) -> Path:
        return HERE / f"{self.program}.c"

    def workload(self) -> Workload:
        """As a row that `workloads.start` takes (its program is the path of the source)."""
        return Workload(
            self.name, self.expected, self.expected, "unseen", str(self.source), arguments=self.arguments
        )


def table() -> tuple[Unseen, ...]:
    """The rows of EXPECTED.md."""
    rows = []
    for line in (HERE / "EXPECTED.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and (HERE / f"{cells[0]}.c").exists():
            program, arguments, _, expected, defensible = cells
            rows.append(Unseen(program, tuple(arguments.split()), expected, tuple(defensible.split())))
    return tuple(rows)
