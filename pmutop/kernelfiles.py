"""The small formats of /proc and /sys. An absent or refused file is an empty answer, never an error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path


def text(path: Path, default: str = "") -> str:
    """The stripped contents, or `default` where the file is absent or refused."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return default


def number(path: Path, default: int = -1) -> int:
    """A file that holds one integer, decimal or 0x..."""
    try:
        return int(text(path), 0)
    except ValueError:
        return default


def names(path: Path) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def cpu_list(ranges: str) -> tuple[int, ...]:
    """The kernel's list format: '0-3,8' -> (0, 1, 2, 3, 8); '' and '(null)' -> ()."""
    found: list[int] = []
    for part in ranges.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match:
            found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(found)


def cpu_ranges(cpus: Iterable[int]) -> str:
    """The other way: (0, 1, 2, 64) -> '0-2,64'."""
    parts = []
    for _, group in groupby(enumerate(sorted(cpus)), key=lambda pair: pair[1] - pair[0]):
        run = [cpu for _, cpu in group]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ",".join(parts)


def size(words: str) -> int:
    """'32768K' -> bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)", words)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0


def bits(words: str) -> tuple[tuple[str, int, int], ...]:
    """'config:0-7,32-35' -> (('config', 0, 7), ('config', 32, 35))."""
    word, _, ranges = words.partition(":")
    found = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.append((word, int(first), int(last or first)))
    return tuple(found)
