"""An interpreter at work: the healthy kinds of os_healthy.c as a Python program (the same options and the same last line)."""

import argparse
import ctypes
import json
import os
import signal
import time


def words(state):
    count = {}
    for i in range(2000):
        word = f"word{(i * 7919 + state) % 977}"
        count[word] = count.get(word, 0) + 1
    return sum(count.values()) == 2000


def numbers(state):
    total = 0
    for i in range(5000):
        total += (i ^ state) * 3 % 17
    return total > 0


def objects(state):
    rows = [{"id": i, "name": str(i + state), "tags": ["a", "b"]} for i in range(500)]
    return len(json.loads(json.dumps(rows))) == 500


def matrices(state):
    n = 24
    a = [[float(i * j + state) for j in range(n)] for i in range(n)]
    c = [[sum(x * y for x, y in zip(row, column)) for column in zip(*a)] for row in a]
    return len(c) == n


def naps(state):
    total = sum(range(20000 + state % 2))
    time.sleep(0.02)
    return total > 0


def ticks(state):
    time.sleep(0.002)
    return state >= 0


BODIES = {
    "words": words,
    "numbers": numbers,
    "objects": objects,
    "matrices": matrices,
    "naps": naps,
    "ticks": ticks,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=BODIES, default="words")
    parser.add_argument("--variant")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--work", type=float, default=float("inf"))
    parser.add_argument("--cpus")
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--parent", type=int, default=os.getppid())
    parser.add_argument("--ready-fd", type=int, default=-1)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != options.parent:
        return
    if options.cpus:
        os.sched_setaffinity(0, map(int, options.cpus.split(",")))
    os.nice(options.nice)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    body = BODIES[options.kind]
    if options.ready_fd >= 0:
        os.write(options.ready_fd, b"ready\n")
        os.close(options.ready_fd)
    began, cpu, work, check = time.monotonic(), time.process_time(), 0, 0
    while not stop and work < options.work and time.monotonic() - began < options.seconds:
        check += body(work)
        work += 1
    result = {
        "work": work,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu,
        "check": check,
    }
    print(json.dumps(result))


main()
