"""Builds, starts and measures the labelled workloads of the catalogue; a label counts only where it costs something."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from pmutop.errors import PmutopError, UsageError
from pmutop.training.labels import Workload

PROGRAMS = Path(__file__).parent / "programs"
PACKAGE = Path(__file__).parent.parent  # where pmutop_region.h is

ALWAYS = ("-std=gnu11", "-Wall", "-Wextra", "-pthread")


# ---- building ----


def cache_folder() -> Path:
    """Where built programs are kept between runs; on a disk as a rule, so scratch files go there as well."""
    from platformdirs import user_cache_path

    return user_cache_path("pmutop") / "programs"


@functools.cache
def _compiler() -> tuple[str, str]:
    gcc = shutil.which("gcc")
    if gcc is None:
        raise PmutopError(
            "gcc is not installed: the training programs cannot be built", "apt install gcc libc6-dev"
        )
    asked = subprocess.run(
        [gcc, "-dumpfullversion", "-dumpmachine"], capture_output=True, text=True, check=True
    )
    return gcc, asked.stdout


def build(program: str, options: Sequence[str] = ("-O2",), folder: Path | None = None) -> Path:
    """Compile a program of `programs/` by its name, or any other by its path, with gcc, and return the executable.

    Built once per source and options, in `folder` (the user's cache when None).

    Raises PmutopError with the compiler's first complaint, or with what to install when there is no gcc.
    """
    source = Path(program) if program.endswith(".c") else PROGRAMS / f"{program}.c"
    if not source.exists():
        raise UsageError(f"there is no training program {program}")
    gcc, version = _compiler()
    headers = (*sorted(PROGRAMS.glob("*.h")), *sorted(PACKAGE.glob("*.h")))
    parts = [source.read_bytes(), *(header.read_bytes() for header in headers)]
    parts += [version.encode(), " ".join((*ALWAYS, *options)).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    folder = folder or cache_folder()
    # the process name (comm) is the file name: 15 bytes, the same for every build of a program
    path = folder / digest / source.stem
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as room:
        made = Path(room) / source.stem
        command = [
            gcc,
            *ALWAYS,
            f"-I{PROGRAMS}",
            f"-I{PACKAGE}",
            *options,
            str(source),
            "-o",
            str(made),
            "-lm",
        ]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            complaint = next(
                (line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()
            )
            raise PmutopError(f"gcc cannot build {source.name}: {complaint}", "apt install gcc libc6-dev")
        os.replace(made, path)  # two builders at once: the last wins, both work
    return path


# ---- running ----


def missing(workload: Workload, cpus: Sequence[int]) -> str:
    """Why this workload cannot run here; "" where it can."""
    if "two-cpus" in workload.needs and len(set(cpus)) < 2:
        return "needs two CPUs"
    if "x86" in workload.needs and os.uname().machine not in ("x86_64", "i686"):
        return "needs an x86 processor"
    if "disk" in workload.needs:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        if _filesystem(folder) in ("tmpfs", "ramfs"):
            return f"needs a cache folder on a disk; {folder} is not"
    return ""


def _filesystem(path: Path) -> str:
    best, kind = "", ""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, filesystem, *_ = line.split()
        inside = mount == "/" or str(path.resolve()).startswith(f"{mount}/") or str(path.resolve()) == mount
        if inside and len(mount) >= len(best):
            best, kind = mount, filesystem
    return kind


class Running:
    """A started workload: a child in a process group of its own. Use as a context manager; leaving it ends the group.

    The programs ask the kernel to be killed when the *thread* that started them ends (PR_SET_PDEATHSIG): start them from
    a thread that outlives them.
    """

    def __init__(self, workload: Workload, process: subprocess.Popen, ready: int) -> None:
        self.workload = workload
        self.process = process
        self.pid = process.pid
        self._ready = ready

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Return when the init phase is over. Raises PmutopError when the program ends or `timeout` (s) passes first."""
        if self._ready < 0:
            return
        waiting = select.poll()  # select() cannot wait for descriptors beyond 1024, and the reader holds many
        waiting.register(self._ready, select.POLLIN)
        there = waiting.poll(timeout * 1000)
        word = os.read(self._ready, 16) if there else b""
        os.close(self._ready)
        self._ready = -1
        if word != b"ready\n":
            self.stop()
            said = (
                self.process.stderr.read().decode(errors="replace").strip()
                if there
                else f"not ready in {timeout} s"
            )
            raise PmutopError(f"workload {self.workload.name} did not start: {said or 'it ended'}")

    def result(self, timeout: float | None = None) -> dict[str, float]:
        """Wait for the end by itself and return the last line: work, seconds, cpu_seconds, check."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            raise PmutopError(f"workload {self.workload.name} did not end in {timeout} s") from None
        self.stop()
        try:
            return json.loads(out)
        except ValueError:
            said = err.decode(errors="replace").strip() or f"exit code {self.process.returncode}"
            raise PmutopError(f"workload {self.workload.name} failed: {said}") from None

    def stop(self, patience: float = 1.0) -> None:
        """End the whole group: SIGTERM, and SIGKILL after `patience` (s). Harmless when it has ended already."""
        if self.process.returncode is None:
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + patience
            # not reaped before the group is dead: until then its number cannot be given to anybody else
            while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.005)
            self._signal(signal.SIGKILL)
            self.process.wait()
        if self._ready >= 0:
            os.close(self._ready)
            self._ready = -1

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.stop()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()


def command_of(workload: Workload, folder: Path | None = None) -> list[str]:
    """The command line without the runner's own options; builds the program where it is not built yet."""
    if workload.program.endswith(".py"):
        start = [sys.executable, "-S", "-E", str(PROGRAMS / workload.program)]
    else:
        start = [str(build(workload.program, workload.options, folder))]
    return [*start, "--variant", workload.variant, *workload.arguments]


def start(
    workload: Workload,
    cpus: Sequence[int],
    seconds: float | None = None,
    work: float | None = None,
    nice: int = 5,
    under: Callable[[list[str]], list[str]] = list,
) -> Running:
    """Start a workload on `cpus` for `seconds` (or so many units of `work`, or until stopped) and return at once.

    under: makes the command line that is really started, e.g. one that simulates it."""
    command = command_of(workload)
    reader, writer = os.pipe()
    command += ["--cpus", ",".join(map(str, cpus)), "--nice", str(nice), "--parent", str(os.getpid())]
    command += ["--ready-fd", str(writer)]
    command += ["--seconds", f"{seconds:g}"] if seconds is not None else []
    command += ["--work", f"{work:.0f}"] if work is not None else []
    try:
        process = subprocess.Popen(
            under(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            pass_fds=[writer],
            env={**os.environ, "TMPDIR": str(cache_folder())},
        )
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return Running(workload, process, reader)
