"""Say what can be counted here, by whom, and which models can judge it; and for every problem, what to type."""

from __future__ import annotations

import argparse
import errno
import json
import shutil

from pmutop.cli.wiring import add_source_options, open_source
from pmutop.diagnosis import diagnose
from pmutop.errors import PmutopError
from pmutop.scene import GOOD, NOTE, PROBLEM, Scene, scene_of

MARKS = {GOOD: "ok", NOTE: "--", PROBLEM: "!!"}
#: Opened on ourselves to see with which errno the kernel refuses, if it does.
PROBES = ("cycles", "instructions", "cache-misses", "context-switches", "syscalls")


def configure(parser: argparse.ArgumentParser) -> None:
    add_source_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    scene = measured_scene(options.interval)
    findings = diagnose(scene)
    models, tiers = judgements(options)
    if options.json:
        told = {
            "schema": 1,
            "machine": scene.machine.as_json(),
            "findings": [{"check": name, **finding._asdict()} for name, finding in findings],
            "tiers": tiers,
            "models": models,
        }
        print(json.dumps(told, indent=1))
        return 0
    for line in report(scene, findings, models, tiers):
        print(line)
    return 0


def measured_scene(interval: float) -> Scene:
    """The scene of this machine, with what only trying can tell."""
    from pmutop.sources import budget
    from pmutop.topology import Machine

    machine = Machine.read()
    probes = budget.probe(PROBES)
    kernel_can_count = errno.ENOSYS not in probes.values()
    fits = budget.free_counters(machine) if kernel_can_count else {}
    return scene_of(
        "/", interval=interval, probes=probes, fits=fits, ipc=budget.own_ipc() if kernel_can_count else None
    )


def judgements(options: argparse.Namespace) -> tuple[list[dict], list[dict]]:
    """(models, tiers): each installed model with its labels, and whether it and they can be shown here, and why not."""
    from pmutop.bundle import installed, left_to_rules

    try:
        source = open_source(options)
    except (PmutopError, OSError) as error:
        header, refused = None, str(error)
    else:
        header, refused = source.header, ""
        source.close()
    models, usable = [], []
    for bundle in installed()[0]:
        why = refused or bundle.refusal(header) or ""
        usable += [] if why else [bundle]
        labels = []
        for label in bundle.card["labels"]:
            needs = "" if why else bundle.hides(label, header)
            reason = why or (f"needs {needs}" if needs else "")
            labels.append(
                {"label": label["label"], "text": label.get("text", ""), "shown": not reason, "why": reason}
            )
        models.append(
            {
                "model": bundle.name,
                "tier": bundle.tier,
                "usable": not why,
                "why": why,
                "labels": labels,
                "blind": bundle.card["blind"],
            }
        )
    tiers = []
    for tier in ("hardware", "simulated", "software"):
        of_tier = [model for model in models if model["tier"] == tier]
        shown = sorted({label["label"] for model in of_tier for label in model["labels"] if label["shown"]})
        hidden = sorted({label["label"] for model in of_tier for label in model["labels"]} - set(shown))
        why = next(
            (model["why"] for model in of_tier if model["why"]),
            "" if of_tier else "no model of this tier is installed",
        )
        if tier == "hardware" and header is not None and left_to_rules(header, usable):
            why += "; published rules of thumb stand in, marked `rule`"
        tiers.append({"tier": tier, "labels": shown, "not_shown": hidden, "why": why if not shown else ""})
    return models, tiers


def report(scene: Scene, findings, models: list[dict], tiers: list[dict]) -> list[str]:
    machine = scene.machine
    name = machine.name or f"{machine.vendor} {machine.model:#x}"
    lines = [f"{name}, {len(machine.online)} CPUs, {len(machine.cores)} cores, Linux {machine.kernel}", ""]
    lines += wrapped(f"{MARKS[finding.level]} {check}: {finding.text}" for check, finding in findings)
    fixes = [(check, finding) for check, finding in findings if finding.fix and finding.level != GOOD]
    if fixes:
        lines += ["", "to change it:"]
        lines += [f"   {finding.fix:<60} # {check}" for check, finding in fixes]
    lines += ["", "verdicts on this machine:"]
    for tier in tiers:
        lines += wrapped([f"   {tier['tier']}: {', '.join(tier['labels']) or 'none: ' + tier['why']}"])
        if tier["labels"] and tier["not_shown"]:
            lines += wrapped([f"      not shown: {', '.join(tier['not_shown'])}"])
    for model in models:
        reasons = dict.fromkeys(label["why"] for label in model["labels"] if label["why"] and model["usable"])
        lines += wrapped(f"   {model['model']}: {reason}" for reason in reasons)
        if model["usable"]:
            lines += wrapped(f"   {model['model']} cannot see: {sentence}" for sentence in model["blind"])
    if any(tier["tier"] == "hardware" and not tier["labels"] for tier in tiers) and machine.core_pmus:
        lines += [
            "",
            "this processor has counters and no model yet: `pmutop train fingerprints` makes one here",
        ]
    return lines


def wrapped(lines) -> list[str]:
    import textwrap

    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    found = []
    for line in lines:
        margin = " " * (len(line) - len(line.lstrip()) + 3)
        found += textwrap.wrap(
            line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
        )
    return found
