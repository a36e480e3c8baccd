"""Several kinds of cores, on faked trees, faked kernels and triples made by hand: no such machine was at hand."""

import errno
import os
import struct
import time
from contextlib import nullcontext

import machines
import numpy as np
import pytest
from making import born, raw, task

from pmutop import events, libpfm
from pmutop._perf import CountError
from pmutop._proc import Scanner
from pmutop._switches import SwitchError, Switches
from pmutop.errors import PmutopError
from pmutop.events import PROC_EVENTS, generic
from pmutop.moment import ESTIMATED, EXACT, UNCOUNTED
from pmutop.pipeline.clean import Cleaner
from pmutop.sources import attach, budget, cores, system
from pmutop.sources.attach import choose_groups, opened_groups
from pmutop.sysfs import resolve
from pmutop.topology import Machine, Pmu

CORE, ATOM = 4, 10  # types of the faked PMUs
EXTENDED = {ATOM << 32, CORE << 32, (ATOM << 32) + 1, (CORE << 32) + 1}


class Kernel:
    """Stands in for perf_event_open: takes the (type, config) that it knows, in user mode only if so told."""

    def __init__(self, known, user_only=False, refuses=None):
        self.known, self.user_only, self.refuses = known, user_only, refuses

    def __call__(self, group, pid, cpu=-1, exclude_kernel=False, **options):
        for event in group:
            if self.refuses or (self.user_only and not exclude_kernel and event.mode != "u"):
                raise CountError(self.refuses or errno.EACCES, "perf_event_open", event.name)
            if (event.type, event.config) not in self.known and event.type != events.SOFTWARE:
                raise CountError(errno.ENOENT, "perf_event_open", event.name)
        return self

    def close(self):
        pass


def hybrid_kernel(*more):
    known = {(events.HARDWARE, config | kind << 32) for config in (0, 1) for kind in (CORE, ATOM)}
    return Kernel(
        known | {(events.HARDWARE, 5), (events.HARDWARE, 5 | CORE << 32), *more}
    )  # branch-misses: big cores only


@pytest.fixture
def laptop(tmp_path, monkeypatch):
    """The hybrid laptop's PMUs, and a kernel that counts on both of them."""
    machines.hybrid_laptop(tmp_path)
    use(monkeypatch, hybrid_kernel())
    return cores.kinds(str(tmp_path))


def use(monkeypatch, kernel):
    for module in (cores, attach):
        monkeypatch.setattr(module, "Group", kernel)
    monkeypatch.setattr(budget, "share", lambda group: 1.0 if kernel(group, 0) else 0.0)


# ---------------------------------------------------------------------------------------------------------- spelling


def test_a_machine_with_one_kind_of_core_needs_none_of_this(tmp_path):
    machines.intel_server(tmp_path, sockets=1, cores=2)
    assert cores.kinds(str(tmp_path)) == ()
    (only,) = cores.formed([generic("cycles")], ())
    assert only.pmu is None and only.events == [generic("cycles")] and only.places == [0]


def test_generic_events_carry_the_type_in_the_upper_half(laptop):
    """perf_event.h: config bits 32-63 = PMU type; 'cpu_atom' is of type 10 = 0xa."""
    assert [pmu.name for pmu in laptop] == ["cpu_atom", "cpu_core"]
    told = cores.spread(generic("instructions"), laptop)
    assert {name: (event.type, event.config) for name, event in told.items()} == {
        "cpu_core": (events.HARDWARE, 0x400000001),
        "cpu_atom": (events.HARDWARE, 0xA00000001),
    }
    assert cores.spellings(generic("LLC-load-misses"), laptop[0])[0].config == 0xA00010002


def test_raw_events_are_of_every_pmu_and_named_ones_of_theirs(tmp_path):
    machines.hybrid_laptop(tmp_path)
    atom, core = cores.kinds(str(tmp_path))
    raw_code = resolve("r1c2", str(tmp_path))
    assert [(one.type, one.config) for pmu in (core, atom) for one in cores.spellings(raw_code, pmu)] == [
        (4, 0x1C2),
        (10, 0x1C2),
    ]
    named = resolve("cpu_core/event=0x3c/", str(tmp_path))
    assert cores.spellings(named, core)[0].config == 0x3C and cores.spellings(named, atom) == []
    assert cores.spread(generic("task-clock"), (core, atom)) == {}


def test_an_arm_kernel_without_the_extension_counts_by_the_pmus_own_names(tmp_path, monkeypatch):
    """Kernels before the extension reached arm64 refuse the upper half; the driver's events folder says the code."""
    root = machines.big_little(tmp_path)
    for pmu in ("armv8_cortex_a53", "armv8_cortex_a72"):
        root.put(f"sys/bus/event_source/devices/{pmu}/events/cpu_cycles", "event=0x0011")
    use(monkeypatch, Kernel({(7, 0x11), (8, 0x11)}))
    told = cores.spread(generic("cycles"), cores.kinds(str(tmp_path)))
    assert {name: (event.type, event.config) for name, event in told.items()} == {
        "armv8_cortex_a53": (7, 0x11),
        "armv8_cortex_a72": (8, 0x11),
    }
    assert cores.spread(generic("instructions"), cores.kinds(str(tmp_path))) == {}


def test_what_may_be_counted_in_user_mode_only_is_still_tried(laptop, monkeypatch):
    """The right is checked before the event is looked up, so EACCES hides ENOENT until the kernel is left out."""
    kernel = hybrid_kernel()
    kernel.user_only = True
    use(monkeypatch, kernel)
    assert list(cores.spread(generic("branch-misses"), laptop)) == ["cpu_core"]
    assert attach.permitted(generic("cycles"), laptop).mode == "u"


# -------------------------------------------------------------------------------------------------- groups, columns


def test_one_group_a_kind_and_one_column_an_event(laptop):
    groups, absent = choose_groups(["cycles", "instructions", "task-clock"], laptop)
    assert [[event.name for event in group] for group in groups] == [
        ["cycles", "instructions"],
        ["task-clock"],
    ]
    opened, places = opened_groups(groups, laptop)
    assert [[event.pmu for event in group] for group in opened] == [["cpu_atom"] * 2, ["cpu_core"] * 2, [""]]
    assert places == [[0, 1], [0, 1], [2]] and not absent


def test_an_event_of_one_kind_is_counted_there_and_says_so(laptop):
    groups, _ = choose_groups(["cycles", "branch-misses"], laptop)
    opened, places = opened_groups(groups, laptop)
    assert places == [[0], [0, 1]] and opened[1][1].config == 5 | CORE << 32
    assert [event.trust for event in groups[0]] == ["counted", "counted, on cpu_core only"]


def test_the_system_reader_takes_only_what_every_core_counts(laptop):
    groups, absent = system.on_every_core(
        *choose_groups(["cycles", "branch-misses"], laptop), laptop, asked=False
    )
    assert [[event.name for event in group] for group in groups] == [["cycles"]] and "cpu_atom" in absent[
        "branch-misses"
    ]
    with pytest.raises(PmutopError, match="branch-misses: not counted on cpu_atom"):
        system.on_every_core(*choose_groups(["cycles", "branch-misses"], laptop), laptop, asked=True)
    told = system.kinds_of([generic("cycles"), generic("task-clock")], laptop)
    assert [(cpus, counted[0].config >> 32, counted[1].config) for cpus, counted in told] == [
        ((4, 5, 6, 7), ATOM, 1),
        ((0, 1, 2, 3), CORE, 1),
    ]


def test_a_group_fits_only_if_it_fits_on_every_kind(laptop, monkeypatch):
    """Six counters here, one there: both kinds run groups of one layout."""
    monkeypatch.setattr(cores, "on_cpu_of", lambda pmu: nullcontext(True))
    monkeypatch.setattr(
        budget, "share", lambda group: float(len(group) <= (6 if group[0].pmu == "cpu_core" else 1))
    )
    formed, dropped = budget.fitting([generic("cycles"), generic("instructions")], 1, laptop)
    assert [event.name for group in formed for event in group] == ["cycles"] and list(dropped) == [
        "instructions"
    ]
    assert len(budget.fitting([generic("cycles"), generic("instructions")], 2, laptop)[0]) == 2


def test_counters_are_measured_on_each_kind(laptop, monkeypatch, tmp_path):
    monkeypatch.setattr(cores, "on_cpu_of", lambda pmu: nullcontext(pmu.name == "cpu_core"))
    monkeypatch.setattr(
        budget, "share", lambda group: float(len(group) <= 8 and group[0].config == CORE << 32)
    )
    assert budget.free_counters(Machine.read(tmp_path)) == {
        "cpu_core": 8
    }  # the other kind is not in our cpuset


def test_we_run_on_a_core_of_the_pmu_and_come_back():
    before = os.sched_getaffinity(0)
    with cores.on_cpu_of(pmu_of((min(before),))) as there:
        assert there and os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before
    with cores.on_cpu_of(pmu_of((100_000,))) as there:
        assert not there


def pmu_of(cpus):
    return Pmu("cpu_core", CORE, True, cpus, {}, {}, {}, 4.0)


# ----------------------------------------------------------------------------------------------------------- the sum


class Pipes:
    """A scanner whose perf groups are pipes: each holds what read(2) of the group would give (PERF_FORMAT_GROUP)."""

    def __init__(self, places):
        self.scanner = Scanner(places=places)
        self.columns = 1 + max(column for group in places for column in group)
        self.ends = [os.pipe2(os.O_NONBLOCK) for _ in places]
        *_, rows = self.scanner.scan()
        self.slot = next(slot for slot in rows if self.scanner.task(slot)[1] == os.getpid())
        for group, (out, _) in enumerate(self.ends):
            self.scanner.attach(self.slot, group, out)

    def read(self, *groups):
        """Our own row's triples after each group read (time_enabled, time_running, values...); None: nothing to read."""
        for (_, into), told in zip(self.ends, groups, strict=True):
            if told:
                os.write(into, struct.pack(f"{3 + len(told) - 2}Q", len(told) - 2, *told))
        time.sleep(0.001)  # a switch, after which schedstat has moved: only then are groups read
        *_, rows = self.scanner.scan()
        counts, _ = self.scanner.blocks()
        width = len(PROC_EVENTS) + self.columns
        table = np.frombuffer(counts, np.uint64).reshape(len(rows), width, 3)
        return table[rows.index(self.slot), len(PROC_EVENTS) :].tolist()

    def close(self):
        self.scanner.close()
        for pair in self.ends:
            for end in pair:
                os.close(end)


@pytest.fixture
def pipes():
    made = []

    def make(*places):
        made.append(Pipes(places))
        return made[-1]

    yield make
    for one in made:
        one.close()


#: name: what the big cores' group reads, what the little ones', and the sum. Each read: enabled, running, value.
SUMS = {
    "only ever on the big cores: an exact 0 of the little ones": (
        (1000, 1000, 700),
        (1000, 0, 0),
        (700, 1000, 1000),
    ),
    "only ever on the little cores": ((1000, 0, 0), (1000, 1000, 300), (300, 1000, 1000)),
    "moved, and counted all the time": ((1000, 600, 500), (1000, 400, 100), (600, 1000, 1000)),
    "moved, and the little cores had no counter free": ((1000, 600, 500), (1000, 0, 0), (500, 1000, 600)),
    "counted nowhere": ((1000, 0, 0), (1000, 0, 0), (0, 1000, 0)),
    "read a little later, while it ran there": ((1000, 0, 0), (1002, 1002, 300), (300, 1000, 1000)),
    "enabled a little later": ((1000, 1000, 700), (990, 0, 0), (700, 990, 990)),
    "the other group says nothing (pinned, and lost)": ((1000, 1000, 700), None, (700, 1000, 1000)),
}


@pytest.mark.live
@pytest.mark.parametrize("name", SUMS)
def test_a_column_is_the_sum_over_kinds(pipes, name):
    big, little, total = SUMS[name]
    assert tuple(pipes([0], [0]).read(big, little)[0]) == total


@pytest.mark.live
def test_columns_of_groups_of_different_events(pipes):
    """cycles on both kinds, branch-misses on the big one only, task-clock in a group of its own."""
    told = pipes([0, 1], [0], [2]).read((1000, 600, 500, 7), (1000, 400, 100), (1000, 1000, 42))
    assert told == [[600, 1000, 1000], [7, 1000, 600], [42, 1000, 1000]]


def test_more_groups_than_a_task_has_room_for_are_refused():
    with pytest.raises(ValueError, match="at most"):
        Scanner(places=[[0]] * 17)


def qualities(*triples):
    """Increase and quality of a hardware column whose totals are these, slice by slice."""
    cleaner = Cleaner(1)
    told = []
    for number, triple in enumerate(triples):
        one = raw(number, {}, *([born(task(1))] if not number else []))
        block = np.array(triple, np.uint64).tobytes()
        told.append(
            cleaner.clean(one.__class__(**{**vars(one), "refs": np.array([1]).tobytes(), "counts": block}))
        )
    return [(float(one.increase[0, 0]), int(one.quality[0, 0])) for one in told]


def test_qualities_of_sums():
    """Exact while one kind or the other counted all of it, estimated while some of it was missed, uncounted if all was."""
    exact, missed, nothing = qualities((0, 0, 0), (700, 1000, 1000), (1000, 2000, 1500), (1000, 3000, 1500))[
        1:
    ]
    assert exact == (700, EXACT) and missed == (600, ESTIMATED)
    assert nothing[1] == UNCOUNTED and np.isnan(nothing[0])


# ------------------------------------------------------------------------------------------------ the system reader


def test_kinds_need_all_the_events():
    with pytest.raises(ValueError, match="kinds of cores"):
        Switches([generic("page-faults")], kinds=[([0], [])])


def test_each_cpu_counts_what_its_kind_counts(may_sample):
    """Two 'kinds' of this machine's CPUs: an event that the kernel does not know is refused on the CPU it is meant for."""
    online = sorted(os.sched_getaffinity(0))
    if len(online) < 2:
        pytest.skip("one CPU is one kind")
    known, unknown = generic("page-faults"), events.Event("absent", "count", "hardware", 9999)
    Switches([known], kinds=[([online[1]], [generic("minor-faults")])]).close()
    with pytest.raises(OSError, match=f"absent on CPU {online[1]}"):
        Switches([known], kinds=[([online[1]], [unknown])])
    Switches([unknown], kinds=[(range(1024), [known])]).close()


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("level", "word"), [("3", "CAP_SYS_ADMIN"), ("4", "CAP_SYS_ADMIN"), ("2", "CAP_PERFMON")]
)
def test_who_may_not_sample_is_told_which_right_is_needed(monkeypatch, level, word):
    monkeypatch.setattr(system, "paranoid_level", lambda: int(level))
    told = system.explained(SwitchError(errno.EACCES, "perf_event_open", "cycles", 0))
    assert word in str(told) and f"paranoid {level}" in str(told) and "--source attach" in told.hint


# ---------------------------------------------------------------------------------------------------- vendors' names


def test_vendor_names_are_resolved_alike_for_both_readers(tmp_path, monkeypatch):
    """--events with a name of our own tables: the code goes through the PMU's format files, here AMD's split event field."""
    machines.amd_server(tmp_path)
    monkeypatch.setattr(attach, "resolve", lambda name: resolve(name, str(tmp_path)))
    code = 0x8E | 0x1 << 32 | 0x18 << 8  # event=0x18e,umask=0x18
    use(monkeypatch, Kernel({(4, code)}))
    groups, _ = choose_groups(["ic_tag_hit_miss.instruction_cache_miss"], cores.kinds(str(tmp_path)))
    (event,) = groups[0]
    assert (event.name, event.type, event.config) == ("ic_tag_hit_miss.instruction_cache_miss", 4, code)
    assert system.on_every_core(groups, {}, (), asked=True)[0] == groups


def test_a_vendor_name_that_looks_like_a_tracepoint(tmp_path, monkeypatch):
    known = events.Event("skl::mem_load_retired:l2_miss", "count", "hardware", events.RAW, 0x10D1)
    monkeypatch.setattr(libpfm, "encode", lambda name: known if "mem_load_retired:l2_miss" in name else None)
    assert resolve("mem_load_retired:l2_miss", str(tmp_path)) == known
    with pytest.raises(PmutopError, match="tracepoint"):
        resolve("sched:nothing", str(tmp_path))


def test_more_events_than_a_reader_takes_are_an_error_of_one_line(may_sample, monkeypatch):
    names = [
        f"{name}{mode}"
        for name in ("page-faults", "minor-faults", "major-faults")
        for mode in ("", ":u", ":k")
    ]
    names += [
        f"{name}{mode}"
        for name in ("cpu-migrations", "alignment-faults", "emulation-faults", "dummy")
        for mode in ("", ":u", ":k")
    ]
    with pytest.raises(PmutopError, match="the system reader: at most") as told:
        system.SystemSource(names=names)
    assert "fewer" in told.value.hint
    alone = [[generic("page-faults")]] * 17  # events that never fit together
    monkeypatch.setattr(attach, "choose_groups", lambda *_: (alone, {}))
    with pytest.raises(PmutopError, match="the attach reader: at most 16 groups"):
        attach.AttachSource()
