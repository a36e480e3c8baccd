"""Training data for the tests of the C4.5 tree."""

import numpy as np

from pmutop import _c45

NAN = np.nan
#: As the criterion is defined, without anything that keeps a tree small.
PLAIN = {"min_leaf": 1, "scale_leaf": False, "mdl": False, "collapse": False, "confidence": None}


def some_data(rows=400, features=6, classes=3, seed=1, missing=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    X = rng.normal(size=(rows, features))
    X[:, 0] += y
    X[:, 1] -= 0.7 * y
    X[rng.random(X.shape) < missing] = NAN
    return X, y


def cut(values, labels, weight=None, min_leaf=1, scale_leaf=False, mdl=False):
    labels = np.asarray(labels, dtype=np.int32)
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=float)
    return _c45.cut(
        np.ascontiguousarray(values, dtype=float),
        labels,
        weight,
        int(labels.max()) + 1,
        min_leaf=min_leaf,
        scale_leaf=scale_leaf,
        mdl=mdl,
    )
