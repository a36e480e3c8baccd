"""The groups of several kinds of cores, on a machine with one kind: the same readers, told to treat it as if there were more.

What only a hybrid machine has, a task that moves from one PMU's cores to another's, is not here: see tests/sources/test_cores.py.
"""

import contextlib
import functools

from readers import differences_are_exact

from pmutop._perf import Group
from pmutop.sources import cores
from pmutop.sources.attach import AttachSource
from pmutop.sources.system import SystemSource
from pmutop.sysfs import resolve
from pmutop.topology import Machine


@contextlib.contextmanager
def kinds_told():
    """Every hardware event is then opened by its PMU's own spelling."""
    before = cores.kinds
    cores.kinds = lambda root="/": Machine.read(root).core_pmus
    try:
        yield
    finally:
        cores.kinds = before


def check_each_spelling_that_opens_counts_the_same():
    """Which spelling a kernel takes differs; that they are the same event must not. Values of one group, so of one stretch."""
    (pmu,) = Machine.read().core_pmus
    facts = {}
    for name in ("cycles", "instructions"):
        plain = resolve(name)
        known = {hex(one.config): one for one in cores.spellings(plain, pmu) if cores.opens(one)}
        assert known, f"no spelling of {name} for {pmu.name} opens"
        with Group([plain, *known.values()], 0) as counting:
            counting.enable()
            sum(range(20_000))
            counting.disable()
            first, *others = counting.read()
        assert all(abs(other[0] - first[0]) <= first[0] / 1000 for other in others), (name, first, others)
        assert all(first[0] > 0 and other[1] == other[2] > 0 for other in others)
        facts[name] = {"type": pmu.type, "opened": list(known)}
    return facts


def check_attach_reader_is_exact_by_groups_of_kinds():
    with kinds_told():
        source = AttachSource(0.1, ["cycles", "instructions"])
        told = [[(event.pmu, event.type) for event in group] for group in source.groups]
        source.close()
        assert all(pmu for group in told for pmu, _ in group), told
        return differences_are_exact(AttachSource) | {"groups": told}


def check_system_reader_is_exact_by_groups_of_kinds():
    with kinds_told():
        return differences_are_exact(functools.partial(SystemSource, budget=10.0))
