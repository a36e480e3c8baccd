"""Loads whose counts the kernel can be asked for afterwards: `python loads.py NAME SECONDS`."""

import mmap
import os
import sys
import threading
import time


def until(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def work(passes=2000):
    for _ in range(passes):
        pass


def spin(seconds):
    for _ in until(seconds):
        work()


def yielding(seconds):
    for _ in until(seconds):
        work(500)
        os.sched_yield()


def sleeping(seconds):
    for _ in until(seconds):
        work(500)
        time.sleep(0.001)


def pair(seconds):
    """Two processes that pass a byte to and fro."""
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1])
        while os.read(there[0], 1):
            os.write(back[1], b"x")
        os._exit(0)
    for _ in until(seconds):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    os.close(there[1])
    os.wait()


def threads(seconds):
    team = [threading.Thread(target=sleeping, args=(seconds,)) for _ in range(4)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()


def forking(seconds, pause=0.004):
    """Children that live about a millisecond."""
    for _ in until(seconds):
        if os.fork() == 0:
            work(20000)
            os._exit(0)
        os.wait()
        time.sleep(pause)


def storm(seconds):
    """As many children as possible, which do nothing; says how many there were."""
    count = 0
    for _ in until(seconds):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        count += 1
    print(count)


def faulting(seconds):
    for _ in until(seconds):
        with mmap.mmap(-1, 64 * mmap.PAGESIZE) as memory:
            for page in range(64):
                memory[page * mmap.PAGESIZE] = 1
        time.sleep(0.002)


if __name__ == "__main__":
    globals()[sys.argv[1]](float(sys.argv[2]))
