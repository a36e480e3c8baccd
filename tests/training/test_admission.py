"""Which pathologies are slow enough here to be learnt: the admission rule on rates that are known."""

import os
import shutil
from dataclasses import replace

import pytest

from pmutop.training import admission, catalogue
from pmutop.training.catalogue import Workload

CPUS = tuple(sorted(os.sched_getaffinity(0)))


def made_up(monkeypatch, rates):
    """admit() on rates that are handed out in turn instead of measured."""
    P = Workload("x-P", "P_OS_Fork", "P_OS_Fork", "x", "x", twin="x-N")
    N = Workload("x-N", "N_OS", "N_OS", "x", "x", variant="N")
    monkeypatch.setattr(
        admission, "rate_of_work", lambda workload, seconds, cpus: rates[workload.name].pop(0)
    )
    return P, N


def test_admission_is_the_ratio_of_the_best_rates(monkeypatch):
    pair = made_up(monkeypatch, {"x-P": [10.0, 8.0, 12.0], "x-N": [20.0, 5.0, 24.0]})
    (found,) = admission.admit([pair], repeats=3)
    assert (found.rate, found.twin_rate, found.factor) == (12, 24, 2)
    assert (found.low, found.high) == (5 / 12, 24 / 8)
    assert found.admitted


@pytest.mark.parametrize(("twin", "label", "measured"), [
    (2.0, "P_OS_Fork", 1),  # clearly slower
    (0.8, "P_OS_Fork", 1),  # clearly not
    (1.9, "P_OS_Fork", 3),
    (0.9, "P_OS_Fork", 3),
    (1.3, "N_OS", 3),
])  # fmt: skip
def test_in_a_hurry_what_is_clear_is_not_repeated(monkeypatch, twin, label, measured):
    rates = {"x-P": [1.0] * 3, "x-N": [twin] * 3}
    P, N = made_up(monkeypatch, rates)
    admission.admit([(replace(P, label=label), N)], repeats=3, hurried=True)
    assert 3 - len(rates["x-N"]) == measured


@pytest.mark.parametrize(("twin", "label", "admitted"), [
    (1.31, "P_OS_Fork", True),
    (1.29, "P_OS_Fork", False),
    (1.14, "N_OS", True),  # a mild variant is healthy while it costs little
    (1.16, "N_OS", False),
])  # fmt: skip
def test_the_bounds_of_admission(monkeypatch, twin, label, admitted):
    P, N = made_up(monkeypatch, {"x-P": [1.0], "x-N": [twin]})
    (found,) = admission.admit([(replace(P, label=label), N)], repeats=1)
    assert found.admitted is admitted


def test_what_cannot_run_is_not_admitted_and_says_why():
    row = next(pair for pair in admission.pairs(catalogue.software()) if "two-cpus" in pair[0].needs)
    (found,) = admission.admit([row], cpus=CPUS[:1])
    assert not found.admitted
    assert found.refused == "needs two CPUs"
    assert "not measured: needs two CPUs" in admission.report([found])


@pytest.mark.skipif(
    not shutil.which("gcc"), reason="gcc is not installed: the training programs cannot be built"
)
def test_four_on_one_cpu_are_slower_than_one():
    pair = next(
        pair
        for pair in admission.pairs(catalogue.software())
        if pair[0].program == "os_runqueue" and "4" in pair[0].arguments
    )
    (found,) = admission.admit([pair], repeats=1, seconds=0.3)
    assert found.admitted
    assert "| admitted |" in admission.report([found])
