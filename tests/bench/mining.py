"""The figures of the data miner on recorded real counters, as markdown: `python tests/bench/mining.py [TABLE...]`.

Tables: hiding faults causal rules eir many live figure6 figure7 figure8 (all of them without an argument). --jobs N spreads
the models over N processes; the numbers do not depend on it.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from moments import World
from recorded import a15, cloudsuite

from pmutop.analysis import importance, physics
from pmutop.analysis.alignment import multiplexing_error
from pmutop.analysis.cleaning import IMPOSSIBLE, KEPT, OUTLIER, CausalCleaner, clean, nearest_in_time
from pmutop.events import PROC_EVENTS, generic
from pmutop.moment import ESTIMATED, EXACT
from pmutop.pipeline.clean import Scrutiny
from pmutop.pipeline.rank_worker import Worker
from pmutop.pipeline.ranking import Ranker

PAIRS_VISIBLE = 2
CLOUD_RULES = ("branches", "LLC-load-misses", "instructions")


def key_of(table):
    """(event list, run, clock, program) of one a15 series."""
    events, run, clock = table.run[0].split("-")
    return events, run, clock, str(table.label[0])


def series():
    """a15 without the first and last slice of each program, by key."""
    return {key_of(table): table for table in a15()}


def trimmed(table):
    return table.values[1:-1]


def donor_of(key, every):
    """The other run of the same program at the same clock; at another clock where that one was disturbed."""
    events, run, clock, program = key
    other = (events, "run2" if run == "run1" else "run1", clock, program)
    return other if other in every else (events, run, "1400000" if clock == "1800000" else "1800000", program)


def hidden(values, phase, at_once=PAIRS_VISIBLE):
    """The values with `at_once` of the programmable events visible in turn; the cycles (first column) always."""
    out = np.full(values.shape, np.nan)
    out[:, 0] = values[:, 0]
    turns = -(-(values.shape[1] - 1) // at_once)
    for row in range(len(values)):
        first = 1 + at_once * ((row + phase) % turns)
        out[row, first : first + at_once] = values[row, first : first + at_once]
    return out


def straight_line(values):
    out = np.array(values)
    for column in out.T:
        holes = np.isnan(column)
        if holes.any():
            column[holes] = np.interp(np.flatnonzero(holes), np.flatnonzero(~holes), column[~holes])
    return out


def paper_knn(values):
    out = np.array(values)
    for column in out.T:
        holes = np.isnan(column)
        if holes.any():
            column[holes] = nearest_in_time(column, holes)
    return out


def hiding():
    every = series()
    ways = {
        "straight line": lambda v, key: straight_line(v),
        "five nearest in time (paper)": lambda v, key: paper_knn(v),
        "robust, no donor": lambda v, key: clean(v, every[key].events).values,
        "same position in the other run": lambda v, key: at_same_position(
            v, trimmed(every[donor_of(key, every)])
        ),
        "robust, other run as donor": lambda v, key: (
            clean(v, every[key].events, [trimmed(every[donor_of(key, every)])]).values
        ),
    }
    wrong, total, mape = {}, {}, {}
    for key, table in every.items():
        truth = trimmed(table)
        for phase in range(3):
            seen = hidden(truth, phase)
            for way, fill in ways.items():
                estimate = fill(seen, key)
                for at, event in enumerate(table.events[1:], 1):
                    hole = np.isnan(seen[:, at])
                    off = np.abs(estimate[hole, at] - truth[hole, at])
                    wrong[way, event] = wrong.get((way, event), 0) + off.sum()
                    total[event, way] = total.get((event, way), 0) + truth[hole, at].sum()
                    mape.setdefault(way, []).append(np.mean(off / np.maximum(truth[hole, at], 1)))
    events = list(dict.fromkeys(event for _, event in wrong))
    print(
        "| filled by | WAPE against the straight line: mean | worst event | WAPE | MAPE |\n|---|---|---|---|---|"
    )
    for way in ways:
        ratios = {event: wrong[way, event] / wrong["straight line", event] for event in events}
        worst = max(ratios, key=ratios.get)
        wape = np.mean([wrong[way, event] / total[event, way] for event in events])
        print(f"| {way} | {np.mean(list(ratios.values())):.3f} | {ratios[worst]:.3f} {worst} | {wape:.1%} "
              f"| {np.mean(mape[way]):.1%} |")  # fmt: skip


def at_same_position(values, donor):
    rows = np.linspace(0, len(donor) - 1, len(values)).round().astype(int)
    rates = donor[rows] / donor[rows, :1] * values[:, :1]
    return np.where(np.isnan(values), rates, values)


def faults(seeds=range(10, 15)):
    every = series()
    print(
        "| donors | outliers found | zeros found | precision | clean values touched |\n|---|---|---|---|---|"
    )
    for name, pick in (("other run, clean", 0), ("other run, as faulty", 1), ("none", 2)):
        counts = np.zeros(7)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            injected = {key: inject(trimmed(table), rng) for key, table in every.items()}
            for key, (values, outlier, zero) in injected.items():
                other = donor_of(key, every)
                donors = ([trimmed(every[other])], [injected[other][0]], [])[pick]
                flagged = clean(values, every[key].events, donors, zeros_counted=False).quality != KEPT
                bad = outlier | zero
                counts += [(flagged & outlier).sum(), outlier.sum(), (flagged & zero).sum(), zero.sum(),
                           (flagged & bad).sum(), flagged.sum(), (~bad).sum()]  # fmt: skip
        found, outliers, zeros_found, zeros, right, flagged, clean_ones = counts
        print(f"| {name} | {found / outliers:.3f} | {zeros_found / zeros:.3f} | {right / flagged:.3f} "
              f"| {(flagged - right) / clean_ones:.2%} |")  # fmt: skip


def inject(values, rng, zeros=True):
    values, draw = np.array(values), rng.random(values.shape)
    outlier, zero = draw < 0.02, (draw >= 0.02) & (draw < 0.04) & zeros
    values[outlier] *= rng.uniform(2, 6, outlier.sum())
    values[zero] = 0
    return values, outlier, zero


def causal(seeds=range(10, 15)):
    """The live cleaner, slice by slice: the same faults (zeros are no faults live), and what it costs."""
    every = series()
    found = outliers = right = flagged = clean_ones = untouched_flagged = untouched = 0
    for key, table in every.items():
        plain = trimmed(table)
        untouched_flagged += sum((q == OUTLIER).sum() for q in streamed(plain, table.events))
        untouched += plain.size
        for seed in seeds:
            values, bad, _ = inject(
                plain, np.random.default_rng([seed, *map(ord, "".join(key))]), zeros=False
            )
            marked = np.vstack(list(streamed(values, table.events))) == OUTLIER
            found, outliers = found + (marked & bad).sum(), outliers + bad.sum()
            right, flagged, clean_ones = (
                right + (marked & bad).sum(),
                flagged + marked.sum(),
                clean_ones + (~bad).sum(),
            )
    print(
        "| outliers found | precision | clean values touched | of values without any fault |\n|---|---|---|---|"
    )
    print(f"| {found / outliers:.3f} | {right / flagged:.3f} | {(flagged - right) / clean_ones:.2%} "
          f"| {untouched_flagged / untouched:.2%} |\n")  # fmt: skip
    for what, running in (("all multiplexed", 0.5), ("nothing multiplexed", 1.0)):
        for rows in (1000, 5000):
            spent = scrutiny_cost(rows, running)
            print(
                f"{rows} tasks of 12 hardware events, all of which moved, {what}: {np.median(spent) * 1e3:.2f} ms a slice"
            )


def streamed(values, events):
    """The quality (1, events) of each slice as it comes."""
    cleaner = CausalCleaner(1, events)
    for row in values:
        yield cleaner.clean(row[None], fill=False).quality


def scrutiny_cost(rows, running, slices=15):
    """Seconds that Scrutiny.look takes a slice."""
    events = (*PROC_EVENTS, *(generic(name) for name in TWELVE))
    rng, looker, slots, spent = np.random.default_rng(0), Scrutiny(events), np.arange(rows), []
    scale = np.array([10.0] * len(PROC_EVENTS) + [1e6, 2e6, 4e5, 1e4, 1e5, 1e4, 6e5, 1e4, 1e5, 1e4, 6e5, 1e4])
    for _ in range(slices):
        value = scale * np.exp(rng.normal(0, 0.1, (rows, len(events))))
        quality = np.full(value.shape, EXACT, np.uint8)
        if running < 1:
            quality[:, len(PROC_EVENTS) :] = ESTIMATED
        start = time.perf_counter()
        looker.look(slots, value, quality)
        spent.append(time.perf_counter() - start)
    return spent[-8:]


TWELVE = ("cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses", "L1-dcache-loads",
          "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses", "dTLB-loads", "dTLB-load-misses")  # fmt: skip


def rules():
    withheld = [rule for rule in physics.RULES if rule.part != "LLC-store-misses"]
    gated = [rule for rule in withheld if rule.part in CLOUD_RULES]
    n = before = after = kept_out = kept_in = changed = by_rule = most = over_two = 0
    for table in cloudsuite("INTEL"):
        out = clean(table.values, table.events, width=4, rules=withheld)
        bad = physics.broken(table.values, table.events, 4, gated).any(1)
        after += physics.broken(out.values, table.events, 4, gated).any(1).sum()
        n, before = n + len(bad), before + bad.sum()
        each = (out.quality[bad] != KEPT).sum(1)
        by_rule = max(by_rule, (out.quality[bad] == IMPOSSIBLE).sum(1).max(initial=0))
        changed, most, over_two = (
            changed + each.sum(),
            max(most, each.max(initial=0)),
            over_two + (each > 2).sum(),
        )
        part, whole = table.events.index("LLC-store-misses"), table.events.index("LLC-stores")
        kept_in += (table.values[:, part] > table.values[:, whole]).sum()
        kept_out += (out.values[:, part] > out.values[:, whole]).sum()
    print("| | before | after |\n|---|---|---|")
    print(f"| slices that break a rule | {before / n:.2%} | {after / n:.2%} |")
    print(f"| LLC-store-misses > LLC-stores (rule withheld) | {kept_in / n:.3%} | {kept_out / n:.3%} |")
    print(f"\nValues replaced in a slice that breaks a rule: {changed / before:.2f} on average, {most} at most "
          f"({over_two} of {before} slices more than 2); by the rules alone {by_rule} at most.")  # fmt: skip


def together(every, run, program):
    """The two event lists of one run side by side, by position, all clocks: inputs by name, IPC, and clock."""
    blocks, ipcs = [], []
    for clock in ("1000000", "1400000", "1800000"):
        first, second = (every.get((events, run, clock, program)) for events in ("list1", "list2"))
        if first is None:
            continue
        rows = min(len(first), len(second)) - 2
        a, b = trimmed(first)[:rows], trimmed(second)[:rows]
        ipcs.append(a[:, first.events.index("INST_RETIRED")] / a[:, 0])
        keep = [at for at, name in enumerate(first.events) if name not in ("CPU_CYCLES", "INST_RETIRED")]
        blocks.append(np.hstack([a[:, keep] / a[:, :1], b[:, 1:] / b[:, :1]]))
        names = [first.events[at] for at in keep] + list(second.events[1:])
    return np.vstack(blocks), np.concatenate(ipcs), tuple(names)


def refine(train, test, names, seed, drop=None):
    """One refinement, learnt on one run and judged on the other: (MAPM's error, median's error, curve)."""
    inputs = np.vstack([train[0], test[0]])
    runs = np.repeat(["train", "unseen"], [len(train[0]), len(test[0])])
    target = np.concatenate([train[1], test[1]])
    found = importance.rank(inputs, target, names, runs, drop, seed=seed, unseen="unseen")
    return found.best.error, found.baseline, [(len(r.events), r.error) for r in found.rounds]


def eir_of(program, every, per, seeds):
    """Errors of three seeds' refinements in both directions, importance averaged over all `seeds`."""
    data = {run: scaled(*together(every, run, program), per) for run in ("run1", "run2")}
    names = data["run1"][2]
    results = [refine(data[a][:2], data[b][:2], names, seed) for a, b in (("run1", "run2"), ("run2", "run1"))
               for seed in seeds[:3]]  # fmt: skip
    tops = []
    for run in data:
        mean = importance.averaged(*data[run][:2], names, seeds=seeds)
        tops.append([names[at] for at in np.argsort(-mean)[:3]])
    return np.mean([r[0] for r in results]), np.mean([r[1] for r in results]), tops, [r[2] for r in results]


def scaled(inputs, ipc, names, per):
    return (inputs / ipc[:, None] if per == "instruction" else inputs), ipc, names


def eir(seeds=range(10), jobs=2):
    from joblib import Parallel, delayed

    every = series()
    programs = list(dict.fromkeys(key[3] for key in every))
    for per in ("instruction", "cycle"):
        rows = Parallel(n_jobs=jobs)(delayed(eir_of)(program, every, per, seeds) for program in programs)
        print(
            f"\nInputs per {per}:\n\n| program | error (eq. 14) | of a median model | top three, run 1 | run 2 |"
        )
        print("|---|---|---|---|---|")
        for program, (error, baseline, tops, _) in zip(programs, rows, strict=True):
            print(
                f"| {program} | {error:.1%} | {baseline:.1%} | {', '.join(tops[0])} | {', '.join(tops[1])} |"
            )
        print(f"\nAt most 6.3 %: {sum(r[0] <= 0.063 for r in rows)} of 9. At most half of the median model: "
              f"{sum(r[0] <= r[1] / 2 for r in rows)} of 9. Same top event: {sum(r[2][0][0] == r[2][1][0] for r in rows)}"
              f" of 9. Two of the top three: {sum(len(set(r[2][0]) & set(r[2][1])) >= 2 for r in rows)} of 9.")  # fmt: skip
        yield per, programs, rows


def many():
    inputs, target, names = synthetic(6000, 229)
    start, began = time.process_time(), time.perf_counter()
    found = importance.rank(inputs, target, names)
    spent, wall = time.process_time() - start, time.perf_counter() - began
    print(f"229 events x 6000 slices, EIR of {len(found.rounds)} models: {spent:.1f} s of CPU, {wall:.1f} s on the clock; MAPM of "
          f"{len(found.best.events)} events, error {found.best.error:.2%} (median model {found.baseline:.2%})")  # fmt: skip


def synthetic(rows, events, seed=0):
    """Correlated counts of which nine drive the IPC; only for timing."""
    rng = np.random.default_rng(seed)
    hidden_causes = rng.normal(0, 1, (rows, 12)).cumsum(axis=0) / 30
    inputs = np.exp(hidden_causes @ rng.normal(0, 1, (12, events)) / 4 + rng.normal(0, 0.3, (rows, events)))
    target = 1 / (0.4 + inputs[:, :9] @ rng.uniform(0.02, 0.3, 9))
    return inputs, target, tuple(f"event{at}" for at in range(events))


def live():
    inputs, target, names = synthetic(150, 40)
    importance.live(inputs, target, names)
    spent = []
    for seed in range(10):
        start = time.process_time()
        importance.live(inputs, target, names, seed=seed)
        spent.append(time.process_time() - start)
    print(
        f"One process, 40 events x 150 slices: {np.median(spent):.2f} s of CPU (worst of ten {max(spent):.2f})"
    )
    worker, spent = Worker(), []
    for _ in range(11):
        worker.give(inputs, target)
        while worker.take() is None:
            worker.wait(1.0)
        spent.append(cpu_of(worker.process.pid))
    print(f"The worker itself (nice 19): {spent[0]:.2f} s of CPU until its first answer, imports and all, then "
          f"{(spent[-1] - spent[0]) / 10:.2f} s for each; {memory_of(worker.process.pid):.0f} MB resident")  # fmt: skip
    worker.close()
    for rows in (200, 1000, 5000):
        world = World(rows, ipc=True)
        moments, ranker, spent = [world.moment(number) for number in range(1, 80)], Ranker(world.header), []
        for moment in moments:
            start = time.perf_counter()
            ranker.moment(moment)
            spent.append(time.perf_counter() - start)
        print(f"What a slice of {rows} rows costs the asking side: {np.median(spent) * 1e6:.0f} us")


def cpu_of(pid):
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    """Resident megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def figure6(at_once=PAIRS_VISIBLE, heading=True):
    """Equation 4 and WAPE per program, before (straight line) and after cleaning, by hiding."""
    every = series()
    if heading:
        print("| program | eq. 4 raw | eq. 4 cleaned | WAPE raw | WAPE cleaned |\n|---|---|---|---|---|")
    errors = {}
    for key, table in every.items():
        truth, other = trimmed(table), trimmed(every[donor_of(key, every)])
        seen = hidden(truth, 0, at_once)
        for way, estimate in (
            ("raw", straight_line(seen)),
            ("cleaned", clean(seen, table.events, [other]).values),
        ):
            for at in range(1, truth.shape[1]):
                hole = np.isnan(seen[:, at])
                wape = np.abs(estimate[hole, at] - truth[hole, at]).sum() / max(truth[hole, at].sum(), 1)
                fourth = multiplexing_error(estimate[:, at], truth[:, at], other[:, at])
                errors.setdefault((key[3], way), []).append((fourth, wape))
    programs = sorted({program for program, _ in errors})
    means = {each: np.nanmean(values, axis=0) for each, values in errors.items()}
    for program in programs if heading else []:
        raw, cleaned = means[program, "raw"], means[program, "cleaned"]
        print(f"| {program} | {raw[0]:.0%} | {cleaned[0]:.0%} | {raw[1]:.1%} | {cleaned[1]:.1%} |")
    return [np.mean([means[p, way] for p in programs], axis=0) for way in ("raw", "cleaned")]


def figure7():
    """Figure 6's averages with one, two or three programmable events counted at once, so that 6 to 2 turns are taken."""
    print(
        "| counters for 6 events | events per counter | eq. 4 raw | eq. 4 cleaned | WAPE raw | WAPE cleaned |"
    )
    print("|---|---|---|---|---|---|")
    for at_once in (3, 2, 1):
        raw, cleaned = figure6(at_once, heading=False)
        print(
            f"| {at_once} | {6 // at_once} | {raw[0]:.0%} | {cleaned[0]:.0%} | {raw[1]:.1%} | {cleaned[1]:.1%} |"
        )


def figure8(curves=None, jobs=2):
    """The error as events are dropped: a15 (learnt on one run, judged on the other), cloudsuite (a quarter in blocks)."""
    from joblib import Parallel, delayed

    print("| machine | events: error |\n|---|---|")
    for per, _, rows in curves or []:
        by_count = {}
        for row in rows:
            for curve in row[3]:
                for count, error in curve:
                    by_count.setdefault(count, []).append(error)
        print(
            f"| a15, per {per} | "
            + ", ".join(f"{n}: {np.mean(e):.1%}" for n, e in sorted(by_count.items(), reverse=True))
            + " |"
        )
    for machine in ("AMD", "INTEL"):
        tables = cloudsuite(machine)
        found = Parallel(n_jobs=jobs)(delayed(cloud_curve)(table) for table in tables)
        counts = [n for n, _ in found[0]]
        mean = {n: np.mean([dict(curve)[n] for curve in found]) for n in counts}
        print(
            f"| {tables[0].run[0]}, 8 services | "
            + ", ".join(f"{n}: {e:.1%}" for n, e in mean.items())
            + " |"
        )


def cloud_curve(table):
    values = clean(table.values, table.events, width=4).values
    instructions, cycles = (table.events.index(name) for name in ("instructions", "cpu-cycles"))
    others = [at for at in range(len(table.events)) if at not in (instructions, cycles)]
    inputs = values[:, others] / np.maximum(values[:, [cycles]], 1)
    ipc = values[:, instructions] / np.maximum(values[:, cycles], 1)
    found = importance.rank(inputs, ipc, [table.events[at] for at in others])
    return [(len(r.events), r.error) for r in found.rounds]


TABLES = ("hiding", "faults", "causal", "rules", "eir", "many", "live", "figure6", "figure7", "figure8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    curves = []
    for name in options.tables or TABLES:
        print(f"\n## {name}\n", flush=True)
        if name == "eir":
            curves = list(eir(jobs=options.jobs))
        elif name == "figure8":
            figure8(curves, options.jobs)
        else:
            globals()[name]()


if __name__ == "__main__":
    main()
