"""Weights of made-up rows: moments that stand out of the noise are met, and noise is not followed."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from tacit.methods.newton.row_weight import row_weights

N = 4_000


def columns(seed: int, *, together: bool) -> np.ndarray:
    """Two columns of 0 and 1 beside a constant: the second never without the first, or on its own."""
    rng = np.random.default_rng(seed)
    first, second = rng.random(N) < 0.4, rng.random(N) < 0.5
    rows = np.column_stack([first, first & second if together else second, np.full(N, 0.5)])
    return rows.astype(np.float64) / 1.5


def moments(u: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (u * weights[:, None]).T @ u


def test_moments_that_stand_out_of_the_noise_are_met_and_the_sum_stays() -> None:
    table, made_up = columns(0, together=True), columns(1, together=False)
    M = moments(table, np.ones(N))
    weights = row_weights(made_up, M, M_noise=1.0, n_records=N)
    assert (weights > 0).all()
    np.testing.assert_allclose(weights.sum(), N)
    np.testing.assert_allclose(moments(made_up, weights), M, atol=3.0)
    assert np.abs(moments(made_up, np.ones(N)) - M).max() > 100  # far from them with equal weights


def test_rows_that_the_table_has_not_count_for_next_to_nothing() -> None:
    table, made_up = columns(0, together=True), columns(1, together=False)
    weights = row_weights(made_up, moments(table, np.ones(N)), M_noise=1.0, n_records=N)
    never = (made_up[:, 1] > 0) & (made_up[:, 0] == 0)
    assert weights[never].sum() < 0.002 * N < never.sum()


def test_curvature_along_columns_that_go_together_is_that_of_the_table() -> None:
    table, made_up = columns(0, together=True), columns(1, together=False)
    weights = row_weights(made_up, moments(table, np.ones(N)), M_noise=1.0, n_records=N)
    model, way = np.array([6.0, -1.0, -8.0]), np.array([1.0, -1.0, 0.0])

    def curvature(u: np.ndarray, counted: np.ndarray) -> float:
        p = expit(u @ model)
        return float(counted * p * (1 - p) @ (u @ way) ** 2)

    true = curvature(table, np.ones(N))
    assert abs(curvature(made_up, weights) / true - 1) < 0.1
    assert abs(curvature(made_up, np.ones(N)) / true - 1) > 0.2


def test_noise_is_not_followed() -> None:
    u, s = columns(1, together=False), 2_000.0
    noise = np.random.default_rng(2).normal(size=(3, 3)) * s
    M = moments(u, np.ones(N)) + (noise + noise.T) / 2
    weights = row_weights(u, M, M_noise=s, n_records=N)
    moved = np.linalg.norm(moments(u, weights) - moments(u, np.ones(N)))
    assert moved < 0.5 * np.linalg.norm(M - moments(u, np.ones(N)))
    assert 1 / (weights**2).mean() > 0.3
