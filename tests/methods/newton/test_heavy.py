"""Laws under which single columns may matter far more than others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from tacit.methods.newton import heavy
from tacit.methods.newton.heavy import heavier
from tacit.methods.newton.shrinkage import shrunken

Floats = npt.NDArray[np.float64]


def test_where_nothing_is_seen_it_speaks_neither_for_the_heavy_form_nor_against_it() -> None:
    found = heavier(np.zeros((5, 5)), np.zeros(5), tau=0.7)
    assert found.gain == pytest.approx(0, abs=0.02)
    assert not found.mean.any()


@pytest.mark.parametrize("y", [0.0, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("z", [0.1, 1.0, 10.0])
def test_the_bound_is_no_higher_than_the_likelihood(monkeypatch: pytest.MonkeyPatch, y: float, z: float) -> None:
    monkeypatch.setattr(heavy, "_TURNS", 1)  # the law on the grid is then the one of beforehand
    monkeypatch.setattr(heavy, "_SLACK", 0.0)
    tau = 0.5
    plain = norm.logpdf(y, scale=math.hypot(1, z * tau))
    exact = logsumexp(norm.logpdf(y, scale=np.hypot(1, z * tau * heavy._RATIOS)), b=heavy._BEFOREHAND)
    gain = heavier(np.array([[z]]), np.array([y]), tau).gain
    assert gain <= exact - plain + 1e-9
    if y < 30:
        assert gain > exact - plain - 1.5  # and not far below, or it would say nothing


def test_one_column_that_matters_most_is_shrunk_less_and_columns_that_matter_alike_are_not() -> None:
    rng = np.random.default_rng(1)
    Z = 3 * np.eye(40)
    single, alike = np.zeros(40), rng.normal(size=40)
    single[7] = 12.0
    gains = []
    for truth in (single, alike):
        y = Z @ truth + rng.normal(size=40)
        found = heavier(Z, y, tau=1.0)
        plain = np.linalg.solve(Z.T @ Z + np.eye(40), Z.T @ y)
        gains.append(found.gain)
        better = np.sum((found.mean - truth) ** 2) / np.sum((plain - truth) ** 2)
        assert better < (0.9 if truth is single else 1.15)
    assert gains[0] > 5 > 2 > gains[1]


def test_a_model_with_one_strong_column_is_nearer_to_the_truth_with_the_heavy_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    k, H = 60, 50.0 * np.eye(60)
    truth = np.zeros(k)
    truth[3] = 12.0
    errors = []
    for weight in (0.2, 1e-300):
        monkeypatch.setattr("tacit.methods.newton.shrinkage._HEAVY", weight)
        noise = np.random.default_rng(3).normal(scale=math.sqrt(50 + 2000), size=(20, k))
        found = [
            shrunken([H], (H @ truth + e)[None], np.zeros((1, k)), variance=2000.0, spread=np.eye(k), free=None).models[
                0
            ]
            for e in noise
        ]
        errors.append(float(np.mean([np.sum((w - truth) ** 2) for w in found])))
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("size", [1e-200, 1e30, 1e300])
def test_numbers_of_any_size_leave_a_model_that_is_finite(size: float) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    H = size * root @ root.T
    found = shrunken([H], (H @ np.ones(6))[None], np.zeros((1, 6)), variance=1.0, spread=np.eye(6), free=None)
    assert np.isfinite(found.models).all()


@pytest.mark.parametrize("is_raised", [True, False])
def test_a_heavy_form_that_cannot_be_worked_out_is_left_out(monkeypatch: pytest.MonkeyPatch, is_raised: bool) -> None:
    def fails(Z: Floats, y: Floats, tau: float) -> heavy.Heavier:
        if is_raised:
            raise np.linalg.LinAlgError
        return heavy.Heavier(mean=np.full(Z.shape[1], np.nan), gain=math.nan)

    H, right = 9.0 * np.eye(4), np.array([[30.0, 1.0, -2.0, 0.0]])
    given: dict[str, Any] = {"variance": 1.0, "spread": np.eye(4), "free": None}
    monkeypatch.setattr("tacit.methods.newton.shrinkage._HEAVY", 1e-300)
    alone = shrunken([H], right, np.zeros((1, 4)), **given).models
    monkeypatch.setattr("tacit.methods.newton.shrinkage._HEAVY", 0.5)
    monkeypatch.setattr("tacit.methods.newton.shrinkage.heavier", fails)
    np.testing.assert_allclose(shrunken([H], right, np.zeros((1, 4)), **given).models, alone, rtol=1e-12)
    assert alone[0, 0] > 1
