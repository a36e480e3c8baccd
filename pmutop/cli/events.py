"""List the events that can be counted here, how many fit together now, and in which groups they would be counted."""

from __future__ import annotations

import argparse
import json

from pmutop import libpfm, sysfs, vendor_events
from pmutop.events import SOFTWARE_IDS, TRACEPOINTS
from pmutop.topology import Machine


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", nargs="?", default="", metavar="WORD", help="only events whose name or text contains WORD"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    told = listing(Machine.read(), options.word.lower())
    if options.json:
        print(json.dumps(told, indent=1))
    else:
        for line in report(told):
            print(line)
    return 0


def listing(machine: Machine, word: str = "") -> dict:
    """PMUs with what fits now, the key events of this processor with the groups they form, and all events by name."""
    from pmutop.sources import budget, cores

    fits = budget.free_counters(machine)
    family = vendor_events.family_of_machine(machine)
    names = vendor_events.offered(machine)
    names += [(name, "software", "") for name in SOFTWARE_IDS]
    names += [(name, "tracepoint", what) for name, (what, _) in TRACEPOINTS.items()]
    if word:  # thousands: only what was asked for
        names += [(name, "libpfm4", text) for name, text in libpfm.known()]
    names = [row for row in names if word in row[0].lower() or word in row[2].lower()]
    opens = budget.probe(name for name, _, _ in names)
    keys = [
        {"role": role, "event": name, "opens": not budget.probe([name]).get(name, 1)}
        for role, name in vendor_events.key_events(machine).items()
    ]
    wanted = [sysfs.resolve(key["event"]) for key in keys if key["opens"]]
    groups, never = budget.fitting(wanted, groups=len(keys), pmus=cores.kinds())
    kept = [event.name for event in groups[0]] if groups else []
    first_to_go = [event.name for event in reversed(wanted) if event.name not in kept]
    return {
        "schema": 1,
        "family": family,
        "pmus": [
            {"name": pmu.name, "type": pmu.type, "cpus": len(pmu.cpus), "fits": fits.get(pmu.name)}
            for pmu in machine.core_pmus
        ],
        "key_events": keys,
        "groups": [[event.name for event in group] for group in groups],
        "drop_order": first_to_go + kept[::-1],
        "kept": kept,
        "dropped": never,
        "events": [
            {"name": name, "source": source, "text": text, "opens": opens.get(name) == 0}
            for name, source, text in names
        ],
    }


def report(told: dict) -> list[str]:
    lines = []
    for pmu in told["pmus"]:
        fits = (
            "nothing may be counted on it"
            if pmu["fits"] is None
            else f"{pmu['fits']} counters free together now"
        )
        lines.append(f"{pmu['name']} (type {pmu['type']}, {pmu['cpus']} CPUs): {fits}")
    if not told["pmus"]:
        lines.append("no processor PMU here; `pmutop doctor` says why")
    if any(key["opens"] for key in told["key_events"]):
        lines += [
            "",
            f"key events of this processor ({told['family'] or 'generic names'}), most important first:",
        ]
        for key in told["key_events"]:
            mark = " " if key["opens"] else "-"
            lines.append(f" {mark} {key['role']:<16} {key['event']}{'' if key['opens'] else '   (not here)'}")
        lines += ["", f"asked for all together (--events) they take turns in {len(told['groups'])} groups:"]
        lines += [f"   {', '.join(group)}" for group in told["groups"]]
        lines += [
            "",
            f"counted all the time, of these, as counters are free now: {', '.join(told['kept']) or 'none'}",
            f"drop order, the first to go first: {', '.join(told['drop_order']) or 'nothing to drop'}",
        ]
        lines += [f"   {name}: {why}" for name, why in told["dropped"].items()]
    lines += ["", "events (- = this machine refuses it or has none):"]
    for event in told["events"]:
        lines.append(
            f" {' ' if event['opens'] else '-'} {event['name']:<44} {event['text'] or event['source']}".rstrip()
        )
    if told["events"] and libpfm.library() is not None:
        lines += ["", "libpfm4 knows more names here: `pmutop events WORD` searches them too"]
    return lines
