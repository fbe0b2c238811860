"""Few rows with many columns: the same optimum as by the curvature of the columns, certified, and never worse."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.methods.transfer import importance
from tacit.models import solver
from tacit.models.loss import Array, Labels
from tacit.models.problem import Problem
from tacit.models.solver import BlockRecords, fit, minimise
from tacit.models.wide import is_wide, wide_guess


def drawn(n: int, d: int, seed: int = 0) -> tuple[Array, Labels]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.1)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X, rng.integers(0, 2, n)


@pytest.mark.parametrize("intercept", ["none", "feature"])
@pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
def test_same_optimum_as_by_the_curvature(intercept: solver.Intercept, l2: float) -> None:
    X, y = drawn(120, 300)
    linear = np.random.default_rng(1).normal(size=300 + (intercept == "feature"))
    problem = Problem(n_features=300, l2=l2, intercept=intercept, linear=linear)
    assert is_wide(len(y), problem)
    solution = fit(lambda: [(X, y)], problem=problem)
    slow = minimise(BlockRecords(lambda: [(X, y)], problem), problem=problem)
    apart = float(np.linalg.norm(solution.theta - slow.theta))
    assert apart <= solution.distance_bound + slow.distance_bound
    assert apart <= 1e-8 * max(1.0, float(np.linalg.norm(slow.theta)))
    assert np.allclose(solution.curvature, slow.curvature, rtol=1e-6, atol=1e-9)


def test_no_curvature_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cubic piece: with few rows nothing as large as the columns' curvature is computed."""
    X, y = drawn(100, 600)
    asked: list[bool] = []
    plain = BlockRecords.sums

    def told(self: BlockRecords, theta: Array, *, curvature: bool = True) -> object:
        asked.append(curvature)
        return plain(self, theta, curvature=curvature)

    monkeypatch.setattr(BlockRecords, "sums", told)
    fit(lambda: [(X, y)], problem=Problem(n_features=600, l2=1.0, intercept="feature"))
    rng = np.random.default_rng(3)
    importance.discriminate(lambda: [(X, y)], 100, rng.random((50, 600)) / 30, 1e-3)
    assert asked
    assert not any(asked)


def test_a_poor_guess_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess is certified, not believed."""
    X, y = drawn(80, 300)
    problem = Problem(n_features=300, l2=1.0, intercept="none")
    right = fit(lambda: [(X, y)], problem=problem).theta
    monkeypatch.setattr(solver, "wide_guess", lambda rows, problem: np.full(300, 0.1))
    assert np.allclose(fit(lambda: [(X, y)], problem=problem).theta, right, atol=1e-8)


def test_weights_count_as_copies() -> None:
    X, y = drawn(60, 280)
    problem = Problem(n_features=280, l2=0.5, intercept="none")
    weighted = wide_guess([(X, y, np.full(60, 2.0))], problem)
    doubled = wide_guess([(X, y), (X, y)], problem)
    assert np.allclose(weighted, doubled, atol=1e-8)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(n_features=300, l2=0.0, intercept="none"),
        Problem(n_features=300, l2=1.0, intercept="free"),
        Problem(n_features=300, n_classes=3, l2=1.0, intercept="none"),
        Problem(n_features=20, l2=1.0, intercept="none"),
    ],
)
def test_only_where_all_is_penalised_and_columns_are_many(problem: Problem) -> None:
    assert not is_wide(10, problem)
