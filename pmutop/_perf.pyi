from collections.abc import Sequence

from pmutop.events import Event

class CountError(OSError):
    call: str
    event: str

class Group:
    size: int
    names: tuple[str, ...]
    leader: int
    def __init__(
        self,
        events: Sequence[Event],
        pid: int,
        cpu: int = -1,
        inherit: bool = False,
        exclude_kernel: bool = False,
        pinned: bool = False,
        enable_on_exec: bool = False,
    ) -> None: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def reset(self) -> None: ...
    def read(self) -> list[tuple[int, int, int]]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Group: ...
    def __exit__(self, *problem: object) -> None: ...

def detached_tracefs() -> int: ...
