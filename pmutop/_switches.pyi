from collections.abc import Iterable, Sequence

from pmutop.events import Event

MET: int
FORKED: int
RENAMED: int
EXECED: int
EXITED: int

class SwitchError(OSError):
    call: str
    event: str
    cpu: int

class Sealed:
    number: int
    start: int
    end: int
    late: int
    rows: int
    refs: bytes
    who: bytes
    run: bytes
    periods: bytes
    counts: bytearray
    lives: list[tuple[int, int, int, int, int, int, int, bytes]]
    busy_ns: dict[int, int]
    totals: dict[str, int]
    total: list[int]
    unknown: list[int]
    idle: list[int]

class Switches:
    TOTALS: tuple[str, ...]
    names: tuple[str, ...]
    interval: float
    fifo: bool
    known: int
    def __init__(
        self,
        events: Iterable[Event],
        groups: Sequence[Iterable[int]] | None = None,
        interval: float = 0.4,
        *,
        kinds: Iterable[tuple[Iterable[int], Sequence[Event]]] = (),
        before: int = 0,
        priority: int = 10,
        ring_bytes: int = ...,
        ring_size: int = 0,
        periods: int = 65536,
        quiet: Iterable[int] = (),
        records: bool = True,
        online: str = "/sys/devices/system/cpu/online",
        most_lives: int = ...,
    ) -> None: ...
    def start(self) -> int: ...
    def adopt(self, tasks: Iterable[tuple[int, int]]) -> list[int]: ...
    def forget(self, tasks: Iterable[tuple[int, int]]) -> None: ...
    def shed(self, less: bool) -> None: ...
    def stop(self) -> None: ...
    def next(self) -> Sealed | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Switches: ...
    def __exit__(self, *problem: object) -> None: ...

def ring_size(budget: int, cpus: int) -> int: ...
