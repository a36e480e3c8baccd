"""The victim's factor from its own progress: known slow-downs, and whatever must not look like one."""

import numpy as np
import pytest

from pmutop.analysis.pace import RING, Pace

SLICE = 0.4


def story(factors, rate=5000.0, noise=0.01, cpu=0.4, mixes=None, seed=0):
    """Slices in which one process is slowed by `factors`; yields (factor, limit) as judged."""
    generator, pace = np.random.default_rng(seed), Pace()
    for number, slower in enumerate(factors):
        events = np.floor(rate * cpu / slower * generator.lognormal(0, noise))
        mix = np.array([[0.1 if mixes is None else mixes[number]]])
        factor, limit = pace.update(np.array([7]), SLICE, np.array([cpu]), np.array([events]), mix)
        yield float(factor[0]), float(limit[0])


def slowed(found):
    return [bool(factor >= limit) for factor, limit in found]


def test_the_factor_is_the_true_one_and_yes_in_nearly_every_slice():
    pattern = [1.0] * 20 + [1.2] * 50 + [1.0] * 20 + [10.0] * 200
    found = list(story(pattern))
    verdict = slowed(found)
    assert not any(verdict[:20]) and not any(verdict[70:90])
    assert np.mean(verdict[20:70]) >= 0.95 and all(verdict[90:])
    assert np.median([factor for factor, _ in found[20:70]]) == pytest.approx(1.2, rel=0.02)
    assert np.median([factor for factor, _ in found[90:]]) == pytest.approx(10.0, rel=0.05)


def test_a_baseline_is_not_forgotten_however_long_the_suffering():
    assert all(slowed(story([1.0] * 5 + [1.5] * (10 * RING)))[5:])


def test_noise_alone_is_no_slow_down():
    assert np.mean(slowed(story([1.0] * 2000, noise=0.05, seed=3))) < 0.01


def test_who_is_slowed_when_first_seen_is_told_once_it_has_run_freely():
    verdict = slowed(story([2.0] * 10 + [1.0] * 5 + [2.0] * 10))
    assert not any(verdict[:15]) and all(verdict[15:])


def test_a_start_of_both_kinds_is_sorted_out_by_the_free_slices():
    """As measured on the development machine: a chase through 8 MB, the stream beside it 2 s on and 2 s off."""
    pattern = ([6.5] * 3 + [3.4] + [1.0] * 5) + ([6.5] * 5 + [1.0] * 5) * 4
    verdict = slowed(story(pattern, noise=0.04))
    assert not any(yes for yes, factor in zip(verdict, pattern, strict=True) if factor == 1)
    assert all(yes for yes, factor in zip(verdict[9:], pattern[9:], strict=True) if factor > 1)


def test_one_lucky_slice_is_no_baseline():
    assert not any(slowed(story([1.0] * 10 + [0.5] + [1.0] * 10)))


def test_too_few_events_or_too_little_cpu_say_nothing():
    assert all(np.isnan(factor) for factor, _ in story([1.0] * 20, rate=20))
    assert all(np.isnan(factor) for factor, _ in story([1.0] * 20, cpu=0.01, rate=1e6))


def test_no_progress_at_all_is_the_worst_slow_down():
    factor, limit = list(story([1.0] * 5 + [1e9]))[-1]
    assert factor > 1000 and factor > limit


def test_gate_another_kind_of_work_begins_a_baseline_of_its_own():
    pattern = [1.0] * 20 + [2.0] * 20
    assert all(slowed(story(pattern))[20:])  # without the gate's input: blamed
    assert not any(slowed(story(pattern, mixes=[0.1] * 20 + [3.1] * 20)))


def test_the_dead_are_forgotten():
    pace = Pace()
    for number in range(2 * Pace.FORGET):
        one = np.array([1.0])
        pace.update(np.array([number]), SLICE, 0.4 * one, 1000 * one, one[None])
    assert len(pace.known) <= Pace.FORGET
