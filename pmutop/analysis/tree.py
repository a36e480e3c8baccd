"""C4.5 decision tree on counters: gain-ratio splits, missing values by fractional cases, pessimistic pruning.

Quinlan, 'C4.5: Programs for Machine Learning' (1993) with release 8's price of a threshold; the learner of 'Automated
Fingerprinting of Performance Pathologies', section 3.1. Trees are grown in ext/c45.pyx and read in ext/tree.pyx.
The live path imports this file, so it needs nothing but numpy and the latter.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pmutop import _tree
from pmutop.errors import BadInput

ARRAYS = ("feature", "threshold", "left", "right", "share", "counts", "low", "high")
OPTIONS = ("min_leaf", "confidence", "scale_leaf", "mdl", "collapse", "raising", "middle")
#: Where a gap begins at 0, its middle on a scale of ratios is about a tenth of its end.
FLOOR = 0.01


class Step(NamedTuple):
    """One decision on the way to a verdict."""

    feature: int
    threshold: float
    sign: str  # "<=" or ">": the branch taken
    value: float  # NaN: missing, the branch that spoke for the verdict is shown
    fraction: float  # of the case that took this branch here; 1 where the value was known


class C45Tree:
    """C4.5 with the manners of a scikit-learn classifier (clone, cross_val_score, set_params work; NaN is missing).

    Parameters
    ----------
    min_leaf : weight that at least two branches of a split must hold (C4.5 -m).
    confidence : level of pessimistic pruning, 0 < c <= 0.5 (C4.5 -c); None leaves the tree unpruned.
    scale_leaf : raise the minimum branch of a split to 0.1 n / classes, at most 25, as C4.5 release 8 does.
    mdl : pay log2(cuts tried) / n from the gain of a split, as C4.5 release 8 does.
    collapse : before pruning, make leaves of subtrees that do not err less on the training rows.
    raising : let pruning replace a subtree by its largest branch.
    middle : move each cut into the gap that the training rows leave around it (not C4.5's way: C4.5 cuts at the gap's
        lower end). For counts, which lie orders of magnitude apart, and rows of other programs than the training's.

    Attributes after fit
    --------------------
    classes_ (classes,), n_features_in_, and the tree, parents before children, the root first:
    feature_ int32 (nodes,) -1 at a leaf | threshold_ (nodes,) a value of the training set; <= goes left |
    left_, right_ int32 (nodes,) | share_ (nodes,) part of the known training weight that goes left, the fraction by
    which a row without the value is divided | counts_ (nodes, classes) training weight per class |
    low_, high_ (features,) range of the training rows, NaN where a feature was never known.
    """

    _estimator_type = "classifier"
    feature_names_in_: Sequence[str] | None = None  # known where the tree comes from a bundle

    def __init__(
        self,
        min_leaf: float = 2,
        confidence: float | None = 0.25,
        scale_leaf: bool = True,
        mdl: bool = True,
        collapse: bool = True,
        raising: bool = True,
        middle: bool = False,
    ) -> None:
        self.min_leaf = min_leaf
        self.confidence = confidence
        self.scale_leaf = scale_leaf
        self.mdl = mdl
        self.collapse = collapse
        self.raising = raising
        self.middle = middle

    # --- scikit-learn's manners, without scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OPTIONS}

    def set_params(self, **options: Any) -> "C45Tree":
        for name, value in options.items():
            if name not in OPTIONS:
                raise BadInput(f"a C4.5 tree has no option {name!r}", hint=f"it has {', '.join(OPTIONS)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"C45Tree({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "counts_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # type: ignore[import-untyped]

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(allow_nan=True),
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    # --- training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "C45Tree":
        """X (rows, features) with NaN where a value is missing (infinite values are values), y (rows,) of any kind,
        sample_weight (rows,) >= 0. Raises BadInput on empty or unequal input and on options out of range."""
        from pmutop import _c45

        rows = np.asarray(X, dtype=np.float64)
        labels = np.asarray(y)
        if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels) or not len(rows):
            raise BadInput(
                f"a tree needs rows x features and their labels, not {rows.shape} and {labels.shape}"
            )
        if self.min_leaf <= 0 or (self.confidence is not None and not 0 < self.confidence <= 0.5):
            raise BadInput(f"{self!r}: min_leaf must be above 0 and confidence in (0, 0.5]")
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != labels.shape or not np.all(weight >= 0) or not 0 < weight.sum() < np.inf:
            raise BadInput("sample weights must be one finite number >= 0 a row, not all of them 0")
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        used = weight > 0
        rows, numbers, weight = rows[used], numbers[used], weight[used]
        self.n_features_in_ = rows.shape[1]
        self.low_, self.high_ = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
        grown = _c45.grow(
            np.ascontiguousarray(rows.T),
            numbers.astype(np.int32),
            weight,
            len(self.classes_),
            min_leaf=self.min_leaf,
            scale_leaf=self.scale_leaf,
            mdl=self.mdl,
            collapsing=self.collapse,
            pruning=self.confidence is not None,
            raising=self.raising,
            confidence=self.confidence or 0.5,
            z=normal_quantile(self.confidence or 0.5),
        )
        self.feature_, self.threshold_, self.left_, self.right_, self.share_, self.counts_ = grown
        self._weight = self.counts_.sum(axis=1)
        if self.middle:
            self._cut_in_the_middle(rows)
        return self

    def _cut_in_the_middle(self, rows: np.ndarray) -> None:
        """Moves thresholds; no row changes sides. Middle: the geometric one where both ends are above 0, with a floor."""
        reached = {0: np.arange(len(rows))}
        for node, feature in enumerate(self.feature_):  # parents come before children
            here = reached.pop(node)
            if feature < 0:
                continue
            values = rows[here, feature]
            low, high = values <= self.threshold_[node], values > self.threshold_[node]
            reached[int(self.left_[node])], reached[int(self.right_[node])] = here[~high], here[~low]
            if low.any() and high.any():
                start, end = values[low].max(), values[high].min()
                floor = FLOOR * end
                if 0 <= start and end < np.inf:
                    self.threshold_[node] = np.sqrt((start + floor) * (end + floor)) - floor

    # --- verdicts

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, classes). The class frequencies p of the reached leaf with training weight N, smoothed after Laplace:
        (N p + 1) / (N + classes). Where values are missing, p and N are the means over all leaves reached, so that the
        most probable class is always C4.5's own verdict."""
        return _tree.probabilities(self._rows(X), *self._flat())

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def contributions(self, X: Any) -> np.ndarray:
        """(rows, features): which features decided. For each feature the change in the frequency of the predicted
        class, summed over the decisions that read it; what spoke against the verdict is 0, each row is scaled to sum
        1. A row is all 0 where no decision spoke for the verdict (it was the most frequent class before any)."""
        return _tree.contributions(self._rows(X), *self._flat())

    def outside(self, X: Any, margin: float = 0.0) -> np.ndarray:
        """Boolean (rows, features): known values beyond the training range by more than margin times that range. A
        feature that was never known in training is outside wherever it is known."""
        rows = self._rows(X)
        slack = margin * (self.high_ - self.low_)
        within = (rows >= self.low_ - slack) & (rows <= self.high_ + slack)
        return ~within & ~np.isnan(rows)

    def path(self, x: Any) -> list[Step]:
        """The decisions on the way of one row x (features,) to its verdict, root first."""
        row = self._rows(np.asarray(x, dtype=np.float64)[None])[0]
        verdict = int(np.argmax(self.predict_proba(row[None])[0]))
        steps, at = [], 0
        while self.feature_[at] >= 0:
            feature, value = int(self.feature_[at]), float(row[self.feature_[at]])
            share = float(self.share_[at])
            branches = ((int(self.left_[at]), "<=", share), (int(self.right_[at]), ">", 1 - share))
            if np.isnan(value):
                at_next, sign, fraction = max(
                    branches, key=lambda branch: branch[2] * self._frequency(row, branch[0], verdict)
                )
            else:
                at_next, sign, _ = branches[0 if value <= self.threshold_[at] else 1]
                fraction = 1.0
            steps.append(Step(feature, float(self.threshold_[at]), sign, value, fraction))
            at = at_next
        return steps

    def _frequency(self, row: np.ndarray, at: int, label: int) -> float:
        while self.feature_[at] >= 0:
            value = row[self.feature_[at]]
            if np.isnan(value):
                share = self.share_[at]
                return share * self._frequency(row, self.left_[at], label) + (1 - share) * self._frequency(
                    row, self.right_[at], label
                )
            at = self.left_[at] if value <= self.threshold_[at] else self.right_[at]
        return self.counts_[at, label] / self._weight[at]

    # --- the tree itself

    @property
    def used_features(self) -> np.ndarray:
        """Indices of the features that some decision reads, ascending."""
        return np.flatnonzero(np.bincount(self.feature_[self.feature_ >= 0]))  # np.unique would load numpy.ma

    @property
    def leaves(self) -> int:
        return int((self.feature_ < 0).sum())

    def rules(
        self, feature_names: Sequence[str] | None = None, number: Callable[[float], str] = "{:.6g}".format
    ) -> str:
        """The tree as indented text; at each leaf its label and (training weight / of it wrong)."""
        names = self._names(feature_names)
        lines: list[str] = []
        waiting = [(0, -1, "")]
        while waiting:
            at, level, text = waiting.pop()
            feature = int(self.feature_[at])
            if feature < 0:
                weight, right = self._weight[at], self.counts_[at].max()
                wrong = f"/{number(weight - right)}" if weight - right > 1e-6 else ""
                verdict = f"{self.classes_[int(np.argmax(self.counts_[at]))]} ({number(weight)}{wrong})"
                text = f"{text}: {verdict}" if text else verdict
            if text:
                lines.append("|   " * level + text)
            if feature >= 0:
                threshold = number(self.threshold_[at])
                waiting.append((int(self.right_[at]), level + 1, f"{names[feature]} > {threshold}"))
                waiting.append((int(self.left_[at]), level + 1, f"{names[feature]} <= {threshold}"))
        return "\n".join(lines)

    def _names(self, feature_names: Sequence[str] | None) -> Sequence[str]:
        names = self.feature_names_in_ if feature_names is None else feature_names
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else names

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The fitted tree as arrays for numpy.savez, named as in ARRAYS."""
        return {name: getattr(self, f"{name}_") for name in ARRAYS}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], classes: Sequence[Any], features: Sequence[str]
    ) -> "C45Tree":
        """The tree that to_arrays wrote. Raises BadInput where the arrays cannot be a tree over these classes and
        features: evaluation trusts them with raw memory, so nothing unchecked gets in."""
        missing = [name for name in ARRAYS if name not in arrays]
        if missing:
            raise BadInput(f"the tree's array {missing[0]!r} is missing")
        kinds = {name: np.int32 if name in ("feature", "left", "right") else np.float64 for name in ARRAYS}
        got = {name: np.asarray(arrays[name]) for name in ARRAYS}
        nodes = got["feature"].size
        shapes = dict.fromkeys(ARRAYS, (nodes,)) | {"counts": (nodes, len(classes))}
        shapes |= dict.fromkeys(("low", "high"), (len(features),))
        for name in ARRAYS:
            if (
                got[name].dtype != kinds[name]
                or got[name].shape != shapes[name]
                or not nodes
                or not len(classes)
            ):
                raise BadInput(
                    f"the tree's array {name!r} is {got[name].dtype} {got[name].shape}, "
                    f"not {np.dtype(kinds[name])} {shapes[name]}"
                )
        _check_shape(got, len(features))
        tree = cls()
        tree.classes_, tree.n_features_in_ = np.asarray(classes), len(features)
        tree.feature_names_in_ = list(features)
        for name in ARRAYS:
            setattr(tree, f"{name}_", np.ascontiguousarray(got[name]))
        tree._weight = tree.counts_.sum(axis=1)
        return tree

    def _flat(self) -> tuple[np.ndarray, ...]:
        return (
            self.feature_,
            self.threshold_,
            self.left_,
            self.right_,
            self.share_,
            self.counts_,
            self._weight,
        )

    def _rows(self, X: Any) -> np.ndarray:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise BadInput(
                f"the tree reads rows of {self.n_features_in_} features, not an array of shape {rows.shape}"
            )
        return rows


def normal_quantile(confidence: float) -> float:
    """The standard normal quantile of 1 - confidence."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - confidence)


def _check_shape(arrays: Mapping[str, np.ndarray], features: int) -> None:
    feature, left, right = arrays["feature"], arrays["left"], arrays["right"]
    nodes = len(feature)
    inner = np.flatnonzero(feature >= 0)
    children = np.concatenate([left[inner], right[inner]])
    parents = np.concatenate([inner, inner])
    sound = (
        feature.min() >= -1
        and feature.max() < features
        and np.all(children > parents)  # no way leads back, so every walk ends
        and np.all(children < nodes)
        and np.array_equal(np.sort(children), np.arange(1, nodes))
        and np.all(np.isfinite(arrays["threshold"][inner]) | np.isinf(arrays["threshold"][inner]))
        and np.all((arrays["share"] >= 0) & (arrays["share"] <= 1))
        and np.all((arrays["counts"] >= 0) & np.isfinite(arrays["counts"]))
        and np.all(arrays["counts"].sum(axis=1) > 0)
    )
    level = np.zeros(nodes, dtype=int)
    for parent in inner if sound else ():
        level[left[parent]] = level[right[parent]] = level[parent] + 1
    if not sound or level.max() > _tree.DEEPEST:
        raise BadInput(
            "the tree's arrays do not describe a tree", hint="the file is damaged; train or install it again"
        )
