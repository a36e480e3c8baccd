"""LinearVerdict against arithmetic by hand: margins, abstention, evidence, and the way through a file."""

import io
import subprocess
import sys

import numpy as np
import pytest

from pmutop.analysis.interference import LinearVerdict
from pmutop.errors import BadInput


def by_hand(**changed) -> LinearVerdict:
    arrays = {
        "center": [1.0, 0.0, 5.0],
        "scale": [2.0, 1.0, 1.0],
        "log_mask": [False, True, False],
        "log_unit": [1.0, 10.0, 1.0],
        "coef": [1.0, -2.0, 0.0],
        "intercept": 0.5,
        "platt_a": -1.5,
        "platt_b": 0.25,
        "severity_coef": [0.1, 0.0, 0.0],
        "severity_intercept": 0.2,
    }
    return LinearVerdict.from_arrays({**arrays, **changed})


def test_margin_probability_and_factor_by_hand():
    margin, probability, factor = by_hand().decide(np.array([[3.0, 10.0, 99.0]]))
    expected = (3 - 1) / 2 - 2 * np.log(2) + 0.5
    assert margin == pytest.approx(expected)
    assert probability == pytest.approx(1 / (1 + np.exp(-1.5 * expected + 0.25)))
    assert factor == pytest.approx(np.exp(0.1 + 0.2))


def test_missing_input_abstains_unless_it_carries_no_weight():
    model = by_hand()
    X = np.array([[np.nan, 1.0, 1.0], [1.0, np.nan, 1.0], [1.0, 1.0, np.nan], [1.0, -4.0, 1.0]])
    margin, probability, factor = model.decide(X)
    # the third feature has no weight; a negative count was never counted
    expected = [True, True, False, True]
    for answer in (margin, probability, factor):
        assert np.isnan(answer).tolist() == expected
    assert model.abstains(X).tolist() == expected
    assert np.isnan(model.contributions(X)).all(axis=1).tolist() == expected


def test_contributions_are_signed_shares():
    shares = by_hand().contributions(np.array([[3.0, 10.0, 7.0], [1.0, 0.0, 5.0]]))
    parts = np.array([1.0, -2 * np.log(2), 0.0])
    assert shares[0] == pytest.approx(parts / np.abs(parts).sum())
    assert shares[1].tolist() == [0.0, 0.0, 0.0]  # the ordinary slice: nothing speaks either way


def test_without_severity_only_the_factor_is_unknown():
    model = by_hand(severity_coef=[0.0, 0.0, 0.0], severity_intercept=np.nan)
    margin, probability, factor = model.decide(np.ones((2, 3)))
    assert np.isfinite(margin).all() and np.isfinite(probability).all() and np.isnan(factor).all()


def test_extreme_inputs_do_not_overflow():
    with np.errstate(over="raise"):
        _, probability, factor = by_hand().decide(np.array([[1e9, 0.0, 0.0], [-1e9, 0.0, 0.0]]))
    assert probability.tolist() == pytest.approx([1.0, 0.0], abs=1e-12) and factor[0] == pytest.approx(1e3)


def test_through_an_npz_and_back():
    model = by_hand()
    file = io.BytesIO()
    np.savez(file, **model.to_arrays())
    file.seek(0)
    again = LinearVerdict.from_arrays(np.load(file, allow_pickle=False))
    X = np.random.default_rng(1).uniform(0, 50, (20, 3))
    for one, other in zip(model.decide(X), again.decide(X), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("center", [1.0], "center"),
        ("scale", [0.0, 1.0, 1.0], "scale"),
        ("coef", [np.nan, 1.0, 1.0], "coef"),
        ("intercept", [1.0, 2.0], "intercept"),
    ],
)
def test_a_broken_file_is_refused_with_the_field_in_the_message(field, value, word):
    with pytest.raises(BadInput, match=word):
        by_hand(**{field: value})
    arrays = by_hand().to_arrays()
    del arrays[field]
    with pytest.raises(BadInput, match=field):
        LinearVerdict.from_arrays(arrays)


def test_wrong_number_of_features_is_refused():
    with pytest.raises(BadInput, match="3 features"):
        by_hand().decide(np.ones((1, 4)))


def test_live_inference_loads_no_scikit_learn():
    code = (
        "import sys, numpy; from pmutop.analysis.interference import LinearVerdict;"
        "print([m for m in ('sklearn', 'scipy', 'joblib') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
