"""Where sampled places come from, and the hot functions of one process at a time while somebody looks at its details."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from pmutop.errors import PmutopError
from pmutop.slices import Source

if TYPE_CHECKING:
    from pmutop.moment import Moment


def places_of(source: Source, pid: int | None = None) -> tuple[Callable[[], list[tuple[int, int]]], Callable]:
    """(pid, address) samples since the last call, and what ends them. The simulated source has its own; else cpu-clock
    samples of all processes, where that is not allowed those of `pid`. Raises NoPermission."""
    if source.header.source == "simulated" and hasattr(source, "places"):
        return source.places, lambda: None
    from pmutop.sources.sampling import Sampling

    sampling = Sampling(pid)
    return sampling.places, sampling.close


class Spots:
    """Off until `watch`. Symbols are read by a thread of its own: those of a large program take a second, and no slice
    shall wait for them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[dict] = []
        self.queue: SimpleQueue | None = None
        self.places: Callable[[], list[tuple[int, int]]] | None = None
        self.close: Callable = lambda: None

    def watch(self, pid: int | None) -> str:
        """Sample this process, and no other one any more; None: none. '' or what went wrong."""
        if self.queue is not None:
            self.places = None
            self.queue.put(None)
            self.queue = None
            self.close()
        self.found = []
        if pid is None:
            return ""
        try:
            places, self.close = places_of(self.source, pid)
        except PmutopError as error:
            return f"{error}; {error.hint}" if error.hint else str(error)
        self.queue = SimpleQueue()
        threading.Thread(target=self.work, args=(pid, self.queue), name="pmutop-hot", daemon=True).start()
        self.places = places
        return ""

    def moment(self, moment: Moment) -> None:
        """Every slice, from the thread that judges."""
        places, queue = self.places, self.queue
        if places is not None and queue is not None:
            queue.put((moment, places()))

    def functions(self) -> list[dict]:
        """What was found since `watch`: see pipeline.hot.Hot.lines."""
        return self.found

    def work(self, pid: int, queue: SimpleQueue) -> None:
        from pmutop.pipeline.hot import Hot

        hot = Hot()
        for moment, places in iter(queue.get, None):
            rows = [row for row, task in enumerate(moment.tasks) if task.pid == pid]
            hot.add(moment, rows, [place for place in places if place[0] == pid])
            if queue is self.queue:
                self.found = [line["hot"] for line in hot.lines()]
