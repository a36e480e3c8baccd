"""Run a command as an ordinary user who may open no perf event: uid nobody (if root), and a seccomp filter in front of
perf_event_open that answers EACCES, as perf_event_paranoid 3 does on Debian.

    python tests/without_perf.py COMMAND...
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

NOBODY = 65534
TRAVERSE = 2  # CAP_DAC_READ_SEARCH
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
# linux/filter.h, linux/seccomp.h
LOAD_NUMBER, IF_EQUAL, ANSWER = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def refuse_perf() -> None:
    program = [
        (LOAD_NUMBER, 0, 0, 0),
        (IF_EQUAL, 0, 1, PERF_EVENT_OPEN[platform.machine()]),
        (ANSWER, 0, 0, ERRNO | errno.EACCES),
        (ANSWER, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(
        22, 2, prog
    ):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP (mode filter)
        raise OSError(ctypes.get_errno(), "prctl")


def become_ordinary(program: str) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        if all(folder.stat().st_mode & 0o001 for folder in Path(program).resolve().parents):
            os.setresuid(NOBODY, NOBODY, NOBODY)
        else:
            keep_one_right(TRAVERSE)
    refuse_perf()


def keep_one_right(capability: int) -> None:
    """Become nobody, but able to pass through folders: an interpreter may live in a home that is closed to others."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    only = 1 << capability
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if libc.capset(header, struct.pack("6I", only, only, only, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")
    if libc.prctl(47, 2, capability, 0, 0):  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    become_ordinary(sys.argv[1])
    os.environ["HOME"] = "/tmp"
    os.execvp(sys.argv[1], sys.argv[1:])
