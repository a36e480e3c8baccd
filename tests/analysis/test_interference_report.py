"""Splits that leak nothing, tables in the thesis's form, and alternatives on slices whose truth is known."""

import numpy as np
import pytest

from pmutop.analysis import interference_report as report


def labelled(seed: int = 0, slices: int = 20) -> report.Slices:
    """Three applications alone and in pairs; suffering shows in the first feature, the application in the second."""
    generator, rows = np.random.default_rng(seed), []
    names, run = ("MM", "PR", "SORT"), 0
    for name in names:
        for scheme, partners in {"base": ("", ""), "shared cores": names, "whole sockets": names}.items():
            for partner in partners:
                factor = generator.choice([1.04, 1.3, 2.0]) if scheme == "shared cores" else 1.0
                for number in range(slices):
                    X = [
                        np.log(factor) + 0.02 * generator.normal(),
                        names.index(name) + generator.normal(),
                        generator.normal(),
                    ]
                    rows.append((X, 1 if factor >= 1.05 else -1, run, name, partner, scheme, factor, number))
                run += 1
    return report.Slices(*(np.array(column) for column in zip(*rows, strict=True)))


def test_odd_slices_train_and_even_ones_test():
    slices = labelled()
    ((train, test),) = report.odd_even(slices)
    assert set(slices.number[train] % 2) == {0} and len(train) + len(test) == len(
        slices.y
    )  # the first is number 0
    assert set(slices.run[train]) == set(slices.run[test])


def test_whole_runs_part_no_run():
    slices = labelled()
    for train, test in report.whole_runs(slices):
        assert not set(slices.run[train]) & set(slices.run[test])


def test_an_unknown_application_is_nowhere_in_training_not_even_as_a_partner():
    slices, seen = labelled(), []
    for train, test in report.unknown_applications(slices):
        (name,) = set(slices.application[test])
        assert name not in set(slices.application[train]) | set(slices.partner[train])
        assert (slices.application == name).sum() == len(test)
        seen.append(name)
    assert seen == ["MM", "PR", "SORT"]


@pytest.mark.parametrize("classifier", report.CLASSIFIERS)
@pytest.mark.parametrize("split", ["whole runs"])
def test_every_classifier_sees_plain_interference(classifier, split):
    slices = labelled()
    rows = report.compare(slices, [classifier], [split])
    assert rows[0]["slices"] == len(slices.y)
    assert rows[0]["auc"] > 0.9
    shuffled = report.Slices(**{**vars(slices), "X": np.random.default_rng(1).permutation(slices.X)})
    assert report.compare(shuffled, [classifier], [split])[0]["auc"] < 0.65  # nothing leaks


def test_a_single_group_is_judged_by_itself():
    plain, noise = report.by_single_groups(labelled(), [(0, 1), (2,)], "whole runs")
    assert plain > 0.8 and noise < 0.65


def test_table_counts_like_the_thesis():
    slices = labelled()
    margin = np.where(
        slices.application == "PR", -1.0, slices.y.astype(float)
    )  # PR is always said to be well
    lines = list(report.table(slices, margin))
    assert lines[0] == "| | base | shared cores | whole sockets | all |"
    suffering = int(((slices.application == "PR") & (slices.y > 0)).sum())
    assert 0 < suffering < 60
    cell = f"{100 * (60 - suffering) / 60:.2f} % ({60 - suffering}/60)"
    assert lines[3] == f"| PR | 100.00 % (40/40) | {cell} | 100.00 % (60/60) | " + (
        f"{100 * (160 - suffering) / 160:.2f} % ({160 - suffering}/160) |"
    )
    assert lines[-1].startswith("| all |")


def test_bands_are_told_from_running_alone():
    slices = labelled(3)
    bands = report.area_by_band(slices, slices.X[:, 0])
    counts = {low: count for low, _, count, _ in bands}
    assert counts[1.02] == (slices.factor == 1.04).sum() and counts[1.2] == (slices.factor == 1.3).sum()
    assert all(0.85 < found <= 1 for _, _, count, found in bands if count)
    assert all(np.isnan(found) for _, _, count, found in bands if not count)


def test_errors_of_the_factor_leave_abstentions_out():
    median, high = report.factor_errors(np.array([1.1, np.nan, 2.0, 2.0]), np.array([1.0, 9.0, 2.0, 1.0]))
    assert (median, high) == (pytest.approx(0.1), pytest.approx(np.percentile([0.1, 0.0, 1.0], 95)))
