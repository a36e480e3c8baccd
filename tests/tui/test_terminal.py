"""The real app in a real pseudo-terminal, read by an independent terminal emulator (pyte)."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

pyte = pytest.importorskip("pyte")

TESTS = Path(__file__).resolve().parents[1]
SGR_COLOUR = re.compile(rb"\x1b\[(?:[\d:]*;)*(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:;[\d:;]*)?m")


class Session:
    """tests/moments.py (or `command`) in a pseudo-terminal: `read` feeds what it sends to the emulator."""

    def __init__(self, columns=80, lines=24, rows=60, interval=0.1, flavour="", command=(), **environment):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            self.window(1, columns, lines)
            clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM")}
            clean |= {"TERM": "xterm-256color", "PYTHONPATH": str(TESTS.parent)} | environment
            os.execve(
                sys.executable,
                [
                    sys.executable,
                    *(command or (str(TESTS / "moments.py"), str(rows), str(interval), "1e9", flavour)),
                ],
                clean,
            )
        self.screen = pyte.Screen(columns, lines)
        self.emulator = pyte.ByteStream(self.screen)
        self.raw = b""

    @staticmethod
    def window(descriptor, columns, lines):
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        self.window(self.master, columns, lines)

    def read(self, until, seconds=15.0):
        """Read until `until` (a pattern) is on the screen or `until()` is true."""
        end = time.monotonic() + seconds
        while not (until() if callable(until) else re.search(until, self.text)):
            assert time.monotonic() < end, f"not seen: {until}\n{self.text}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    data = os.read(self.master, 1 << 16)
                except OSError:
                    return
                self.raw += data
                # pyte does not know the kitty keyboard and mode-query sequences and would print their ends
                self.emulator.feed(
                    re.sub(rb"\x1b\[[<>=][\d;]*u|\x1b\[\?\d+\$p|\x1b\]22;[^\x07]*\x07", b"", data)
                )

    @property
    def display(self):
        """The lines, also while half of a wide character has come (pyte's own display fails on such a one)."""
        screen = self.screen
        return ["".join(screen.buffer[y][x].data for x in range(screen.columns)) for y in range(screen.lines)]

    @property
    def text(self):
        return "\n".join(self.display)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ended(self):
        if getattr(self, "status", None) is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def wait(self, seconds=5.0, reading=True):
        """Wait for the end; its exit code."""
        end = time.monotonic() + seconds
        while not self.ended():
            assert time.monotonic() < end, "it does not end"
            if reading:
                self.read(lambda: True)
                if select.select([self.master], [], [], 0.05)[0]:
                    try:
                        self.raw += os.read(self.master, 1 << 16)
                    except OSError:
                        pass
            else:
                time.sleep(0.05)
        return os.waitstatus_to_exitcode(self.status)

    def close(self):
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def restored(raw):
    """Did the last of each pair switch its mode off: alternate screen, hidden cursor, mouse, paste, focus, line wrap?"""
    for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?2004h", b"\x1b[?2004l"),
                    (b"\x1b[?1004h", b"\x1b[?1004l"), (b"\x1b[?7l", b"\x1b[?7h")):  # fmt: skip
        assert on not in raw or raw.rfind(off) > raw.rfind(on), (on, raw[-300:])
    assert raw.rfind(b"\x1b[?1000l") >= raw.rfind(b"\x1b[?1000h")
    return True


# pmutop, held where Textual would be loaded: by an import hook of the test's own.
HELD = """
import sys, time
class Held:
    def find_spec(self, name, *_):
        if name == "textual":
            time.sleep(float(sys.argv.pop(1)))
            sys.meta_path.remove(self)
sys.meta_path.insert(0, Held())
from pmutop.cli import main
sys.exit(main([]))
"""


@pytest.mark.live
def test_the_first_frame_needs_no_textual_and_keys_typed_on_it_count():
    with Session(100, 30, command=("-c", HELD, "1")) as session:
        session.read(r"Labels that can be seen here[\s\S]*F10Quit")
        assert b"\x1b[?2004h" not in session.raw, "that is Textual's already"
        assert not termios.tcgetattr(session.master)[3] & (termios.ECHO | termios.ICANON)
        session.press("q")
        assert session.wait(10) == 0
        assert restored(session.raw)
        assert termios.tcgetattr(session.master)[3] & termios.ECHO


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_on_the_first_frame_leaves_a_clean_terminal(number):
    with Session(100, 30, command=("-c", HELD, "60")) as session:
        session.read(r"F10Quit")
        os.kill(session.pid, number)
        assert session.wait() == 128 + number
        assert restored_or_empty(session) and b"\x1b[?1049l" in session.raw
        assert termios.tcgetattr(session.master)[3] & termios.ECHO


# pmutop, held between Textual's start, which reads the terminal in a thread, and the loop that serves signals.
STARTING = """
import sys, time
from pmutop.tui import terminal
start = terminal.Terminal.start_application_mode
def slowly(self):
    start(self)
    time.sleep(1)
terminal.Terminal.start_application_mode = slowly
from pmutop.cli import main
sys.exit(main([]))
"""


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_textual_starts_leaves_nothing_behind(number):
    with Session(100, 30, command=("-c", STARTING)) as session:
        session.read(lambda: b"\x1b[?2004h" in session.raw)
        os.kill(session.pid, number)
        assert session.wait(10) == 128 + number
        assert restored_or_empty(session) and b"\x1b[?1049l" in session.raw


# A hang-up brings SIGHUP and then SIGCONT: here that one comes when the screen is on its way out.
LEAVING = """
import os, signal, sys
from pmutop.tui import terminal
stop = terminal.Terminal.stop_application_mode
def and_continued(self):
    stop(self)
    os.kill(os.getpid(), signal.SIGCONT)
terminal.Terminal.stop_application_mode = and_continued
from pmutop.cli import main
sys.exit(main([]))
"""

# Nobody says a word (a session leader that keeps the hang-up to itself): the terminal is just gone.
UNTOLD = """
import signal, sys
from pmutop.tui import app
app.ENDINGS = (signal.SIGTERM,)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
from pmutop.cli import main
sys.exit(main([]))
"""


@pytest.mark.live
@pytest.mark.parametrize("program", [STARTING, LEAVING, UNTOLD], ids=["starting", "leaving", "untold"])
def test_a_terminal_that_goes_away_ends_it(program):
    session = Session(100, 30, command=("-c", program))
    session.read(lambda: b"\x1b[?2004h" in session.raw)
    if program is not STARTING:
        session.read(r"slice [1-9]")
    os.close(session.master)
    end = time.monotonic() + 20
    try:
        while not session.ended():
            assert time.monotonic() < end, "it outlives its terminal"
            time.sleep(0.05)
        assert os.waitstatus_to_exitcode(session.status) == 128 + signal.SIGHUP
    finally:
        if not session.ended():
            os.kill(session.pid, signal.SIGKILL)
            os.waitpid(session.pid, 0)


def test_a_continue_without_a_stop_starts_nothing():
    """Second threads would read the terminal beside the first, and on after the screen has ended."""
    with Session() as session:
        session.read(r"slice [1-9]")
        threads = len(os.listdir(f"/proc/{session.pid}/task"))
        os.kill(session.pid, signal.SIGCONT)
        session.raw = b""
        number = int(re.search(r"slice (\d+)", session.text)[1])
        session.read(lambda: int(re.search(r"slice (\d+)", session.text)[1]) > number + 3)
        assert len(os.listdir(f"/proc/{session.pid}/task")) == threads
        session.press("q")
        assert session.wait() == 0


def test_start_resize_and_quit():
    with Session() as session:
        session.read(r"Labels that can be given here")
        session.read(r"slice [1-9]\d* ")
        session.press("\x1b")
        session.read(r"\n {2,}\d+ \w+ .*P_OS")
        assert b"\x1b[?1000h" not in session.raw and b"\x1b[?1003h" not in session.raw, (
            "the mouse is the terminal's own"
        )
        session.resize(120, 30)
        session.read(r"F10Quit +\n?$")
        session.read(lambda: len(session.display[0]) == 120 and "RES" in session.text)
        session.press("\r")
        session.read(r"Details")
        session.press("\x1b")
        session.read(lambda: "Details" not in session.text)
        session.press("q")
        assert session.wait() == 0
        assert restored(session.raw) and b"\x1b[J" in session.raw[-40:]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_a_clean_terminal(number):
    with Session() as session:
        session.read(r"slice [1-9]")
        before = termios.tcgetattr(session.master)
        os.kill(session.pid, number)
        assert session.wait() == 128 + number
        assert restored(session.raw)
        after = termios.tcgetattr(session.master)
        assert after[3] & termios.ECHO and after[3] & termios.ICANON and not before[3] & termios.ECHO


def test_suspend_and_resume():
    with Session() as session:
        session.read(r"slice [1-9]")
        os.kill(session.pid, signal.SIGTSTP)
        time.sleep(0.5)
        os.kill(session.pid, signal.SIGCONT)
        session.raw = b""
        session.read(lambda: b"F10" in session.raw)
        session.press("q")
        assert session.wait() == 0 and restored(session.raw)


def test_no_color_sends_no_colour():
    with Session(NO_COLOR="1") as session:
        session.read(r"slice [1-9]")
        for keys, shows in (
            ("\r", "Details"),
            ("\x1b", "COMMAND"),
            ("?", "Help"),
            ("\x1b", "COMMAND"),
            ("t", "COMMAND"),
        ):
            session.press(keys)
            session.read(shows)
        session.press("q")
        assert session.wait() == 0
        assert not SGR_COLOUR.findall(session.raw)
        assert b"\x1b[7m" in session.raw, "distinctions are attributes"


def test_colours_are_the_sixteen_of_the_terminal():
    with Session(COLORTERM="truecolor") as session:
        session.read(r"slice [1-9]")
        session.press("q")
        session.wait()
        assert SGR_COLOUR.search(session.raw)
        assert b"38;2;" not in session.raw and b"38;5;" not in session.raw and b"48;" not in session.raw


def test_what_is_on_the_terminal_is_what_was_drawn():
    """The spans that are written straight must leave the same picture as a whole repaint (Ctrl-L)."""
    with Session(120, 40, rows=80, interval=0.05, flavour="hostile") as session:
        session.read(r"slice [3-9]\d ")
        session.press("\x1b[B\x1b[B t\r")
        session.read("Details")
        session.press("\x1b")
        session.read(lambda: "Details" not in session.text)
        session.press("Z")
        session.read("HELD")
        end = time.monotonic() + 0.5
        session.read(lambda: time.monotonic() > end)
        before = [line for line in session.display if not re.search("HELD|l live", line)]
        session.screen.reset()
        session.press("\x0c")
        session.read("HELD")
        end = time.monotonic() + 0.3
        session.read(lambda: time.monotonic() > end)
        assert [line for line in session.display if not re.search("HELD|l live", line)] == before


@pytest.mark.slow
def test_a_terminal_that_nobody_reads_costs_no_slice(tmp_path):
    """Ten seconds unread: every slice is handed over; then the newest is shown; SIGTERM works while unread, too."""
    report = tmp_path / "handed"
    with Session(200, 50, rows=200, interval=0.05, HANDED=str(report)) as session:
        session.read(r"slice [1-9]")
        time.sleep(10)
        session.read(r"slice [1-9]\d\d ", seconds=5)
        time.sleep(2)
        os.kill(session.pid, signal.SIGTERM)
        assert session.wait(4, reading=False) == 143
        session.raw = b""
        session.read(lambda: restored_or_empty(session), seconds=2)
    numbers = [int(line.split()[0]) for line in report.read_text().splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 120, (
        "a hand-over that waits for the terminal would have ended the count within a second"
    )


def restored_or_empty(session):
    try:
        if select.select([session.master], [], [], 0.1)[0]:
            session.raw += os.read(session.master, 1 << 16)
            return False
    except OSError:
        pass
    return restored(session.raw)
