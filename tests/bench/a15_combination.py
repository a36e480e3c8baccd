"""Alias-pair ratios on recorded counters (../shared/data/a15-parsec or $PMUTOP_DATA): prints a markdown table.

    python tests/bench/a15_combination.py

Two runs at each of three clock rates were counted with two event lists that share only CPU_CYCLES, constant by
construction. L1D_CACHE_ACCESS (list 1) and DATA_MEM_ACCESS (list 2) count the same thing, so that a perfect
combination has a ratio of 1. Never used to pair anything.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pmutop.analysis.combination import combine_bc, combine_lgl
from pmutop.analysis.profiles import Profile, profile_of, without_ends
from pmutop.analysis.progress import combine_progress
from pmutop.wide import Table

CLOCKS = (1000000, 1400000, 1800000)
ALIASES = "L1D_CACHE_ACCESS", "DATA_MEM_ACCESS"
DISTURBED = {
    (1, 1800000): ("splash2x.raytrace", "splash2x.water_nsquared")
}  # list 1: (run, clock); half the work


def a15_folder() -> Path:
    shared = os.environ.get("PMUTOP_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(shared) / "a15-parsec"


def a15_profile(events: int, run: int, clock: int) -> Profile:
    """One recording: a task per slice, its type the benchmark it belongs to."""
    with gzip.open(a15_folder() / f"events_list_{events}/run_{run}/{clock}/results.data.gz", "rt") as file:
        names = tuple(file.readline().rstrip("\n").split("\t")[7:])
        rows = [line.rstrip("\n").split("\t") for line in file]
    kind = np.array([row[1] for row in rows])
    profile = profile_of(Table(names, np.array([row[7:] for row in rows], float), type=kind))
    bad = np.isin(kind, DISTURBED.get((run, clock), ()) if events == 1 else ())
    return Profile(names, profile.values[~bad], profile.path[~bad], kind[~bad])


def a15_pairs() -> Iterator[list[Profile]]:
    for run in (1, 2):
        for clock in CLOCKS:
            yield [a15_profile(events, run, clock) for events in (1, 2)]


def alias_ratio(combined) -> np.ndarray:
    columns = [combined.values[:, combined.events.index(name)] for name in ALIASES]
    ratio = columns[0] / columns[1]
    return ratio[np.isfinite(ratio)]


def any_pairing(pair: list[Profile]) -> np.ndarray:
    """The best that any one-to-one pairing of slices could do: both series sorted, type by type."""
    left, right = (profile.values[:, profile.events.index(name)] for profile, name in zip(pair, ALIASES))
    ratios = []
    for kind in sorted(set(pair[0].type) & set(pair[1].type)):
        a, b = left[pair[0].type == kind], right[pair[1].type == kind]
        few = min(len(a), len(b))
        ratios.append(np.sort(a[:few]) / np.sort(b[:few]))
    return np.concatenate(ratios)


def ratios() -> tuple[dict[str, np.ndarray], set[str]]:
    """The ratio at every slice for each way of combining, and what BC said."""
    found: dict[str, list[np.ndarray]] = {}
    said: set[str] = set()
    for pair in a15_pairs():
        inner = [without_ends(profile) for profile in pair]
        clustered = combine_bc(inner)
        said.update(note.split(": ", 1)[-1] for note in clustered.notes[2:])
        for name, ratio in {
            "position (LGL)": alias_ratio(combine_lgl(inner)),
            "BC (falls back to position)": alias_ratio(clustered),
            "progress": alias_ratio(without_ends(combine_progress(pair))),
            "bound of any pairing": any_pairing(inner),
        }.items():
            found.setdefault(name, []).append(ratio)
    return {name: np.concatenate(parts) for name, parts in found.items()}, said


def main() -> None:
    found, said = ratios()
    print("| combination | slices | 1 % | 5 % | median | 95 % | 99 % |\n|---|---|---|---|---|---|---|")
    for name, ratio in found.items():
        shown = " | ".join(f"{x:.3f}" for x in np.percentile(ratio, [1, 5, 50, 95, 99]))
        print(f"| {name} | {len(ratio)} | {shown} |")
    print("\nBC says:\n" + "\n".join(f"- {line}" for line in sorted(said)))


if __name__ == "__main__":
    main()
