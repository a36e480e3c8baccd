"""From label to code: in which functions the slices with a given label spent their time (Yoo et al., section 4.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pmutop.moment import Moment
from pmutop.symbols import Symbols

MOST_FUNCTIONS = 10


class Hot:
    """Joins sampled places with the labels of the slices in which they were taken."""

    def __init__(self, symbols: Symbols | None = None) -> None:
        self.symbols = symbols or Symbols()
        self.functions: dict[tuple[int, str], Counter] = {}  # (pid, label) -> samples by function
        self.slices: Counter = Counter()
        self.names: dict[int, str] = {}

    def add(self, moment: Moment, rows: Iterable[int], places: Iterable[tuple[int, int]]) -> None:
        """places: (pid, address) of the slice; only the processes of `rows` are looked at, the last label of its
        threads standing for a process where rows are threads."""
        label_of = {}
        for row in rows:
            task = moment.tasks[row]
            said = moment.labels.get(row, ())
            label_of[task.pid] = said[0].label if said else label_of.get(task.pid, "")
            self.names[task.pid] = task.comm
        for pid, label in label_of.items():
            self.slices[pid, label] += bool(label)
        for pid, address in places:
            label = label_of.get(pid, "")
            if label:
                self.functions.setdefault((pid, label), Counter())[self.symbols.name(pid, address)] += 1

    def lines(self) -> list[dict]:
        """One record a process and label, the most samples first; shares are of that label's samples."""
        ranked = sorted(self.functions.items(), key=lambda entry: (-entry[1].total(), entry[0]))
        return [
            {
                "hot": {
                    "pid": pid,
                    "comm": self.names.get(pid, ""),
                    "label": label,
                    "slices": self.slices[pid, label],
                    "samples": counts.total(),
                    "functions": [
                        {"name": name, "share": round(number / counts.total(), 4)}
                        for name, number in counts.most_common(MOST_FUNCTIONS)
                    ],
                }
            }
            for (pid, label), counts in ranked
        ]
