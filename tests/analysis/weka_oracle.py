"""Weka as an independent witness: a separate Java process fed with ARFF files. Nothing of it is part of pmutop.

Debian: apt-get install --no-install-recommends weka; elsewhere $PMUTOP_WEKA names the jar.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import NamedTuple

import numpy as np

JARS = (
    [os.environ["PMUTOP_WEKA"]]
    if "PMUTOP_WEKA" in os.environ
    else sorted(glob("/usr/share/java/weka-3*.jar"))
)
ABSENT = "" if shutil.which("java") and JARS else "needs java and weka (Debian: apt-get install weka)"
QUICK_START = ("-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # short runs: half the start-up time


def weka(*arguments: object, java_options: tuple[str, ...] = QUICK_START) -> str:
    command = ["java", *java_options, "-cp", JARS[-1], *map(str, arguments)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    assert "Weka exception" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


def write_arff(path: Path, X: np.ndarray, labels: np.ndarray, classes: int) -> Path:
    """labels 0..classes-1. The class list is fixed in the header: its order decides ties and must not depend on data."""
    with open(path, "w") as arff:
        arff.write("@relation rows\n")
        arff.writelines(f"@attribute x{i} numeric\n" for i in range(X.shape[1]))
        arff.write(f"@attribute class {{{','.join(f'c{i}' for i in range(classes))}}}\n@data\n")
        arff.writelines(
            ",".join("?" if np.isnan(value) else repr(value) for value in row) + f",c{label}\n"
            for row, label in zip(X.tolist(), labels, strict=True)
        )
    return path


class Line(NamedTuple):
    """One line of a printed tree."""

    level: int
    feature: int
    sign: str
    threshold: float
    label: int  # -1: no leaf
    weight: float
    wrong: float


LINE = re.compile(r"((?:\|   )*)x(\d+) (<=|>) ([^:\s]+)(?:: c(\d+) \(([\d.e+]+)(?:/([\d.e+]+))?\))?")


def parse_tree(text: str) -> list[Line]:
    lines = []
    for line in text.splitlines():
        if found := LINE.fullmatch(line.rstrip()):
            bars, feature, sign, threshold, label, weight, wrong = found.groups()
            lines.append(
                Line(
                    len(bars) // 4,
                    int(feature),
                    sign,
                    float(threshold),
                    -1 if label is None else int(label),
                    float(weight or 0),
                    float(wrong or 0),
                )
            )
    return lines


def j48_tree(arff: Path, *options: str) -> tuple[list[Line], int]:
    """The tree J48 grows on a whole file, and its number of nodes."""
    printed = weka("weka.classifiers.trees.J48", "-t", arff, "-no-cv", *options)
    size = re.search(r"Size of the tree :\s+(\d+)", printed)
    assert size, printed
    return parse_tree(printed), int(size[1])


def j48_predictions(train: Path, test: Path, *options: str) -> np.ndarray:
    """Numbers of the classes J48 gives to the rows of test, in their order."""
    printed = weka("weka.classifiers.trees.J48", "-t", train, "-T", test, "-p", "0", *options)
    found = re.findall(r"^\s*\d+\s+\d+:\S+\s+(\d+):\S+", printed, flags=re.MULTILINE)
    return np.array([int(number) - 1 for number in found])


def at_once(jobs: list) -> list:
    """Runs argument-free functions on two processors (each waits for a process), results in their order."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: job(), jobs))
