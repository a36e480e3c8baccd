"""Programs of known length for the checks, and events by name."""

import subprocess
import time
from contextlib import contextmanager

from pmutop.sysfs import resolve


def named(*names):
    return [resolve(name) for name in names]


class Spin:
    """`spin` waiting to work: attach to `.pid`, `work()`, read, then leave the `with`."""

    def __init__(self, passes, pieces=1, how="yield", **options):
        command = ["spin", str(passes), str(pieces), how]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"
        self.wait_asleep()

    def wait_asleep(self):
        """It has said so, but may still be on its way into read(2): 25 instructions."""
        while state(self.pid) != "S":
            time.sleep(0.001)

    def go(self):
        self.process.stdin.write(b"g")

    def work(self):
        self.go()
        assert self.process.stdout.readline() == b"done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def counted(events, passes, **options):
    """Running totals of a group on a `spin` of that many passes, user mode only: [(value, enabled, running), ...]."""
    from pmutop._perf import Group

    with Spin(passes, **options) as spin, Group(events, spin.pid, exclude_kernel=True) as group:
        group.enable()
        spin.work()
        return group.read()


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


@contextmanager
def setting(name, value):
    """A value of /proc/sys/kernel for a while."""
    path = f"/proc/sys/kernel/{name}"
    with open(path) as file:
        before = file.read()
    try:
        with open(path, "w") as file:
            file.write(str(value))
        yield
    finally:
        with open(path, "w") as file:
            file.write(before)
