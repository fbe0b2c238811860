from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import DataError, NotConverged, SettingError
from tacit.models import batch
from tacit.models.batch import fit_many
from tacit.models.solver import Problem, fit


def crowd(seed, sizes, features, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), features))
    y = rng.integers(0, classes, len(X))
    return X, y, np.r_[0, np.cumsum(sizes)].astype(np.int64)


def assert_equals_single(X, y, offsets, many, l2):
    for p in range(len(offsets) - 1):
        rows = slice(offsets[p], offsets[p + 1])
        if rows.start == rows.stop:
            np.testing.assert_array_equal(many.theta[p], 0)
            continue
        problem = Problem(
            n_features=X.shape[1],
            n_classes=many.problem.n_classes,
            l2=l2[p],
            intercept=many.problem.intercept,
            constant=many.problem.constant,
        )
        single = fit(lambda rows=rows: [(X[rows], y[rows])], problem=problem)
        np.testing.assert_allclose(many.theta[p], single.theta, atol=1e-7)
        coef, intercept = np.atleast_2d(many.coef[p]), np.atleast_1d(many.intercept[p])
        np.testing.assert_allclose(coef, single.coef, atol=1e-7)
        np.testing.assert_allclose(intercept, single.intercept, atol=1e-7)
        assert np.linalg.norm(many.theta[p] - single.theta) <= many.distance_bound[p] + single.distance_bound


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", ["feature", "none"])
@pytest.mark.parametrize("features", [3, 40])
@pytest.mark.parametrize("l2", [1e-2, 10.0])
def test_equals_the_single_solver(classes, intercept, features, l2):
    sizes = [0, 1, 1, 2, 5, 9, 11, 22, 22, 30, 90]  # those with one or two records have one class only
    X, y, offsets = crowd(0, sizes, features, classes)
    problem = Problem(n_features=features, n_classes=classes, l2=l2, intercept=intercept, constant=0.7)
    many = fit_many(X, y, offsets, problem=problem)
    assert_equals_single(X, y, offsets, many, np.full(len(sizes), l2))
    assert many.distance_bound.max() <= 1e-6


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("features", [3, 40])
def test_a_free_intercept_equals_the_single_solver(classes, features):
    sizes = [6, 12, 13, 40]
    X, y, offsets = crowd(1, sizes, features, classes)
    for p in range(len(sizes)):
        y[offsets[p] : offsets[p] + classes] = np.arange(classes)
    problem = Problem(n_features=features, n_classes=classes, l2=0.5)
    many = fit_many(X, y, offsets, problem=problem)
    assert_equals_single(X, y, offsets, many, np.full(len(sizes), 0.5))
    assert np.isfinite(many.distance_bound).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(0, 15), min_size=1, max_size=12),
    features=st.integers(1, 12),
    exponent=st.integers(-5, 3),
)
def test_unequal_sizes_and_penalties(seed, sizes, features, exponent):
    X, y, offsets = crowd(seed, sizes, features)
    l2 = 10.0**exponent * np.random.default_rng(seed).uniform(0.5, 2, len(sizes))
    many = fit_many(X, y, offsets, problem=Problem(n_features=features, intercept="feature"), l2=l2)
    assert_equals_single(X, y, offsets, many, l2)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_bound_is_a_bound_on_the_gradient_over_the_penalty(classes):
    X, y, offsets = crowd(2, [4, 8, 30], 6, classes)
    problem = Problem(n_features=6, n_classes=classes, l2=0.3, intercept="feature")
    many = fit_many(X, y, offsets, problem=problem)
    for p in range(3):
        rows = slice(offsets[p], offsets[p + 1])
        gradient = problem.loss.fold([(X[rows], y[rows])], many.theta[p]).gradient + 0.3 * many.theta[p]
        assert np.linalg.norm(gradient) / 0.3 <= many.distance_bound[p]
        assert many.gradient_norm[p] == pytest.approx(np.linalg.norm(gradient), abs=1e-13)


def test_separable_problems_with_a_tiny_penalty():
    X, _, offsets = crowd(3, [10] * 20, 5)
    y = (X[:, 0] > 0).astype(np.int64)
    l2 = np.full(20, 1e-6)
    many = fit_many(X, y, offsets, problem=Problem(n_features=5, intercept="feature"), l2=l2)
    loss = many.problem.loss
    for p in range(20):
        rows = slice(offsets[p], offsets[p + 1])
        gradient = loss.fold([(X[rows], y[rows])], many.theta[p]).gradient + 1e-6 * many.theta[p]
        assert np.linalg.norm(gradient) <= 1e-12
        assert many.distance_bound[p] <= 1e-5


@pytest.mark.parametrize("l2", [1e-300, 1e-18, 1e-9])
def test_a_penalty_that_rounding_swallows_fails_in_no_stack(l2):
    X = np.repeat(np.random.default_rng(4).normal(size=(2, 30)), 5, axis=0)  # the same two rows again and again
    y, offsets = np.tile([0, 1], 5), np.array([0, 4, 10])
    many = fit_many(X, y, offsets, problem=Problem(n_features=30, l2=l2, intercept="none"), finish=False)
    assert many.theta.shape == (2, 30)
    assert not (many.distance_bound < 0).any()


def test_repeated_and_empty_rows():
    X = np.repeat(np.random.default_rng(4).normal(size=(3, 30)), 4, axis=0)
    X[:4] = 0
    y, offsets = np.tile([0, 1, 1], 4), np.array([0, 4, 12])
    many = fit_many(X, y, offsets, problem=Problem(n_features=30, l2=0.1, intercept="none"))
    assert_equals_single(X, y, offsets, many, [0.1, 0.1])


def test_what_the_stack_leaves_over_goes_through_the_single_solver(monkeypatch):
    monkeypatch.setattr(batch, "_LAST_STEP", 10.0)  # the stacked search stops after its first step
    X, y, offsets = crowd(5, [10] * 5, 3)
    many = fit_many(X, y, offsets, problem=Problem(n_features=3, l2=0.1, intercept="feature"))
    assert_equals_single(X, y, offsets, many, np.full(5, 0.1))
    assert many.distance_bound.max() <= 1e-8


def test_no_problems_at_all():
    X, y = np.zeros((0, 3)), np.zeros(0, dtype=np.int64)
    many = fit_many(X, y, np.zeros(1, dtype=np.int64), problem=Problem(n_features=3, l2=1.0))
    assert many.theta.shape == (0, 4)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"X": np.full((4, 2), np.nan)}, DataError, "finite float64"),
        ({"y": np.full(4, 2)}, DataError, "class indices from 0 to 1"),
        ({"offsets": np.array([0, 3])}, DataError, "offsets must rise from 0 to the number of rows, 4"),
        ({"offsets": np.array([0, 3, 2, 4])}, DataError, "offsets must rise"),
        ({"l2": np.zeros(2)}, SettingError, "l2 must be positive"),
        ({"l2": np.ones(3)}, SettingError, "each of 2 problems"),
        ({"problem": Problem(n_features=2, l2=1.0, start=np.zeros(3))}, SettingError, "need solver.fit"),
        ({"problem": Problem(n_features=2, l2=1.0)}, NotConverged, "no record has class 1"),
    ],
)
def test_unfit_input_is_refused(change, error, match):
    given_ = {
        "X": np.ones((4, 2)),
        "y": np.array([0, 1, 0, 0]),
        "offsets": np.array([0, 2, 4]),
        "problem": Problem(n_features=2, l2=1.0, intercept="feature"),
        **change,
    }
    with pytest.raises(error, match=match):
        fit_many(given_.pop("X"), given_.pop("y"), given_.pop("offsets"), **given_)
