"""Directions that noise drowns, and the test among runs that are told."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tacit.methods.newton.drowned import Directions, leaning, leaning_alone, without_correlations
from tacit.methods.newton.profile import Course, Lines

Floats = npt.NDArray[np.float64]


def noise(rng: np.random.Generator, k: int, size: float) -> Floats:
    """Symmetric, `size` on the diagonal and size / sqrt 2 beside it."""
    E = rng.normal(size=(k, k)) * size / np.sqrt(2)
    return np.triu(E, 1) + np.triu(E, 1).T + np.diag(rng.normal(size=k) * size)


def test_a_direction_without_curvature_is_drowned_and_steep_ones_are_seen() -> None:
    rng = np.random.default_rng(0)
    truth = np.diag([0.0, 50.0, 60.0, 70.0])
    for _ in range(50):
        M = truth + noise(rng, 4, 1.0)
        found = Directions.of(M, np.diag(np.maximum(np.diag(M), 0.0)), noise_std=1.0)
        assert found.drowned.shape[1] == 1
        assert abs(found.drowned[0, 0]) == 1
        assert np.all(found.ratios > 40)


def test_what_noise_makes_others_lean_is_taken_off_and_what_columns_do_is_kept() -> None:
    """The second column goes together with the drowned one; the third does not."""
    rng = np.random.default_rng(1)
    truth = np.diag([0.5, 80.0, 80.0])
    truth[0, 1] = truth[1, 0] = 4.0
    prior, a = np.eye(3) / 100, np.eye(3)
    lean = []
    for _ in range(400):
        M = truth + noise(rng, 3, 1.0)
        found = Directions.of(M, np.diag([0.5, 80.0, 79.0]), noise_std=1.0)
        if found.drowned.shape[1] != 1:
            continue
        equations = np.diag([0.0, 1.0, 1.0])
        information = M @ equations @ M + prior
        lean.append(leaning(found, a, information, prior))
    own, together, apart = np.mean(lean, axis=0)
    assert own > 90  # as far as is assumed: 100
    np.testing.assert_allclose(together, 100 * (4 / 80) ** 2, rtol=0.25)
    assert apart < 0.01  # noise alone would make it 100 / 2 / 80^2 on average, 0.0078, if nothing were taken off
    assert apart < 0.1 * together


def test_alone_a_coefficient_leans_as_far_as_it_counts_a_drowned_column() -> None:
    directions = Directions(seen=np.eye(3)[:, 1:], ratios=np.array([9.0, 9.0]), drowned=np.eye(3)[:, :1])
    a = np.array([[1.0, 0.0, 0.0], [-0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(leaning_alone(directions, a, np.eye(3) / 100), [100.0, 25.0, 0.0])
    seen = Directions(seen=np.eye(3), ratios=np.full(3, 9.0), drowned=np.zeros((3, 0)))
    np.testing.assert_array_equal(leaning_alone(seen, a, np.eye(3)), np.zeros(3))


def test_rows_without_correlations_keep_means_and_variances() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) + 0.3
    Z = np.column_stack([X, np.full(500, 0.7)])
    B = np.diag([1.0, 2.0, 0.5, 1.5])
    plain = np.linalg.inv(B) @ without_correlations(B @ Z.T @ Z @ B, B, 0.7) @ np.linalg.inv(B)
    np.testing.assert_allclose(np.diag(plain), np.diag(Z.T @ Z))
    np.testing.assert_allclose(plain[-1], Z.T @ Z[:, -1])
    np.testing.assert_allclose(plain[0, 1] / 500, X[:, 0].mean() * X[:, 1].mean())


def told_share(h: float, *, limit: float, is_counted: bool) -> tuple[float, float]:
    """How often a ratio r / h is told, and how often its interval then holds; h is seen with unit noise, r with 2."""
    rng, ratio = np.random.default_rng(3), 5.0
    seen_h = h + rng.normal(size=20_000)
    seen_h = seen_h[seen_h > limit]
    seen_r = ratio * h + 2 * rng.normal(size=len(seen_h))
    estimate = seen_r / seen_h
    p = 1 / seen_h  # so that the curvature is 1 and the coefficient moves by 1
    ones = np.ones_like(p)
    course = Course(
        spread=4 * p**2,
        assumed=1e-6 * ones,
        curvature=ones,
        above=1 - limit / seen_h if is_counted else ones,
        noise=p**2 * (4 + estimate**2),
        by=(p**2 * estimate, p**2),
        of_curvature=(p**2 * estimate, p**2),
        lean=(0.0 * ones, 0.0 * ones),
    )
    lines = Lines.of(course, 1.96)
    low, high = estimate - lines.reach(1.96, 0), estimate + lines.reach(1.96, 1)
    return len(seen_h) / 20_000, float(np.mean((low <= ratio) & (ratio <= high)))


def test_intervals_of_runs_that_are_told_hold_though_telling_selects() -> None:
    for h in (2.0, 3.0, 5.0, 9.0):
        share, held = told_share(h, limit=3.0, is_counted=True)
        assert held > 0.94, (h, share)
    share, held = told_share(2.0, limit=3.0, is_counted=False)
    np.testing.assert_allclose(share, ndtr(-1.0), atol=0.01)
    assert held < 0.9  # without the correction


def test_a_side_on_which_nothing_is_hidden_is_no_wider() -> None:
    one = np.ones(1)
    course = Course(
        spread=one,
        assumed=1e-6 * one,
        curvature=one,
        above=one,
        noise=one,
        by=(0 * one, 0 * one),
        of_curvature=(0 * one, 0 * one),
        lean=(0 * one, 3 * one),  # above the estimate there may be more
    )
    lines = Lines.of(course, 1.96)
    np.testing.assert_allclose(lines.reach(1.96, 0), 1.96, rtol=0.01)
    np.testing.assert_allclose(lines.reach(1.96, 1), 2 * 1.96, rtol=0.01)  # sqrt(1 + 3)
