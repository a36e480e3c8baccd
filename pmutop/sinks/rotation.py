"""A log file that is put aside when it is large or old enough: FILE is written, FILE.1 is the one before it, and so on.

Each write is one slice's whole lines and lands in one file whole; files change between two writes. So no line is cut and
none is lost: a reader that follows the name (tail -F) or the files in order sees every line once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable


class Rotating:
    """The stream behind a log. size: bytes, age: seconds, None: no limit; keep: how many files are kept beside FILE.

    The first write is the header; every file begins with it. What FILE held before the start is put aside as well.
    A write raises OSError where it did not fit, and takes back what it wrote of it.
    """

    def __init__(
        self,
        path: str,
        size: int | None = None,
        age: float | None = None,
        keep: int = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self.size, self.age, self.keep, self.clock = path, size, age, keep, clock
        self.header: bytes | None = None
        if os.path.exists(path) and os.path.getsize(path):
            self.shift()
        self.open()

    def open(self) -> None:
        self.file = open(self.path, "wb", buffering=0)
        self.opened = self.clock()
        self.written = 0
        if self.header is not None:
            self.put(self.header)

    def write(self, data: bytes) -> int:
        if self.header is None:
            self.header = data
        elif self.written > len(self.header) and self.is_due(len(data)):
            self.file.close()
            self.shift()
            self.open()
        return self.put(data)

    def is_due(self, more: int) -> bool:
        too_large = self.size is not None and self.written + more > self.size
        return too_large or (self.age is not None and self.clock() - self.opened >= self.age)

    def put(self, data: bytes) -> int:
        try:
            done = self.file.write(data)
            if done != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with contextlib.suppress(OSError):
                self.file.truncate(self.written)
            raise
        self.written += len(data)
        return done

    def shift(self) -> None:
        """FILE becomes FILE.1, FILE.1 becomes FILE.2; the last of those kept is let go. Each step is a rename."""
        last = 1
        while last < self.keep and os.path.exists(f"{self.path}.{last}"):
            last += 1
        for number in range(last, 1, -1):
            os.replace(f"{self.path}.{number - 1}", f"{self.path}.{number}")
        os.replace(self.path, f"{self.path}.1")

    def flush(self) -> None:
        """Nothing waits here: every write has reached the kernel."""

    def close(self) -> None:
        self.file.close()
