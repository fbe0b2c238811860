from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from tacit.errors import DataError
from tacit.report import evaluate
from tacit.report.metrics import MOST_ROC_POINTS


def binary(n: int = 2000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    p = np.clip(0.3 + 0.3 * (y - 0.5) + rng.normal(0, 0.2, n), 0.001, 0.999)
    return y, np.column_stack([1 - p, p])


def multi(n: int = 900, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    Z = rng.normal(0, 1, (n, 4))
    Z[np.arange(n), y] += 1.0
    P = np.exp(Z)
    return y, P / P.sum(axis=1, keepdims=True)


def test_two_classes_agree_with_scikit_learn() -> None:
    y, P = binary()
    found = evaluate(y, P, ("no", "yes"))
    predicted = P.argmax(axis=1)
    assert found.n == len(y)
    assert found.accuracy == pytest.approx(sk.accuracy_score(y, predicted))
    assert found.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(y, predicted))
    assert found.auc == pytest.approx(sk.roc_auc_score(y, P[:, 1]))
    assert found.log_loss == pytest.approx(sk.log_loss(y, P))
    assert found.brier == pytest.approx(sk.brier_score_loss(y, P[:, 1]))
    assert found.majority_rate == pytest.approx(max(y.mean(), 1 - y.mean()))


def test_the_other_figures_agree_with_scikit_learn_and_with_resampling() -> None:
    y, P = binary()
    found = evaluate(y, P, ("no", "yes"))
    share = y.mean()
    assert found.class_counts == (np.sum(y == 0), np.sum(y == 1))
    assert found.average_precision == pytest.approx(sk.average_precision_score(y, P[:, 1]))
    assert found.base_log_loss == pytest.approx(sk.log_loss(y, np.tile([1 - share, share], (len(y), 1))))
    rng = np.random.default_rng(0)
    again = [evaluate(y[rows], P[rows], ("no", "yes")) for rows in rng.integers(len(y), size=(300, len(y)))]
    areas = [one.auc for one in again if one.auc is not None]
    assert found.auc_error == pytest.approx(np.std(areas), rel=0.15)
    gains = [one.accuracy - one.majority_rate for one in again]
    assert found.accuracy_gain_error == pytest.approx(np.std(gains), rel=0.15)
    losses = [one.log_loss - one.base_log_loss for one in again]
    assert found.log_loss_gain_error == pytest.approx(np.std(losses), rel=0.15)


def test_ties_count_half_and_one_record_of_a_kind_leaves_doubt() -> None:
    flat = evaluate([0, 1, 0, 1], np.full((4, 2), 0.5), ("no", "yes"))
    assert (flat.auc, flat.auc_error) == (0.5, 0.0)
    one = evaluate([0, 0, 1], [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]], ("no", "yes"))
    assert (one.auc, one.auc_error) == (1.0, 0.5)


def test_calibration_agrees_with_scikit_learn() -> None:
    y, P = binary()
    found = evaluate(y, P, ("no", "yes"))
    observed, predicted = calibration_curve(y, P[:, 1], n_bins=10)
    assert [b.observed_rate for b in found.calibration] == pytest.approx(observed)
    assert [b.mean_predicted for b in found.calibration] == pytest.approx(predicted)
    assert sum(b.count for b in found.calibration) == len(y)
    counts = np.array([b.count for b in found.calibration])
    assert found.expected_calibration_error == pytest.approx(np.sum(counts * abs(observed - predicted)) / len(y))


def test_the_thinned_roc_keeps_its_ends_and_its_area() -> None:
    y, P = binary(20_000)
    found = evaluate(y, P, ("no", "yes"))
    x = [point.false_positive_rate for point in found.roc]
    height = [point.true_positive_rate for point in found.roc]
    assert len(x) <= MOST_ROC_POINTS
    assert (x[0], height[0], x[-1], height[-1]) == (0, 0, 1, 1)
    assert np.all(np.diff(x) >= 0)
    assert sk.auc(x, height) == pytest.approx(found.auc, abs=2e-3)


def test_several_classes_agree_with_scikit_learn() -> None:
    y, P = multi()
    found = evaluate(y, P, ("a", "b", "c", "d"))
    predicted = P.argmax(axis=1)
    assert found.accuracy == pytest.approx(sk.accuracy_score(y, predicted))
    assert found.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(y, predicted))
    assert found.auc == pytest.approx(sk.roc_auc_score(y, P, multi_class="ovr", average="macro"))
    assert found.log_loss == pytest.approx(sk.log_loss(y, P))
    assert found.brier == pytest.approx(sk.brier_score_loss(y, P, scale_by_half=False))
    assert found.roc == ()
    observed, sure = calibration_curve(predicted == y, P.max(axis=1), n_bins=10)
    assert [b.observed_rate for b in found.calibration] == pytest.approx(observed)
    assert [b.mean_predicted for b in found.calibration] == pytest.approx(sure)


def test_records_of_one_class_give_no_auc_and_no_warning() -> None:
    _, P = binary(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for only in (0, 1):
            found = evaluate(np.full(50, only), P, ("no", "yes"))
            assert found.auc is None
            assert found.roc == ()
            assert found.majority_rate == 1.0
            assert found.balanced_accuracy == pytest.approx(found.accuracy)


def test_a_class_that_does_not_occur_is_left_out_of_the_mean() -> None:
    y, P = multi()
    kept = y != 3
    found = evaluate(y[kept], P[kept], ("a", "b", "c", "d"))
    expected = np.mean([sk.roc_auc_score(y[kept] == c, P[kept][:, c]) for c in range(3)])
    assert found.auc == pytest.approx(expected)


def test_certain_and_wrong_is_finite() -> None:
    found = evaluate([0, 1], [[0.0, 1.0], [1.0, 0.0]], ("no", "yes"))
    assert found.accuracy == 0
    assert np.isfinite(found.log_loss)
    assert found.brier == 1


@pytest.mark.parametrize(
    ("y", "P", "classes", "problem"),
    [
        ([0], [[1.0]], ("a",), "classes has 1 entries; a classifier has at least two"),
        ([0], [0.5], ("a", "b"), r"probabilities has shape \(1,\)"),
        ([0], [[0.2, 0.3, 0.5]], ("a", "b"), r"probabilities has shape \(1, 3\)"),
        ([0, 1], [[0.5, 0.5]], ("a", "b"), r"y_true_index has shape \(2,\); expected \(1,\)"),
        (np.zeros(0, int), np.zeros((0, 2)), ("a", "b"), "there are no records"),
        ([0.5], [[0.5, 0.5]], ("a", "b"), "y_true_index holds float64"),
        ([0, 2, -1], [[0.5, 0.5]] * 3, ("a", "b"), "2 entries of y_true_index are no position"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], ("a", "b"), "1 rows of probabilities"),
        ([0, 1], [[np.nan, 0.5], [1.5, -0.5]], ("a", "b"), "2 rows of probabilities"),
    ],
)
def test_what_cannot_be_measured_is_refused(y: object, P: object, classes: tuple[str, ...], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        evaluate(y, P, classes)  # type: ignore[arg-type]
