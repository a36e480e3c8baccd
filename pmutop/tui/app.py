"""The live screen. The engine hands Moments over with `offer` from its own thread; keys change the state; the canvas
shows what differs.

A Moment is handed over without waiting: it is put down and the loop is woken once, however many come before it looks.
All of them reach the history, the newest is drawn; a terminal that does not read loses frames and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")  # read when textual is imported

from textual import events
from textual.app import App, ComposeResult

from pmutop.moment import Moment
from pmutop.tui import deeds, frame
from pmutop.tui.canvas import Canvas
from pmutop.tui.keys import bindings
from pmutop.tui.lines import has_colours
from pmutop.tui.state import State
from pmutop.tui.terminal import STDOUT, Terminal

#: What ends the screen in good order. Blocked from the moment Textual takes the terminal until its loop can serve them: an
#: exception in between would leave its input thread behind, reading a terminal that is gone, for ever.
ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
UNSEEN = 512  # Moments that may wait for a screen that is stopped (Ctrl-Z); older ones are let go


class PmutopApp(App[None], deeds.Deeds):
    """The screen on one source.

    state    what is on show; its header may be None while the source is not open yet (each Moment brings its own)
    start    called once, in the app's thread, after the first frame was painted: start sampling there
    actions  what the screen may do to the world, by name (see deeds.ACTIONS); what is absent is said to be absent
    refresh  least seconds between two frames, None: each slice
    keep     called with the settings when they change (see settings.save)
    """

    CSS = "Screen { overflow: hidden; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = ()

    def __init__(
        self,
        state: State,
        start: Callable[[], None] | None = None,
        actions: Mapping[str, Callable] | None = None,
        *,
        refresh: float | None = None,
        ascii_only: bool = False,
        vim: bool = False,
        keep: Callable[[dict], None] | None = None,
    ) -> None:
        self.colours = has_colours()
        # Only the 16 colours of the user's own terminal; also what makes NO_COLOR send no colour at all.
        super().__init__(driver_class=Terminal if os.isatty(STDOUT) else None, ansi_color=True)
        self.state = state
        self.actions = dict(actions or {})
        self.keep = keep  # given the settings to be kept when they change
        self.bound = bindings(vim)
        self.period = refresh or 0.0
        self.canvas = Canvas(
            lambda width, height: frame.frame(self.state, width, height), self.colours, ascii_only
        )
        self.failure: BaseException | None = None
        self.looked_at: int | None = (
            None  # ref of the process whose details are open; read by the engine's thread
        )
        self._start = start
        self._arrived: deque[Moment] = deque(maxlen=UNSEEN)
        self._wanted = False  # the loop has been woken and has not looked yet
        self._drawn = 0.0
        self._later: asyncio.TimerHandle | None = None

    # -- from the engine's thread -----------------------------------------------------------------------------------

    def offer(self, moment: Moment) -> None:
        """Hand over a Moment from any thread; never waits, whatever the terminal does."""
        self._arrived.append(moment)
        self._wake()

    def ended(self, text: str) -> None:
        """The source has come to its end (a replay, a launched command): the last picture stays, `text` says why."""
        self._ending = text
        self._wake()

    def fail(self, error: BaseException) -> None:
        """The source failed: leave the screen; `run_screen` raises `error`."""
        self.failure = error
        self._wake()

    _ending = ""

    def _wake(self) -> None:
        loop = self._loop
        if self._wanted or loop is None:
            return
        self._wanted = True
        try:
            loop.call_soon_threadsafe(self._look)
        except RuntimeError:
            pass  # the loop is closed: the screen has gone

    # -- drawing ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take in all that arrived; draw, unless a frame is not due yet or the terminal has not read the last one."""
        self._wanted = False
        if self.failure is not None:
            self.exit(return_code=1)
            return
        while self._arrived:
            self.state.add(self._arrived.popleft())
        if self._ending:
            self.state.message, self._ending = self._ending, ""
        due = self._drawn + self.period - time.monotonic()
        if due > 0.01:
            if self._later is None:
                self._later = self._loop.call_later(due, self._look_later)
        elif self.behind:
            self._driver.on_recovery = (
                self._look
            )  # the terminal asks for the newest when it has read this one
        else:
            self._drawn = time.monotonic()
            self.draw()

    @property
    def behind(self) -> bool:
        """Has the terminal not yet read the last frame?"""
        return getattr(self._driver, "behind", False)

    def _look_later(self) -> None:
        self._later = None
        self._look()

    def draw(self) -> None:
        """Show the state as it is now."""
        if self.canvas.is_mounted:
            self.state.arrange(time.monotonic())
            self.mind_sampling()
            self.looked_at = self.state.looked_at()
            self.canvas.update()

    def repaint(self) -> None:
        """Paint everything anew: what is on the terminal is not what was sent."""
        self.screen.refresh(layout=True)

    # -- Textual ----------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.canvas

    def on_mount(self) -> None:
        if self._driver is not None and not self.is_headless:
            self.canvas.send = self._driver.write
            self._driver.on_loss = partial(self.leave, 128 + signal.SIGHUP)
        self.app_resume_signal.subscribe(self, lambda _: self.repaint())  # after Ctrl-Z and fg
        loop = asyncio.get_running_loop()
        for number in ENDINGS:
            try:
                loop.add_signal_handler(number, self.leave, 128 + number)
            except (RuntimeError, ValueError, NotImplementedError):
                return  # not the main thread (tests)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

    def post_display_hook(self) -> None:
        """Textual has painted: if that was the first frame, sampling may begin."""
        if self._start is not None and self.canvas.drawn != (0, 0):
            start, self._start = self._start, None
            self.call_later(start)

    def leave(self, code: int) -> None:
        self.exit(return_code=code)

    async def on_key(self, event: events.Key) -> None:
        event.prevent_default()
        event.stop()
        self.state.greeting = False
        if self.state.prompt is not None:
            self.type_prompt(event.key, event.character if event.is_printable else None)
        elif self.state.menu is not None:
            self.type_menu(event.key, event.character if event.is_printable else None)
        else:
            action = self.bound.get(event.key)
            if action is None:
                return
            self.state.message = ""
            getattr(self, f"do_{action}")()
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """With the mouse on: a click puts the cursor on a row, a second one explains it."""
        place = self.state.top + event.screen_y - self.state.first_line
        if self.state.menu is None and self.state.top <= place < self.state.top + self.state.height:
            self.state.move(place, time.monotonic())
            if event.chain == 2:
                self.do_details()
        self.draw()

    def on_mouse_scroll_down(self) -> None:
        self.step(3)
        self.draw()

    def on_mouse_scroll_up(self) -> None:
        self.step(-3)
        self.draw()

    def on_resize(self) -> None:
        self.call_later(self.draw)


def run_screen(app: PmutopApp, mouse: bool = False) -> int:
    """Run until the person leaves; the exit code: 0, or 128 + the signal that ended it. Raises what `app.fail` was given."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        app.run(mouse=mouse)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    if os.isatty(STDOUT) and not app.behind:
        # screen (altscreen off) and mosh leave the old picture under the prompt.
        with suppress(OSError):  # the terminal is gone
            os.write(STDOUT, b"\x1b[J")
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
