from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from tacit.errors import SettingError
from tacit.models.inference import covariance_of, infer
from tacit.models.solver import Problem, fit


def table(classes=2, rows=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    scores = X @ rng.normal(size=(3, classes)) * 0.7 + rng.gumbel(size=(rows, classes))
    return X, scores.argmax(axis=1).astype(np.int64)


def solve(X, y, **settings):
    return fit(lambda: [(X, y)], problem=Problem(n_features=X.shape[1], n_classes=int(y.max()) + 1, **settings))


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_equals_statsmodels_logit(intercept):
    X, y = table()
    ours = infer(solve(X, y, intercept=intercept))
    theirs = sm.Logit(y, X if intercept == "none" else np.c_[X, np.ones(len(X))]).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(ours.estimate, theirs.params, atol=1e-8)
    np.testing.assert_allclose(ours.standard_error, theirs.bse, atol=1e-8)
    np.testing.assert_allclose(ours.z, theirs.tvalues, atol=1e-6)
    np.testing.assert_allclose(ours.p, theirs.pvalues, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(np.c_[ours.low, ours.high], theirs.conf_int(), atol=1e-7)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    assert ours.aic == pytest.approx(theirs.aic, abs=1e-8)
    assert ours.n_records == theirs.nobs


@pytest.mark.parametrize("reference", [0, 2])
def test_equals_statsmodels_mnlogit(reference):
    X, y = table(classes=3)
    solution = solve(X, y)
    others = np.delete(np.eye(3), reference, axis=0)
    others[:, reference] = -1.0  # each other class's parameters minus those of the reference
    ours = infer(solution, units=np.kron(others, np.eye(4)))
    order = np.argsort([reference, *(c for c in range(3) if c != reference)])
    theirs = sm.MNLogit(order[y], np.c_[X, np.ones(len(X))]).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(ours.estimate, theirs.params.T.ravel(), atol=1e-7)
    np.testing.assert_allclose(ours.standard_error, theirs.bse.T.ravel(), atol=1e-7)
    np.testing.assert_allclose(ours.p, theirs.pvalues.T.ravel(), rtol=1e-6, atol=1e-300)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    assert ours.aic == pytest.approx(theirs.aic, abs=1e-8)


def test_units_undo_the_scaling_of_features():
    X, y = table()
    low, width = np.array([-3.0, 1.0, 10.0]), np.array([2.0, 0.5, 30.0])
    J = np.zeros((4, 4))  # theta.(x - low) / width + b
    J[[0, 1, 2], [0, 1, 2]] = 1 / width
    J[3] = np.r_[-low / width, 1.0]
    scaled = infer(solve((X - low) / width, y), units=J)
    plain = infer(solve(X, y))
    np.testing.assert_allclose(scaled.estimate, plain.estimate, atol=1e-7)
    np.testing.assert_allclose(scaled.standard_error, plain.standard_error, atol=1e-7)


def test_an_intercept_is_told_times_its_constant():
    X, y = table()
    for classes in (2, 3):
        X, y = table(classes)
        one, two = (infer(solve(X, y, constant=constant)) for constant in (1.0, 0.25))
        np.testing.assert_allclose(one.estimate, two.estimate, atol=1e-7)
        np.testing.assert_allclose(one.standard_error, two.standard_error, atol=1e-7)


def test_a_penalised_fit_reports_the_inverse_of_its_curvature():
    X, y = table()
    solution = solve(X, y, l2=5.0, intercept="feature")
    np.testing.assert_allclose(covariance_of(solution) @ solution.curvature, np.eye(4), atol=1e-12)
    assert (infer(solution).standard_error < infer(solve(X, y)).standard_error).all()


def test_a_softmax_covariance_is_the_pseudo_inverse():
    X, y = table(classes=3)
    solution = solve(X, y)
    np.testing.assert_allclose(covariance_of(solution), np.linalg.pinv(solution.curvature, rcond=1e-10), atol=1e-10)


def test_the_interval_widens_with_confidence():
    X, y = table()
    solution = solve(X, y)
    narrow, wide = infer(solution, confidence=0.5), infer(solution, confidence=0.99)
    assert (wide.low < narrow.low).all()
    assert (narrow.high < wide.high).all()
    assert ((narrow.low <= narrow.estimate) & (narrow.estimate <= narrow.high)).all()


def test_impossible_questions_are_refused():
    X, y = table()
    solution = solve(X, y)
    with pytest.raises(SettingError, match="confidence = 1"):
        infer(solution, confidence=1.0)
    with pytest.raises(SettingError, match="one column for each of 4 parameters"):
        infer(solution, units=np.eye(3))
