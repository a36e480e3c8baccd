"""How many dimensions do the events really have: PCA and its approximation error per K.

Source: "Black-boxing PMUs" (2016), section 4.2 and figure 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmutop.analysis.similarity import centred


@dataclass(frozen=True)
class Dimensionality:
    """`eigenvalues` (D,) of the covariance, descending; `error` (D,): what the first K = 1..D dimensions leave out,
    relative to what the first one alone leaves out (the thesis's scale: K = 1 is 100 %); `lost` (D,): the same relative
    to all the variance."""

    eigenvalues: np.ndarray
    error: np.ndarray
    lost: np.ndarray

    def smallest(self, bound: float) -> int:
        """The smallest K whose `error` is below `bound` (0.1 and 0.01 in the thesis: there 4 and 7)."""
        return int(np.argmax(self.error < bound)) + 1


def dimensionality(values: np.ndarray) -> Dimensionality:
    """PCA of values (slices, events), mean-centred and in counts as they are (not scaled), as the thesis does it."""
    taken = centred(values)
    largest = np.abs(taken).max(initial=0.0) or 1.0  # squares of counts near 1e10 would cost digits
    taken = taken / largest
    eigenvalues = np.linalg.eigvalsh(taken.T @ taken / max(len(taken) - 1, 1))[::-1]
    eigenvalues = np.maximum(eigenvalues, 0.0) * largest**2
    left = np.append(
        np.cumsum(eigenvalues[::-1])[::-1][1:], 0.0
    )  # summed from the small end: no cancellation
    whole = eigenvalues.sum() or 1.0
    return Dimensionality(eigenvalues, left / (left[0] or 1.0), left / whole)
