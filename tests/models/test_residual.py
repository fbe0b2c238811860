"""Residuals are accurate however sure a prediction is."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tacit.models.residual import residuals, softmax, subtract_label


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
@pytest.mark.parametrize("spread", [0.1, 3.0, 200.0])
@pytest.mark.parametrize("n_scores", [1, 3])
def test_every_entry_is_good_to_a_few_units_of_its_own_size(n_scores: int, spread: float, kind: type) -> None:
    rng = np.random.default_rng(2)
    scores = (spread * rng.normal(size=(40, n_scores))).astype(kind)
    y = rng.integers(0, max(2, n_scores), 40)
    found = residuals(scores, y)
    assert found.dtype == kind
    limit = 8 * float(np.finfo(kind).eps) * (4 + 8 * spread)
    with mpmath.workdps(300):
        for row, label, entries in zip(scores, y, found, strict=True):
            odds = [mpmath.exp(mpmath.mpf(np.format_float_positional(s, unique=False, precision=60))) for s in row]
            weights = [mpmath.mpf(1), *odds] if n_scores == 1 else odds
            exact = [w / mpmath.fsum(weights) - (c == label) for c, w in enumerate(weights)][-n_scores:]
            for entry, truth in zip(entries, exact, strict=True):
                assert abs(mpmath.mpf(np.format_float_scientific(entry)) - truth) <= limit * abs(truth) + 1e-300


def test_a_sure_prediction_keeps_its_digits() -> None:
    assert residuals(np.array([[50.0]]), np.array([1])) == pytest.approx(-np.exp(-50), rel=1e-12)
    sure = residuals(np.array([[50.0, 0.0, 0.0]]), np.array([0]))
    assert sure[0] == pytest.approx([-2 * np.exp(-50), np.exp(-50), np.exp(-50)], rel=1e-12)


def test_stacks_are_treated_row_by_row() -> None:
    rng = np.random.default_rng(3)
    scores, y = rng.normal(size=(5, 7, 4)), rng.integers(0, 4, (5, 7))
    loss, P = softmax(scores, y)
    np.testing.assert_allclose(loss, -np.log(np.take_along_axis(P, y[..., None], axis=-1)[..., 0]), rtol=1e-12)
    whole = subtract_label(P, y)
    for one, rows, labels in zip(whole, scores, y, strict=True):
        np.testing.assert_array_equal(one, residuals(rows, labels))
