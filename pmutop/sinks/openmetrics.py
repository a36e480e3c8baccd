"""OpenMetrics: running totals by command, cgroup and label, in the text that Prometheus reads.

The number of series is bounded: never a PID among the labels, and at most so many pairs of command and cgroup; what does
not fit is summed under 'other'. A pair whose processes are long gone gives its place up.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from pmutop import units
from pmutop.bundle import Bundle
from pmutop.moment import RESOURCES, Moment
from pmutop.slices import Header

Sample = tuple[str, dict[str, str], float]  # suffix, labels, value

OTHER = ("other", "other")  # command, cgroup of all that have no place of their own
FORGOTTEN = 600.0  # seconds after its last process that a pair keeps its place
LATENESS = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)  # upper bounds of the histogram, s
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"  # what Prometheus understood before OpenMetrics


class Group:
    """Totals of one pair of command and cgroup."""

    def __init__(self) -> None:
        self.processes = 0
        self.cpu = 0.0  # s
        self.wait = 0.0  # s
        self.slices: dict[str, int] = {}  # by label: how many slices of processes carried it
        self.factors: dict[str, float] = {}  # by resource: the worst of this slice
        self.seen = 0.0  # Unix seconds


class Metrics:
    """Sums Moments up; `text` may be asked for from any thread. most: pairs of command and cgroup, 'other' aside."""

    def __init__(self, header: Header, bundles: Iterable[Bundle] = (), most: int = 500) -> None:
        self.header = header
        self.models = ",".join(bundle.name for bundle in bundles)
        self.most = most
        self.groups: dict[tuple[str, str], Group] = {OTHER: Group()}
        names = [event.name for event in header.events]
        self.run_time, self.run_delay = names.index("run-time"), names.index("run-delay")
        self.slices = self.lost = 0
        self.own_cpu = 0.0  # s
        self.own_rss: float | None = None
        self.late = [0] * (len(LATENESS) + 1)
        self.late_sum = 0.0
        self.time: float | None = None
        self.lock = threading.Lock()

    def moment(self, moment: Moment) -> None:
        with self.lock:
            self.machine(moment)
            for group in self.groups.values():
                group.processes, group.factors = 0, {}
            used = moment.counts[:, [self.run_time, self.run_delay]].tolist()
            for row, task in enumerate(moment.tasks):
                group = self.group(task.comm, task.cgroup, moment.time)
                group.processes += not moment.exited[row]
                cpu, wait = used[row]
                group.cpu += cpu / 1e9 if math.isfinite(cpu) else 0.0
                group.wait += wait / 1e9 if math.isfinite(wait) else 0.0
            for row, labels in moment.labels.items():
                group = self.group(moment.tasks[row].comm, moment.tasks[row].cgroup, moment.time)
                group.slices[labels[0].label] = group.slices.get(labels[0].label, 0) + 1
            for row, found in moment.interference.items():
                group = self.group(moment.tasks[row].comm, moment.tasks[row].cgroup, moment.time)
                for name in RESOURCES:
                    factor = getattr(found, name).factor
                    if factor is not None and math.isfinite(factor):
                        group.factors[name] = max(factor, group.factors.get(name, 0.0))

    def machine(self, moment: Moment) -> None:
        self.slices += 1
        self.time = moment.time
        self.late[bisect_left(LATENESS, moment.late)] += 1
        self.late_sum += max(moment.late, 0.0)
        self.lost += moment.machine.get("lost", 0)
        self.own_cpu += moment.machine.get("own_cpu", 0.0) * moment.seconds / 100
        self.own_rss = moment.machine.get("own_rss", self.own_rss)

    def group(self, command: str, cgroup: str, now: float) -> Group:
        key = command, cgroup
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) > self.most and not self.forget(now):
                group = self.groups[OTHER]
            else:
                group = self.groups[key] = Group()
        group.seen = now
        return group

    def forget(self, now: float) -> bool:
        """Give up the pair that has been gone for longest, if that is long enough."""
        key = min(
            (key for key in self.groups if key != OTHER), key=lambda key: self.groups[key].seen, default=None
        )
        if key is None or now - self.groups[key].seen < FORGOTTEN:
            return False
        del self.groups[key]
        return True

    def text(self, openmetrics: bool = True) -> str:
        """The exposition: OpenMetrics 1.0.0, or Prometheus' text format 0.0.4."""
        with self.lock:
            families = [(*family[:4], list(samples(self))) for *family, samples in FAMILIES]
        return "".join(exposition(families, openmetrics))


def exposition(
    families: Iterable[tuple[str, str, str, str, list[Sample]]], openmetrics: bool
) -> Iterator[str]:
    """Lines of (name, kind, unit, help, samples). The older format names a counter with its _total, knows no info and
    no unit."""
    for name, kind, unit, text, samples in families:
        if not samples:
            continue
        family = name
        if not openmetrics:
            family = f"{name}_total" if kind == "counter" else f"{name}_info" if kind == "info" else name
            kind = "gauge" if kind == "info" else kind
        yield f"# TYPE {family} {kind}\n"
        if unit and openmetrics:
            yield f"# UNIT {family} {unit}\n"
        yield f"# HELP {family} {text}\n"
        for suffix, labels, value in samples:
            pairs = ",".join(f'{key}="{escaped(word)}"' for key, word in labels.items())
            yield f"{name}{suffix}{{{pairs}}} {value:.17g}\n" if pairs else f"{name}{suffix} {value:.17g}\n"
    if openmetrics:
        yield "# EOF\n"


def escaped(text: str) -> str:
    """A label's value. Names of processes are hostile: what could break a line, or a terminal, is replaced."""
    return units.clean_text(text).replace("\\", r"\\").replace('"', r"\"")


def by_group(suffix: str, value: Callable[[Group], float]) -> Callable[[Metrics], Iterator[Sample]]:
    def samples(metrics: Metrics) -> Iterator[Sample]:
        for (command, cgroup), group in shown(metrics):
            yield suffix, {"command": command, "cgroup": cgroup}, value(group)

    return samples


def shown(metrics: Metrics) -> list[tuple[tuple[str, str], Group]]:
    """The groups under names that differ also when cleaned: two names that clean to one are summed."""
    merged: dict[tuple[str, str], Group] = {}
    for (command, cgroup), group in metrics.groups.items():
        key = units.clean_text(command), units.clean_text(cgroup)
        merged[key] = sum_of(merged[key], group) if key in merged else group
    return list(merged.items())


def sum_of(one: Group, two: Group) -> Group:
    both = Group()
    both.processes, both.cpu, both.wait = (
        one.processes + two.processes,
        one.cpu + two.cpu,
        one.wait + two.wait,
    )
    both.slices = {
        name: one.slices.get(name, 0) + two.slices.get(name, 0) for name in one.slices | two.slices
    }
    both.factors = {
        name: max(one.factors.get(name, 0), two.factors.get(name, 0)) for name in one.factors | two.factors
    }
    return both


def labelled(metrics: Metrics) -> Iterator[Sample]:
    for (command, cgroup), group in shown(metrics):
        for label, slices in group.slices.items():
            yield "_total", {"command": command, "cgroup": cgroup, "label": label}, slices


def slowed(metrics: Metrics) -> Iterator[Sample]:
    for (command, cgroup), group in shown(metrics):
        for name, factor in group.factors.items():
            yield "", {"command": command, "cgroup": cgroup, "resource": name}, factor


def lateness(metrics: Metrics) -> Iterator[Sample]:
    below = 0
    for bound, slices in zip((*map(str, LATENESS), "+Inf"), metrics.late, strict=True):
        below += slices
        yield "_bucket", {"le": bound}, below
    yield "_count", {}, below
    yield "_sum", {}, metrics.late_sum


def about(metrics: Metrics) -> Iterator[Sample]:
    header = metrics.header
    tiers = ",".join(sorted({event.tier for event in header.events}))
    yield (
        "_info",
        {"version": header.version, "source": header.source, "tiers": tiers, "models": metrics.models},
        1,
    )


def single(suffix: str, value: Callable[[Metrics], float | None]) -> Callable[[Metrics], Iterator[Sample]]:
    def samples(metrics: Metrics) -> Iterator[Sample]:
        found = value(metrics)
        if found is not None:
            yield suffix, {}, found

    return samples


#: Name, kind, unit, help, samples: a row is a family.
FAMILIES: tuple = (
    ("pmutop", "info", "", "What counts, and which models judge.", about),
    ("pmutop_processes", "gauge", "", "Living processes.", by_group("", lambda group: group.processes)),
    ("pmutop_cpu_seconds", "counter", "seconds", "CPU time used.", by_group("_total", lambda group: group.cpu)),
    ("pmutop_wait_seconds", "counter", "seconds", "Time runnable without running.", by_group("_total", lambda group: group.wait)),
    ("pmutop_label_slices", "counter", "", "Slices of processes by their first label.", labelled),
    ("pmutop_interference_factor", "gauge", "", "Times slower for a neighbour, the worst in the last slice.", slowed),
    ("pmutop_slices", "counter", "", "Slices judged.", single("_total", lambda metrics: metrics.slices)),
    ("pmutop_lateness_seconds", "histogram", "seconds", "How far behind their deadline slices ended.", lateness),
    ("pmutop_lost_records", "counter", "", "Records the kernel could not deliver.", single("_total", lambda metrics: metrics.lost)),
    ("pmutop_own_cpu_seconds", "counter", "seconds", "CPU time of pmutop itself.", single("_total", lambda m: m.own_cpu)),
    ("pmutop_own_resident_bytes", "gauge", "bytes", "Resident memory of pmutop itself.", single("", lambda m: m.own_rss)),
    ("pmutop_last_slice_timestamp_seconds", "gauge", "seconds", "When the last slice ended.", single("", lambda m: m.time)),
)  # fmt: skip
