"""The live screen: what every process is stuck on, every 400 ms. With a command behind --: launch it and watch it and
what it starts. Where stdout is no terminal the log is written instead."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from pmutop.bundle import Bundle, left_to_rules
from pmutop.cli.headless import Listener, hooks_of
from pmutop.cli.log import add_log_options, write_log
from pmutop.cli.wiring import (
    Launched,
    add_alert_options,
    add_child_options,
    add_rank_options,
    add_record_option,
    add_source_options,
    add_view_options,
    choose_models,
    open_source,
    recorder_of,
    selection,
    with_launched,
)
from pmutop.errors import PmutopError, UsageError
from pmutop.moment import Moment
from pmutop.recording import Reader
from pmutop.selection import Selection
from pmutop.slices import Header, RawSlice, Source

LOOK_BACK = 8 << 20  # bytes of the look-back in memory, what does not fit waits in a file


def configure(parser: argparse.ArgumentParser) -> None:
    add_source_options(parser)
    add_view_options(parser)
    add_child_options(parser)
    add_alert_options(parser)
    add_screen_options(parser)
    add_rank_options(parser, screen=True)
    add_record_option(parser)
    parser.add_argument("--version", action="store_true", help="print the version and stop")


def add_screen_options(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> int:
    if not is_screen():
        return run_log(options)
    chosen, hooks = selection(options), hooks_of(options, output=None)
    launched = Launched(options.launched, options.child_output) if options.launched is not None else None
    source = open_source(options)
    try:
        bundles, problems = choose_models(options, source.header)
        code = show(
            options,
            source.header,
            bundles,
            problems,
            chosen,
            lambda: with_launched(source, launched, chosen),
            source,
            hooks=hooks,
        )
    finally:
        source.close()
        if launched:
            launched.stop()
    return launched.exit_code or 0 if launched and code == 0 else code


def is_screen() -> bool:
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "dumb") != "dumb"


def is_utf8() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower()


def run_log(options: argparse.Namespace) -> int:
    """Not a terminal: the log, with its own defaults."""
    parser = argparse.ArgumentParser()
    add_log_options(parser)
    defaults = vars(parser.parse_args([])) | {"schema": False}
    from pmutop.cli import log

    return log.run(argparse.Namespace(**(defaults | vars(options))))


def show(
    options: argparse.Namespace,
    header: Header,
    bundles: list[Bundle],
    problems: list[str],
    chosen: Selection,
    slices: Callable[[], Iterator[RawSlice]],
    source: Source,
    actions: dict | None = None,
    hooks: Listener | None = None,
) -> int:
    """Run the screen over `slices`, which a thread of its own reads; returns the exit code."""
    from pmutop.tui import settings
    from pmutop.tui.opening import opened
    from pmutop.tui.state import State

    kept, unused = settings.load(settings.default_path())
    texts = {
        entry["label"]: f"{entry['text']}. {entry.get('advice', '')}"
        for b in bundles
        for entry in b.card["labels"]
    }
    state = State(header, notes(header, bundles, problems), texts)
    state.child_output = getattr(options, "child_output", None) or ""
    settings.apply(kept, state)
    state.message = unused
    ascii_only = options.ascii or kept.get("ascii", False) or not is_utf8()
    recorder = None if isinstance(source, Reader) else recorder_of(options, header)
    feed = Feed(header, bundles, chosen, slices, options.threads, recorder and recorder.write, hooks)
    if not getattr(options, "no_rank", False):
        feed.rank = getattr(options, "target", None)
    with opened(state, ascii_only):
        from pmutop.tui.actions import LIVE
        from pmutop.tui.app import PmutopApp, run_screen

        app = PmutopApp(
            state,
            start=lambda: feed.start(app),
            actions={
                "threads": feed.set_threads,
                "save": feed.save,
                "past": feed.past,
                "oldest": lambda: feed.ring and feed.ring.oldest,
            }
            | (LIVE | feed.sampling(source) if actions is None else actions),
            refresh=options.refresh or kept.get("refresh"),
            ascii_only=ascii_only,
            vim=kept.get("vim", False),
            keep=lambda values: settings.save(settings.default_path(), values),
        )
        code = run_screen(app, mouse=options.mouse or kept.get("mouse", False))
    source.stop()
    feed.join()
    return code


class Feed:
    """The one thread between a source and the screen: slices in, Moments handed over, never waiting for the terminal."""

    def __init__(
        self,
        header: Header,
        bundles: list[Bundle],
        chosen: Selection,
        slices: Callable[[], Iterator[RawSlice]],
        threads: bool,
        tap: Callable[[RawSlice], None] | None = None,
        hooks: Listener | None = None,
    ) -> None:
        self.header, self.bundles, self.chosen, self.slices = header, bundles, chosen, slices
        self.threads, self.tap, self.hooks = threads, tap, hooks
        self.rank: str | bool | None = False  # what a ranking explains (None: choose), False: no rankings
        self.ring = None  # the look-back, from the first slice on
        self.spots = None  # samples one process, once somebody asks for its functions
        self.lookback = None  # reads it, once somebody looks
        self.engine = None
        self.ranker = None
        self.thread: threading.Thread | None = None

    def start(self, app) -> None:
        self.thread = threading.Thread(target=self.run, args=(app,), name="pmutop-feed", daemon=True)
        self.thread.start()

    def run(self, app) -> None:
        try:
            from pmutop.pipeline.engine import Engine  # numpy: 0.1 s, after the first frame
            from pmutop.sinks.ring import Ring

            if self.hooks is not None:
                self.hooks.say = app.ended  # a line for the screen
            self.ring = Ring(self.header, memory=LOOK_BACK)
            self.engine = Engine(self.header, self.bundles, per_thread=self.threads, tap=self.take)
            self.ranker = self.make_ranker()
            for raw in self.slices():
                moment = self.engine.moment(raw)
                moment = moment if self.chosen.is_everything else moment.only(self.chosen.rows(moment))
                if self.ranker is not None:
                    moment = self.ranker.moment(moment, app.looked_at)
                app.offer(moment)
                if self.spots is not None:
                    self.spots.moment(moment)
                if self.hooks is not None:
                    self.hooks.moment(moment)
            app.ended("that was all: the source has come to its end")
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which reports it
            app.fail(error)
        finally:
            if self.ranker is not None:
                self.ranker.close()

    def make_ranker(self):
        from pmutop.pipeline.ranking import Ranker

        try:
            return None if self.rank is False else Ranker(self.header, self.rank)
        except UsageError:
            if self.rank is not None:
                raise
            return None  # nothing is counted that could be explained

    def take(self, raw: RawSlice) -> None:
        """Each raw slice before it is judged: to the look-back, and to the recording that was asked for."""
        self.ring.add(raw)
        if self.tap is not None:
            self.tap(raw)

    def set_threads(self, on: bool) -> str:
        self.threads = on
        if self.engine is not None:
            self.engine.per_thread = on
        return ""

    def sampling(self, source: Source) -> dict[str, Callable]:
        """The actions for hot functions, of a live source."""

        def watch(pid: int | None) -> str:
            from pmutop.cli.spots import Spots

            self.spots = self.spots or Spots(source)
            return self.spots.watch(pid)

        return {"hot": watch, "functions": lambda: self.spots.functions()}

    def judge(self) -> Callable[[RawSlice], Moment]:
        """A fresh engine for a look back."""
        from pmutop.pipeline.engine import Engine

        engine = Engine(self.header, self.bundles, per_thread=self.threads)

        def moment(raw: RawSlice) -> Moment:
            judged = engine.moment(raw)
            return judged if self.chosen.is_everything else judged.only(self.chosen.rows(judged))

        return moment

    def past(self, first: int, last: int, give: Callable[[list[Moment]], None]) -> bool:
        """Hand over slices of the look-back, judged again in a thread; False while it is busy or there are none."""
        from pmutop.sinks.lookback import LookBack

        if self.ring is None:
            return False
        self.lookback = self.lookback or LookBack(self.ring, self.judge)
        return self.lookback.look(first, last, give)

    def save(self, first: int | None = None, last: int | None = None) -> str:
        """Write the look-back, or slices `first` to `last`, as a recording into the folder pmutop was started in."""
        from pmutop.sinks.ring import name_for

        if self.ring is None:
            return "there is no slice yet"
        path = name_for(".")
        try:
            slices, seconds = self.ring.write(path, first=first, last=last)
        except PmutopError as error:
            return str(error)
        return f"{slices} slices ({seconds:.0f} s) saved as {path}: pmutop replay {path}"

    def join(self) -> None:
        if self.thread is not None:
            self.thread.join(2)


def notes(header: Header, bundles: list[Bundle], problems: list[str]) -> list[str]:
    """The first frame's text: which labels can be seen here, which cannot, and what to type for more."""
    lines = []
    for bundle in bundles:
        card = bundle.card
        if card["kind"] == "tree":
            seen = [entry for entry in card["labels"] if entry["label"].startswith("P_")]
            lines.append(f"# Labels that can be seen here ({card['tier']} tier)")
            for entry in seen:
                hidden = bundle.hides(entry, header)
                lines.append(
                    f"{entry['label']:<17}{entry['text']}"
                    + (f"  (not now: needs {hidden})" if hidden else "")
                )
        else:
            lines.append(f"Interference is judged for the {card['resource']}.")
    blind = [sentence for bundle in bundles for sentence in bundle.card["blind"]]
    if blind:
        lines += ["# What cannot be seen here", *dict.fromkeys(blind)]
    if left_to_rules(header, bundles):
        lines += ["# Hardware labels here are published rules of thumb", "They are marked `rule` and were not fitted to this processor.",
                  "$ pmutop train fingerprints      learns this processor in some minutes"]  # fmt: skip
    lines += problems
    lines += ["# For more", "$ pmutop doctor      what can be counted here, and what to type to change it"]
    if os.geteuid() != 0:
        lines.append("$ sudo pmutop        events of all processes, tracepoints")
    return lines


def show_replay(options: argparse.Namespace, reader: Reader) -> int:
    """The same screen on a recording: paced as it was, with pause, step and seek."""
    if not is_screen():
        return write_log(options, reader, selection(options), None, replayed=True)
    chosen = selection(options)
    bundles, problems = choose_models(options, reader.header)
    pace = Pace(reader, options.speed)
    options.refresh, options.ascii, options.mouse = None, False, False
    return show(
        options,
        reader.header,
        bundles,
        problems,
        chosen,
        pace.slices,
        reader,
        {"pause": pace.pause, "seek": pace.seek},
    )


class Pace:
    """Lets a recording's slices through at the speed at which they were taken, or held, or stepped."""

    def __init__(self, reader: Reader, speed: float) -> None:
        self.reader = reader
        self.speed = max(speed, 0.01)
        self.moved = threading.Condition()
        self.held = False
        self.ahead = 0  # slices to be let through without waiting

    def slices(self) -> Iterator[RawSlice]:
        for raw in self.reader:
            with self.moved:
                due = time.monotonic() + raw.seconds / self.speed
                while not self.reader.stopped and not self.ahead and (self.held or time.monotonic() < due):
                    self.moved.wait(0.1 if self.held else max(0.0, min(0.1, due - time.monotonic())))
                self.ahead = max(0, self.ahead - 1)
            yield raw

    def pause(self, on: bool) -> str:
        with self.moved:
            self.held = on
            self.moved.notify()
        return ""

    def seek(self, slices: int) -> str:
        if slices < 0:
            return "a recording is read forwards: scroll back in the look-back, or start the replay again"
        with self.moved:
            self.ahead += slices
            self.moved.notify()
        return ""
