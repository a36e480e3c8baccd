"""Two real multi-process programs for the figures of `fuse.py`: make -j2 of a C project, and a Python job.

The C project is written by `c_project` from a seed; the Python job is this file run as a script.
"""

from __future__ import annotations

import multiprocessing.connection
import os
import random
import sys
import time
from pathlib import Path

SOURCES = 120
JOBS = 400


def c_project(folder: Path, seed: int = 0) -> list[str]:
    """Write a small C project of 120 files of unequal size into `folder`; returns the command that builds it."""
    rng = random.Random(seed)
    for number in range(SOURCES):
        lines = ["#include <stdio.h>", "#include <string.h>"] + ["#include <math.h>"] * (number % 2)
        for function in range(1 + int(rng.paretovariate(1.0)) % 40):
            body = "".join(
                f"  x = x * {rng.randint(2, 99)} + a[{rng.randint(0, 15)}];\n"
                for _ in range(rng.randint(2, 30))
            )
            loop = f"  for (int i = 0; i < {rng.randint(4, 99)}; i++) a[i & 15] += x ^ i;\n" * rng.randint(
                0, 6
            )
            lines.append(f"int f{number}_{function}(int x, int *a) {{\n{body}{loop}  return x;\n}}")
        (folder / f"part{number}.c").write_text("\n".join(lines) + "\n")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    objects = " ".join(f"part{number}.o" for number in range(SOURCES)) + " main.o"
    (folder / "Makefile").write_text(
        f"program: {objects}\n\tgcc -o program {objects} -lm\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n"
    )
    return ["make", "-C", str(folder), "-B", "-j2"]


def memory(size: int) -> None:
    block = bytearray(size * 60_000)
    block[::4096] = b"\1" * len(block[::4096])


def calls(size: int) -> None:
    with open("/dev/zero", "rb", buffering=0) as zero:
        for _ in range(size * 150):
            zero.read(64)


def compute(size: int) -> None:
    total = 0
    for number in range(size * 9_000):
        total += number * number


def naps(size: int) -> None:
    for _ in range(size):
        time.sleep(0.0005)


def files(size: int) -> None:
    for _ in range(size * 10):
        with open(__file__, "rb") as file:
            file.read()


WORKS = (memory, calls, compute, naps, files)


def main(placement: str) -> None:
    """400 processes, two at a time, each with one kind of work and a size; `random` deals them out anew in each run."""
    rng = random.Random(0)
    jobs = [(rng.choice(WORKS), rng.randint(1, 50)) for _ in range(JOBS)]
    if placement == "random":
        random.Random(os.urandom(8)).shuffle(jobs)
    running: list[multiprocessing.Process] = []
    for work, size in jobs:
        if len(running) == 2:
            multiprocessing.connection.wait([process.sentinel for process in running])
            running = [process for process in running if process.is_alive()]
        process = multiprocessing.get_context("fork").Process(target=work, args=(size,))
        process.start()
        running.append(process)
    for process in running:
        process.join()


if __name__ == "__main__":
    main(sys.argv[1])
