"""The past on the screen: slices of the ring judged again, by the same engine that judges the present.

Only raw slices are kept for ten minutes; what is said of them is made when somebody looks. Labels come out as they were:
they depend on their slice alone. Who hurts whom depends on the slices before, of which `WARM` are judged first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pmutop.moment import Moment
from pmutop.sinks.ring import Ring, unsealed
from pmutop.slices import RawSlice

WARM = 75  # slices: the memory of analysis/blame


class LookBack:
    """judge: makes a fresh engine and returns its `moment`; called once for each look."""

    def __init__(self, ring: Ring, judge: Callable[[], Callable[[RawSlice], Moment]]) -> None:
        self.ring = ring
        self.judge = judge
        self.busy = threading.Lock()

    def moments(self, first: int, last: int) -> list[Moment]:
        """Slices `first` to `last` as Moments, as far as they are held."""
        baseline, blocks = self.ring.cut(first - WARM, last)
        judge = self.judge()
        if baseline is not None:
            judge(baseline)
        found = [judge(unsealed(block.read())) for block in blocks]
        return [moment for moment in found if moment.number >= first]

    def look(self, first: int, last: int, give: Callable[[list[Moment]], None]) -> bool:
        """Judge them in a thread, which calls `give` ([]: they are not held); False while an earlier look goes on."""
        if not self.busy.acquire(blocking=False):
            return False

        def run() -> None:
            try:
                found = self.moments(first, last)
            except OSError:  # the file in which the slices wait cannot be read
                found = []
            self.busy.release()
            give(found)

        threading.Thread(target=run, name="pmutop-lookback", daemon=True).start()
        return True
