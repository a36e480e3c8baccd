"""The exposition, read by Prometheus' own parsers; bounded whatever the machine does; summed as the counters say."""

import math
import urllib.request
from dataclasses import replace

import numpy as np
import pytest
from moments import World
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as plain_parser

from pmutop.errors import PmutopError, UsageError
from pmutop.moment import Label
from pmutop.sinks.openmetrics import FORGOTTEN, OTHER, Metrics
from pmutop.sinks.scrape import Server, parse_address

PARSERS = {True: openmetrics_parser, False: plain_parser}


def told(metrics, openmetrics=True):
    """{(sample, sorted labels): value} as Prometheus' parser has it."""
    families = list(PARSERS[openmetrics](metrics.text(openmetrics)))
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def fed(world, slices=5, **options):
    metrics = Metrics(world.header, **options)
    moments = [world.moment(number) for number in range(1, slices + 1)]
    for moment in moments:
        metrics.moment(moment)
    return metrics, moments


@pytest.mark.parametrize("openmetrics", PARSERS)
@pytest.mark.parametrize("hostile", [False, True])
def test_prometheus_accepts_it_and_reads_the_sums(openmetrics, hostile):
    metrics, moments = fed(World(40, hostile=hostile))
    read = told(metrics, openmetrics)
    column = [event.name for event in moments[0].header.events].index("run-time")
    seconds = sum(float(np.nansum(moment.counts[:, column])) for moment in moments) / 1e9
    assert sum(
        value for (name, *_), value in read.items() if name == "pmutop_cpu_seconds_total"
    ) == pytest.approx(seconds)
    labelled = sum(len(moment.labels) for moment in moments)
    assert (
        sum(value for (name, *_), value in read.items() if name == "pmutop_label_slices_total")
        == labelled
        > 0
    )
    assert sum(value for (name, *_), value in read.items() if name == "pmutop_processes") == 40
    assert read[("pmutop_slices_total",)] == 5
    assert read[("pmutop_own_cpu_seconds_total",)] == pytest.approx(5 * 0.0123 * 0.4003)
    assert (
        read[("pmutop_lateness_seconds_bucket", ("le", "0.0005"))]
        == read[("pmutop_lateness_seconds_count",)]
        == 5
    )
    worst = max(value for (name, *_), value in read.items() if name == "pmutop_interference_factor")
    assert worst == 2.13


def test_both_formats_say_the_same():
    metrics, _ = fed(World(40))
    assert told(metrics, True) == told(metrics, False)


def test_no_pid_and_nothing_that_steers_a_terminal():
    metrics, moments = fed(World(40, hostile=True))
    text = metrics.text()
    assert not any(str(task.pid) in text for task in moments[0].tasks)
    assert all(character == "\n" or character.isprintable() for character in text)


def test_series_are_bounded_and_what_has_no_place_is_summed_as_other():
    world = World(300)
    world.tasks = [task._replace(comm=f"job{row}") for row, task in enumerate(world.tasks)]
    metrics, moments = fed(world, slices=3, most=10)
    column = [event.name for event in moments[0].header.events].index("run-time")
    read = {key: value for key, value in told(metrics).items() if key[0] == "pmutop_cpu_seconds_total"}
    assert len(read) == 11
    rest = sum(float(np.nansum(moment.counts[10:, column])) for moment in moments) / 1e9
    assert read[("pmutop_cpu_seconds_total", ("cgroup", OTHER[1]), ("command", OTHER[0]))] == pytest.approx(
        rest
    )


def test_counters_never_fall_and_a_pair_long_gone_gives_its_place_up():
    world = World(10)
    metrics = Metrics(world.header, most=10)
    world.tasks = [task._replace(comm=f"old{row}") for row, task in enumerate(world.tasks)]
    before: dict = {}
    for number in range(1, 6):
        metrics.moment(world.moment(number))
        now = {key: value for key, value in told(metrics).items() if key[0].endswith("_total")}
        assert all(now[key] >= before[key] for key in before)
        before = now
    world.tasks = [task._replace(comm=task.comm.replace("old", "new")) for task in world.tasks]
    soon = world.moment(6)
    metrics.moment(soon)
    assert not any(("command", "new1") in key for key in told(metrics))
    metrics.moment(replace(soon, time=soon.time + FORGOTTEN + 10))
    read = told(metrics)
    assert any(("command", "new1") in key for key in read) and not any(
        ("command", "old1") in key for key in read
    )


def test_what_is_not_known_adds_nothing():
    world = World(5)
    moment = world.moment(1)
    metrics = Metrics(world.header)
    metrics.moment(
        replace(moment, counts=np.full_like(moment.counts, math.nan), labels={}, interference={}, machine={})
    )
    read = told(metrics)
    assert all(
        value == 0
        for key, value in read.items()
        if key[0] in ("pmutop_cpu_seconds_total", "pmutop_wait_seconds_total")
    )
    assert not any(key[0] in ("pmutop_label_slices_total", "pmutop_own_resident_bytes") for key in read)


def test_a_label_of_any_letters_is_read_back_as_it_was():
    world = World(3)
    moment = world.moment(1)
    label = Label('P_"quoted"\\back', "", 0.9, "software", "m")
    metrics = Metrics(world.header)
    metrics.moment(replace(moment, labels={0: (label,)}))
    assert any(("label", label.label) in key for key in told(metrics))


@pytest.fixture
def server():
    metrics, _ = fed(World(20))
    server = Server(metrics, "127.0.0.1", 0)
    yield server
    server.close()


def ask(address, accept=""):
    with urllib.request.urlopen(
        urllib.request.Request(address, headers={"Accept": accept}), timeout=10
    ) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_over_http_each_client_gets_the_format_that_it_asks_for(server):
    kind, text = ask(server.address, "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.1")
    assert kind.startswith("application/openmetrics-text") and list(openmetrics_parser(text))
    kind, text = ask(server.address)
    assert kind.startswith("text/plain") and list(plain_parser(text))
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(server.address.replace("/metrics", "/etc/passwd"))


def test_an_address_that_is_taken_is_one_line(server):
    port = int(server.address.rpartition(":")[2].split("/")[0])
    with pytest.raises(PmutopError, match=f"cannot listen on 127.0.0.1:{port}: "):
        Server(server.http.RequestHandlerClass.metrics, "127.0.0.1", port)


def test_addresses():
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80) and parse_address(":9") == ("127.0.0.1", 9)
    assert parse_address("[::1]:90") == ("::1", 90)
    for bad in ("localhost", "x:", "x:y", "x:70000", ""):
        with pytest.raises(UsageError):
            parse_address(bad)
