"""Training against libsvm's own programs, scikit-learn and numerical optimisation, on data with a known truth."""

import shutil
import subprocess

import numpy as np
import pytest
from scipy.optimize import minimize

from pmutop.analysis.interference_training import (
    area,
    as_the_thesis,
    balanced_accuracy,
    fit,
    fit_types,
    grouped,
    linear,
    platt,
    smallest_usual,
)
from pmutop.errors import BadInput


def runs_of(seed: int, runs: int = 24, slices: int = 30):
    """Runs of three applications of very different sizes whose wait share rises with the interference factor; beside it a
    count that only tells applications apart and one of pure noise. The factor is 1 / (1 - wait)."""
    generator = np.random.default_rng(seed)
    X, y, group, factor = [], [], [], []
    for run in range(runs):
        share = 0.0 if run % 2 else generator.uniform(0.1, 0.5)
        wait = np.clip(share + 0.01 * generator.normal(size=slices), 0, 0.9)
        size = (1e6, 3e7, 1e9)[run % 3] * generator.lognormal(0, 0.2, slices)
        X.append(np.stack([-np.log1p(-wait), size * (1 - wait), generator.gamma(1.0, 1e5, slices)], axis=1))
        factor += slices * [1 / (1 - share)]
        y += slices * [1 if share else -1]
        group += slices * [run]
    return np.concatenate(X), np.array(y), np.array(group), np.array(factor)


FEW = {
    "machines": (("nu", 0.1), ("nu", 0.5), ("C", 1.0)),
    "preparations": (("standard", "none"), ("standard", "skewed")),
}


def test_the_truth_is_found_on_runs_that_were_put_aside():
    fitted = fit(*runs_of(1), **FEW)
    X, y, _, factor = runs_of(2)
    margin, probability, estimated = fitted.verdict.decide(X)
    assert balanced_accuracy(y, margin) > 0.99 and area(y, margin) > 0.99
    assert ((probability > 0.5) == (y > 0)).mean() > 0.98
    assert np.median(np.abs(estimated / factor - 1)) < 0.1
    shares = np.abs(fitted.verdict.contributions(X)).mean(axis=0)
    assert shares[0] > 0.5  # the wait, not the application nor the noise


def test_tried_choices_are_all_there_best_first():
    fitted = fit(*runs_of(3), **FEW)
    assert len(fitted.tried) == 6 and fitted.chosen in fitted.tried
    assert fitted.chosen.balanced == pytest.approx(fitted.tried[0].balanced, abs=1e-4)


def test_the_same_seed_gives_the_same_verdict():
    one, other = (fit(*runs_of(4), seed=9, **FEW).verdict.to_arrays() for _ in range(2))
    assert all((one[name] == other[name]).all() for name in one)


def test_the_zone_between_teaches_severity_but_not_the_yes_or_no():
    X, y, runs, factor = runs_of(5)
    zone = (factor > 1.1) & (factor < 1.3)
    assert zone.any()
    without = fit(X[~zone], y[~zone], runs[~zone], factor[~zone], **FEW).verdict
    left_out = fit(X, np.where(zone, 0, y), runs, factor, **FEW).verdict
    assert left_out.coef == pytest.approx(without.coef)
    assert left_out.severity_coef != pytest.approx(without.severity_coef)


def test_a_feature_never_counted_gets_no_weight_and_a_gap_costs_only_its_slice():
    X, y, runs, factor = runs_of(6)
    wide = np.insert(X, 1, np.nan, axis=1)
    wide[5, 0] = np.nan
    verdict = fit(wide, y, runs, factor, **FEW).verdict
    assert verdict.coef[1] == verdict.severity_coef[1] == 0
    keep = np.arange(len(X)) != 5
    expected = fit(X[keep], y[keep], runs[keep], factor[keep], **FEW).verdict
    assert np.delete(verdict.coef, 1) == pytest.approx(expected.coef)
    assert np.isfinite(verdict.decide(wide[6:])[0]).all() and np.isnan(verdict.decide(wide[5:6])[0]).all()


def test_one_run_of_a_class_is_refused():
    X, y, runs, _ = runs_of(7, runs=3)
    with pytest.raises(BadInput, match="without interference"):
        fit(X, y, runs, **FEW)


def test_a_nu_without_a_solution_is_passed_over():
    X, y, runs, _ = runs_of(15)
    apart = np.where(y > 0, 5.0, -5.0)[:, None] + 0.01 * X[:, :1]
    rare = (y < 0) | (runs == 0) | (runs == 2)
    fitted = fit(apart[rare], y[rare], runs[rare], preparations=(("standard", "none"),))
    assert not [choice for choice in fitted.tried if choice.machine[0] == "nu" and choice.machine[1] > 0.5]
    assert balanced_accuracy(y[rare], fitted.verdict.decide(apart[rare])[0]) == 1


def test_folds_never_part_a_run():
    _, y, runs, _ = runs_of(8)
    folds = list(grouped(y, runs, seed=0))
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(len(y)))
    for train, test in folds:
        assert not set(runs[train]) & set(runs[test]) and set(y[train]) == set(y[test]) == {-1, 1}


def test_types_can_both_be_said():
    generator = np.random.default_rng(10)
    types = np.repeat(["", "core", "llc", "core", "llc", "", "core", "llc", ""], 40)
    signal = np.stack([types == "core", types == "llc"], axis=1) + 0.1 * generator.normal(size=(360, 2))
    found = fit_types(signal, types, np.repeat(np.arange(9), 40), **FEW)
    assert set(found) == {"core", "llc"}
    assert (found["core"].verdict.decide(np.array([[1.0, 0.0], [0.0, 1.0]]))[0] > 0).tolist() == [True, False]
    assert (found["llc"].verdict.decide(np.array([[1.0, 0.0], [0.0, 1.0]]))[0] > 0).tolist() == [False, True]


def test_platt_is_the_minimum_of_its_likelihood():
    generator = np.random.default_rng(11)
    y = np.where(generator.random(300) < 0.3, 1, -1)
    margin = 40 * (y + generator.normal(size=300))
    target = np.where(y > 0, (np.sum(y > 0) + 1) / (np.sum(y > 0) + 2), 1 / (np.sum(y < 0) + 2))

    def loss(weights):
        exponent = weights[0] * margin + weights[1]
        return np.sum(target * np.logaddexp(0, exponent) + (1 - target) * np.logaddexp(0, -exponent))

    witness = minimize(
        loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    )
    assert platt(margin, y) == pytest.approx(witness.x, rel=1e-3)


def test_area_is_scikit_learns_with_ties_too():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(12)
    y, margin = np.where(generator.random(500) < 0.4, 1, -1), generator.integers(-3, 4, 500).astype(float)
    assert area(y, margin) == pytest.approx(roc_auc_score(y, margin))


def test_the_unit_of_a_logarithm_follows_the_column():
    X = np.array([[0.0, 1e9, 0.0], [1e-6, 2e9, 0.0], [3e-6, 9e9, 0.0]])
    assert smallest_usual(X)[:2] == pytest.approx([1.1e-6, 1.1e9]) and smallest_usual(X)[2] == 1


@pytest.mark.skipif(
    not shutil.which("svm-train"), reason="libsvm's svm-train is not installed (libsvm-tools)"
)
@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_the_thesis_classifier_is_libsvms_own(tmp_path, nu):
    X, y, _, _ = runs_of(13, runs=8)
    X = X / [1, 1e9, 1e6]
    verdict = as_the_thesis(X, y, nu=nu) if nu != 0.5 else as_the_thesis(X, y)
    lines = [
        f"{sign:+d} " + " ".join(f"{i + 1}:{v!r}" for i, v in enumerate(row))
        for sign, row in zip(y, X.tolist(), strict=True)
    ]
    (tmp_path / "train").write_text("\n".join(lines) + "\n")
    options = ["-s", "1", "-t", "0", "-q", *(["-n", str(nu)] if nu != 0.5 else [])]
    subprocess.run(["svm-train", *options, tmp_path / "train", tmp_path / "model"], check=True)
    subprocess.run(
        ["svm-predict", "-q", tmp_path / "train", tmp_path / "model", tmp_path / "said"], check=True
    )
    said = np.array((tmp_path / "said").read_text().split(), dtype=float)
    margin = verdict.decide(X)[0]
    assert ((margin > 0) == (said > 0)).mean() > 0.995  # a slice on the line may fall either way
    coef, intercept = weights_of((tmp_path / "model").read_text(), X.shape[1])
    assert np.corrcoef(X @ coef + intercept, margin)[0, 1] > 0.9999
    assert coef == pytest.approx(verdict.coef, rel=0.02, abs=0.02 * np.abs(verdict.coef).max())


def weights_of(model: str, features: int) -> tuple[np.ndarray, float]:
    """The weights in libsvm's model file, towards label +1."""
    head, vectors = model.split("SV\n", 1)
    named = dict(line.split(" ", 1) for line in head.splitlines())
    coef = np.zeros(features)
    for line in vectors.splitlines():
        weight, *cells = line.split()
        for cell in cells:
            at, value = cell.split(":")
            coef[int(at) - 1] += float(weight) * float(value)
    side = 1 if named["label"].split()[0] == "1" else -1
    return side * coef, -side * float(named["rho"])


def test_log_and_scaling_are_inside_the_verdict():
    X, y, _, _ = runs_of(14)
    verdict = linear(X, y, ("standard", "all"), ("C", 1.0))
    scaled = linear(X * [1, 1000, 1], y, ("standard", "all"), ("C", 1.0))
    assert scaled.decide(X * [1, 1000, 1])[0] == pytest.approx(verdict.decide(X)[0], abs=1e-6)
