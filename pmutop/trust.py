"""What `pmutop validate` found: a verdict per event, kept per machine in one small JSON file of the user's.

A source's header carries the verdict behind what the event was before ("counted, trust above 250"), so recordings and logs
say with which confidence they were made.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pmutop.errors import NoPermission
from pmutop.slices import Header

VERDICT = re.compile(r"trust|trust above [0-9.e+]{1,16}|do not trust")


def file() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("pmutop")) / "trust.json"


def machine_of(header: Header) -> str:
    """Verdicts hold for one kind of processor under one kernel."""
    return f"{header.machine.get('processor', '')} {header.machine.get('kernel', '')}"


def read() -> dict:
    """{machine: {tier: {event: verdict}}}; what is not there or not of that form counts for nothing."""
    try:
        held = json.loads(file().read_bytes())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def keep(machine: str, tier: str, verdicts: Mapping[str, str]) -> None:
    """Keep verdicts of one tier, beside those of its other events, other tiers and other machines."""
    tiers = read().get(machine)
    tiers = tiers if isinstance(tiers, dict) else {}
    before = tiers.get(tier)
    write(machine, tiers | {tier: (before if isinstance(before, dict) else {}) | dict(verdicts)})


def forget(machine: str) -> None:
    write(machine, {})


def write(machine: str, tiers: Mapping[str, dict]) -> None:
    held, target = read() | {machine: tiers}, file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        part.write_text(json.dumps(held, indent=1) + "\n")
        os.replace(part, target)
    except OSError as error:
        raise NoPermission(
            f"cannot write {target}: {error.strerror}", "XDG_DATA_HOME says where it is"
        ) from None


def judged(header: Header) -> Header:
    """The header with each event's verdict in its `trust`; events that nobody validated here stay as they are."""
    found = read().get(machine_of(header))
    if not isinstance(found, dict):
        return header
    events = []
    for event in header.events:
        tier = found.get(event.tier)
        verdict = tier.get(event.name) if isinstance(tier, dict) else None
        known = isinstance(verdict, str) and VERDICT.fullmatch(verdict)
        events.append(replace(event, trust=f"{event.trust}, {verdict}") if known else event)
    return replace(header, events=tuple(events))
