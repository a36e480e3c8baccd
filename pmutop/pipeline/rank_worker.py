"""The ranking worker: a process of its own at nice 19 that is given slices as packed arrays and answers with importances.

Both ends of its two pipes are here. A question is QUESTION, then float64 (rows, inputs + 1) with the target as last column;
an answer is ANSWER, then one RANKED per event of the model, the most important first. Numbers only: nothing that could be
taken for code. The worker ends when its input does, so it does not outlive whoever asked, not even after kill -9.
"""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

QUESTION = struct.Struct("<II")  # rows, inputs
ANSWER = struct.Struct("<Idd")  # events, error, error of the median model
RANKED = np.dtype([("event", "<u4"), ("importance", "<f8")])
NICEST = 19


class Answer(NamedTuple):
    """order int (events,): columns of the inputs, the most important first; importance float64 (events,) in percent."""

    order: np.ndarray
    importance: np.ndarray
    error: float
    median_error: float


class Worker:
    """The near end: `give` one question, then `take` until it is answered; neither waits. OSError when it has ended."""

    def __init__(self) -> None:
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            # -P: never from the folder that pmutop was started in
            [sys.executable, "-P", "-m", "pmutop.pipeline.rank_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for pmutop, which then closes the pipe
        )
        for pipe in (self.process.stdin, self.process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self.unsent = memoryview(b"")
        self.inbox = bytearray()

    def give(self, inputs: np.ndarray, target: np.ndarray) -> None:
        self.inputs = inputs.shape[1]
        table = np.column_stack([inputs, target]).astype("<f8")
        self.unsent = memoryview(QUESTION.pack(*inputs.shape) + table.tobytes())

    def take(self) -> Answer | None:
        """Send what the pipe takes of the question; the answer once it is there, else None."""
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(self.process.stdin.fileno(), self.unsent) :]
        except BlockingIOError:
            return None
        try:
            while True:
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    raise BrokenPipeError("the ranking worker has ended")
                self.inbox += data
        except BlockingIOError:
            pass
        if len(self.inbox) < ANSWER.size:
            return None
        count, error, median_error = ANSWER.unpack_from(self.inbox)
        size = ANSWER.size + count * RANKED.itemsize
        if count > self.inputs or len(self.inbox) > size:
            raise OSError("the ranking worker does not answer what it was asked")
        if len(self.inbox) < size:
            return None
        ranked = np.frombuffer(bytes(self.inbox[ANSWER.size :]), RANKED)
        self.inbox.clear()
        if (ranked["event"] >= self.inputs).any():
            raise OSError("the ranking worker names an event that it was not given")
        return Answer(ranked["event"].astype(int), ranked["importance"], error, median_error)

    def wait(self, seconds: float) -> float:
        """Wait until it may have something to say, `seconds` at most; returns how long that was."""
        began = time.monotonic()
        write = [self.process.stdin] if self.unsent else []
        select.select([self.process.stdout], write, [], seconds)
        return time.monotonic() - began

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """The far end: answer until the questions end."""
    while head := questions.read(QUESTION.size):
        rows, inputs = QUESTION.unpack(head)
        size = rows * (inputs + 1) * 8
        data = questions.read(size)
        if len(data) < size:
            return
        answers.write(answered(np.frombuffer(data, "<f8").reshape(rows, inputs + 1)))
        answers.flush()


def answered(table: np.ndarray) -> bytes:
    from pmutop.analysis.importance import live  # scikit-learn: here, and never on the other side of the pipe

    try:
        found = live(table[:, :-1], table[:, -1], range(table.shape[1] - 1))
    except ValueError:  # nothing to rank: a target that never changes where it may be learnt from
        return ANSWER.pack(0, np.nan, np.nan)
    ranked = np.array(list(zip(found.best.events, found.best.importance, strict=True)), RANKED)
    return ANSWER.pack(len(ranked), found.best.error, found.baseline) + ranked.tobytes()


def main() -> None:
    os.sched_setscheduler(
        0, os.SCHED_OTHER, os.sched_param(0)
    )  # whoever started it may be a real-time thread
    os.nice(NICEST)
    Path("/proc/self/comm").write_text("pmutop-rank")
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
