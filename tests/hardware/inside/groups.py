"""Groups of hardware events through pmutop._perf, on a PMU of seven counters: layout, limits, refusals.

One CPU and counted instructions: every figure repeats to the digit.
"""

import ctypes
import errno
import os
import resource
import struct
import time

from loops import Spin, counted, named, setting

from pmutop import sysfs
from pmutop._perf import CountError, Group
from pmutop.sources import budget
from pmutop.topology import Machine

COUNTERS = 7  # of the emulated cortex-a57: six, and the one for cycles
PERF_EVENT_OPEN = 241  # arm64's number: include/uapi/asm-generic/unistd.h
PAIR = named("cycles", "instructions")


def refusal(*arguments, **options):
    """The errno with which a group is refused; None if it opens."""
    try:
        Group(*arguments, **options).close()
    except CountError as error:
        return error.errno


def as_nobody(work):
    """Run in a child that is nobody; returns its exit status (the errno of what was refused, 0 = all well)."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            os.setgid(65534)
            os.setuid(65534)
            status = work() or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check_pmu_is_found_though_it_is_not_called_cpu_nor_type_4():
    (pmu,) = Machine.read().core_pmus
    assert pmu.name == "armv8_pmuv3" and pmu.type != 4
    assert sysfs.core_pmus() == ["armv8_pmuv3"]
    event = sysfs.resolve("armv8_pmuv3/inst_retired/")
    assert (event.type, event.config) == (pmu.type, 8)
    return {"type": pmu.type}


def check_difference_of_two_lengths_is_exact():
    instructions = named("instructions")
    short, long = (counted(instructions, passes)[0][0] for passes in (1_000_000, 3_500_000))
    assert long - short == 2 * 2_500_000, (short, long)
    return {"overhead": short - 2_000_000}


def check_cycles_and_instructions_are_not_swapped():
    (cycles, enabled, running), (instructions, _, _) = counted(PAIR, 1_000_000)
    assert enabled == running > 0
    assert cycles == 4 * instructions, (cycles, instructions)  # the emulator's clock: four cycles for each
    (instructions_first, _, _), (cycles_second, _, _) = counted(PAIR[::-1], 1_000_000)
    assert cycles_second == 4 * instructions_first
    return {"ipc": instructions / cycles}


def check_work_in_pieces_counts_the_same():
    facts = {}
    for how in ("yield", "sleep"):
        short, long = (counted(PAIR, passes, pieces=50, how=how)[1][0] for passes in (1_000_000, 2_000_000))
        assert long - short == 2_000_000, (how, short, long)
        facts[how] = short - 2_000_000
    return facts


def check_another_task_is_not_counted():
    with (
        Spin(1000) as quiet,
        Spin(5_000_000) as busy,
        Group(PAIR, quiet.pid, exclude_kernel=True) as on_quiet,
        Group(PAIR, busy.pid, exclude_kernel=True) as on_busy,
    ):
        on_quiet.enable()
        on_busy.enable()
        busy.go()
        quiet.work()
        assert busy.process.stdout.readline() == b"done\n"
        assert on_quiet.read()[1][0] < 20_000
        assert on_busy.read()[1][0] > 10_000_000


def check_inherit_adds_the_children():
    values = []
    for passes in (300_000, 900_000):
        with (
            Spin(passes, pieces=3, how="fork") as spin,
            Group(PAIR, spin.pid, inherit=True, exclude_kernel=True) as group,
        ):
            group.enable()
            spin.work()
            values.append(group.read()[1][0])
    assert values[0] > 600_000 and 0 <= values[1] - values[0] - 1_200_000 < 2000, values


def check_enable_on_exec_counts_from_there():
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready, 1)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.execvp("spin", ["spin", "1000000"])
    with Group(PAIR, child, exclude_kernel=True, enable_on_exec=True) as group:
        assert group.read()[1] == (0, 0, 0)
        os.write(go, b"g")
        os.waitpid(child, 0)
        assert 2_000_000 < group.read()[1][0] < 2_200_000


def check_seven_fit_and_the_eighth_never_runs():
    cycles = PAIR[:1]
    for size, runs in ((COUNTERS, True), (COUNTERS + 1, False)):
        readings = counted(cycles * size, 100_000)
        assert len(readings) == size
        assert all(
            enabled > 0 and (running == enabled) is runs and (running > 0) is runs
            for _, enabled, running in readings
        )
        assert all((value > 0) is runs for value, _, _ in readings)


def check_eighth_of_an_enabled_group_is_refused():
    """By the bare system call (perf_event_open(2)): pmutop itself always opens leaders disabled, and must then look."""
    attributes = struct.pack("2I5Q", 0, 128, 0, 0, 0, 0, 1 << 5) + bytes(
        80
    )  # cycles, exclude_kernel, enabled
    libc = ctypes.CDLL(None, use_errno=True)
    opened = []
    try:
        while len(opened) < 2 * COUNTERS:
            leader = opened[0] if opened else -1
            number = libc.syscall(PERF_EVENT_OPEN, attributes, 0, -1, leader, 0)
            if number < 0:
                break
            opened.append(number)
        assert (len(opened), ctypes.get_errno()) == (COUNTERS, errno.EINVAL)
    finally:
        for number in opened:
            os.close(number)


def check_budget_is_measured():
    machine = Machine.read()
    assert budget.free_counters(machine) == {"armv8_pmuv3": COUNTERS}
    # The cycle counter counts nothing else, so of other events six fit.
    wanted = named(
        "instructions", *(f"r{code:x}" for code in (0x01, 0x03, 0x09, 0x1D, 0x00)), "cycles", "r23", "r24"
    )
    (group,), dropped = budget.fitting(wanted)
    assert len(group) == COUNTERS and group[0].name == "instructions" and group[-1].name == "cycles"
    assert set(dropped) == {"r23", "r24"} and all("no counter is left" in why for why in dropped.values())
    with Group(PAIR[:1] * 4, 0, pinned=True) as hog:
        hog.enable()
        assert budget.free_counters(machine) == {"armv8_pmuv3": COUNTERS - 4}
    two, dropped = budget.fitting(wanted, groups=2)
    assert [len(group) for group in two] == [COUNTERS, 2] and not dropped


def check_our_own_loop_is_believable():
    ipc = budget.own_ipc()
    assert abs(ipc - 0.25) < 0.001, ipc


def check_event_that_the_driver_lacks_is_refused():
    for name in ("branch-misses", "L1-dcache-load-misses", "LLC-loads", "dTLB-load-misses"):
        assert refusal(named(name), 0) == errno.ENOENT, name
    groups, dropped = budget.fitting(named("cycles", "branch-misses"))
    assert [event.name for event in groups[0]] == ["cycles"] and "branch-misses" in dropped


def check_raw_event_that_the_processor_lacks_reads_zero_while_running():
    """A trap: the kernel cannot know; a zero that was counted is a zero, so the table of events must be right."""
    (value, enabled, running), (instructions, _, _) = counted(named("r3f", "instructions"), 100_000)
    assert value == 0 and enabled == running > 0 and instructions > 200_000


def check_fifteen_events_on_seven_counters_share_evenly():
    with Spin(60_000_000) as spin:
        alone = [Group(PAIR[:1], spin.pid, exclude_kernel=True) for _ in range(15)]
        for group in alone:
            group.enable()
        spin.work()
        readings = [group.read()[0] for group in alone]
        for group in alone:
            group.close()
    shares = [running / enabled for _, enabled, running in readings]
    assert all(0.42 < share < 0.52 for share in shares), shares
    estimates = [value * enabled / running for value, enabled, running in readings]
    assert max(estimates) / min(estimates) < 1.005, estimates
    assert abs(sum(estimates) / 15 / (8 * 60_000_000) - 1) < 0.01, (
        estimates
    )  # two instructions a pass, four cycles each
    return {
        "shares": [round(min(shares), 3), round(max(shares), 3)],
        "spread": max(estimates) / min(estimates) - 1,
    }


def check_pinned_events_that_starve_read_nothing():
    with Spin(100_000) as spin:
        pinned = [Group(PAIR[:1], spin.pid, exclude_kernel=True, pinned=True) for _ in range(COUNTERS + 1)]
        for group in pinned:
            group.enable()
        spin.work()
        readings = [group.read()[0] for group in pinned]
        for group in pinned:
            group.close()
    assert readings.count((0, 0, 0)) == 1, readings
    assert all(running == enabled > 0 for value, enabled, running in readings if value)


def check_refusals_are_told_apart():
    assert refusal(PAIR, 0) is None
    with Spin(1) as spin:
        gone = spin.pid
    assert refusal(PAIR, gone) == errno.ESRCH
    assert refusal(PAIR, -1, cpu=os.cpu_count()) == errno.EINVAL
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = os.listdir("/proc/self/fd")
    resource.setrlimit(resource.RLIMIT_NOFILE, (5, hard))
    try:
        assert refusal(PAIR * 3, 0) == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir("/proc/self/fd") == before  # a group that fails closes what it had opened


#: What nobody may open: level -> (own, user mode only; own with the kernel; a CPU).
ALLOWED = {
    3: (errno.EACCES, errno.EACCES, errno.EACCES),
    2: (None, errno.EACCES, errno.EACCES),
    1: (None, None, errno.EACCES),
    0: (None, None, None),
    -1: (None, None, None),
}


def check_what_nobody_may_open_at_each_paranoid_level():
    for level, wanted in ALLOWED.items():
        with setting("perf_event_paranoid", level):
            for expected, (pid, cpu, exclude) in zip(
                wanted, ((0, -1, True), (0, -1, False), (-1, 0, False)), strict=True
            ):
                got = as_nobody(
                    lambda pid=pid, cpu=cpu, exclude=exclude: refusal(PAIR, pid, cpu, exclude_kernel=exclude)
                )
                assert got == (expected or 0), (level, pid, cpu, exclude, got)


def check_counting_a_cpu_sees_every_task():
    with Group(PAIR, -1, 0) as group:
        group.enable()
        first = group.read()[1][0]
        deadline = time.monotonic() + 0.02
        with Spin(2_000_000) as spin:
            spin.work()
        while time.monotonic() < deadline:
            pass
        assert group.read()[1][0] - first > 4_000_000
