"""The command line: wires where-from to where-to. The one place where errors become text and exit codes.

One file per command (`pmutop/cli/NAME.py`), each with `configure(parser)` and `run(options) -> int`; only the file of
the command that was asked for is imported, so that `pmutop log` never pays for the screen nor for scikit-learn.
"""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import signal
import sys

from pmutop import __version__, units
from pmutop.errors import PmutopError

#: Every command with its one line of help, in the order that `--help` shows. A row here is a file beside this one.
COMMANDS = {
    "screen": "the live screen (what `pmutop` alone does; a pipe or TERM=dumb gets the log instead)",
    "log": "headless: a JSON line per process and slice",
    "record": "write raw slices to a file",
    "replay": "the same screen (or log) on a recording",
    "export": "OpenMetrics over HTTP, for Prometheus",
    "flight": "headless look-back: the last minutes, written out on SIGUSR1 or when a rule holds",
    "doctor": "what can be counted here, and what to type to change it",
    "events": "events by name, and how many fit together now",
    "train": "run the labelled workloads here and write a bundle",
    "models": "list and verify the bundles",
    "schedule": "who ran on which CPU and when, from a recording",
    "clean": "outliers replaced, holes filled, each value with its quality",
    "rank": "which events matter, alone and in pairs",
    "import": "wide CSV and perf stat output into a store of runs",
    "group": "events that say the same, and a leader for each group",
    "combine": "one profile from runs that counted different events",
    "compare": "how far such a profile is from runs that counted all at once",
    "validate": "how far each counter can be trusted here, by programs of known counts",
    "demo": "a two-minute tour on workloads of its own",
    "completions": "completions for bash, zsh or fish",
    "manual": "the manual page, as roff",
}
DEFAULT = "screen"
#: Commands that run for weeks on small machines. asyncio and hashlib would load OpenSSL (5 MB), which these never use.
LEAN = {"screen", "log", "record", "replay", "flight"}
OPENSSL = ("ssl", "_hashlib")
ERROR, NOTICE = 3, 5  # priorities of syslog(3)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code (DESIGN, 'Commands')."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and command_of(words) in LEAN:  # the process is ours alone
        for module in OPENSSL:
            sys.modules.setdefault(
                module, None
            )  # to an import: it is not there, and both know what to do then
    try:
        return run(words)
    except PmutopError as error:
        say(f"pmutop: {error}" + (f" ({error.hint})" if error.hint else ""), ERROR)
        settle_stdout()
        return error.exit_code
    except BrokenPipeError:
        silence_stdout()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run(words: list[str]) -> int:
    """Parse `words` (everything behind `--` is the command to launch) and run the command they name."""
    launched = None
    if "--" in words:
        at = words.index("--")
        words, launched = words[:at], words[at + 1 :]
    name = command_of(words)
    rest = words[1:] if words and words[0] in COMMANDS else words
    if name == DEFAULT and rest[:1] in (["-h"], ["--help"], ["help"]):
        print(overview())
        return 0
    if rest == ["--version"]:
        print(f"pmutop {__version__}")
        return 0
    command = command_module(name)
    parser = parser_of(name, command)
    options = parser.parse_args(rest)
    options.launched = launched
    return command.run(options)


def command_of(words: list[str]) -> str:
    return words[0] if words and words[0] in COMMANDS else DEFAULT


def command_module(name: str):
    """The module of one command; `import` is a word of Python's, its file is import_.py."""
    return importlib.import_module(f"pmutop.cli.{name}_" if keyword.iskeyword(name) else f"pmutop.cli.{name}")


def parser_of(name: str, command) -> argparse.ArgumentParser:
    """The argument parser of one command; wrong usage exits with 2 and one line."""
    title = "pmutop" if name == DEFAULT else f"pmutop {name}"
    parser = argparse.ArgumentParser(
        prog=title,
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    return parser


def overview() -> str:
    """The text of `pmutop --help`: the commands, then the options of the screen."""
    screen = command_module(DEFAULT)
    lines = [f"  {name:<12}{text}" for name, text in COMMANDS.items()]
    return (
        parser_of(DEFAULT, screen).format_help()
        + "\ncommands (each has its own --help):\n"
        + "\n".join(lines)
    )


def say(line: str, priority: int = NOTICE) -> None:
    """One diagnostic line to stderr; stdout carries data only. In the journal's stream it carries its priority."""
    line = units.clean_text(line)  # file names are hostile too
    try:
        print(f"<{priority}>{line}" if is_journal() else line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # a terminal that is gone must not turn an error into another one


def is_journal() -> bool:
    """Is stderr the stream that systemd gave us? (systemd.exec(5): JOURNAL_STREAM is its device and inode.)"""
    stream = os.environ.get("JOURNAL_STREAM")
    if not stream:
        return False
    try:
        facts = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return stream == f"{facts.st_dev}:{facts.st_ino}"


def settle_stdout() -> None:
    """Write out what is still buffered; if that fails (a full disk), do not let the interpreter try once more at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        silence_stdout()


def silence_stdout() -> None:
    """After a closed pipe: keep the interpreter from complaining when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
