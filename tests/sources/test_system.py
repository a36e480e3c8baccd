"""SystemSource: what comes through the door, against what is known of the programs that ran."""

import array
import os
import subprocess
import sys
import time

import pytest

from pmutop.events import PROC_EVENTS
from pmutop.slices import LEVELS, Born, Exited, Renamed
from pmutop.sources import shedding
from pmutop.sources.shedding import ALL, HANDED_BACK, NO_EVENTS, Budget
from pmutop.sources.system import SystemSource, in_user_mode, places, undisturbed
from pmutop.sysfs import resolve

NAMES = ["task-clock", "page-faults"]
RUN_TIME = 0
TASK_CLOCK, FAULTS = len(PROC_EVENTS), len(PROC_EVENTS) + 1


class Seen:
    """All that a source has told so far: tasks by ref, their last counts, when they were born and ended."""

    def __init__(self, source):
        self.source = source
        self.stream = iter(source)
        self.tasks, self.counts, self.levels, self.ended, self.born, self.names = {}, {}, {}, {}, {}, {}
        self.slices = []

    def take(self, slices=1):
        for _ in range(slices):
            raw = next(self.stream)
            self.slices.append(raw)
            for record in raw.records:
                if isinstance(record, Exited):
                    self.ended[record.ref] = raw.number
                else:
                    task = record.task
                    if isinstance(record, Born):
                        assert task.ref not in self.tasks, "a ref was given twice"
                        self.born[task.ref] = raw.number
                    self.tasks[task.ref] = task
                    self.names.setdefault(task.ref, []).append(task.comm)
            refs = array.array("q", bytes(raw.refs))
            counts = array.array("Q", bytes(raw.counts))
            levels = array.array("q", bytes(raw.levels))
            events = len(self.source.events)
            assert len(counts) == len(refs) * events * 3 and len(levels) == len(refs) * len(LEVELS)
            for row, ref in enumerate(refs):
                assert ref in self.tasks, "a row of a task that nobody has heard of"
                assert ref not in self.ended or self.ended[ref] == raw.number
                self.counts[ref] = [tuple(counts[3 * (row * events + e) :][:3]) for e in range(events)]
                self.levels[ref] = levels[row * len(LEVELS) :][: len(LEVELS)]
        return raw

    def of_pid(self, pid):
        return [ref for ref, task in self.tasks.items() if task.pid == pid]


@pytest.fixture
def seen(may_sample, monkeypatch):
    monkeypatch.setattr(shedding, "FLOOD", 1e12)  # loads of these tests are no reason to give up
    source = SystemSource(0.2, NAMES, budget=10)
    yield Seen(source)
    source.close()


def test_the_baseline_holds_every_task_and_its_header_the_attach_readers_columns(seen):
    own = os.getpid()
    listed = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    raw = seen.take()
    assert raw.number == 0 and len(raw.refs) // 8 == len(seen.tasks)
    assert len({task.pid for task in seen.tasks.values()} ^ listed) < 10
    (task,) = [task for task in seen.tasks.values() if task.tid == own]
    assert (
        task.comm == open("/proc/self/comm").read().strip() and task.ppid == os.getppid() and not task.kernel
    )
    assert any(task.kernel for task in seen.tasks.values()) == (
        os.path.exists("/proc/2/status") and listed > {2}
    )
    assert seen.counts[task.ref][RUN_TIME][0] == pytest.approx(time.thread_time_ns(), rel=0.5)
    assert seen.counts[task.ref][TASK_CLOCK] == (0, 0, 0)  # not counted yet
    assert seen.source.header.events[: len(PROC_EVENTS)] == PROC_EVENTS
    assert [event.name for event in seen.source.header.events[len(PROC_EVENTS) :]] == NAMES
    assert seen.source.header.source == "system"


def test_a_command_that_lived_and_died_inside_a_slice_is_told_with_its_counts(seen):
    seen.take(3)
    process = subprocess.Popen(["/bin/true", "some", "argument"])
    process.wait()
    seen.take(2)
    (ref,) = seen.of_pid(process.pid)
    assert ref in seen.ended and seen.ended[ref] - seen.born[ref] <= 1
    assert seen.names[ref][-1] == "true"
    assert seen.tasks[ref].ppid == os.getpid()
    assert abs(seen.tasks[ref].start - time.time()) < 5
    counts = seen.counts[ref]
    assert counts[FAULTS][0] > 10 and counts[FAULTS][1] == counts[FAULTS][2] > 0
    assert counts[RUN_TIME][0] >= counts[TASK_CLOCK][0] > 10_000
    assert chr(seen.levels[ref][0]) == "X"


def test_run_time_is_the_kernels_own_to_the_last_slice(seen, load):
    seen.take(6)
    running = {name: load(name, 4) for name in ("spin", "sleeping", "pair", "threads", "forking")}
    books = {}
    while len(books) < len(running):
        seen.take()
        for name, process in running.items():
            if name not in books and os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                books[name] = os.wait4(process.pid, 0)[2]
                process.returncode = 0
    seen.take(3)
    unknown = seen.slices[-1].machine["unknown_ns"] - seen.slices[5].machine["unknown_ns"]
    for name, book in books.items():
        pid = running[name].pid
        family = [ref for ref, task in seen.tasks.items() if task.pid == pid or task.ppid == pid]
        told = sum(seen.counts[ref][RUN_TIME][0] for ref in family if ref in seen.counts)
        # What a task did after it was read last is known by the samples, which begin when an idle CPU has come back to life;
        # the kernel's books begin with the wake-up.
        kernel = (book.ru_utime + book.ru_stime) * 1e9
        assert told == pytest.approx(kernel, rel=0.01, abs=2e6 + unknown), name


def test_exec_and_a_new_name_are_told(seen):
    seen.take(2)
    program = "import time; time.sleep(0.3); open('/proc/self/comm', 'w').write('renamed'); time.sleep(0.5)"
    process = subprocess.Popen([sys.executable, "-S", "-c", program])
    seen.take(2)
    (ref,) = seen.of_pid(process.pid)
    assert seen.tasks[ref].cmdline.startswith(sys.executable) and "sleep" in seen.tasks[ref].cmdline
    seen.take(2)
    assert seen.tasks[ref].comm == "renamed"
    process.wait()
    seen.take(2)
    assert ref in seen.ended


def test_threads_are_tasks_of_their_process(seen, load):
    seen.take(2)
    process = load("threads", 5)
    for _ in range(40):
        seen.take()
        if len(seen.of_pid(process.pid)) == 5:
            break
    tasks = [seen.tasks[ref] for ref in seen.of_pid(process.pid)]
    assert len(tasks) == 5
    assert sum(task.is_process for task in tasks) == 1
    assert {task.ppid for task in tasks} == {os.getpid()}
    assert all(not task.cmdline for task in tasks if not task.is_process)
    process.wait()


def test_kernel_threads_that_ran_are_told(seen):
    seen.take(5)
    ran = [ref for ref in seen.counts if seen.tasks[ref].kernel and seen.counts[ref][TASK_CLOCK][0]]
    if not any(task.kernel for task in seen.tasks.values()):
        pytest.skip("no kernel threads are visible here")
    assert ran
    assert all(not seen.tasks[ref].cmdline for ref in ran)


def test_slices_follow_each_other_without_a_gap_and_say_what_the_reader_costs(seen):
    seen.take(5)
    for sooner, later in zip(seen.slices, seen.slices[1:]):
        assert later.start == sooner.end and later.number == sooner.number + 1
        assert later.late >= 0 and abs(later.wall - sooner.wall - later.seconds) < 0.05
    machine = seen.slices[-1].machine
    assert {"lost", "missing", "own_cpu_ns", "own_rss", "reader_ns", "shed", "why", "fifo"} <= set(machine)
    assert machine["shed"] == ALL


def test_stop_ends_the_iteration_at_once(may_sample):
    import threading

    source = SystemSource(30, NAMES)
    stream = iter(source)
    next(stream)
    threading.Timer(0.2, source.stop).start()
    began = time.monotonic()
    assert list(stream) == []
    assert time.monotonic() - began < 5
    source.close()
    source.close()


def test_too_dear_it_goes_over_to_the_attach_reader_under_the_same_refs(may_sample, monkeypatch):
    monkeypatch.setattr(shedding, "PATIENCE", 2)
    monkeypatch.setattr(shedding, "FLOOD", 0.001)
    source = SystemSource(0.1, NAMES, budget=1e-9)
    try:
        seen = Seen(source)
        seen.take(2)
        own = next(ref for ref, task in seen.tasks.items() if task.tid == os.getpid())
        states = [seen.take().machine["shed"] for _ in range(10)]
        assert NO_EVENTS in states and states[-1] == HANDED_BACK
        assert "attach reader" in seen.slices[-1].machine["why"]
        assert seen.tasks[own].tid == os.getpid() and own not in seen.ended
        assert seen.counts[own][RUN_TIME][0] == pytest.approx(time.thread_time_ns(), rel=0.1)
        numbers = [raw.number for raw in seen.slices]
        assert numbers == list(range(len(numbers)))
        newcomers = [ref for ref, number in seen.born.items() if number > len(numbers) - 4]
        assert len(newcomers) < len(seen.tasks) / 2  # who was known is not born again
    finally:
        source.close()


def test_budget_gives_up_in_two_steps_and_comes_back_from_the_first():
    budget = Budget(0.02)
    for _ in range(shedding.PATIENCE):
        assert budget.state == ALL
        budget.weigh(0.03, 1000)
    assert budget.state == NO_EVENTS and "--budget 2.0%" in budget.why
    for _ in range(shedding.RELIEF):
        budget.weigh(0.005, 1000)
    assert budget.state == ALL and not budget.why
    for _ in range(2 * shedding.PATIENCE):
        budget.weigh(0.001, 150_000)
    assert budget.state == HANDED_BACK and "150,000 context switches" in budget.why
    budget.weigh(0.0, 0.0)
    assert budget.state == HANDED_BACK


def test_software_events_ride_in_every_group_of_hardware_events():
    clock, cycles, branches = resolve("page-faults"), resolve("cycles"), resolve("branches")
    assert places([[clock], [cycles], [branches]]) == [[1, 0], [2, 0]]
    assert places([[clock]]) == [[0]]
    assert places([]) == [[]]
    assert in_user_mode(cycles).mode == "u" and in_user_mode(clock).mode == ""


def test_isolated_and_tickless_cpus_are_left_alone(tmp_path):
    (tmp_path / "isolated").write_text("4-7\n")
    (tmp_path / "nohz_full").write_text("6-8\n")
    assert undisturbed(tmp_path) == {4, 5, 6, 7, 8}
    (tmp_path / "nohz_full").write_text("(null)\n")
    (tmp_path / "isolated").unlink()
    assert undisturbed(tmp_path) == set()


def test_renamed_records_carry_command_lines_of_tasks_that_were_there_before(seen):
    seen.take(3)
    own = next(task for task in seen.tasks.values() if task.tid == os.getpid())
    assert "pytest" in own.cmdline
    assert any(isinstance(record, Renamed) for raw in seen.slices for record in raw.records)
