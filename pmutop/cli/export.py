"""Metrics for Prometheus: OpenMetrics over HTTP at /metrics, totals by command, cgroup and label (never by PID). Without
--listen only this machine can ask."""

from __future__ import annotations

import argparse

from pmutop.bundle import Bundle
from pmutop.cli import say
from pmutop.cli.headless import Sink, watch
from pmutop.cli.log import positive
from pmutop.cli.wiring import add_alert_options, add_child_options, add_source_options, add_view_options
from pmutop.moment import Moment
from pmutop.selection import Selection
from pmutop.slices import Header

LISTEN = "127.0.0.1:9741"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=LISTEN,
        help=f"where to answer (default {LISTEN}; port 0: a free one)",
    )
    parser.add_argument(
        "--most",
        type=positive,
        default=500,
        metavar="N",
        help="pairs of command and cgroup; the rest is 'other' (default 500)",
    )
    parser.add_argument(
        "--slices", type=positive, metavar="N", help="stop after N slices (the first is the baseline)"
    )
    add_source_options(parser)
    add_view_options(parser, threads=False)
    add_child_options(parser)
    add_alert_options(parser)


def run(options: argparse.Namespace) -> int:
    from pmutop.sinks.openmetrics import Metrics
    from pmutop.sinks.scrape import Server, parse_address

    address = parse_address(options.listen)
    options.threads = False
    servers: list[Server] = []

    def sink_of(header: Header, bundles: list[Bundle], chosen: Selection) -> Sink:
        metrics = Metrics(header, bundles, options.most)
        servers.append(Server(metrics, *address))
        say(f"pmutop: metrics at {servers[0].address}")

        def sink(moment: Moment) -> None:
            metrics.moment(moment if chosen.is_everything else moment.only(chosen.rows(moment)))

        return sink

    try:
        return watch(options, sink_of)
    finally:
        for server in servers:
            server.close()
