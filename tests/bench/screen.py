"""What the screen costs by itself, on made-up Moments in a pseudo-terminal: first frame, CPU, bytes a frame, memory.

python tests/bench/screen.py [SECONDS]      prints a markdown table
"""

from __future__ import annotations

import fcntl
import os
import platform
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
CASES = [
    # name, columns, lines, rows, flavour (film: the Moments are made beforehand), keys pressed
    ("80x24, 60 processes, all busy ones change", 80, 24, 60, "film", ""),
    ("200x50, 200 processes, 10 % of the busy ones change", 200, 50, 200, "film,quiet", ""),
    ("200x50, 200 processes, all busy ones change", 200, 50, 200, "film", ""),
    ("200x50, 1000 processes, all busy ones change", 200, 50, 1000, "film", ""),
    ("200x50, 5000 processes, all busy ones change", 200, 50, 5000, "film", ""),
    ("200x50, 200 processes, details open", 200, 50, 200, "film", "\r"),
]


class Screen:
    """The real screen in a pseudo-terminal of its own."""

    def __init__(self, columns: int, lines: int, rows: int, flavour: str) -> None:
        self.begin = time.monotonic()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            environment = dict(os.environ, TERM="xterm-256color", PYTHONPATH=str(ROOT))
            os.execve(
                sys.executable,
                [sys.executable, str(ROOT / "tests/moments.py"), str(rows), "0.4", "1e9", flavour],
                environment,
            )
        self.bytes = 0

    def read(self, seconds: float, until: bytes = b"") -> bytes:
        """What comes within `seconds`, or until `until` has come."""
        data = b""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], max(0, min(0.05, end - time.monotonic())))[0]:
                try:
                    data += os.read(self.master, 1 << 16)
                except OSError:
                    break
                if until and until in data:
                    break
        self.bytes += len(data)
        return data

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> int:
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())[1])

    def close(self) -> None:
        os.write(self.master, b"q")
        self.read(1.0)
        os.close(self.master)
        os.waitpid(self.pid, 0)


def first_frame(columns: int, lines: int, rows: int) -> tuple[float, float]:
    """Seconds from exec to the last line of the first frame: by the clock, and of CPU time."""
    screen = Screen(columns, lines, rows, "film")
    screen.read(10, b"F10")  # the bar at the foot is the last line of the frame
    taken = time.monotonic() - screen.begin, screen.cpu()
    screen.read(0.5)
    screen.close()
    return taken


def answer(columns: int, lines: int, rows: int) -> list[float]:
    """Seconds from a key to the first byte of its repaint, 40 times, while slices arrive."""
    screen = Screen(columns, lines, rows, "film")
    screen.read(6)
    taken = []
    for number in range(40):
        screen.read(0.13 + 0.007 * (number % 11))
        pressed = time.monotonic()
        os.write(screen.master, b"\x1b[B" if number % 2 else b"\x1b[A")
        select.select([screen.master], [], [], 1)
        taken.append(time.monotonic() - pressed)
    screen.close()
    return sorted(taken)


def cost(
    columns: int, lines: int, rows: int, flavour: str, keys: str, seconds: float
) -> tuple[float, float, int]:
    """CPU % of one core, bytes per frame, resident kB."""
    screen = Screen(columns, lines, rows, flavour)
    screen.read(6)
    os.write(screen.master, keys.encode())
    screen.read(2)
    screen.bytes = 0
    before, began = screen.cpu(), time.monotonic()
    screen.read(seconds)
    used, took = screen.cpu() - before, time.monotonic() - began
    result = used / took * 100, screen.bytes / (took / 0.4), screen.memory()
    screen.close()
    return result


def main(seconds: float) -> None:
    print(
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, 2.5 frames a second\n"
    )
    frames = sorted(first_frame(80, 24, 60) for _ in range(5))
    print(
        f"Load average {os.getloadavg()[0]:.1f}. First frame (without pipeline), warm, 5 runs: median {frames[2][0]:.3f} s"
    )
    print(f"({frames[2][1]:.2f} s of CPU), worst {frames[-1][0]:.3f} s\n")
    keys = answer(200, 50, 1000)
    print(
        f"Key to repaint, 200x50, 1000 processes, 40 keys: median {keys[20] * 1e3:.1f} ms, worst {keys[-1] * 1e3:.1f} ms\n"
    )
    print("| case | CPU % of one core | bytes a frame | RSS MB |\n|---|---|---|---|")
    for name, columns, lines, rows, flavour, keys in CASES:
        cpu, size, memory = cost(columns, lines, rows, flavour, keys, seconds)
        print(f"| {name} | {cpu:.2f} | {size:.0f} | {memory / 1024:.0f} |", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 15)
