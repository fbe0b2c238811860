from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import SettingError
from tacit.models.loss import CHUNK_ROWS, Loss


def records(seed: int, rows: int, loss: Loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, loss.n_features))
    return X, rng.integers(0, loss.n_classes, rows), rng.normal(size=loss.shape)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.3])
def test_gradient_and_curvature_are_the_derivatives(n_classes, constant):
    loss = Loss(n_features=4, n_classes=n_classes, constant=constant)
    X, y, theta = records(0, 40, loss)
    at = loss.fold([(X, y)], theta)
    step = 1e-5
    for j in range(theta.size):
        shift = np.zeros(theta.size)
        shift[j] = step
        up = loss.fold([(X, y)], theta + shift.reshape(theta.shape))
        down = loss.fold([(X, y)], theta - shift.reshape(theta.shape))
        assert (up.loss - down.loss) / (2 * step) == pytest.approx(at.gradient.ravel()[j], abs=1e-7)
        np.testing.assert_allclose(
            (up.gradient - down.gradient).ravel() / (2 * step), at.curvature[j], atol=1e-7, rtol=1e-7
        )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_loss_is_minus_the_log_likelihood(n_classes):
    loss = Loss(n_features=3, n_classes=n_classes)
    X, y, theta = records(1, 25, loss)
    scores = loss.scores(X, theta)
    scores = np.c_[np.zeros(25), scores] if n_classes == 2 else scores
    P = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert loss.fold([(X, y)], theta).log_likelihood == pytest.approx(np.log(P[np.arange(25), y]).sum(), rel=1e-12)


def test_softmax_with_two_opposite_vectors_is_logistic():
    binary, softmax = Loss(n_features=3), Loss(n_features=3, n_classes=3)
    X, y, theta = records(2, 30, binary)
    low = np.array([0.0, 0.0, 0.0, -1e3])  # a third class that nothing belongs to
    three = softmax.fold([(X, y)], np.stack([-theta / 2, theta / 2, low]))
    two = binary.fold([(X, y)], theta)
    assert three.loss == pytest.approx(two.loss, rel=1e-12)
    np.testing.assert_allclose(three.gradient[1], two.gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(three.curvature[4:8, 4:8], two.curvature, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("margin", [1e2, 1e4, -1e4])
def test_huge_margins_are_exact_and_silent(n_classes, margin):
    loss = Loss(n_features=1, n_classes=n_classes, constant=0)
    theta = np.array([margin]) if n_classes == 2 else np.array([[0.0], [margin], [-1e5]])
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        sums = loss.fold([(np.ones((1, 1)), np.array([1]))], theta)
    expected = np.exp(-margin) if margin > 0 else -margin
    assert sums.loss == pytest.approx(expected, rel=1e-12)
    assert np.abs(sums.gradient).max() == pytest.approx(min(1.0, expected), rel=1e-12)  # no cancellation of 1 - p


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(0, 60), n_classes=st.sampled_from([2, 3]))
def test_sums_of_two_tables_add_up(seed, cut, n_classes):
    loss = Loss(n_features=3, n_classes=n_classes)
    X, y, theta = records(seed, 60, loss)
    whole = loss.fold([(X, y)], theta)
    parts = loss.fold([(X[:cut], y[:cut])], theta) + loss.fold([(X[cut:], y[cut:])], theta)
    assert parts.n_records == whole.n_records == 60
    assert parts.loss == pytest.approx(whole.loss, rel=1e-12)
    assert parts.residual == pytest.approx(whole.residual, rel=1e-12)
    np.testing.assert_allclose(parts.gradient, whole.gradient, atol=1e-12)
    np.testing.assert_allclose(parts.curvature, whole.curvature, atol=1e-12)


def test_a_pass_without_curvature_says_so():
    loss = Loss(n_features=2)
    X, y, theta = records(3, CHUNK_ROWS + 10, loss)
    with_curvature = loss.sums(lambda: [(X, y)], theta)
    without = loss.sums(lambda: [(X, y)], theta, curvature=False)
    assert without.curvature is None
    assert (without + with_curvature).curvature is None
    np.testing.assert_array_equal(without.gradient, with_curvature.gradient)
    assert without.n_chunks == 2


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.sampled_from([2, 3, 6]), size=st.floats(0.01, 100))
def test_one_record_stays_within_the_stated_bounds(seed, n_classes, size):
    loss = Loss(n_features=3, n_classes=n_classes, constant=0.5)
    X, y, theta = records(seed, 1, loss)
    radius = float(np.hypot(np.linalg.norm(X), 0.5))
    sums = loss.fold([(X, y)], size * theta)
    assert np.linalg.norm(sums.gradient) <= loss.gradient_norm_bound(radius) * (1 + 1e-12)
    assert np.linalg.eigvalsh(sums.curvature)[-1] <= loss.smoothness_bound(radius) * (1 + 1e-12)


def test_the_bounds_are_attained():
    binary, softmax = Loss(n_features=1, constant=0), Loss(n_features=1, n_classes=3, constant=0)
    one = [(np.ones((1, 1)), np.array([0]))]
    assert np.linalg.norm(binary.fold(one, np.array([50.0])).gradient) == pytest.approx(1.0)
    theta = np.array([[-50.0], [50.0], [-50.0]])
    assert np.linalg.norm(softmax.fold(one, theta).gradient) == pytest.approx(np.sqrt(2))
    assert np.linalg.eigvalsh(binary.fold(one, np.zeros(1)).curvature)[-1] == pytest.approx(0.25)
    tie = np.array([[0.0], [0.0], [-50.0]])
    assert np.linalg.eigvalsh(softmax.fold(one, tie).curvature)[-1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("settings_", "match"),
    [
        ({"n_features": 0, "constant": 0.0}, "n_features = 0"),
        ({"n_features": 2, "n_classes": 1}, "n_classes = 1"),
        ({"n_features": 2, "constant": np.inf}, "constant = inf"),
    ],
)
def test_impossible_losses_are_refused(settings_, match):
    with pytest.raises(SettingError, match=match):
        Loss(**settings_)
