"""The published thresholds (analysis/rules) at work: where hardware events are counted and no model of this processor is
installed. What a column means is the processor family's affair (vendor_events.role_of). Their labels carry the model's name `rule` and no confidence; they are never mixed with trained ones."""

from __future__ import annotations

import numpy as np

from pmutop import vendor_events
from pmutop.analysis import rules
from pmutop.moment import Label
from pmutop.pipeline.classify import Verdicts
from pmutop.slices import Header

NAME = "rule"


class RuleModel:
    """Labels rows by published thresholds; same manners as classify.TreeModel."""

    def __init__(self, header: Header) -> None:
        self.family = vendor_events.family_named(header.machine.get("processor", ""))
        self.slots = vendor_events.SLOTS.get(self.family, {}).get("stalls-backend", 1)
        self.columns: dict[str, int] = {}
        for at, event in enumerate(
            header.events
        ):  # the first that plays a role, the more important one, plays it
            self.columns.setdefault(vendor_events.role_of(event.name, self.family), at)

    def judge(self, increase: np.ndarray, state: np.ndarray, seconds: float) -> Verdicts:
        counts = {role: increase[:, at] for role, at in self.columns.items()}
        labels, paths = [], []
        for label, kind, rule in rules.judge(counts, self.family, self.slots):
            labels.append((Label(label, kind, 0.0, "hardware", NAME),))
            paths.append((f"{rule.quantity} > {rule.threshold:g} ({rule.source})",) if rule else ())
        return Verdicts(labels, [()] * len(labels), paths)
