"""Labelled data sets for holding our learners against others: name -> (X, y), NaN where a value is missing.

scikit-learn's own sets, a log-normal one as counters are distributed, our simulated micro-benchmarks, and the recordings of real processors in
../shared/data (or $PMUTOP_DATA), whose tests skip where that folder is absent.
"""

import csv
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("PMUTOP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
OPTERON, XEON = "AMD_Opteron_6234", "INTEL_Xeon_X5650"


def toy(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


def log_normal(rows: int = 5000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """40 columns (15 informative, 10 redundant, 15 noise), 10 classes."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        rows, 40, n_informative=15, n_redundant=10, n_classes=10, n_clusters_per_class=1, random_state=seed
    )
    return np.exp(X / X.std(axis=0)), y


def with_holes(
    X: np.ndarray, y: np.ndarray, part: float = 0.15, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < part] = np.nan
    return X, y


def parsec_runs(events: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cortex-A15: (events of one list per million cycles, program, run) of each slice; empty where they are absent."""
    rows, labels, runs = [], [], []
    for path in sorted(DATA.glob(f"a15-parsec/events_list_{events}/run_*/*/results.data.gz")):
        with gzip.open(path, "rt") as lines:
            table = list(csv.reader(lines, delimiter="\t"))
        first = table[0].index("CPU_CYCLES")
        for row in table[1:]:
            cycles, *counts = (float(cell) for cell in row[first:])
            rows.append([1e6 * count / cycles for count in counts])
            labels.append(row[1])
            runs.append(path.parts[-3])
    return np.array(rows), np.array(labels), np.array(runs)


def micro_benchmarks() -> tuple[np.ndarray, np.ndarray]:
    """What the shipped simulated fingerprints were trained on (tests/bench/fingerprints.py --write-table)."""
    with gzip.open(Path(__file__).with_name("micro-benchmarks.csv.gz"), "rt") as lines:
        _, *table = csv.reader(lines)
    rows = [[float(cell) if cell else np.nan for cell in row[2:]] for row in table]
    return np.array(rows), np.array([row[1] for row in table])


def cloudsuite(machine: str, every: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Service of a slice from its hardware events, as counted, every so many-th slice."""
    rows, labels = [], []
    for path in sorted(DATA.glob(f"cloudsuite/{machine}/*.csv.gz")):
        with gzip.open(path, "rt") as lines:
            table = list(csv.reader(lines))
        first, last = table[0].index("instructions"), table[0].index("Core_0")
        for row in table[1::every]:
            rows.append([float(cell) if cell else np.nan for cell in row[first:last]])
            labels.append(path.name.removesuffix(".csv.gz"))
    return np.array(rows), np.array(labels)


SETS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "iris": lambda: toy("iris"),
    "wine": lambda: toy("wine"),
    "breast cancer": lambda: toy("breast_cancer"),
    "digits": lambda: toy("digits"),
    "log-normal": log_normal,
    "wine with holes": lambda: with_holes(*toy("wine")),
    "digits with holes": lambda: with_holes(*toy("digits")),
    "micro-benchmarks": micro_benchmarks,
    "a15-parsec 1": lambda: parsec_runs(1)[:2],
    "a15-parsec 2": lambda: parsec_runs(2)[:2],
    "cloudsuite Opteron": lambda: cloudsuite(OPTERON),
    "cloudsuite Xeon": lambda: cloudsuite(XEON),
}
RECORDED = {"a15-parsec 1", "a15-parsec 2", "cloudsuite Opteron", "cloudsuite Xeon"}
PRESENT = [name for name in SETS if DATA.is_dir() or name not in RECORDED]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The set, or a skipped test where its recording is absent."""
    if name not in PRESENT:
        import pytest

        pytest.skip(f"the recorded counters are not at {DATA}")
    return SETS[name]()


def ranked(X: np.ndarray) -> np.ndarray:
    """Each column's values by their rank: J48 takes values closer than 1e-5 for the same, and here none are."""
    out = np.full_like(X, np.nan)
    for column in range(X.shape[1]):
        known = ~np.isnan(X[:, column])
        out[known, column] = np.unique(X[known, column], return_inverse=True)[1]
    return out
