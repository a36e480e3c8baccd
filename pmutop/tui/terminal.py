"""Textual's Linux driver over a terminal that may stop reading at any time (a stalled ssh, a frozen tmux client).

The stock driver writes from a thread behind a queue of 30: once a terminal stops reading, the next frame blocks the event
loop, signals are no longer served, and leaving waits for ever. Here the terminal is opened a second time, non-blocking
(its own open file description: the shell's stays as it is); what does not fit waits, is bounded, and frames that
come meanwhile are dropped, newest wins.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import termios
import time
from collections.abc import Callable

from textual.drivers.linux_driver import LinuxDriver

#: A whole frame of 300x80 in 16 colours is below this; beyond it the terminal is behind and further frames are dropped.
ROOM = 96 * 1024
STDOUT = 1
PATIENCE = 0.3  # seconds that leaving waits for a terminal that does not read


class Terminal(LinuxDriver):
    """LinuxDriver whose writes never block."""

    def __init__(self, app, **options) -> None:
        super().__init__(app, **options)
        self.unsent = bytearray()
        self.dropped = False  # the picture on the terminal is not the one we believe in
        self.on_recovery: Callable[[], None] | None = (
            None  # called when all is sent after frames were dropped
        )
        self.on_loss: Callable[[], None] | None = None  # called when the terminal is gone
        self.sent = 0  # bytes, for the benchmark
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = False
        self._file = sys.__stdout__  # stderr may go to a file
        self._out = -1  # where the tty cannot be opened again (another user's), the stock writer must do

    @property
    def behind(self) -> bool:
        """Is the terminal still busy with the last frame?"""
        return self._waiting

    def start_application_mode(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._out < 0:
            try:
                self._out = os.open(os.ttyname(STDOUT), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            except OSError:
                pass
        super().start_application_mode()

    def resume_application_mode(self) -> None:
        """Only a screen that was left is started: a SIGCONT without a stop (`kill -CONT`; a hang-up brings one, too, see the
        kernel's drivers/tty/tty_jobctrl.c) would start second threads that nobody ends, and the process would outlive us."""
        if self._writer_thread is None or not self._writer_thread.is_alive():
            super().resume_application_mode()

    def write(self, data: str) -> None:
        if self._out < 0:
            super().write(data)
        elif len(self.unsent) > ROOM:
            self.dropped = True
        else:
            self.unsent += data.encode("utf-8", "replace")
            if not self._waiting:
                # Also called from the input thread, which may not touch the file itself.
                self._waiting = True
                self._loop.call_soon_threadsafe(self._send)

    def flush(self) -> None:
        """Nothing: what was written in one turn of the loop leaves in one system call."""

    def _send(self) -> None:
        """Write what the terminal takes; come back when it takes more."""
        try:
            while self.unsent:
                count = os.write(self._out, self.unsent)
                self.sent += count
                del self.unsent[:count]
        except BlockingIOError:
            self._loop.add_writer(self._out, self._send)
            return
        except OSError:
            self.unsent.clear()
            if self.on_loss:  # a SIGHUP tells the app, but not everybody gets one
                self.on_loss()
        self._loop.remove_writer(self._out)
        self._waiting = False
        if self.dropped:
            self.dropped = False
            if self.on_recovery:
                self.on_recovery()

    def stop_application_mode(self) -> None:
        if self._out >= 0 and len(self.unsent) > ROOM:
            self.unsent.clear()
        super().stop_application_mode()
        self._drain()

    def close(self) -> None:
        super().close()
        if self._out >= 0:
            self._drain()
            self._loop.remove_writer(self._out)
            self._waiting = False
            os.close(self._out)
            self._out = -1

    def _drain(self) -> None:
        """Send the rest, waiting a little; if nobody reads, throw away the pictures and send the last words only."""
        if self._out < 0:
            return
        end = time.monotonic() + PATIENCE
        flushed = False
        while self.unsent:
            try:
                del self.unsent[: os.write(self._out, self.unsent)]
                continue
            except BlockingIOError:
                pass
            except OSError:
                self.unsent.clear()
                break
            if time.monotonic() < end:
                select.select([], [self._out], [], 0.05)
            elif not flushed:
                flushed = True
                last_words = self.unsent[-256:]
                self.unsent[:] = last_words[max(last_words.find(b"\x1b"), 0) :]
                try:
                    termios.tcflush(self._out, termios.TCOFLUSH)
                except termios.error:
                    break
            else:
                break
