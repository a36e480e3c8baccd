"""The command line as a table, read from the argparse parsers themselves: what --help, completions and the manual share."""

from __future__ import annotations

import argparse
import inspect
import re
from typing import NamedTuple

from pmutop.cli import COMMANDS, command_module, parser_of

FILES = re.compile(r"FILE|FOLDER|CSV|STORE|PATH|RECORDING")


class Word(NamedTuple):
    """An option, or a positional where there are no flags."""

    flags: tuple[str, ...]
    metavar: tuple[str, ...]  # a word per value; none for a switch
    choices: tuple[str, ...]
    help: str
    is_optional: bool

    @property
    def takes_file(self) -> bool:
        return any(FILES.search(word) for word in self.metavar) and not self.choices


class Command(NamedTuple):
    name: str
    line: str  # one line of help
    about: str
    words: tuple[Word, ...]

    @property
    def options(self) -> tuple[Word, ...]:
        return tuple(word for word in self.words if word.flags)

    @property
    def positionals(self) -> tuple[Word, ...]:
        return tuple(word for word in self.words if not word.flags)


def commands() -> list[Command]:
    """Every command, in the order of --help."""
    return [describe(name) for name in COMMANDS]


def describe(name: str) -> Command:
    module = command_module(name)
    parser = parser_of(name, module)
    formatter = argparse.HelpFormatter(parser.prog)
    about = inspect.cleandoc(module.__doc__ or "")
    return Command(
        name, COMMANDS[name], about, tuple(word_of(action, formatter) for action in parser._actions)
    )


def word_of(action: argparse.Action, formatter: argparse.HelpFormatter) -> Word:
    choices = tuple(map(str, action.choices or ()))
    metavar: tuple[str, ...] = ()
    if action.nargs != 0:
        named = action.metavar or (choices and "|".join(choices)) or action.dest.upper()
        metavar = named if isinstance(named, tuple) else (named,)
    text = formatter._expand_help(action) if action.help else ""
    optional = bool(action.option_strings) or action.nargs in ("?", "*")
    return Word(
        tuple(action.option_strings),
        tuple(word.replace("%%", "%") for word in metavar),
        choices,
        text,
        optional,
    )
