"""List the bundles (the user's, the system's, the shipped), verify them, install or remove one."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from pmutop import bundle
from pmutop.bundle import Bundle
from pmutop.errors import BadInput, PmutopError, UsageError
from pmutop.sources.machine import describe

ACTIONS = ("list", "verify", "install", "remove", "show")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=ACTIONS, nargs="?", default="list", help="what to do (default: list)"
    )
    parser.add_argument(
        "which", nargs="?", metavar="NAME|FOLDER", help="a bundle's name, or for install its folder"
    )
    parser.add_argument("--json", action="store_true", help="the cards as JSON")


def run(options: argparse.Namespace) -> int:
    if options.action in ("install", "remove", "show") and not options.which:
        raise UsageError(f"models {options.action}: which one?", "`pmutop models` lists them")
    return {"list": list_all, "verify": verify, "install": install, "remove": remove, "show": show}[
        options.action
    ](options)


def list_all(options: argparse.Namespace) -> int:
    bundles, problems = bundle.installed()
    if options.json:
        print(json.dumps([one.card | {"folder": str(one.folder)} for one in bundles], indent=1))
        return 0
    for one in bundles:
        card = one.card
        print(
            f"{one.name}  ({card['tier']}, {card['kind']}; trained {card.get('trained', '?')} on {card['machine'].get('model', '?')})"
        )
        print(f"    {one.folder}")
        if why := one.foreign(describe()):
            print(f"    not used on this machine: {why}")
        print(
            f"    needs {', '.join(card['required'])}; uses {', '.join(card['optional']) or 'nothing else'}"
        )
        for name, score in card["scores"].items():
            print(f"    {name}: {score}")
    for problem in problems:
        print(f"refused: {problem}")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Read every array and check it against its card; fails if one is damaged."""
    bundles, problems = bundle.installed()
    for one in bundles:
        if options.which and one.name != options.which:
            continue
        try:
            one.arrays  # noqa: B018 - reading them is the check
            print(f"{one.name}: whole")
        except BadInput as error:
            problems.append(str(error))
    if problems:
        raise BadInput("; ".join(problems))
    return 0


def install(options: argparse.Namespace) -> int:
    source = bundle.read(Path(options.which))
    source.arrays  # noqa: B018 - a damaged one is not installed
    target = bundle.user_folder() / source.name
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source.folder, target)
    print(f"installed {source.name} in {target}")
    if why := source.foreign(describe()):
        print(f"but not used on this machine: {why}")
    return 0


def remove(options: argparse.Namespace) -> int:
    target = bundle.user_folder() / named(options.which).name
    if not target.exists():
        raise PmutopError(
            f"{options.which} is not the user's own bundle",
            f"only those in {bundle.user_folder()} are removed",
        )
    shutil.rmtree(target)
    print(f"removed {target}")
    return 0


def show(options: argparse.Namespace) -> int:
    """The card, and a tree as readable rules."""
    one = named(options.which)
    print(
        json.dumps(
            {key: value for key, value in one.card.items() if key not in ("recordings", "admission")},
            indent=1,
        )
    )
    if one.card["kind"] == "tree":
        from pmutop.analysis.tree import C45Tree

        print(C45Tree.from_arrays(one.arrays, one.card["classes"], one.card["features"]).rules())
    return 0


def named(name: str) -> Bundle:
    for one in bundle.installed()[0]:
        if one.name == name:
            return one
    raise UsageError(f"there is no model '{name}'", "`pmutop models` lists them")
