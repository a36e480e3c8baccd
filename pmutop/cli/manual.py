"""Print the manual page, made from the same source as --help, for instance:
pmutop manual > ~/.local/share/man/man1/pmutop.1"""

from __future__ import annotations

import argparse

from pmutop import __version__
from pmutop.cli import DEFAULT
from pmutop.cli.grammar import Command, Word, commands

ABOUT = """pmutop says, for every process on a Linux machine, every 400 ms, what it is stuck on: a named pathology or healthy,
how sure that is, which events show it, and whether a neighbour slows it down.
stdout carries data only; diagnostics are lines on stderr."""

CODES = (
    ("0", "done, also when a pipe was closed"),
    ("1", "the work failed"),
    ("2", "wrong usage"),
    ("3", "the kernel refused"),
    ("4", "an input file is not what it should be"),
    ("129, 130, 143", "ended by SIGHUP, SIGINT, SIGTERM"),
)
VARIABLES = (
    ("NO_COLOR", "the screen without colours"),
    ("TERM", "where it is dumb the log is written instead of the screen"),
    (
        "XDG_DATA_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME",
        "where your models, the set-up of the screen and built programs are",
    ),
    ("JOURNAL_STREAM", "set by systemd: diagnostics then carry their priority"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> int:
    print(manual(commands()), end="")
    return 0


def manual(table: list[Command]) -> str:
    """The page in roff with the man macros."""
    lines = [
        f'.TH PMUTOP 1 "" "pmutop {__version__}" "User Commands"',
        ".nh",
        ".ad l",
        *section("NAME", r"pmutop \- what every process is stuck on, from counters"),
        ".SH SYNOPSIS",
        *(line for command in table for line in synopsis(command)),
        *section("DESCRIPTION", *map(escaped, ABOUT.splitlines())),
        ".SH COMMANDS",
    ]
    for command in table:
        lines += [
            f".SS {escaped(command.name)}",
            escaped(command.line[:1].upper() + command.line[1:] + "."),
            ".PP",
        ]
        lines += map(escaped, command.about.splitlines())
        for word in command.words:
            lines += [".TP", heading(word), escaped(word.help)]
    lines += [".SH EXIT STATUS", *listed(CODES), escaped("With a command behind -- its own exit code.")]
    lines += [".SH ENVIRONMENT", *listed(VARIABLES)]
    lines += section("SEE ALSO", ".BR perf (1),", ".BR top (1),", ".BR perf_event_open (2)")
    return "\n".join(lines) + "\n"


def section(title: str, *lines: str) -> list[str]:
    return [f".SH {title}", *lines]


def synopsis(command: Command) -> list[str]:
    name = "" if command.name == DEFAULT else f" {command.name}"
    words = ["[option ...]"]
    for word in command.positionals:
        shown = r" \fR|\fI ".join(map(escaped, word.choices or word.metavar))
        words.append(rf"[\fI{shown}\fR]" if word.is_optional else rf"\fI{shown}\fR")
    if any("--child-output" in word.flags for word in command.words):
        words.append(r"[\-\- \fIcommand\fR ...]")
    return [f".B pmutop{name}", " ".join(words), ".br"]


def listed(rows: tuple) -> list[str]:
    return [line for name, text in rows for line in (".TP", f".B {escaped(name)}", escaped(text))]


def heading(word: Word) -> str:
    values = " ".join(rf"\fI{escaped(metavar)}\fR".replace("|", r"|\:") for metavar in word.metavar)
    flags = ", ".join(rf"\fB{escaped(flag)}\fR" for flag in word.flags)
    return " ".join(part for part in (flags, values) if part)


def escaped(text: str) -> str:
    """Text as roff would print it: a backslash, a minus that can be copied, no request at the start of a line."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in (".", "'") else text
