"""Names of events on machines that are not here: sysfs trees made by hand."""

import pytest

from pmutop import events, sysfs
from pmutop.errors import NoPermission, UsageError


@pytest.fixture
def root(tmp_path):
    def put(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    core = "sys/bus/event_source/devices/cpu_core"
    put(f"{core}/type", "4\n")
    put(f"{core}/cpus", "0-7\n")
    put(f"{core}/format/event", "config:0-7\n")
    put(f"{core}/format/umask", "config:8-15\n")
    put(f"{core}/format/inv", "config:23\n")
    put(f"{core}/format/split", "config1:0-3,8-11\n")
    put(f"{core}/events/cache-misses", "event=0x2e,umask=0x41\n")
    put("sys/bus/event_source/devices/uncore_imc_0/type", "17\n")
    put("sys/bus/event_source/devices/software/type", "1\n")
    put("sys/kernel/tracing/events/sched/sched_switch/id", "316\n")
    sysfs.tracefs.cache_clear()
    yield str(tmp_path)
    sysfs.tracefs.cache_clear()


def test_generic_names_need_no_machine():
    assert (sysfs.resolve("cycles").type, sysfs.resolve("cycles").config) == (events.HARDWARE, 0)
    assert sysfs.resolve("branch-instructions") == sysfs.resolve("branches")
    assert sysfs.resolve("LLC-load-misses").config == 2 | 0 << 8 | 1 << 16
    assert sysfs.resolve("dTLB-prefetch-misses").config == 3 | 2 << 8 | 1 << 16
    assert sysfs.resolve("context-switches").type == events.SOFTWARE


def test_cache_event_names_are_perfs():
    assert {"L1-dcache-loads", "L1-icache-load-misses", "LLC-stores", "iTLB-loads", "node-prefetches"} <= set(
        events.CACHE_IDS
    )
    assert len(events.CACHE_IDS) == len(events.CACHES) * len(events.CACHE_OPERATIONS) * 2


def test_terms_are_spread_over_their_bits(root):
    event = sysfs.resolve("cpu_core/event=0x3c,umask=0x02,inv/", root)
    assert (event.type, event.config) == (4, 0x3C | 0x02 << 8 | 1 << 23)
    assert sysfs.resolve("cpu_core/split=0xa5/", root).config1 == 0x5 | 0xA << 8
    assert sysfs.resolve("cpu_core/config=0x10,event=1/", root).config == 0x11


def test_named_events_of_a_pmu(root):
    event = sysfs.resolve("cpu_core/cache-misses/", root)
    assert (event.config, event.pmu, event.tier) == (0x412E, "cpu_core", "hardware")


def test_tracepoints_and_our_names_for_them(root):
    assert sysfs.resolve("sched:sched_switch", root).config == 316
    waits = sysfs.resolve("disk-waits", root)
    assert (waits.name, waits.config, waits.filter) == ("disk-waits", 316, "prev_state == 2")


def test_raw(root):
    assert (sysfs.resolve("r412e", root).type, sysfs.resolve("r412e", root).config) == (events.RAW, 0x412E)


def test_core_pmus_are_found_not_assumed(root):
    assert sysfs.core_pmus(root) == ["cpu_core"]
    assert sysfs.pmus(root) == {"cpu_core": 4, "software": 1, "uncore_imc_0": 17}


@pytest.mark.parametrize(
    "name, words",
    [
        ("cicles", "unknown event 'cicles'"),
        ("", "unknown event"),
        ("cpu/x/", "no PMU called 'cpu'"),
        ("cpu_core/nonsense=1/", "no term 'nonsense'"),
        ("cpu_core/event=abc/", "is not a number"),
        ("cpu_core/event=0x1ff/", "does not fit"),
        ("sched:no_such_point", "unknown tracepoint"),
        ("../../etc/passwd:x", "unknown event"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(root, name, words):
    with pytest.raises(UsageError, match=words):
        sysfs.resolve(name, root)


def test_the_nearest_name_is_offered(root):
    with pytest.raises(UsageError) as caught:
        sysfs.resolve("branch-mises", root)
    assert "branch-misses" in caught.value.hint


def test_unreadable_tracefs_is_a_matter_of_permission(tmp_path):
    sysfs.tracefs.cache_clear()
    with pytest.raises(NoPermission, match="tracefs"):
        sysfs.resolve("sched:sched_switch", str(tmp_path))
    sysfs.tracefs.cache_clear()
