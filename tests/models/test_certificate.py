from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.errors import RunError
from tacit.models.certificate import FitPoint, _largest_eigenvalue, certify, rounding_errors
from tacit.models.solver import Problem, fit

mpmath.mp.dps = 40


def exact_gradient_and_curvature(X, y, theta, problem):
    """The objective's gradient and curvature in 40 digits; theta is a flat list of mpf."""
    c = problem.constant if problem.intercept != "none" else None
    rows = [[mpmath.mpf(float(v)) for v in x] + ([mpmath.mpf(c)] if c is not None else []) for x in X]
    C, k, size = problem.n_classes, problem.loss.width, len(theta)
    g = [mpmath.mpf(float(l2)) * t for l2, t in zip(problem.penalty.ravel(), theta, strict=True)]
    H = mpmath.diag([mpmath.mpf(float(l2)) for l2 in problem.penalty.ravel()])
    for x, label in zip(rows, y, strict=True):
        if C == 2:
            p = 1 / (1 + mpmath.exp(-mpmath.fdot(theta, x)))
            residual, D = [p - int(label)], [[p * (1 - p)]]
        else:
            e = [mpmath.exp(mpmath.fdot(theta[a * k : (a + 1) * k], x)) for a in range(C)]
            P = [v / mpmath.fsum(e) for v in e]
            residual = [P[a] - (a == label) for a in range(C)]
            D = [[P[a] * ((a == b) - P[b]) for b in range(C)] for a in range(C)]
        for i in range(size):
            g[i] += residual[i // k] * x[i % k]
            for j in range(size):
                H[i, j] += D[i // k][j // k] * x[i % k] * x[j % k]
    return g, H


def exact_optimum(X, y, problem, near):
    """The optimum in 40 digits, by Newton from a float solution."""
    theta = [mpmath.mpf(float(t)) for t in near.ravel()]
    C, k = problem.n_classes, problem.loss.width
    for _ in range(4):
        g, H = exact_gradient_and_curvature(X, y, theta, problem)
        if C > 2:  # definite where all classes move alike, which the optimum does not
            for i in range(C * k):
                for j in range(C * k):
                    H[i, j] += mpmath.mpf(i % k == j % k)
        step = mpmath.lu_solve(H, mpmath.matrix(g))
        theta = [t - s for t, s in zip(theta, step, strict=True)]
    return theta


def distance(theta, exact):
    return float(
        mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(t)) - e) ** 2 for t, e in zip(theta.ravel(), exact, strict=True)))
    )


def small_table(seed, classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(18, 2)) * rng.choice([0.1, 1.0, 10.0])
    return X, rng.integers(0, classes, 18)


def solve(X, y, problem):
    try:
        return fit(lambda: [(X, y)], problem=problem)
    except RunError:
        assume(False)
        raise


cases = {
    "seed": st.integers(0, 10_000),
    "classes": st.sampled_from([2, 3]),
    "l2": st.sampled_from([0.0, 1e-3, 1.0]),
    "intercept": st.sampled_from(["free", "feature", "none"]),
}


@settings(max_examples=30, deadline=None)
@given(**cases, tolerance=st.sampled_from([1e-1, 1e-4, 1e-9]))
def test_solutions_lie_within_their_bound(seed, classes, l2, intercept, tolerance):
    X, y = small_table(seed, classes)
    problem = Problem(n_features=2, n_classes=classes, l2=l2, intercept=intercept, tolerance=tolerance)
    solution = solve(X, y, problem)
    exact = exact_optimum(X, y, problem, solution.theta)
    assert distance(solution.theta, exact) <= solution.distance_bound < math.inf


@settings(max_examples=30, deadline=None)
@given(**cases, away=st.sampled_from([1e-8, 1e-3, 1e-2, 1e-1, 1.0]))
def test_any_point_lies_within_its_bound(seed, classes, l2, intercept, away):
    X, y = small_table(seed, classes)
    problem = Problem(n_features=2, n_classes=classes, l2=l2, intercept=intercept)
    best = solve(X, y, problem)
    exact = exact_optimum(X, y, problem, best.theta)
    shift = np.random.default_rng(seed).normal(size=best.theta.shape)
    shift = shift - shift.mean(axis=0) if classes > 2 else shift
    theta = best.theta + away * shift / np.linalg.norm(shift)
    assert distance(theta, exact) <= certify(point_at(X, y, theta, problem), problem.loss).distance_bound


def point_at(X, y, theta, problem):
    sums = problem.loss.fold([(X, y)], theta)
    H = sums.curvature + np.diag(problem.penalty.ravel())
    if problem.n_classes > 2:
        C, k = theta.shape
        H = H + np.kron(np.ones((C, C)), np.eye(k))
    constant = [] if problem.intercept == "none" else [problem.constant]
    return FitPoint(
        theta=theta,
        gradient=sums.gradient + problem.penalty * theta,
        curvature=H,
        sums=sums,
        column_bound=np.r_[np.abs(X).max(axis=0), constant],
        l2_floor=problem.l2 if problem.strongly_convex else 0.0,
    )


@settings(max_examples=30, deadline=None)
@given(**cases, size=st.sampled_from([0.1, 1.0, 30.0]))
def test_rounding_errors_are_within_their_bounds(seed, classes, l2, intercept, size):
    X, y = small_table(seed, classes)
    problem = Problem(n_features=2, n_classes=classes, l2=l2, intercept=intercept)
    theta = np.random.default_rng(seed).normal(size=problem.loss.shape) * size
    sums = problem.loss.fold([(X, y)], theta)
    point = point_at(X, y, theta, problem)
    bound, _ = rounding_errors(point, problem.loss)
    exact, _ = exact_gradient_and_curvature(X, y, [mpmath.mpf(float(t)) for t in theta.ravel()], problem)
    for computed, true, allowed in zip(point.gradient.ravel(), exact, bound.ravel(), strict=True):
        assert abs(mpmath.mpf(float(computed)) - true) <= allowed
    assert bound.max() <= 1e-9 * max(1.0, sums.residual) * size**2 * np.abs(X).max() ** 2 + 1e-9  # and not useless


def test_the_bound_is_tight_near_the_optimum():
    X, y = small_table(3, 2)
    problem = Problem(n_features=2, l2=1.0, intercept="none")
    best = fit(lambda: [(X, y)], problem=problem)
    _, vectors = np.linalg.eigh(best.curvature)
    theta = best.theta + 1e-4 * vectors[:, 0]
    assert certify(point_at(X, y, theta, problem), problem.loss).distance_bound == pytest.approx(1e-4, rel=0.03)


def test_nothing_is_certified_on_separable_classes():
    X = np.linspace(-1, 1, 20)[:, None]
    y = (X[:, 0] > 0).astype(np.int64)
    problem = Problem(n_features=1, intercept="none")
    for size in (1.0, 10.0, 100.0, 1000.0):
        assert certify(point_at(X, y, np.array([size]), problem), problem.loss).distance_bound == math.inf


@pytest.mark.parametrize("size", [1, 2, 30, 200])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_eigenvalue_bound_is_above_and_near(size, scale):
    A = np.random.default_rng(size).normal(size=(size, size))
    A = A @ A.T * scale
    largest = np.linalg.eigvalsh(A)[-1]
    assert largest * (1 - 1e-12) <= _largest_eigenvalue(A) <= size ** (1 / 32) * largest * (1 + 1e-9)
