"""Time to choose 40 key events of 230 from 5,000 slices. Prints markdown; results stand in README-selection.md.

Usage: python tests/bench/selection.py [EVENTS [SLICES]]
"""

import platform
import sys
import time

import numpy as np

from pmutop.analysis import selection


def seconds(work, repeats=3):
    """The shortest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    from sklearn.datasets import make_classification

    events, slices = (int(word) for word in (sys.argv[1:] + ["230", "5000"][len(sys.argv) - 1 :]))
    X, y = make_classification(
        slices, events, n_informative=40, n_redundant=100, n_classes=8, n_clusters_per_class=1, random_state=0
    )
    X = np.exp(X)
    with_holes = X.copy()
    with_holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    names = [f"ev{i}" for i in range(events)]
    print(f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}\n")
    print(f"| {events} events x {slices} slices, 8 classes | seconds | 10 % missing |\n|---|---|---|")
    steps = {
        "discretise": lambda X: selection.discretise(X, y),
        "correlations (discretisation included)": lambda X: selection.correlations(X, y),
        "gain_ratio (discretisation included)": lambda X: selection.gain_ratio(X, y),
        "key_events, keep 40": lambda X: selection.key_events(X, y, names, keep=40),
    }
    for name, step in steps.items():
        took = [seconds(lambda step=step, values=values: step(values)) for values in (X, with_holes)]
        print(f"| {name} | {took[0]:.2f} | {took[1]:.2f} |")


if __name__ == "__main__":
    main()
