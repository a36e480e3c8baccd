"""The first frame: drawn from the same state by the same views as every later one, but before Textual is loaded (0.15 s)."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pmutop.tui.frame import frame
from pmutop.tui.lines import escaped, fitted, has_colours, pens
from pmutop.tui.state import State

STDIN, STDOUT = 0, 1
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[H", "\x1b[?25h\x1b[?1049l"
ECHO = 3  # where tcgetattr(3) has the local modes


@contextmanager
def opened(state: State, ascii_only: bool) -> Iterator[None]:
    """The alternate screen with the first frame on it, and keys unechoed, so that those typed early wait for the screen.

    Textual takes all that over (signals too: app.ENDINGS); it leaves the terminal as it found it, which is as we have set it, and so what the shell
    had comes back here, also where a signal ends us while Textual is being loaded.
    """
    kept = termios.tcgetattr(STDIN)
    handlers = {
        number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        quiet = list(kept)
        quiet[ECHO] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(STDIN, termios.TCSANOW, quiet)
        send(ENTER + picture(state, ascii_only))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(STDIN, termios.TCSANOW, kept)


def picture(state: State, ascii_only: bool) -> str:
    """The whole frame with its escape sequences."""
    width, height = os.get_terminal_size(STDOUT)
    ink = pens(has_colours())
    lines = [fitted(line, width, ascii_only) for line in frame(state, width, height)[:height]]
    return "\r\n".join(escaped(line, 0, width, ink).rstrip(" ") for line in lines)


def send(text: str) -> None:
    """Write what a terminal takes that may not be read: the frame after this one is whole again."""
    try:
        terminal = os.open(os.ttyname(STDOUT), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return  # another user's (su): Textual's own way must do
    try:
        os.write(terminal, text.encode("utf-8", "replace"))
    except OSError:
        pass
    finally:
        os.close(terminal)


def leave(number: int, _) -> None:
    send(LEAVE)
    raise SystemExit(128 + number)
