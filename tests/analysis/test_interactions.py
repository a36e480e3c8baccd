"""Equations 12 and 13 on functions whose interactions are known."""

import numpy as np
import pytest

from pmutop.analysis.interactions import interactions, numbered, residual, with_settings

INPUTS = np.random.default_rng(0).normal(5, 1, (300, 4))
NAMES = ["a", "b", "c", "page size"]


def test_a_sum_has_no_interaction_and_a_product_has():
    assert residual(lambda x: 3 * x[:, 0] - 2 * x[:, 1], INPUTS, 0, 1) == pytest.approx(0, abs=1e-18)
    assert residual(lambda x: x[:, 0] * x[:, 1], INPUTS, 0, 1) > 1


def test_the_only_product_takes_all_of_the_share():
    found = interactions(lambda x: x[:, 0] * x[:, 2] + x[:, 1], INPUTS, NAMES)
    assert (found[0].first, found[0].second) == ("a", "c") and found[0].share == pytest.approx(100)
    assert len(found) == 6 and sum(pair.share for pair in found) == pytest.approx(100)


def test_pairs_of_event_and_setting():
    found = with_settings(lambda x: x[:, 1] * x[:, 3], INPUTS, NAMES, ["page size"])
    assert (found[0].first, found[0].second) == ("b", "page size")
    assert all(pair.second == "page size" for pair in found) and len(found) == 3


def test_settings_that_are_words_become_ranks():
    assert numbered(["64", "8"])[0].tolist() == [64, 8]
    numbers, words = numbered(["lz4", "gzip", "lz4"])
    assert numbers.tolist() == [1, 0, 1] and words == ("gzip", "lz4")


def test_one_event_interacts_with_nothing():
    with pytest.raises(ValueError, match="one event"):
        interactions(lambda x: x[:, 0], INPUTS[:, :1], NAMES[:1])
