"""Growth of our C4.5 beside Weka's J48, and verdicts for 1000 rows. Prints markdown; results stand in README-tree.md.

Usage: python tests/bench/tree.py [ROWS]
"""

import platform
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "analysis"))
import learning_sets
import weka_oracle

from pmutop.analysis.tree import C45Tree

REPEATS = 3


def seconds(work, repeats=REPEATS):
    """The shortest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def j48_seconds(X, y):
    """J48's own figure for building (no loading of the file, no evaluation), shortest of some runs."""
    with tempfile.TemporaryDirectory() as folder:
        arff = weka_oracle.write_arff(Path(folder) / "rows.arff", X, y, int(y.max()) + 1)
        times, size = [], 0
        for _ in range(REPEATS):
            printed = weka_oracle.weka(
                "weka.classifiers.trees.J48", "-t", arff, "-no-cv", java_options=("-Xmx2g",)
            )
            times.append(float(re.search(r"Time taken to build model: ([\d.]+)", printed)[1]))
            size = int(re.search(r"Size of the tree :\s+(\d+)", printed)[1])
    return min(times), size


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    print(f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}\n")
    print(
        "| growth and pruning | nodes | seconds | J48 nodes | J48 seconds | times faster |\n|---|---|---|---|---|---|"
    )
    X, y = learning_sets.log_normal(rows)
    with_holes, _ = learning_sets.with_holes(X, y)
    for name, values in (("log-normal", X), ("log-normal, 15 % missing", with_holes)):
        tree = C45Tree().fit(values, y)
        ours = seconds(lambda values=values: C45Tree().fit(values, y))
        line = f"| {rows} x 40, {name} | {len(tree.feature_)} | {ours:.2f} |"
        if weka_oracle.ABSENT:
            print(line, "- | - | - |")
        else:
            theirs, size = j48_seconds(values, y)
            print(line, f"{size} | {theirs:.2f} | {theirs / ours:.1f} |")
    print("\n| 1000 rows x 40 | nodes | milliseconds |\n|---|---|---|")
    for name, values in (("nothing missing", X), ("15 % missing", with_holes)):
        tree = C45Tree().fit(values[:5000], y[:5000])
        some = np.ascontiguousarray(values[-1000:])
        for method in ("predict_proba", "contributions", "outside"):
            took = seconds(lambda method=method, tree=tree, some=some: getattr(tree, method)(some), 200)
            print(f"| {method}, {name} | {len(tree.feature_)} | {1e3 * took:.3f} |")


if __name__ == "__main__":
    main()
