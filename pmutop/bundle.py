"""A model and its papers: one folder with `card.json` and `arrays.npz`. Loading never executes code.

The card says what the model is (name, kind, tier, features in order, required and optional events, labels with their
text and advice, what this tier cannot see), where it comes from (machine, seed, versions, hashes of the training
recordings) and how good it was found to be; `sha256` is of the arrays. Cards are read without numpy.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pmutop.errors import BadInput
from pmutop.slices import Header

if TYPE_CHECKING:
    from numpy import ndarray

SECOND = "kind_"  # before the names of the arrays of a bundle's second tree
FORMAT = 1
KINDS = ("tree", "linear")
#: What every card must hold, and of which type.
CARD = {
    "format": int,
    "name": str,
    "kind": str,
    "tier": str,
    "features": list,
    "required": list,
    "optional": list,
    "labels": list,
    "blind": list,
    "machine": dict,
    "scores": dict,
    "sha256": str,
}
SYSTEM_FOLDER = Path("/etc/pmutop/models")
#: Inside the package when installed, beside it in a checkout.
SHIPPED = next(
    place
    for place in (Path(__file__).parent / "models", Path(__file__).parent.parent / "models")
    if place.is_dir()
)


@dataclass(frozen=True)
class Bundle:
    """One model as it lies on disk; `arrays` reads and checks the numbers when they are first needed."""

    folder: Path
    card: dict

    @property
    def name(self) -> str:
        return self.card["name"]

    @property
    def tier(self) -> str:
        return self.card["tier"]

    @functools.cached_property
    def arrays(self) -> dict[str, ndarray]:
        """The arrays, float64/int32/bool; raises BadInput where they are not those the card was written for."""
        import numpy

        path = self.folder / "arrays.npz"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadInput(f"model {self.name}: cannot read {path}: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != self.card["sha256"]:
            raise BadInput(
                f"model {self.name}: {path} is damaged (its SHA-256 is not the card's)", "install it again"
            )
        try:
            with numpy.load(io.BytesIO(data), allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (ValueError, OSError, KeyError) as error:
            raise BadInput(f"model {self.name}: {path} is not a plain .npz ({error})") from None

    def of_another_tier(self, header: Header) -> str | None:
        """Simulated counters and the machine's own are never judged by the other's models: why, or None."""
        if self.tier == "simulated" and header.source != "simulated":
            return "it knows simulated counters only"
        if self.tier != "simulated" and header.source == "simulated":
            return f"it knows {self.tier} counters, these are simulated"
        return None

    def refusal(self, header: Header) -> str | None:
        """Why this model may not judge the slices of a source; None if it may."""
        columns = {event.name for event in header.events}
        missing = [name for name in self.card["required"] if name not in columns]
        if why := self.of_another_tier(header):
            return why
        if missing:
            return f"it needs {', '.join(missing)}, not counted here"
        return self.foreign(header.machine)

    def foreign(self, machine: dict) -> str | None:
        """Why a machine's counters are not what this model learnt (sources.machine.describe); None if they are.

        Hardware counters mean the same on every machine of one vendor, family and model, however it is called or
        clocked; simulated ones wherever instructions are the same and there are as many levels of caches, of any size.
        """
        learnt = self.card["machine"]
        if self.tier == "hardware":
            ours, theirs = learnt.get("processor", ""), machine.get("processor", "")
            if not ours or ours != theirs:
                return (
                    f"it was trained on {learnt.get('model', '?')} ({ours or 'its card does not say which processor'}), "
                    f"not on {theirs or 'this'}"
                )
        if self.tier == "simulated":
            ours, theirs = learnt.get("architecture"), machine.get("architecture")
            if ours != theirs:
                return f"it was trained on instructions of {ours}, not of {theirs}"
            ours, theirs = cache_levels(learnt), cache_levels(machine)
            if ours != theirs and theirs:  # known once the simulator's caches are
                return f"it was trained on caches {' '.join(ours)}, here are {' '.join(theirs)}"
        return None

    def hides(self, label: dict, header: Header) -> str:
        """What a label's entry needs that is not counted here; '' where the label can be told."""
        needs = str(label.get("needs") or "")
        uncounted = set(self.card["optional"]) - {event.name for event in header.events}
        return needs if uncounted and not needs.startswith("nothing") else ""

    def label_card(self, label: str) -> dict:
        """The card's entry of one label: label, text, advice, needs, normal, ...; {} if it has none."""
        return next((entry for entry in self.card["labels"] if entry["label"] == label), {})


def cache_levels(machine: dict) -> list[str]:
    """Names of the caches that the simulator models, [] where a machine's description has none."""
    sizes = machine.get("simulated") or {}
    return sorted(name for name, size in sizes.items() if isinstance(size, list) and size[0])


def read(folder: Path) -> Bundle:
    """The bundle in `folder`; raises BadInput with the file and the reason where it is not one."""
    path = Path(folder) / "card.json"
    try:
        card = json.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error})") from None
    if not isinstance(card, dict):
        raise BadInput(f"{path} is not a model's card")
    for key, kind in CARD.items():
        if not isinstance(card.get(key), kind):
            raise BadInput(
                f"{path}: '{key}' is missing or not a {kind.__name__}", "this is not a pmutop model"
            )
    if card["format"] != FORMAT:
        raise BadInput(f"{path} has format {card['format']}, this pmutop reads {FORMAT}", "train it again")
    if not re.fullmatch(r"[\w][\w.+-]*", card["name"]):
        raise BadInput(
            f"{path}: '{card['name']}' is no name for a model", "letters, digits, '.', '+' and '-'"
        )
    if card["kind"] not in KINDS:
        raise BadInput(f"{path}: unknown kind of model '{card['kind']}'")
    return Bundle(Path(folder), card)


def write(folder: Path, card: dict, arrays: dict[str, ndarray]) -> Bundle:
    """Write a bundle whole or not at all; the card gets its format and SHA-256."""
    import numpy

    data = io.BytesIO()
    numpy.savez(data, **arrays)
    sealed = {"format": FORMAT, **card, "sha256": hashlib.sha256(data.getvalue()).hexdigest()}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("arrays.npz", data.getvalue()),
        ("card.json", json.dumps(sealed, indent=1).encode() + b"\n"),
    ):
        part = Path(folder) / (name + ".part")
        part.write_bytes(content)
        os.replace(part, Path(folder) / name)
    return read(folder)


def user_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("pmutop")) / "models"


def folders() -> list[Path]:
    """Where bundles are looked for: the user's, the system's, the shipped; the first of a name wins."""
    return [user_folder(), SYSTEM_FOLDER, SHIPPED]


def installed() -> tuple[list[Bundle], list[str]]:
    """Every readable bundle (the first of each name), and one line for each that is not."""
    found: dict[str, Bundle] = {}
    problems = []
    for place in folders():
        for card in cards(place):
            try:
                bundle = read(card.parent)
            except BadInput as error:
                problems.append(str(error))
                continue
            found.setdefault(bundle.name, bundle)
    return list(found.values()), problems


def cards(place: Path) -> list[Path]:
    try:
        return sorted(place.glob("*/card.json"))
    except OSError:  # another user's folder (sudo -u and the like keep $HOME): as good as empty
        return []


def fitting(header: Header, named: list[str] | None = None) -> tuple[list[Bundle], list[str]]:
    """The bundles that may judge this source's slices, and why the others of its tier may not.

    named: names or folders given by the user; one that does not fit is then an error, not a note.
    """
    if named:
        known = {bundle.name: bundle for bundle in installed()[0]}
        chosen = [known[name] if name in known else read(Path(name)) for name in named]
        for bundle in chosen:
            if why := bundle.refusal(header):
                raise BadInput(
                    f"model {bundle.name} cannot be used here: {why}", "`pmutop models` lists those that can"
                )
        return chosen, []
    bundles, problems = installed()
    refusals = {bundle.name: bundle.refusal(header) for bundle in bundles}
    usable = [bundle for bundle in bundles if refusals[bundle.name] is None]
    notes = [
        f"model {bundle.name} is not used: {refusals[bundle.name]}"
        for bundle in bundles
        if refusals[bundle.name] and not bundle.of_another_tier(header)
    ]
    return usable, problems + notes


def learnt_on(processor: str) -> Bundle | None:
    """The installed tree of this very processor's counters (topology.processor); None where none was trained."""
    trained = (each for each in installed()[0] if each.tier == "hardware" and each.card["kind"] == "tree")
    return next((each for each in trained if each.foreign({"processor": processor}) is None), None)


def left_to_rules(header: Header, bundles: list[Bundle]) -> bool:
    """Are hardware events counted here that no trained model judges? Then the published thresholds stand in."""
    trained = any(bundle.tier == "hardware" and bundle.card["kind"] == "tree" for bundle in bundles)
    counted = {event.name for event in header.events if event.tier == "hardware"}
    return not trained and counted >= {"cycles", "instructions"}
