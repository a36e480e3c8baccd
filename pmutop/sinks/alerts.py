"""Alert hooks: a rule that held for long enough starts a command, once per process and episode.

A rule is conditions that must all hold for a process, and how long: `label=P_OS_* wait>=20 for 5s`. What the command
needs to know is in its environment; nothing of a process ever reaches a shell or an argument.
"""

from __future__ import annotations

import contextlib
import fnmatch
import math
import os
import re
import resource
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from typing import IO, NamedTuple

from pmutop import units
from pmutop.errors import UsageError
from pmutop.moment import RESOURCES, Moment

AT_ONCE = 16  # commands that run at the same time, of all rules


def label_of(moment: Moment, row: int) -> str:
    label = moment.first_label(row)
    return label.label if label else ""


def confidence_of(moment: Moment, row: int) -> float:
    label = moment.first_label(row)
    return label.confidence if label else math.nan


def interference_of(moment: Moment, row: int) -> float:
    """The worst factor over the resources that can be seen."""
    found = moment.interference.get(row)
    factors = [getattr(found, name).factor for name in RESOURCES] if found else []
    return max((factor for factor in factors if factor is not None), default=math.nan)


#: What a rule may ask of a process: word -> its value. `=` compares texts (with * and ?), `>=` numbers.
TEXTS: dict[str, Callable[[Moment, int], str]] = {
    "label": label_of,
    "comm": lambda moment, row: moment.tasks[row].comm,
    "user": lambda moment, row: moment.tasks[row].user,
    "cgroup": lambda moment, row: moment.tasks[row].cgroup,
}
NUMBERS: dict[str, Callable[[Moment, int], float]] = {
    "cpu": lambda moment, row: float(moment.cpu[row]),
    "wait": lambda moment, row: float(moment.wait[row]),
    "interference": interference_of,
    "confidence": confidence_of,
}
WORD = re.compile(r"\S+")
CONDITION = re.compile(r"([a-z]+)(>=|=)(.+)")


class Condition(NamedTuple):
    word: str
    value: str | float

    def holds(self, moment: Moment, row: int) -> bool:
        if self.word in TEXTS:
            return fnmatch.fnmatchcase(TEXTS[self.word](moment, row), self.value)
        return NUMBERS[self.word](moment, row) >= self.value  # not known (NaN) does not hold


class Rule(NamedTuple):
    text: str
    conditions: tuple[Condition, ...]
    seconds: float  # how long all of them must have held, slice after slice

    def holds(self, moment: Moment, row: int) -> bool:
        return all(condition.holds(moment, row) for condition in self.conditions)


def parse_rule(text: str) -> Rule:
    """A rule from its text; raises UsageError that names the column of what is wrong."""

    def wrong(at: int, why: str) -> UsageError:
        known = ", ".join([f"{word}=" for word in TEXTS] + [f"{word}>=" for word in NUMBERS])
        return UsageError(
            f"rule '{text}', column {at + 1}: {why}", f"there are {known} and 'for 5s' at the end"
        )

    conditions, seconds = [], 0.0
    words = list(WORD.finditer(text))
    if len(words) >= 2 and words[-2][0] == "for":
        try:
            seconds = units.parse_duration(words[-1][0])
        except ValueError:
            raise wrong(words[-1].start(), f"'{words[-1][0]}' is no length of time") from None
        words = words[:-2]
    for found in words:
        parts = CONDITION.fullmatch(found[0])
        if not parts:
            raise wrong(found.start(), f"'{found[0]}' is no condition")
        word, sign, value = parts.groups()
        if word not in TEXTS and word not in NUMBERS:
            raise wrong(found.start(), f"there is no '{word}'")
        if sign != ("=" if word in TEXTS else ">="):
            raise wrong(found.start() + len(word), f"{word} is compared by {'=' if word in TEXTS else '>='}")
        if word in NUMBERS:
            try:
                conditions.append(Condition(word, float(value)))
            except ValueError:
                raise wrong(found.start() + len(word) + len(sign), f"'{value}' is no number") from None
        else:
            conditions.append(Condition(word, value))
    if not conditions:
        raise wrong(0, "there is no condition")
    return Rule(text, tuple(conditions), seconds)


def parse_hook(text: str, command: str) -> tuple[Rule, list[str]]:
    """The two words of --on: a rule, and a command line that is split as a shell would, and then run without one."""
    rule = parse_rule(text)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"command '{command}': {error}") from None
    if not words or not shutil.which(words[0]):
        raise UsageError(
            f"cannot run '{words[0] if words else command}': no such command", "name a program or a script"
        )
    return rule, words


class Fired(NamedTuple):
    """A rule has held for long enough for the process in this row."""

    rule: Rule
    row: int
    since: float  # Unix seconds
    seconds: float


class Watch:
    """How long each rule has held for each process; tells each episode once. A slice in which it does not hold ends it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = list(rules)
        self.held: list[dict[int, float]] = [
            {} for _ in self.rules
        ]  # by ref: seconds, or inf when it was told

    def moment(self, moment: Moment) -> list[Fired]:
        fired = []
        for number, rule in enumerate(self.rules):
            before, now = self.held[number], {}
            for row, task in enumerate(moment.tasks):
                if not rule.holds(moment, row):
                    continue
                held = before.get(task.ref, 0.0) + moment.seconds
                if math.isfinite(held) and held >= rule.seconds:
                    fired.append(Fired(rule, row, moment.time - held, held))
                    held = math.inf
                now[task.ref] = held
            self.held[number] = now
        return fired


class Hooks:
    """Runs the command of each rule that fires, at most one per process and rule at a time.

    output: where the commands' own output goes (a file, None: nowhere). say: told about a command that could not be run.
    """

    def __init__(
        self,
        hooks: Iterable[tuple[Rule, list[str]]],
        say: Callable[[str], None],
        output: IO | int | None = None,
    ) -> None:
        self.hooks = list(hooks)
        self.watch = Watch(rule for rule, _ in self.hooks)
        self.say = say
        self.output = subprocess.DEVNULL if output is None else output
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)  # before a reader raises it for itself
        self.running: dict[tuple[int, int], subprocess.Popen] = {}  # by rule and ref

    def moment(self, moment: Moment) -> list[Fired]:
        """Reap what has ended, start what is due; returns what fired."""
        self.running = {key: process for key, process in self.running.items() if process.poll() is None}
        fired = self.watch.moment(moment)
        for one in fired:
            number = next(number for number, (rule, _) in enumerate(self.hooks) if rule is one.rule)
            self.start(number, one, moment)
        return fired

    def start(self, number: int, fired: Fired, moment: Moment) -> None:
        rule, command = self.hooks[number]
        key = number, moment.tasks[fired.row].ref
        if key in self.running:
            return
        if len(self.running) >= AT_ONCE:
            self.say(f"pmutop: {AT_ONCE} alert commands run already; none was started for '{rule.text}'")
            return
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=self.output,
                env={**os.environ, **variables(fired, moment)},
                start_new_session=True,  # a Ctrl-C that ends pmutop does not end an alert half-way
            )
        except OSError as error:
            self.say(f"pmutop: cannot run {command[0]}: {error.strerror}")
            return
        with contextlib.suppress(OSError):  # it may have ended already
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, self.limits)
        self.running[key] = process


def variables(fired: Fired, moment: Moment) -> dict[str, str]:
    """What an alert command is told: its environment, all of it text; empty where there is no such thing."""
    row, task = fired.row, moment.tasks[fired.row]
    label = moment.first_label(row)
    found = moment.interference.get(row)
    antagonist = found.antagonist if found else None
    facts = {
        "RULE": fired.rule.text,
        "PID": task.pid,
        "TID": task.tid,
        "COMM": task.comm,
        "USER": task.user,
        "CGROUP": task.cgroup,
        "LABEL": label.label if label else "",
        "KIND": label.kind if label else "",
        "CONFIDENCE": known(label.confidence if label else math.nan),
        "TIER": label.tier if label else "",
        "SINCE": f"{fired.since:.3f}",
        "SECONDS": f"{fired.seconds:.3f}",
        "CPU": known(float(moment.cpu[row])),
        "WAIT": known(float(moment.wait[row])),
        "INTERFERENCE": known(interference_of(moment, row)),
        "ANTAGONIST_PID": antagonist.pid if antagonist else "",
        "ANTAGONIST_COMM": antagonist.comm if antagonist else "",
        "HOST": moment.header.host,
    }
    return {f"PMUTOP_{name}": str(value).replace("\0", "") for name, value in facts.items()}


def known(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ""
