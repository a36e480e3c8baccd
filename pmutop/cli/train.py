"""Run the labelled workloads on this machine and learn a model of it. Asks first: it keeps the CPUs busy for minutes.
An interrupted training goes on where it stopped; --fresh starts over."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from pmutop.bundle import user_folder
from pmutop.cli import say
from pmutop.errors import UsageError

WHAT = ("fingerprints", "interference")
TIERS = ("hardware", "software", "simulated")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=WHAT, help="fingerprints: the tree of pathologies; interference: the SVM"
    )
    parser.add_argument(
        "--tier",
        choices=TIERS,
        help="which counters the fingerprints are of (default: the processor's where they count, else software)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--fresh", action="store_true", help="forget what an interrupted training has collected"
    )
    parser.add_argument(
        "--cpus", metavar="A,B", help="run the workloads on these CPUs only (default: all that we may use)"
    )
    parser.add_argument(
        "--slices",
        type=int,
        metavar="N",
        help="slices kept of each run (default 4, simulated 3, on hardware 2)",
    )
    parser.add_argument(
        "--only", metavar="TEXT", help="only workloads whose name contains TEXT (to try things out)"
    )
    parser.add_argument("--runs", metavar="FOLDER", help="where runs are kept (default: the user's cache)")
    parser.add_argument(
        "--to", metavar="FOLDER", help="where the bundle is written (default: the user's models)"
    )
    parser.add_argument(
        "--learn-only", action="store_true", help="run nothing, learn again from the runs that are there"
    )


def run(options: argparse.Namespace) -> int:
    import importlib

    from platformdirs import user_cache_path

    if options.what != "fingerprints" and options.tier not in (None, "software"):
        raise UsageError(f"--tier {options.tier} goes with fingerprints only")
    counters = tier_of(options)
    name = f"{counters}-{options.what}"
    folder = Path(options.runs) if options.runs else user_cache_path("pmutop") / "training" / name
    target = Path(options.to) if options.to else user_folder() / name
    try:
        cpus = (
            [int(cpu) for cpu in options.cpus.split(",")] if options.cpus else sorted(os.sched_getaffinity(0))
        )
    except ValueError:
        raise UsageError(
            f"--cpus {options.cpus}: not a list of CPU numbers", "for instance --cpus 0,1"
        ) from None
    if not options.learn_only:
        if not options.yes and not agreed(f"{options.what} ({counters})", len(cpus)):
            say("pmutop: nothing was run")
            return 1
        if options.fresh and folder.exists():
            shutil.rmtree(folder)
    steps = importlib.import_module(f"pmutop.training.{options.what}_runs")
    tier, slices = (), 4
    if options.what == "fingerprints":
        from pmutop.training.tiers import TIERS as KNOWN

        tier, slices = (KNOWN[counters],), KNOWN[counters].slices
    if not options.learn_only:
        steps.collect(folder, cpus, options.slices or slices, options.only or "", say, *tier)
    made, report = steps.learn(folder, target, *tier)
    print(report)
    say(f"pmutop: wrote {made.folder}; the next start uses it")
    return 0


def tier_of(options: argparse.Namespace) -> str:
    """The tier asked for, else hardware where it can be trained. Raises what stands against the one asked for."""
    if options.what != "fingerprints" or options.tier in ("software", "simulated"):
        return options.tier or "software"
    if options.learn_only and options.tier:
        return options.tier
    from pmutop.training.passes import refusal

    why = refusal()
    if why and options.tier:
        raise why
    return "software" if why else "hardware"


def agreed(what: str, cpus: int) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("training wants to be agreed to", "add --yes")
    say(
        f"This keeps {cpus} CPUs busy for some minutes (niced) to learn {what}. Nothing else should run meanwhile."
    )
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")
