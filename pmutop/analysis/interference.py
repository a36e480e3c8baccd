"""The live interference verdict: a trained linear SVM and a severity regression, as flat arrays and dot products.

Source: "Black-boxing PMUs" (2016), chapter 5 (linear nu-SVC: does this slice suffer?), with two things that the thesis
leaves as future work: a probability beside the margin (Platt) and the interference factor beside the yes/no. Training
stands in `interference_training`; this file needs numpy only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from pmutop.errors import BadInput

#: exp() of anything beyond is not a factor but a slice unlike all that was trained on.
LARGEST_LOG_FACTOR = np.log(1e3)


@dataclass(frozen=True)
class LinearVerdict:
    """Weights over `n` features; a row x is prepared as z = (t(x) - center) / scale, t(x) = log1p(x / log_unit)
    where `log_mask` says so and x elsewhere.

    margin = z . coef + intercept (positive: interference); probability = 1 / (1 + exp(platt_a * margin + platt_b));
    factor = exp(z . severity_coef + severity_intercept), the time with interference over the time alone.
    Arrays are float64 of shape (n,), `log_mask` bool; the others are floats. A model without severity has NaN in
    `severity_intercept` and answers NaN for every factor.
    """

    center: np.ndarray
    scale: np.ndarray
    log_mask: np.ndarray
    log_unit: np.ndarray
    coef: np.ndarray
    intercept: float
    platt_a: float
    platt_b: float
    severity_coef: np.ndarray
    severity_intercept: float

    def decide(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(margin, probability, factor) of each row of X (slices, n), each float64 of shape (slices,).

        NaN in a feature that carries weight makes the row abstain: margin, probability and factor are NaN.
        """
        prepared = self.prepare(X)
        margin = prepared @ self.coef + self.intercept
        factor = np.exp(
            np.clip(prepared @ self.severity_coef + self.severity_intercept, None, LARGEST_LOG_FACTOR)
        )
        exponent = np.clip(self.platt_a * margin + self.platt_b, -700, 700)
        return margin, 1.0 / (1.0 + np.exp(exponent)), factor

    def abstains(self, X: np.ndarray) -> np.ndarray:
        """Which rows of X (slices, n) lack a feature that carries weight; bool of shape (slices,)."""
        return np.isnan(self.prepare(X)).any(axis=1)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Each feature's share of the evidence, (slices, n): signed, positive speaks for interference, and the
        absolute shares of a row sum to 1 (0 where nothing speaks either way, NaN where the row abstains).

        Shares are of the margin without its intercept, so they are relative to `center`, the ordinary slice.
        """
        parts = self.prepare(X) * self.coef
        whole = np.abs(parts).sum(axis=1, keepdims=True)
        shares = np.divide(parts, whole, out=np.zeros_like(parts), where=whole != 0)
        shares[np.isnan(whole[:, 0])] = np.nan
        return shares

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """z of the rows of X (slices, n); features without any weight are 0 there, counted or not."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.coef):
            raise BadInput(
                f"the interference model knows {len(self.coef)} features, the slice has shape {X.shape}",
                "count the events in the order that the model's card names",
            )
        taken = transform(X, self.log_mask, self.log_unit)
        used = (self.coef != 0) | (self.severity_coef != 0)
        return np.where(used, (taken - self.center) / self.scale, 0.0)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Every field as an array, for an `.npz` without pickles."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> LinearVerdict:
        """The inverse of `to_arrays`; raises BadInput where a field is missing, misshapen or not finite."""
        missing = [field.name for field in fields(cls) if field.name not in arrays]
        if missing:
            raise BadInput(f"the interference model lacks {', '.join(missing)}", "train it again")
        taken = {field.name: np.asarray(arrays[field.name]) for field in fields(cls)}
        length = taken["coef"].shape
        for field in fields(cls):
            value = taken[field.name]
            scalar = field.type == "float"
            if value.shape != (() if scalar else length) or len(length) != 1:
                raise BadInput(
                    f"the interference model's {field.name} has shape {value.shape}", "train it again"
                )
            if field.name != "severity_intercept" and not np.isfinite(value.astype(np.float64)).all():
                raise BadInput(f"the interference model's {field.name} is not finite", "train it again")
            kind = bool if field.name == "log_mask" else np.float64
            taken[field.name] = float(value) if scalar else np.ascontiguousarray(value, dtype=kind)
        if not (taken["scale"] > 0).all() or not (taken["log_unit"] > 0).all():
            raise BadInput("the interference model divides by nothing (scale or log_unit)", "train it again")
        return cls(**taken)


def transform(X: np.ndarray, log_mask: np.ndarray, log_unit: np.ndarray) -> np.ndarray:
    """t(X): log1p(x / unit) in the masked columns of X (slices, n), x elsewhere; a negative x there becomes NaN."""
    if not log_mask.any():
        return X
    taken = X.copy()
    masked = X[:, log_mask]
    masked = np.where(masked < 0, np.nan, masked)  # no counter runs backwards: such a value was not counted
    taken[:, log_mask] = np.log1p(masked / log_unit[log_mask])
    return taken
