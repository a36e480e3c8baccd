"""The native core against the kernel's own books: rusage, schedstat, plain per-CPU counters."""

import array
import collections
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pmutop._perf import Group
from pmutop._switches import EXECED, EXITED, FORKED, SwitchError, Switches, ring_size
from pmutop.events import Event, generic

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("may_sample")]

EVENTS = [generic(name) for name in ("task-clock", "context-switches", "page-faults", "cpu-migrations")]
RUN, SWITCHES, FAULTS, MIGRATIONS = range(len(EVENTS))

LOADS = Path(__file__).with_name("loads.py")

#: Seconds of the mixed load and of the fork storm: short in the suite; 60 and 600 were asked for, by hand (--timeout 0).
MIXED, STORM = (
    float(os.environ.get(f"PMUTOP_{name}", usual)) for name, usual in (("MIXED", 7), ("STORM", 3))
)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Follower:
    """Takes every slice and keeps, by ref, the last totals and who it was."""

    def __init__(self, switches):
        self.switches = switches
        self.width = len(EVENTS)
        self.tid, self.pid, self.parent, self.counts = {}, {}, {}, {}
        self.ended, self.lives, self.slices = set(), [], []
        self.adopted = switches.adopt((int(pid), int(pid)) for pid in os.listdir("/proc") if pid.isdecimal())
        switches.start()

    def follow(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.take()

    def take(self):
        sealed = self.switches.next()
        self.slices.append(sealed)
        for life in sealed.lives:
            kind, ref, _, tid, pid, ptid, ppid, _ = life
            self.lives.append(life)
            self.tid[ref], self.pid[ref] = tid, pid
            if kind == FORKED:
                self.parent[pid] = ppid if pid == tid else self.parent.get(pid)
            elif kind == EXITED:
                self.ended.add(ref)
        counts = array.array("Q", bytes(sealed.counts))
        who = array.array("i", sealed.who)
        for row, ref in enumerate(array.array("q", sealed.refs)):
            self.tid[ref], self.pid[ref] = who[4 * row], who[4 * row + 1]
            first = row * self.width * 3
            self.counts[ref] = [tuple(counts[first + 3 * i : first + 3 * i + 3]) for i in range(self.width)]
        return sealed

    def of(self, pid, column):
        """Total of a process and all that descend from it."""
        return sum(
            counts[column][0] for ref, counts in self.counts.items() if self.descends(self.pid[ref], pid)
        )

    def tasks_of(self, pid):
        return [ref for ref in self.counts if self.descends(self.pid[ref], pid)]

    def descends(self, pid, root):
        for _ in range(50):
            if pid == root:
                return True
            pid = self.parent.get(pid)
        return False


@pytest.fixture
def follower():
    with Switches(EVENTS, interval=0.2) as switches:
        yield Follower(switches)


def counted_load(name, seconds):
    """(pid, group) of a load with a perf group of its own, which counts it and all its children from exec on."""
    ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ready[0], 1)
        os.execv(sys.executable, [sys.executable, "-S", str(LOADS), name, str(seconds)])
    group = Group([generic("task-clock")], pid, inherit=True, enable_on_exec=True)
    os.write(ready[1], b"x")
    for end in ready:
        os.close(end)
    return pid, group


def test_a_mixed_load_is_credited_as_the_kernel_accounts_it(follower):
    follower.follow(1.2)  # until CPUs where tasks leave no samples have been found out
    before = follower.slices[-1]
    names = ("spin", "yielding", "sleeping", "pair", "threads", "forking", "faulting")
    running = {name: counted_load(name, MIXED) for name in names}
    books = {}
    while len(books) < len(names):
        follower.take()
        for name, (pid, _) in running.items():
            if name not in books and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                books[name] = os.wait4(pid, 0)[2]
    follower.follow(0.5)
    after = follower.slices[-1]
    assert after.totals["lost"] == 0
    unknown = after.totals["unknown_ns"] - before.totals["unknown_ns"]
    missing = after.totals["missing"] - before.totals["missing"]
    busy = sum(after.busy_ns.values()) - sum(before.busy_ns.values())
    assert unknown < 0.01 * busy
    whole = [0, 0]
    for name, book in books.items():
        pid, group = running[name]
        with group:
            clock = group.read()[0][0]
        # Two witnesses that differ at the edges: the kernel's books charge the wake-up and the switch to who comes in, perf's
        # own clock charges the switch to nobody. Samples charge it to who goes out, so they lie between, and sum up alike.
        books_ns = (book.ru_utime + book.ru_stime) * 1e9
        told = follower.of(pid, RUN)
        assert 0.99 * min(clock, books_ns) - unknown <= told <= 1.01 * max(clock, books_ns) + unknown, name
        whole = [whole[0] + told, whole[1] + books_ns]
        members = {follower.pid[ref] for ref in follower.tasks_of(pid)}
        assert (
            abs(follower.of(pid, SWITCHES) - book.ru_nvcsw - book.ru_nivcsw) <= 2 * len(members) + missing
        ), name
        faults = book.ru_minflt + book.ru_majflt
        assert follower.of(pid, FAULTS) == pytest.approx(
            faults, rel=0.01, abs=after.unknown[0] + 2 * len(members)
        ), name
    assert whole[0] == pytest.approx(whole[1], rel=0.01)
    assert len(follower.tasks_of(running["forking"][0])) > 200
    assert len(follower.tasks_of(running["threads"][0])) == 5


def test_what_is_credited_adds_up_to_plain_counters_of_the_cpus(follower, load):
    plain = [Group([generic("page-faults")], -1, cpu) for cpu in sorted(os.sched_getaffinity(0))]
    start = follower.take()
    for group in plain:
        group.enable()
    busy = [load("faulting", 2), load("forking", 2)]
    follower.follow(2.6)
    for process in busy:
        process.wait()
    end = follower.take()
    total = sum(group.read()[0][0] for group in plain)
    for group in plain:
        group.close()
    credited = sum(counts[FAULTS][0] for counts in follower.counts.values()) + end.unknown[0] + end.idle[0]
    assert credited == pytest.approx(end.total[0], abs=2 * len(plain))  # what is pending on each CPU
    assert end.total[0] - start.total[0] == pytest.approx(total, rel=0.005, abs=30)


def test_a_task_that_never_switches_is_credited_at_every_tick(follower, load):
    follower.follow(1.0)
    process = load("spin", 3)
    os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
    follower.follow(0.8)
    totals = []
    for _ in range(6):
        sealed = follower.take()
        totals.append((sealed.end, follower.of(process.pid, RUN)))
    steps = [(later[1] - sooner[1]) / (later[0] - sooner[0]) for sooner, later in zip(totals, totals[1:])]
    assert sorted(steps)[1] > 0.05  # others may want the CPU too; but no slice is empty, and none holds two
    assert max(steps) < 1.05


def test_two_readers_do_not_confuse_each_other(follower, load):
    """The kernel mixes up ids and times of samples where two sample the same software event on one CPU."""
    with Switches([EVENTS[FAULTS]], interval=0.2) as other:
        other.start()
        follower.follow(1.2)
        before = follower.slices[-1]
        process = load("faulting", 1)
        books = None
        while not books:
            follower.take()
            other.next()
            books = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        book = os.wait4(process.pid, 0)[2]
        process.returncode = 0
        follower.follow(0.5)
    after = follower.slices[-1]
    time_lost, faults_lost = (
        after.totals["unknown_ns"] - before.totals["unknown_ns"],
        after.unknown[0] - before.unknown[0],
    )
    assert faults_lost < 0.1 * book.ru_minflt
    assert follower.of(process.pid, FAULTS) == pytest.approx(
        book.ru_minflt + book.ru_majflt, rel=0.01, abs=faults_lost
    )
    assert follower.of(process.pid, RUN) == pytest.approx(
        (book.ru_utime + book.ru_stime) * 1e9, rel=0.15, abs=time_lost
    )


def test_groups_that_take_turns_are_scaled_by_each_tasks_own_share(load):
    events = [
        generic("task-clock"),
        generic("context-switches"),
        generic("page-faults"),
        generic("minor-faults"),
    ]
    with Switches(events, [[2], [3]], interval=0.2) as switches:
        follower = Follower(switches)
        follower.follow(1.0)
        process = load("faulting", 4)
        book = os.wait4(process.pid, 0)[2]
        process.returncode = 0
        follower.follow(0.6)
        (ref,) = follower.tasks_of(process.pid)
        run, _, (faults, enabled, on), (minor, enabled_too, on_too) = follower.counts[ref]
    assert enabled == enabled_too
    assert on + on_too == pytest.approx(enabled, rel=0.02)
    assert 0.2 < on / enabled < 0.8
    # The same event under two names, each in its own turns: together they saw every fault once.
    assert faults + minor == pytest.approx(book.ru_minflt + book.ru_majflt, rel=0.01)
    # Turns of 20 ms see a load that comes in waves differently: 18 % was seen once.
    assert faults * enabled / on == pytest.approx(minor * enabled_too / on_too, rel=0.25)
    assert enabled == pytest.approx(run[0], rel=0.02)


def test_a_thread_id_that_is_used_again_is_two_tasks(follower):
    try:
        last = open("/proc/sys/kernel/ns_last_pid", "w")
    except OSError as error:
        pytest.skip(f"cannot choose the next process id: {error}")
    follower.take()
    with last:
        for _ in range(20):
            first = os.fork()
            if first == 0:
                os._exit(0)
            os.waitpid(first, 0)
            last.seek(0)
            last.write(str(first - 1))
            last.flush()
            second = os.fork()
            if second == 0:
                os._exit(0)
            os.waitpid(second, 0)
            if first == second:
                break
        else:
            pytest.skip("somebody else always took the id")
    follower.follow(0.5)
    lives = [ref for kind, ref, _, tid, *_ in follower.lives if tid == first and kind == FORKED]
    assert len(lives) == len(set(lives)) == 2
    assert set(lives) <= follower.ended
    for ref in lives:
        assert follower.counts[ref][FAULTS][0] > 0


def test_exec_by_another_thread_than_the_first_goes_on_under_its_id(follower):
    program = "import os, threading; threading.Thread(target=os.execv, args=('/bin/sleep', ['sleep', '0.3'])).start()"
    process = subprocess.Popen([sys.executable, "-S", "-c", program])
    process.wait()
    follower.follow(0.6)
    mine = [
        (kind, ref, tid, comm) for kind, ref, _, tid, pid, _, _, comm in follower.lives if pid == process.pid
    ]
    assert (EXECED, b"sleep") in [(kind, comm) for kind, _, _, comm in mine]
    last = [ref for kind, ref, tid, comm in mine if comm == b"sleep"][-1]
    assert follower.tid[last] == process.pid
    assert {ref for _, ref, _, _ in mine} == {ref for kind, ref, _, _ in mine if kind == EXITED}


def test_lost_records_are_counted_and_what_was_lost_is_nobodys(load):
    with Switches(EVENTS, interval=0.2, ring_size=4096) as switches:
        follower = Follower(switches)
        process = load("pair", 2)
        process.wait()
        follower.follow(0.5)
        end = follower.slices[-1]
        assert end.totals["lost"] > 100
        assert end.totals["missing"] > 100
        assert end.totals["ring_bytes"] <= 8192
        credited = (
            sum(counts[FAULTS][0] for counts in follower.counts.values()) + end.unknown[0] + end.idle[0]
        )
        assert credited == pytest.approx(end.total[0], abs=5)
        lost = end.totals["lost"]
        follower.follow(0.5)
        quiet = load("spin", 0.5)
        book = os.wait4(quiet.pid, 0)[2]
        quiet.returncode = 0
        follower.follow(0.5)
        if follower.slices[-1].totals["lost"] == lost:  # sound again
            assert follower.of(quiet.pid, RUN) == pytest.approx(
                (book.ru_utime + book.ru_stime) * 1e9, rel=0.2
            )


def test_a_fork_storm_leaves_nothing_behind(follower, load):
    def weight():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    load("storm", 1.5).wait()
    follower.follow(0.6)
    known, files = follower.switches.known, descriptors()
    follower.slices.clear()
    follower.lives.clear()
    before = weight()
    process = load("storm", STORM, stdout=subprocess.PIPE, text=True)
    most = 0
    seen = collections.Counter()
    while process.poll() is None:
        for kind, _, _, _, _, _, ppid, _ in follower.switches.next().lives:
            seen[kind] += kind == EXITED or ppid == process.pid
        most = max(most, follower.switches.known)
    for _ in range(3):
        sealed = follower.switches.next()
        for kind, _, _, _, _, _, ppid, _ in sealed.lives:
            seen[kind] += kind == EXITED or ppid == process.pid
    forks = int(process.stdout.read())
    process.stdout.close()
    assert forks > 500
    assert sealed.totals["lost"] == sealed.totals["dropped_lives"] == 0
    assert seen[FORKED] == forks
    assert seen[EXITED] >= forks
    assert most < known + forks  # ids of the dead are given up while it rages
    assert follower.switches.known <= known + 50
    assert descriptors() == files
    assert weight() - before < 4e6


def test_load_is_shed_by_counting_no_events_but_still_knowing_who_ran(follower, load):
    process = load("faulting", 10)
    follower.follow(1.2)
    (ref,) = follower.tasks_of(process.pid)
    follower.switches.shed(True)
    follower.follow(0.5)
    less = follower.counts[ref]
    follower.follow(0.8)
    later = follower.counts[ref]
    assert later[RUN][0] > less[RUN][0] and later[SWITCHES][0] > less[SWITCHES][0]
    assert later[FAULTS][2] == less[FAULTS][2]  # not counted meanwhile
    follower.switches.shed(False)
    follower.follow(0.8)
    assert follower.counts[ref][FAULTS][2] > later[FAULTS][2]


def test_cpus_come_and_go(tmp_path, load):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("this machine has one CPU")
    online = tmp_path / "online"
    online.write_text(",".join(map(str, cpus)) + "\n")
    with Switches(EVENTS, interval=0.1, online=str(online)) as switches:
        follower = Follower(switches)
        follower.follow(0.3)
        everything = descriptors()
        online.write_text(f"{cpus[0]}\n")
        follower.follow(0.4)
        assert descriptors() == everything - (everything - descriptors()) < everything
        fewer = descriptors()
        online.write_text(",".join(map(str, cpus)) + "\n")
        follower.follow(0.4)
        assert descriptors() == everything > fewer
        process = load("spin", 1)
        os.sched_setaffinity(process.pid, {cpus[-1]})
        process.wait()
        follower.follow(0.4)
        assert follower.of(process.pid, RUN) > 1e8


@pytest.mark.skipif(
    not os.environ.get("PMUTOP_HOTPLUG"), reason="takes a CPU offline: set PMUTOP_HOTPLUG=1 to allow it"
)
def test_a_cpu_that_was_offline_counts_again(follower, load):
    switch = f"/sys/devices/system/cpu/cpu{max(os.sched_getaffinity(0))}/online"
    cpu = max(os.sched_getaffinity(0))
    try:
        for state in ("0", "1"):
            with open(switch, "w") as file:
                file.write(state)
            follower.follow(0.6)
    finally:
        with open(switch, "w") as file:
            file.write("1")
    process = load("spin", 1)
    os.sched_setaffinity(process.pid, {cpu})
    process.wait()
    follower.follow(0.4)
    assert follower.of(process.pid, RUN) > 1e8


def test_what_cannot_be_opened_is_named_and_nothing_stays_open():
    before = descriptors()
    absent = Event("no-such-tracepoint", "count", "software", 2, 0x7FFFFFF)
    with pytest.raises(SwitchError) as caught:
        Switches([*EVENTS, absent])
    assert (
        caught.value.call == "perf_event_open"
        and caught.value.event == "no-such-tracepoint"
        and caught.value.cpu >= 0
    )
    assert caught.value.errno and "no-such-tracepoint" in str(caught.value)
    assert descriptors() == before
    with pytest.raises(SwitchError):
        Switches(EVENTS, online="/nonexistent")
    assert descriptors() == before


def test_closing_closes_everything_and_a_stopped_reader_yields_nothing(follower):
    before = descriptors()
    with Switches(EVENTS, interval=0.1) as switches:
        with pytest.raises(ValueError):
            switches.next()
        switches.start()
        switches.next()
        threading.Timer(0.05, switches.stop).start()
        while switches.next() is not None:
            pass
    assert descriptors() == before
    with pytest.raises(ValueError):
        switches.next()
    switches.close()


def test_it_may_be_closed_while_another_thread_waits_for_a_slice():
    switches = Switches(EVENTS, interval=30)
    switches.start()
    told = []
    waiter = threading.Thread(target=lambda: told.append(switches.next()))
    waiter.start()
    time.sleep(0.1)
    switches.close()
    waiter.join(5)
    assert told == [None]


def test_refs_are_never_given_twice_and_known_tasks_keep_theirs(follower):
    assert len(set(follower.adopted)) == len(follower.adopted)
    own = follower.switches.adopt([(os.getpid(), os.getpid())])
    assert own == follower.switches.adopt([(os.getpid(), os.getpid())])
    assert own[0] in follower.adopted
    follower.switches.forget([(os.getpid(), own[0])])
    follower.follow(0.3)
    assert own[0] in follower.ended


def test_periods_do_not_overlap_and_last_as_long_as_the_tasks_ran(follower, load):
    follower.follow(1.0)
    process = load("sleeping", 1.5)
    process.wait()
    follower.follow(0.4)
    (ref,) = follower.tasks_of(process.pid)
    mine, last = 0, {}
    for sealed in follower.slices:
        periods = array.array("q", sealed.periods)
        for cpu, who, start, end in zip(periods[::4], periods[1::4], periods[2::4], periods[3::4]):
            assert start >= last.get(cpu, 0) and end > start
            last[cpu] = end
            mine += (end - start) * (who == ref)
    assert mine == pytest.approx(follower.counts[ref][RUN][0], rel=0.02)


@pytest.mark.parametrize("cpus", [1, 2, 8, 128, 1024, 4096])
def test_rings_of_any_number_of_cpus_stay_within_the_budget(cpus):
    assert cpus * ring_size(64 << 20, cpus) <= 64 << 20
    assert ring_size(64 << 20, cpus) >= 1 << 14
