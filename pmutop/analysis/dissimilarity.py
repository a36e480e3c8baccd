"""How far a merged profile is from runs that counted everything at once: TMD, EPD and correlation error.

Source: Neill, Drebes and Pop, "Fuse", section 4. Task Mover's Distance: the earth mover's distance between the
histograms of tasks over some events. Execution Profile Dissimilarity: the geometric mean of the calibrated TMD over
all pairs of events; 1 = as alike as two reference runs are. Correlation Error after Mytkowicz et al. (section 4.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pmutop._transport import least_work
from pmutop.errors import BadInput

BINS = 10  # over the references' range; two more for what lies below and above


@dataclass(frozen=True)
class Dissimilarity:
    """The outcome of `epd`.

    epd          geometric mean of `tmd`
    pairs        the pairs of events it is the mean over, (pairs,) of (name, name)
    tmd          float64 (pairs,), calibrated
    calibration  float64 (pairs,), the median uncalibrated TMD between two reference runs, one task by one bin at least
    left_out     why the other pairs say nothing, one line per reason and event or pair
    """

    epd: float
    pairs: tuple[tuple[str, str], ...]
    tmd: np.ndarray
    calibration: np.ndarray
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Binned:
    """Tasks on the scale of the references: `position` float64 (tasks, events) in bins from the lowest reference value,
    `bin` int64 (tasks, events) from 0 (below the range) to bins + 1 (above)."""

    position: np.ndarray
    bin: np.ndarray


def binned(values: np.ndarray, low: np.ndarray, high: np.ndarray, bins: int = BINS) -> Binned:
    """Place tasks (tasks, events) on the references' scale from `low` to `high` (events,), "Fuse" 4.3.

    An event whose references are all equal has no scale of its own: one count is one bin there.
    """
    width = np.where(high > low, (high - low) / bins, 1.0)
    position = (np.asarray(values, float) - low) / width
    inside = np.clip(np.floor(position), 0, bins - 1)
    place = np.where(values < low, 0, np.where(values > high, bins + 1, inside + 1))
    return Binned(position, place.astype(np.int64))


Histogram = tuple[np.ndarray, np.ndarray]  # of the bins that hold tasks: how many; the centroid


def movers_distance(a: Histogram, b: Histogram) -> float:
    """Uncalibrated TMD of two `histogram`s: the mean number of bins by which tasks must move.

    A bin's weight is its share of the tasks, its place the centroid of the tasks in it; distance is Euclidean.
    """
    (mass_a, place_a), (mass_b, place_b) = a, b
    cost = np.sqrt(((place_a[:, None, :] - place_b[None, :, :]) ** 2).sum(axis=2))
    total_a, total_b = int(mass_a.sum()), int(mass_b.sum())
    return least_work(mass_a * total_b, mass_b * total_a, cost) / (total_a * total_b)


def histogram(tasks: Binned, events: Sequence[int], bins: int = BINS) -> Histogram:
    """The bins that hold tasks: how many, int64 (bins,), and the centroid, float64 (bins, events)."""
    index = np.zeros(len(tasks.bin), np.int64)
    for event in events:
        index = index * (bins + 2) + tasks.bin[:, event]
    if (bins + 2) ** len(events) > 4 * len(index) + 10_000:  # many events: number only the bins that occur
        index = np.unique(index, return_inverse=True)[1]
    mass = np.bincount(index)
    used = np.flatnonzero(mass)
    sums = [np.bincount(index, tasks.position[:, event])[used] for event in events]
    return mass[used], np.column_stack(sums) / mass[used][:, None]


def tmd(
    target: np.ndarray, references: Sequence[np.ndarray], bins: int = BINS, calibrated: bool = True
) -> float:
    """Task Mover's Distance of `target` (tasks, events) from repeated reference runs (tasks, events) each.

    The median over the references; calibrated = over the median between every two references, so 1 is what another
    reference run would get (NaN where the references are all alike). Missing counts are not allowed here (BadInput).
    """
    everything = np.concatenate(list(references))
    if not np.isfinite(target).all() or not np.isfinite(everything).all():
        raise BadInput("a count is missing", "leave out tasks or events that were not counted")
    low, high = everything.min(axis=0), everything.max(axis=0)
    events = range(everything.shape[1])
    placed = [histogram(binned(reference, low, high, bins), events, bins) for reference in references]
    goal = histogram(binned(target, low, high, bins), events, bins)
    distance = float(np.median([movers_distance(goal, reference) for reference in placed]))
    if not calibrated:
        return distance
    scale = calibration(placed)
    return distance / scale if scale > 0 else float("nan")


def calibration(references: Sequence[Histogram]) -> float:
    """The median uncalibrated TMD between every two reference runs."""
    if len(references) < 2:
        raise BadInput(
            "one reference run cannot tell how much runs differ by themselves", "give at least two"
        )
    return float(np.median([movers_distance(a, b) for a, b in combinations(references, 2)]))


def epd(
    events: Sequence[str],
    target: np.ndarray,
    references: Sequence[np.ndarray],
    bins: int = BINS,
    jobs: int = 1,
) -> Dissimilarity:
    """Execution Profile Dissimilarity of `target` (tasks, events) from reference runs (tasks, events), same columns.

    A reference serves for a pair with those of its tasks that have both counts, so references that counted two events
    each (the paper's) and references that counted all at once both do; so does the target. A pair says nothing, and is
    left out with the reason, where fewer than two references have it, or where one of its events never changes in the
    references.

    Unlike hardware events, software events can repeat to the last count, so that distances are 0 on both sides. Less
    than one task moved by one bin is therefore taken for that: `tmd` is 1 where target and references repeat alike.

    `jobs` threads share the pairs (the solver holds no lock).
    """
    numbers = list(range(len(events)))
    present = [np.isfinite(profile) for profile in (target, *references)]
    low, high = np.full(len(events), np.nan), np.full(len(events), np.nan)
    for event in numbers:
        known = np.concatenate([values[has[:, event], event] for values, has in zip(references, present[1:])])
        if len(known):
            low[event], high[event] = known.min(), known.max()
    still = low == high
    left_out = [
        f"{events[event]}: always {low[event]:g} in the references" for event in numbers if still[event]
    ]
    left_out += [f"{events[event]}: in no reference" for event in numbers if np.isnan(low[event])]
    reach = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 1.0, high)
    placed = [binned(np.nan_to_num(profile), *reach, bins) for profile in (target, *references)]

    def on_pair(profile: int, pair: tuple[int, int]) -> Histogram | None:
        """The histogram of the tasks that have both counts; None without any."""
        both = present[profile][:, pair[0]] & present[profile][:, pair[1]]
        if not both.any():
            return None
        tasks = placed[profile]
        return histogram(tasks if both.all() else Binned(tasks.position[both], tasks.bin[both]), pair, bins)

    def judge(pair: tuple[int, int]) -> tuple[float, float] | str:
        judged = on_pair(0, pair)
        serving = [found for at in range(1, len(placed)) if (found := on_pair(at, pair)) is not None]
        if judged is None:
            return "no task has both"
        if len(serving) < 2:
            return "fewer than two references have both"
        least = 1.0 / min(int(mass.sum()) for mass, _ in (judged, *serving))
        scale = max(calibration(serving), least)
        distance = float(np.median([movers_distance(judged, reference) for reference in serving]))
        return max(distance, least) / scale, scale

    # A never-changing event has no scale, and a share of bins of width 1 would drown the other event of the pair.
    pairs = [
        pair
        for pair in combinations(numbers, 2)
        if not still[list(pair)].any() and not np.isnan(low[list(pair)]).any()
    ]
    from joblib import Parallel, delayed

    outcomes = Parallel(n_jobs=jobs, prefer="threads")(delayed(judge)(pair) for pair in pairs)
    good = [(pair, outcome) for pair, outcome in zip(pairs, outcomes) if not isinstance(outcome, str)]
    left_out += [
        f"{events[a]} x {events[b]}: {outcome}"
        for (a, b), outcome in zip(pairs, outcomes)
        if isinstance(outcome, str)
    ]
    distances = np.array([outcome[0] for _, outcome in good])
    mean = float(np.exp(np.log(distances).mean())) if good else float("nan")
    return Dissimilarity(
        mean,
        tuple((events[a], events[b]) for (a, b), _ in good),
        distances,
        np.array([outcome[1] for _, outcome in good]),
        tuple(left_out),
    )


def correlation_error(target: np.ndarray, references: Sequence[np.ndarray]) -> float:
    """Area between the cumulative curve of |difference in Spearman's coefficient| over all pairs of events and the
    ideal one (all differences 0), 0 to 2 ("Fuse", 4.4). Columns as in `epd`.

    The reference coefficient of a pair is the median over the references. Pairs without a coefficient on either side
    (an event that never changes, or was not counted) are left out; NaN if that is all of them.
    """
    observed = spearman(complete(target))
    known = np.array([spearman(complete(reference)) for reference in references])
    missing = np.isnan(known).all(axis=0)
    expected = np.where(missing, np.nan, np.nanmedian(np.where(missing, 0.0, known), axis=0))
    upper = np.triu_indices(len(observed), 1)
    difference = np.abs(observed - expected)[upper]
    difference = np.sort(difference[np.isfinite(difference)])
    if not len(difference):
        return float("nan")
    # Between two neighbouring differences the curve stands at k / n, the ideal one at 1 from 0 on.
    heights = 1.0 - np.arange(len(difference)) / len(difference)
    return float((np.diff(difference, prepend=0.0) * heights).sum())


def complete(values: np.ndarray) -> np.ndarray:
    """The tasks that lack no count of the events that their run counted at all."""
    finite = np.isfinite(values)
    return values[finite[:, finite.any(axis=0)].all(axis=1)]


def spearman(values: np.ndarray) -> np.ndarray:
    """Spearman's coefficient of every two columns of (tasks, events), ties sharing their mean rank; NaN where a column
    never changes or has a missing count."""
    from scipy.stats import rankdata

    whole = np.isfinite(values).all(axis=0)
    ranks = rankdata(np.where(whole, values, 0.0), axis=0)
    ranks -= ranks.mean(axis=0)
    norm = np.sqrt((ranks**2).sum(axis=0))
    norm[(norm == 0) | ~whole] = np.nan
    return (ranks.T @ ranks) / np.outer(norm, norm)
