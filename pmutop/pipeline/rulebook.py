"""The published thresholds (analysis/rules) at work: where hardware events are counted and no model of this processor is
installed. Their labels carry the model's name `rule` and no confidence; they are never mixed with trained ones."""

from __future__ import annotations

import numpy as np

from pmutop.analysis import rules
from pmutop.moment import Label
from pmutop.pipeline.classify import Verdicts
from pmutop.slices import Header

#: Columns by their generic names -> what the rules call them (vendor_events.ROLES).
ROLE_OF = {
    "cycles": "cycles",
    "instructions": "instructions",
    "branch-misses": "branch-misses",
    "L1-dcache-load-misses": "l1d-misses",
    "cache-references": "l2-misses",
    "cache-misses": "l3-misses",
    "stalled-cycles-backend": "stalls-backend",
}
NAME = "rule"


class RuleModel:
    """Labels rows by published thresholds; same manners as classify.TreeModel."""

    def __init__(self, header: Header) -> None:
        self.columns = {ROLE_OF.get(event.name, event.name): at for at, event in enumerate(header.events)}

    def judge(self, increase: np.ndarray, state: np.ndarray, seconds: float) -> Verdicts:
        counts = {role: increase[:, at] for role, at in self.columns.items()}
        labels, paths = [], []
        for label, kind, rule in rules.judge(counts):
            labels.append((Label(label, kind, 0.0, "hardware", NAME),))
            paths.append((f"{rule.quantity} > {rule.threshold:g} ({rule.source})",) if rule else ())
        return Verdicts(labels, [()] * len(labels), paths)
