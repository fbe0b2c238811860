from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, lambertw, softmax

from tacit.errors import SettingError
from tacit.models.sensitivity import (
    gradient_diameter,
    minimiser_norm_bound,
    minimiser_sensitivity,
    party_sensitivity,
)
from tacit.models.solver import Problem, fit

TABLE = {2: 1.006, 1: 1.019, 0.5: 1.050, 0.1: 1.214, 0.05: 1.328, 0.01: 1.637, 0.001: 1.907, 1e-4: 1.982}


@pytest.mark.parametrize(("l2_mean", "diameter"), TABLE.items())
def test_equals_the_known_values(l2_mean, diameter):
    assert gradient_diameter(minimiser_norm_bound(l2_mean, 1.0), 1.0) == pytest.approx(diameter, abs=6e-4)


@settings(max_examples=40, deadline=None)
@given(bound=st.floats(0, 200), radius=st.floats(0.01, 20), seed=st.integers(0, 1000))
def test_no_pair_of_gradients_is_further_apart(bound, radius, seed):
    rng = np.random.default_rng(seed)
    dimension = int(rng.integers(1, 4))
    w = rng.normal(size=dimension)
    w *= bound * rng.random() ** 0.2 / np.linalg.norm(w)
    u = rng.normal(size=(2000, dimension))
    u *= radius / np.linalg.norm(u, axis=1, keepdims=True)
    points = expit(-(u @ w))[:, None] * u
    apart = max(float(np.linalg.norm(points - p, axis=1).max()) for p in points[:200])
    assert apart <= gradient_diameter(bound, radius)


@pytest.mark.parametrize("b", [1e-3, 0.3, 1.0, 5.0, 30.0, 900.0])
def test_the_diameter_is_nearly_attained(b):
    a = np.linspace(0, math.pi, 4001)
    p = expit(-b * np.cos(a))
    points = np.c_[p * np.cos(a), p * np.sin(a)]
    mirrored = points * [1, -1]
    attained = max(float(np.linalg.norm(mirrored - q, axis=1).max()) for q in points[::4])
    assert attained <= gradient_diameter(b, 1.0) <= attained + 2e-3 * min(1.0, b / 10) + 1e-5


@settings(max_examples=100, deadline=None)
@given(bound=st.floats(0, 1e5), radius=st.floats(1e-3, 1e3))
def test_the_diameter_stays_below_the_simple_bounds_and_scales(bound, radius):
    diameter = gradient_diameter(bound, radius)
    assert radius <= diameter <= 2 * radius * expit(radius * bound) * (1 + 1e-9)
    assert diameter == pytest.approx(radius * gradient_diameter(radius * bound, 1.0), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(bound=st.floats(0, 50), more=st.floats(1, 3))
def test_the_diameter_grows_with_the_bound(bound, more):
    assert gradient_diameter(bound, 1.0) <= gradient_diameter(bound * more, 1.0) + 2e-7


@settings(max_examples=60, deadline=None)
@given(l2_mean=st.floats(1e-4, 10), radius=st.floats(0.1, 5), classes=st.sampled_from([2, 3, 6]))
def test_the_longest_minimiser_is_not_longer_than_the_bound(l2_mean, radius, classes):
    """One record on the boundary, or nearer if its scores would be too large: it attains the bound."""
    bound = minimiser_norm_bound(l2_mean, radius, classes)
    pull = 1 + float(lambertw((classes - 1) / math.e).real)  # a*, where a record pulls hardest
    stretch = 1.0 if classes == 2 else math.sqrt(classes / (classes - 1))
    X, y = np.array([[min(radius, pull / (stretch * bound))]]), np.array([0])
    problem = Problem(n_features=1, n_classes=classes, l2=l2_mean, intercept="none", tolerance=1e-12)
    longest = float(np.linalg.norm(fit(lambda: [(X, y)], problem=problem).theta))
    assert longest <= bound * (1 + 1e-9)
    assert longest == pytest.approx(bound, rel=1e-6)
    assert bound <= math.sqrt(2 * math.log(classes) / l2_mean)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    classes=st.sampled_from([2, 3, 6]),
    l2_mean=st.sampled_from([1e-3, 1e-2, 0.1, 1.0]),
    radius=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_no_data_set_has_a_longer_minimiser(seed, classes, l2_mean, radius):
    """Rows of many lengths and directions, with labels that follow a model, or the class of the first row for all."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 20)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    X *= radius * rng.random((n, 1)) ** rng.choice([0.0, 0.3, 1.0]) / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.argmax(X @ rng.normal(size=(d, classes)), axis=1) if rng.random() < 0.7 else np.zeros(n, dtype=np.int64)
    problem = Problem(n_features=d, n_classes=classes, l2=n * l2_mean, intercept="none")
    found = fit(lambda: [(X, y)], problem=problem)
    assert np.linalg.norm(found.theta) <= minimiser_norm_bound(l2_mean, radius, classes) + found.distance_bound


@pytest.mark.parametrize("classes", [2, 3, 6, 12])
def test_no_scores_pull_harder_than_lamberts_function_says(classes):
    """f = s_y - sum_c p_c s_c by search, from random scores uphill: steps 2 and 3 of the proof; 4 for short ones."""
    largest = float(lambertw((classes - 1) / math.e).real)
    rng = np.random.default_rng(classes)

    def pull(s):
        p = softmax(s, axis=-1)
        return s[..., 0] - (p * s).sum(axis=-1)

    spread = rng.normal(size=(50_000, classes)) * rng.choice([0.3, 1.0, 3.0], size=(50_000, 1))
    assert pull(spread).max() <= largest
    best = max((minimize(lambda s: -pull(s), s, tol=1e-12).fun for s in spread[:5]), key=abs)
    assert -best == pytest.approx(largest, rel=1e-6)
    stretch = math.sqrt(classes / (classes - 1))
    for length in (0.2, 0.5, 0.8):
        short = spread / np.linalg.norm(spread, axis=1, keepdims=True) * length
        short[0] = -1 / math.sqrt(classes * (classes - 1))
        short[0, 0] = (classes - 1) / math.sqrt(classes * (classes - 1))
        short[0] *= length
        t = stretch * length
        assert pull(short).max() == pytest.approx((classes - 1) * t / (math.exp(t) + classes - 1), rel=1e-9)


def neighbours(seed, n, dimension, classes, radius):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 1, dimension))
    X *= radius * rng.random((n + 1, 1)) ** (1 / dimension) / np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, classes, n + 1)
    if n > 1 and rng.random() < 0.5:  # adversarial: aligned rows of full length, the two that differ pull apart
        X[2:] = radius * X[2] / np.linalg.norm(X[2])
        y[2:] = 0
        X[0], X[1] = -X[2], X[2]
        y[0], y[1] = rng.integers(0, classes, 2)
        turn = rng.normal(size=(2, dimension)) * rng.choice([0.0, 0.3, 1.0])
        X[:2] += turn * radius
        X[:2] *= radius / np.linalg.norm(X[:2], axis=1, keepdims=True)
    return (X[[0, *range(2, n + 1)]], y[[0, *range(2, n + 1)]]), (X[1:], y[1:])


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(1, 12),
    classes=st.sampled_from([2, 3]),
    l2_mean=st.sampled_from([1e-3, 1e-2, 0.1, 0.5, 2.0]),
    radius=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_neighbouring_minimisers_stay_within_the_sensitivity(seed, n, classes, l2_mean, radius):
    problem = Problem(n_features=2, n_classes=classes, l2=n * l2_mean, intercept="none")
    one, other = (fit(lambda X=X, y=y: [(X, y)], problem=problem) for X, y in neighbours(seed, n, 2, classes, radius))
    slack = one.distance_bound + other.distance_bound
    moved = np.linalg.norm(one.theta - other.theta)
    assert moved <= minimiser_sensitivity(n, l2_mean, radius, classes) + slack
    assert moved <= party_sensitivity(l2_mean, radius, classes) + slack


def test_the_sensitivity_is_nearly_attained_under_strong_penalties():
    """Two records at right angles to a long minimiser, opposite each other: the bound must not be loose by much."""
    n, l2_mean = 50, 1.0
    X = np.tile([1.0, 0.0], (n, 1))
    y = np.ones(n, dtype=np.int64)
    problem = Problem(n_features=2, l2=n * l2_mean, intercept="none")
    ends = []
    for sign in (1.0, -1.0):
        s = -0.3  # a little against the minimiser, where the gradient is longer
        X[0] = [s, sign * math.sqrt(1 - s * s)]
        ends.append(fit(lambda: [(X.copy(), y)], problem=problem).theta)
    moved = np.linalg.norm(ends[0] - ends[1])
    bound = minimiser_sensitivity(n, l2_mean, 1.0)
    assert 0.8 * bound <= moved <= bound


def test_a_single_record_never_moves_it_further_than_a_party():
    assert minimiser_sensitivity(1, 1e-4, 1.0) == party_sensitivity(1e-4, 1.0)
    assert minimiser_sensitivity(10_000, 1e-4, 1.0) < party_sensitivity(1e-4, 1.0)


def test_hamm_ensemble_value():
    """At Lam = 1e-4 and C = 6 the norm bound gives 2 sqrt(W(5/e) / Lam) = 180.5; J(w) <= J(0) alone would give 379."""
    assert party_sensitivity(1e-4, 1.0, 6) == pytest.approx(180.505, abs=0.01)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: minimiser_norm_bound(0.0, 1.0), "l2_mean = 0.0"),
        (lambda: minimiser_norm_bound(1.0, math.inf), "radius = inf"),
        (lambda: minimiser_norm_bound(1.0, 1.0, 1), "n_classes = 1"),
        (lambda: gradient_diameter(-1.0, 1.0), "minimiser_bound = -1"),
        (lambda: minimiser_sensitivity(0, 1.0, 1.0), "n_records = 0"),
    ],
)
def test_missing_bounds_are_errors(call, match):
    with pytest.raises(SettingError, match=match):
        call()
