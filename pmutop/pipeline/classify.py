"""Features to verdicts: one batched call per model; label, confidence, evidence, the way through the tree, or 'unknown'."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmutop.analysis.interference import LinearVerdict
from pmutop.analysis.tree import C45Tree
from pmutop.bundle import SECOND, Bundle
from pmutop.moment import RESOURCES, UNKNOWN, UNSEEN, Interference, Label, Reason, Resource
from pmutop.pipeline.features import Features
from pmutop.slices import Header

#: A value this many training ranges beyond what the model has seen is out of its knowledge.
RANGES_BEYOND = 4.0
#: Evidence below this share is not worth a column.
LEAST_SHARE = 0.05
MOST_REASONS = 3


class Verdicts(NamedTuple):
    labels: list[tuple[Label, ...]]
    reasons: list[tuple[Reason, ...]]
    paths: list[tuple[str, ...]]


class TreeModel:
    """A fingerprint bundle at work: labels a matrix of rows."""

    def __init__(self, bundle: Bundle, header: Header) -> None:
        card = bundle.card
        self.bundle = bundle
        self.features = Features(card["features"], header.events)
        self.classes = card["classes"]
        self.tree = C45Tree.from_arrays(bundle.arrays, self.classes, card["features"])
        #: Columns that must have been counted. A ratio of two zeros is a value that is missing, as in training.
        self.must = [self.features.column[name] for name in card["required"] if name in self.features.column]
        self.kinds = card.get("kinds", [])  # of the second tree, which says what kind of pathology it is
        if self.kinds:
            arrays = {
                name[len(SECOND) :]: array for name, array in bundle.arrays.items() if name.startswith(SECOND)
            }
            self.kind_tree: C45Tree = C45Tree.from_arrays(arrays, self.kinds, card["features"])
        self.normal = {
            entry["label"]: np.array([entry["normal"].get(name, np.nan) for name in card["features"]])
            for entry in card["labels"]
            if "normal" in entry
        }
        self.units = [unit_of(name) for name in card["features"]]
        self.certain = card.get("least_confidence", 0.0)

    def judge(self, increase: np.ndarray, state: np.ndarray, seconds: float) -> Verdicts:
        """Verdicts for rows of (increase (rows, events), state codes (rows,)); abstains row by row."""
        table = self.features.compute(increase, state, seconds)
        chances = self.tree.predict_proba(table)
        best = chances.argmax(axis=1)
        shares = self.tree.contributions(table)
        beyond = self.tree.outside(table, RANGES_BEYOND)[:, self.tree.used_features].any(axis=1)
        missing = np.isnan(increase[:, self.must]).any(axis=1)
        kinds = self.kinds_of(table)
        labels, reasons, paths = [], [], []
        for row in range(len(table)):
            confidence = float(chances[row, best[row]])
            label = self.classes[best[row]]
            if missing[row] or beyond[row] or confidence < self.certain:
                labels.append((Label(UNKNOWN, "", round(confidence, 4), self.bundle.tier, self.bundle.name),))
                reasons.append(())
                paths.append(())
                continue
            labels.append((self.label(label, kinds[row], confidence),))
            reasons.append(self.evidence(label, table[row], shares[row]))
            paths.append(
                tuple(
                    f"{self.features.names[step.feature]} {step.sign} {step.threshold:.4g} (is {step.value:.4g})"
                    for step in self.tree.path(table[row])
                )
                if label.startswith("P_")
                else ()
            )
        return Verdicts(labels, reasons, paths)

    def kinds_of(self, table: np.ndarray) -> list[str]:
        """What the second tree says of each row ("P_branch"), "" where it is not sure or there is none."""
        if not self.kinds:
            return [""] * len(table)
        chances = self.kind_tree.predict_proba(table)
        best = chances.argmax(axis=1).tolist()
        return [self.kinds[at] if chances[row, at] >= self.certain else "" for row, at in enumerate(best)]

    def label(self, label: str, kind: str, confidence: float) -> Label:
        """The kind is said of a pathology that both trees see."""
        kind = kind[2:] if label.startswith("P_") and kind.startswith("P_") else ""
        return Label(label, kind, round(confidence, 4), self.bundle.tier, self.bundle.name)

    def evidence(self, label: str, values: np.ndarray, shares: np.ndarray) -> tuple[Reason, ...]:
        normal = self.normal.get(label, np.full(len(values), np.nan))
        strongest = np.argsort(-shares, kind="stable")[:MOST_REASONS]
        return tuple(
            Reason(
                self.features.names[i], float(shares[i]), float(values[i]), float(normal[i]), self.units[i]
            )
            for i in strongest.tolist()
            if shares[i] >= LEAST_SHARE and not np.isnan(values[i])
        )


class InterferenceModel:
    """An interference bundle at work: the verdict for the resource that its card names, the others unseen."""

    def __init__(self, bundle: Bundle, header: Header) -> None:
        self.bundle = bundle
        self.features = Features(bundle.card["features"], header.events)
        self.verdict = LinearVerdict.from_arrays(bundle.arrays)
        self.resource = RESOURCES.index(bundle.card["resource"])

    def judge(self, increase: np.ndarray, state: np.ndarray, seconds: float) -> list[Interference]:
        table = self.features.compute(increase, state, seconds)
        margins, _, factors = self.verdict.decide(table)
        found = []
        for margin, factor in zip(margins.tolist(), factors.tolist(), strict=True):
            resources = [UNSEEN] * len(RESOURCES)
            if not np.isnan(margin):
                known = None if np.isnan(factor) else max(1.0, factor)
                resources[self.resource] = Resource(margin > 0, known, margin)
            found.append(Interference(*resources, None))
        return found


def unit_of(feature: str) -> str:
    """How a feature's value is read: '/ms', '/s', ... or '' for a share."""
    per = feature.rpartition("/")[2]
    return f"/{per}" if per in ("ms", "s", "ki", "kc") else ""
