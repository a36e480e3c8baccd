"""What may be done on this machine, decided once: marks that skip with the reason."""

import os

import pytest

from pmutop._perf import CountError, Group
from pmutop.errors import PmutopError
from pmutop.sysfs import resolve


def may_count(name: str) -> bool:
    try:
        Group([resolve(name)], 0).close()
        return True
    except (CountError, PmutopError):
        return False


IS_ROOT = os.geteuid() == 0
needs_perf = pytest.mark.skipif(
    not may_count("task-clock"), reason="perf software events may not be opened here"
)
needs_tracepoints = pytest.mark.skipif(not may_count("syscalls"), reason="tracepoints may not be opened here")
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
