from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int32]

DEEPEST: int

def probabilities(
    rows: Floats,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    share: Floats,
    counts: Floats,
    total: Floats,
) -> Floats: ...
def contributions(
    rows: Floats,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    share: Floats,
    counts: Floats,
    total: Floats,
) -> Floats: ...
