from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int32]

def grow(
    columns: Floats,
    labels: Ints,
    weight: Floats,
    classes: int,
    *,
    min_leaf: float,
    scale_leaf: bool,
    mdl: bool,
    collapsing: bool,
    pruning: bool,
    raising: bool,
    confidence: float,
    z: float,
) -> tuple[Ints, Floats, Ints, Ints, Floats, Floats]: ...
def cut(
    values: Floats,
    labels: Ints,
    weight: Floats,
    classes: int,
    *,
    min_leaf: float,
    scale_leaf: bool,
    mdl: bool,
) -> tuple[float, float, float] | None: ...
def pessimistic_errors(n: float, e: float, confidence: float, z: float) -> float: ...
