"""A two-minute tour: starts small labelled workloads one after the other, and points at what appears on the screen. They
run niced and end with the tour. Where stdout is no terminal, a line per workload says what it was called."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import NamedTuple

from pmutop.cli import say
from pmutop.cli.screen import is_screen, show
from pmutop.cli.wiring import add_source_options, choose_models, open_source
from pmutop.errors import PmutopError
from pmutop.moment import Moment
from pmutop.selection import Selection


class Step(NamedTuple):
    workload: str  # how its name in the catalogue begins
    variant: str
    text: str


STEPS = (
    Step("switch-pipe", "P", "two hand one byte to and fro (n: go there, Enter: why)"),
    Step("fault-anonymous-16", "P", "maps, touches, unmaps (see EVENTS: faults beside normal)"),
    Step("syscall-getppid", "P", "asks the kernel for next to nothing (T: trouble first)"),
    Step("runqueue-integer-4", "P", "four share one CPU (b: who hurts whom)"),
    Step("fault-anonymous-16", "N", "the second one done well: nothing to complain of"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, default=120.0, metavar="S", help="length of the tour (default 120)"
    )
    parser.add_argument(
        "--refresh",
        type=float,
        metavar="S",
        help="seconds between two pictures at least (default: each slice)",
    )
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII only")
    parser.add_argument(
        "--mouse", action="store_true", help="take mouse clicks (off: the terminal's own selection works)"
    )
    add_source_options(parser)


def run(options: argparse.Namespace) -> int:
    options.threads, options.model = False, None
    screen = is_screen()
    tour = Tour(options.seconds, say)
    source = open_source(options)
    try:
        if screen:
            bundles, problems = choose_models(options, source.header)
            lines = ["# The tour", *(f"{step.text[:1].upper()}{step.text[1:]}." for step in STEPS)]
            return show(
                options,
                source.header,
                bundles,
                lines + problems,
                Selection(),
                lambda: iter(source),
                source,
                hooks=tour,
            )
        from pmutop.cli.headless import judge

        options.slices = round(options.seconds / options.interval) + 2
        code = judge(
            options, source, Selection(), None, lambda header, bundles: lambda moment: None, hooks=tour
        )
        print("\n".join(tour.report()))
        return code
    finally:
        source.close()
        tour.close()


class Tour:
    """Given each Moment, in the thread that reads: starts what is due, counts what it is called.

    The workloads end when the thread that started them does (see training.workloads.Running).
    """

    def __init__(self, seconds: float, say: Callable[[str], None]) -> None:
        from pmutop.training.catalogue import software
        from pmutop.training.workloads import command_of, missing

        self.say = say
        self.cpus = sorted(os.sched_getaffinity(0))
        table = software()
        self.steps = []
        for step in STEPS:
            workload = next(
                one for one in table if one.name.startswith(step.workload) and one.variant == step.variant
            )
            if why := missing(workload, self.cpus):
                say(f"pmutop: {workload.label} is left out: {why}")
                continue
            command_of(workload)  # built now: the slices shall not wait for a compiler
            self.steps.append((step, workload))
        if not self.steps:
            raise PmutopError("no workload of the tour can run here")
        self.length = seconds / len(self.steps)
        self.passed = 0.0
        self.at = -1
        self.running = None
        self.called: list[dict[str, int]] = [{} for _ in self.steps]

    def moment(self, moment: Moment) -> None:
        self.count(moment)
        due = int(self.passed / self.length)
        self.passed += moment.seconds
        if due == self.at:
            return
        self.close()
        self.at = due
        if due < len(self.steps):
            from pmutop.training.workloads import start

            step, workload = self.steps[due]
            self.running = start(workload, self.cpus)
            self.say(f"{due + 1}/{len(self.steps)} {workload.label}: {step.text}")
        elif due == len(self.steps):
            self.say("that was the tour: everything it started has ended")

    def count(self, moment: Moment) -> None:
        """What the running workload and its children are called in this slice."""
        if self.running is None:
            return
        for row, labels in moment.labels.items():
            if self.running.pid in (moment.tasks[row].pid, moment.tasks[row].ppid):
                called = self.called[self.at]
                called[labels[0].label] = called.get(labels[0].label, 0) + 1

    def report(self) -> list[str]:
        """A line per workload: what it is, what it was called how often."""
        lines = []
        for (_, workload), called in zip(self.steps, self.called, strict=True):
            words = ", ".join(
                f"{name} {times}x" for name, times in sorted(called.items(), key=lambda item: -item[1])
            )
            also = f" (or {workload.coarse})" if workload.coarse and workload.coarse != workload.label else ""
            lines.append(f"{workload.label}{also}: {words or 'nothing was said'}")
        return lines

    def close(self) -> None:
        if self.running is not None:
            self.running.stop()
            self.running = None
