"""The live ranking: what is kept, what the worker is asked and when, and that nothing it does or suffers holds a slice up."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from making import EVENTS, born, header, proc, raw, task
from moments import World

from pmutop.cli import main
from pmutop.errors import UsageError
from pmutop.pipeline import ranking
from pmutop.pipeline.rank_worker import ANSWER, QUESTION, RANKED, Answer, Worker, serve
from pmutop.pipeline.ranking import AGAIN, DEATHS, LEAST, PLACES, SLICES, UNWATCHED, Ranker
from pmutop.recording import Reader, Recorder
from pmutop.selection import Selection

MS = 1_000_000


class Obedient:
    """A worker that answers what it is told to, at once; None: it never does."""

    made: ClassVar[list] = []

    def __init__(self, answer=Answer(np.array([1, 0]), np.array([80.0, 20.0]), 0.05, 0.5)):  # noqa: B008
        self.answer, self.asked, self.closed = answer, [], False
        Obedient.made.append(self)

    def give(self, inputs, target):
        self.asked.append((inputs, target))

    def take(self):
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer

    def wait(self, seconds):
        return seconds

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def nobody():
    Obedient.made = []


def ranker(world, **options):
    return Ranker(world.header, worker=Obedient, **options)


def fed(of, world, slices, start=1, looked_at=None):
    """The Moments that come back, and the rankings in them."""
    out = [of.moment(world.moment(number), looked_at) for number in range(start, start + slices)]
    return [rank for moment in out for rank in moment.ranks]


def one_busy(rows=3, busy=1):
    """A machine on which only the first `busy` rows run."""
    world = World(rows, ipc=True)
    world.base[:], world.busy = 0, np.arange(busy)
    world.base[:busy] = world.cpu[:] = 30.0
    world.cpu[busy:] = 0
    return world


def test_nobody_looks_nobody_works():
    world = one_busy()
    of = ranker(world)
    assert fed(of, world, 200) == [] and Obedient.made == []


def test_who_looks_is_told_how_far_it_is_and_then_the_ranking():
    world = one_busy()
    of = ranker(world)
    ref = world.tasks[0].ref
    early = fed(of, world, LEAST - 1, looked_at=ref)
    assert len(early) == LEAST - 1 and f"of the {LEAST} slices" in early[-1].why and not Obedient.made
    (rank,) = fed(of, world, 2, LEAST, looked_at=ref)
    assert (rank.pid, rank.target, rank.slices, rank.slice) == (world.tasks[0].pid, "IPC", LEAST, LEAST + 1)
    assert rank.is_telling and [share for _, share in rank.events] == [80.0, 20.0]
    assert not {"instructions", "cycles"} & {name for name, _ in rank.events}


def test_the_last_slices_go_to_the_worker_oldest_first():
    world = one_busy()
    of = ranker(world, always=True, target="major-faults")
    column = [event.name for event in world.header.events].index("major-faults")
    for number in range(1, SLICES + 3 * AGAIN):
        moment = world.moment(number)
        moment.counts[0, column] = number * moment.seconds
        of.moment(moment)
    target = Obedient.made[0].asked[-1][1]
    assert len(target) == SLICES and np.all(np.diff(target) > 0)
    assert len(Obedient.made[0].asked) <= (SLICES + 3 * AGAIN - LEAST) // AGAIN + 1, (
        "made anew no sooner than due"
    )


def test_slices_in_which_it_slept_tell_nothing():
    world = one_busy()
    of = ranker(world, always=True)
    for number in range(1, 100):
        moment = world.moment(number)
        moment = replace(moment, cpu=moment.cpu * (number % 2), wait=moment.wait * (number % 2))
        of.moment(moment)
    assert next(place for place in of.places if place.ref == world.tasks[0].ref).slices == 50


def test_a_worker_that_never_answers_is_asked_once():
    world = one_busy(6, busy=4)
    of = Ranker(world.header, always=True, worker=lambda: Obedient(None))
    assert fed(of, world, 400) == [] and [len(one.asked) for one in Obedient.made] == [1]


def test_a_worker_that_dies_is_replaced_and_not_for_ever():
    world = one_busy()
    of = Ranker(world.header, always=True, worker=lambda: Obedient(BrokenPipeError()))
    ranks = fed(of, world, LEAST + (DEATHS + 2) * AGAIN)
    assert len(Obedient.made) == DEATHS and all(one.closed for one in Obedient.made)
    assert "ended" in ranks[-1].why and not any(rank.events for rank in ranks)


def test_a_worker_that_cannot_be_started_is_no_error():
    def none():
        raise BlockingIOError("no more processes")

    world = one_busy()
    assert "ended" in fed(Ranker(world.header, always=True, worker=none), world, 200)[-1].why


def test_a_worker_that_nobody_looks_at_goes_home():
    world = one_busy()
    of = ranker(world)
    fed(of, world, LEAST + 1, looked_at=world.tasks[0].ref)
    fed(of, world, UNWATCHED - 1, start=100)
    assert not Obedient.made[0].closed
    fed(of, world, 1, start=300)
    assert Obedient.made[0].closed and of.worker is None


def test_places_are_bounded_and_the_one_looked_at_keeps_its_own():
    world = one_busy(40, busy=30)
    of = ranker(world)
    quiet = world.tasks[35].ref
    rng = np.random.default_rng(1)
    for number in range(1, 120):
        moment = replace(world.moment(number), cpu=np.where(np.arange(40) < 30, rng.uniform(0, 100, 40), 0))
        of.moment(moment, looked_at=quiet)
        assert len({place.ref for place in of.places}) <= PLACES
    assert quiet in {place.ref for place in of.places}


def test_constant_targets_are_said_to_be_so():
    world = one_busy()
    of = ranker(world, always=True, target="major-faults")
    for number in range(1, LEAST + 2):
        moment = world.moment(number)
        moment.counts[:, 6] = 0
        ranks = of.moment(moment).ranks
        if ranks:
            break
    assert "hardly change" in ranks[0].why and not Obedient.made


def test_the_target_must_be_counted_and_has_a_default_without_a_pmu():
    assert Ranker(header()).target == "user-time/run-time"
    with pytest.raises(UsageError, match="no event cycles"):
        Ranker(header(), "cycles")


# ---- the pipe ---------------------------------------------------------------------------------------------------------


def question(inputs, target):
    return QUESTION.pack(*inputs.shape) + np.column_stack([inputs, target]).astype("<f8").tobytes()


def test_the_far_end_answers_numbers_and_ends_with_its_input():
    rng = np.random.default_rng(0)
    inputs = rng.lognormal(0, 0.5, (100, 4))
    still = question(inputs, np.ones(100))
    out = io.BytesIO()
    serve(io.BytesIO(question(inputs, 1 / (1 + inputs[:, 2])) + still + QUESTION.pack(9, 9) + b"cut"), out)
    said = out.getvalue()
    count, error, median = ANSWER.unpack_from(said)
    ranked = np.frombuffer(said, RANKED, count, ANSWER.size)
    assert ranked["event"][0] == 2 and ranked["importance"].sum() == pytest.approx(100) and error < median / 2
    assert ANSWER.unpack_from(said, ANSWER.size + ranked.nbytes)[0] == 0
    assert len(said) == 2 * ANSWER.size + ranked.nbytes


@pytest.mark.parametrize("lie", [ANSWER.pack(9, 0, 0), ANSWER.pack(0, 0, 0) + b"more",
                                 ANSWER.pack(1, 0, 0) + np.array([(7, 1.0)], RANKED).tobytes()])  # fmt: skip
def test_an_answer_that_fits_no_question_is_refused(lie):
    worker = Worker.__new__(Worker)
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, lie)
    worker.process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    worker.process.stdout = os.fdopen(read, "rb", 0)
    worker.unsent, worker.inbox, worker.inputs = memoryview(b""), bytearray(), 2
    with pytest.raises(OSError, match="worker"):
        worker.take()
    worker.close()
    os.close(write)


def test_killed_worker_is_an_oserror_and_leaves_nothing_behind():
    worker = Worker()
    worker.give(np.ones((1000, 200)), np.ones(1000))  # more than a pipe holds
    os.kill(worker.process.pid, signal.SIGKILL)
    with pytest.raises(OSError):
        for _ in range(1000):
            worker.take()
            worker.wait(0.1)
    worker.close()
    assert worker.process.returncode == -signal.SIGKILL


def test_the_worker_is_niced_and_goes_when_its_asker_is_killed():
    code = "from pmutop.pipeline.rank_worker import Worker; w = Worker(); print(w.process.pid, flush=True); input()"
    asker = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid = int(asker.stdout.readline())
    stat = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 60
    while "(pmutop-rank)" not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    asker.kill()
    asker.wait()
    asker.stdin.close(), asker.stdout.close()
    while is_alive(stat) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(stat)


def is_alive(stat):
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ---- from end to end --------------------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path):
    """A process of which faults take the user time away, and a sleeper."""
    rng = np.random.default_rng(0)
    path = tmp_path / "r.pmu"
    recorder = Recorder(str(path), header(EVENTS))
    totals = dict.fromkeys(
        ("run_time", "user_time", "system_time", "minor_faults", "run_delay", "timeslices"), 0
    )
    recorder.write(raw(0, {1: (proc(), "R"), 2: (proc(), "S")}, born(task(1), task(2, comm="sleeper"))))
    for number in range(1, 100):
        faults = int(rng.uniform(0, 20000))
        for name, more in {
            "run_time": 400 * MS, "user_time": 400 * MS - faults * 15000, "system_time": faults * 15000, "minor_faults": faults,
            "run_delay": int(rng.uniform(0, 5)) * MS, "timeslices": int(rng.uniform(1, 40)),
        }.items():  # fmt: skip
            totals[name] += more
        recorder.write(raw(number, {1: (proc(**totals), "R")}))
    recorder.close()
    return path


def test_the_log_ranks_and_ends_with_a_ranking_of_each(recording, capfdbinary):
    assert main(["replay", str(recording), "--log", "--rank"]) == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    rank = lines[-1]["rank"]
    assert (
        rank["target"] == "user-time/run-time"
        and rank["pid"] == 1001
        and rank["events"][0]["name"] == "minor-faults"
    )
    assert not {"run-time", "system-time"} & {event["name"] for event in rank["events"]}, "the same clock"
    assert rank["slices"] == 99 and rank["error"] < rank["median_error"] / 2
    assert main(["replay", str(recording), "--log"]) == 0
    plain = capfdbinary.readouterr().out.splitlines()
    assert [json.loads(line) for line in plain] == [line for line in lines if "rank" not in line]


class App:
    """What the feed needs of the screen."""

    looked_at: int | None = 1

    def __init__(self):
        self.moments, self.failure = [], None

    def offer(self, moment):
        self.moments.append(moment)

    def ended(self, text):
        pass

    def fail(self, error):
        self.failure = error


@pytest.mark.parametrize("rank", [None, False, "nothing"])
def test_the_screen_ranks_what_is_looked_at_unless_told_not_to(recording, rank):
    from pmutop.cli.screen import Feed

    reader, app = Reader(str(recording)), App()
    feed = Feed(reader.header, [], Selection(), lambda: iter(reader), threads=False)
    feed.rank = rank
    feed.run(app)
    reader.close()
    ranks = [rank for moment in app.moments for rank in moment.ranks]
    assert len(app.moments) == (100 if rank != "nothing" else 0)
    assert isinstance(app.failure, UsageError) == (rank == "nothing")
    assert bool(ranks) == (rank is None) and all(
        "of the 60 slices" in rank.why for rank in ranks if not rank.events
    )
    assert feed.ranker is None or feed.ranker.worker is None, "its worker has gone with it"


def test_wrong_use_is_told(recording, capsys):
    assert main(["replay", str(recording), "--log", "--rank", "--target", "nothing"]) == 2
    assert "no event nothing" in capsys.readouterr().err
    assert main(["replay", str(recording), "--log", "--rank", "--format", "csv"]) == 2


def test_the_asking_side_imports_no_learner():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from moments import World; from pmutop.pipeline.ranking import Ranker\n"
        "w = World(3, ipc=True); r = Ranker(w.header, always=True)\n"
        "for n in range(1, 70): r.moment(w.moment(n))\n"
        "assert r.worker; r.close()\n"
        "sys.exit(','.join(m for m in ('sklearn', 'scipy', 'joblib') if m in sys.modules) or None)"
    )
    root = Path(ranking.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
