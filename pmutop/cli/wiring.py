"""What several commands share: the options, and how they become a source, an engine and a launched command."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator

from pmutop import trust, units
from pmutop.bundle import Bundle, fitting
from pmutop.errors import PmutopError, UsageError
from pmutop.recording import Recorder
from pmutop.selection import Selection
from pmutop.slices import Header, RawSlice, Source

#: --source: how counters are read.
SOURCES = ("auto", "system", "attach", "simulated")
NOBODY = -1  # root of a selection whose command has not been started yet


def add_source_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=seconds, default=0.4, metavar="S", help="length of a slice (default 0.4 s)"
    )
    parser.add_argument(
        "--source", choices=SOURCES, default="auto", help="how counters are read (default: auto)"
    )
    parser.add_argument(
        "--budget",
        type=percent,
        default=0.02,
        metavar="PERCENT",
        help="CPU that reading may take (default 2%%)",
    )
    parser.add_argument(
        "--caches",
        metavar="L1D=48K:12,...",
        help="sizes and ways that --source simulated models (default: this machine's)",
    )
    parser.add_argument("--events", metavar="A,B,...", help="perf events to count instead of the default set")
    parser.add_argument(
        "--progress",
        metavar="EVENT",
        help="an event that tells progress, a tracepoint or /program:function: its rate per CPU second shows who is slowed",
    )


def add_view_options(parser: argparse.ArgumentParser, threads: bool = True) -> None:
    parser.add_argument("--pid", metavar="P,Q,...", help="only these processes")
    parser.add_argument("--user", metavar="U,V,...", help="only processes of these users")
    parser.add_argument(
        "--cgroup", default="", metavar="TEXT", help="only processes whose cgroup contains TEXT"
    )
    if threads:
        parser.add_argument("--threads", action="store_true", help="a row per thread instead of per process")
    parser.add_argument(
        "--model", action="append", metavar="NAME|FOLDER", help="judge with this model only (repeatable)"
    )


def add_record_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--record", metavar="FILE", help="also write the raw slices there (see `pmutop record`)"
    )


def recorder_of(options: argparse.Namespace, header: Header) -> Recorder | None:
    return Recorder(options.record, header) if getattr(options, "record", None) else None


def add_child_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--child-output", metavar="FILE", help="where the launched command's output goes (default: nowhere)"
    )


def add_alert_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on",
        nargs=2,
        action="append",
        default=[],
        metavar=("RULE", "COMMAND"),
        help="when 'label=P_OS_* for 5s' holds for a process, run COMMAND, told by its environment (repeatable)",
    )


def add_rank_options(parser: argparse.ArgumentParser, screen: bool = False, log: bool = False) -> None:
    """The screen ranks what is looked at unless told not to; the log ranks when it is told to."""
    if screen:
        parser.add_argument(
            "--no-rank", action="store_true", help="never start the worker that ranks events by importance"
        )
    if log:
        parser.add_argument(
            "--rank",
            action="store_true",
            help="log too which events matter to the busiest few, ranked by a niced worker",
        )
    parser.add_argument(
        "--target",
        metavar="EVENT[/EVENT]",
        help="the figure that a ranking explains (default: IPC, without a PMU user-time/run-time)",
    )


def percent(text: str) -> float:
    value = float(text.rstrip("%"))
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError("between 0 and 100 % of one CPU")
    return value / 100


def seconds(text: str) -> float:
    value = float(text)
    if not 0.01 <= value <= 3600:
        raise argparse.ArgumentTypeError("between 0.01 and 3600 seconds")
    return value


def size(text: str) -> int:
    """For argparse: 64M -> bytes."""
    try:
        return max(1, units.parse_size(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no size (write 10M)") from None


def duration(text: str) -> float:
    """For argparse: 1h -> seconds."""
    try:
        return units.parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no length of time (write 30s, 5m, 1h)") from None


def open_source(options: argparse.Namespace) -> Source:
    """The source that --source names, its events with the verdicts that `pmutop validate` found on this machine."""
    source = choose_source(options)
    source.header = trust.judged(source.header)
    return source


def choose_source(options: argparse.Namespace) -> Source:
    """auto is the system reader where it may be used, else the attach reader, which then says why."""
    from pmutop.sources.attach import AttachSource

    if options.source == "simulated":
        return open_simulated(options)
    names = split_events(options.events) if options.events else None
    progress = options.progress or ""
    why = ""
    if options.source in ("auto", "system"):
        from pmutop.sources.system import SystemSource

        try:
            return SystemSource(options.interval, names, budget=options.budget, progress=progress)
        except UsageError:
            raise  # an event that does not exist is no matter of the reader
        except PmutopError as error:
            if options.source == "system":
                raise
            why = f"one group per task that runs; {error}"
    return AttachSource(options.interval, names, why, progress)


def open_simulated(options: argparse.Namespace) -> Source:
    from pmutop.sources.simulated import SimulatedSource, parse_caches

    if getattr(options, "launched", None) is None:
        raise UsageError(
            "--source simulated runs a command, and there is none",
            "for instance pmutop --source simulated -- ./program",
        )
    if options.progress:
        raise UsageError("--progress: a simulated program has no speed", "count it with another --source")
    if options.events:
        raise UsageError("--events: a simulator counts what it counts", "leave --events out")
    return SimulatedSource(options.interval, parse_caches(options.caches) if options.caches else None)


def split_events(text: str) -> list[str]:
    """'a,b,cpu/x=1,y=2/' -> three names: commas between slashes belong to the PMU's terms."""
    names, inside, start = [], False, 0
    for at, letter in enumerate(text):
        if letter == "/":
            inside = not inside
        elif letter == "," and not inside:
            names.append(text[start:at])
            start = at + 1
    names.append(text[start:])
    if not all(names):
        raise UsageError(f"--events {text}: an event has no name")
    return names


def choose_models(options: argparse.Namespace, header: Header) -> tuple[list[Bundle], list[str]]:
    return fitting(header, options.model)


def selection(options: argparse.Namespace) -> Selection:
    pids = pids_of(options.pid, living=getattr(options, "file", None) is None)
    users = frozenset(options.user.split(",")) if options.user else frozenset()
    waiting = NOBODY if getattr(options, "launched", None) is not None else None
    return Selection(pids, users, options.cgroup, root=waiting)


def pids_of(text: str | None, living: bool = True) -> frozenset[int]:
    """The processes that --pid names; living: they must be there now (they are not on the machine of a recording)."""
    try:
        pids = frozenset(int(word) for word in text.split(",")) if text else frozenset()
    except ValueError:
        raise UsageError(f"--pid {text}: not a process number", "for instance --pid 1234,5678") from None
    for pid in pids:
        if living and not os.path.exists(f"/proc/{pid}"):
            raise PmutopError(f"there is no process {pid}", "`pmutop` shows those that there are")
    return pids


class Launched:
    """The command behind `--`: started after the first slice, so that all it does is counted; input is /dev/null."""

    def __init__(
        self, command: list[str], output: str | None, variables: dict[str, str] | None = None
    ) -> None:
        if not command:
            raise UsageError("there is no command behind --", "for instance pmutop -- make -j2")
        if not shutil.which(command[0]):
            raise PmutopError(f"cannot run {command[0]}: no such command")
        self.command = command
        self.environment = os.environ | (variables or {})
        try:
            self.output = open(output or os.devnull, "wb")
        except OSError as error:
            raise PmutopError(f"cannot write {output}: {error.strerror}") from None
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)  # before a reader raises it for itself
        self.process: subprocess.Popen | None = None

    def start(self, source: Source | None = None) -> int:
        """Start the command, under the simulator where that is the source; returns its pid."""
        wrap = getattr(source, "wrap", list)
        self.process = subprocess.Popen(
            wrap(self.command),
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            env=self.environment,
            restore_signals=True,
        )
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, self.limits)
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """The child's exit code, 128 + signal if a signal ended it, None while it runs."""
        if self.process is None:
            return None
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def stop(self) -> None:
        """End the command if it still runs: politely, then not."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def with_launched(source: Source, launched: Launched | None, chosen: Selection) -> Iterator[RawSlice]:
    """The source's slices; the command is started after the first, and the last is the one in which it ended."""
    for raw in source:
        over = launched is not None and launched.exit_code is not None
        yield raw
        if launched is not None and launched.process is None:
            chosen.root = launched.start(source)
        if over:
            return


class Stopper:
    """SIGTERM, SIGHUP and SIGINT end the source's iteration; everything behind it then closes in its usual order."""

    SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    def __init__(self, source: Source) -> None:
        self.source = source
        self.signal: int | None = None
        for number in self.SIGNALS:
            signal.signal(number, self.caught)

    def caught(self, number, frame) -> None:
        self.signal = number
        self.source.stop()

    @property
    def exit_code(self) -> int:
        return 0 if self.signal is None else 128 + self.signal
