"""What is made of the opened sums of weights and of t: the weights of records, and the level of a model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from tacit import Federation, Rng
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.opening import told_weights
from tacit.methods.newton.shrinkage import shrunken

WEIGHTS = (8, 4, 2, 1, 1)


@given(w=st.floats(0.15, 0.99), uneven=st.floats(0.0, 0.2), noises=st.tuples(st.floats(0, 2), st.floats(0, 2)))
@settings(max_examples=200, deadline=None)
def test_weights_are_such_as_rows_can_have(w: float, uneven: float, noises: tuple[float, float]) -> None:
    rng = np.random.default_rng(round(1e6 * w))
    squared = min(w**2 * (1 + uneven), w)
    told = told_weights(
        w + noises[0] * rng.normal(), squared + noises[1] * rng.normal(),
        noise_std=noises[0], squared_noise_std=noises[1],
    )  # fmt: skip
    assert 0.1 <= told.mean <= 1
    assert told.mean**2 <= told.squared <= told.mean
    assert 0 <= told.std <= 0.1 + 1e-12  # of what is usual beforehand
    exact = told_weights(w, squared, noise_std=0.0, squared_noise_std=0.0)
    assert exact.mean == pytest.approx(w)
    assert exact.squared == pytest.approx(squared)


@pytest.mark.parametrize(("noise_std", "squared_noise_std"), [(0.3, 0.05), (0.03, 0.03), (0.02, 0.3), (1.4, 0.9)])
def test_the_weight_is_nearer_the_truth_than_either_sum_says_and_its_error_is_told(
    noise_std: float, squared_noise_std: float
) -> None:
    rng = np.random.default_rng(0)
    errors, claimed, alone = [], [], []
    for _ in range(400):
        w = min(0.98, 0.85 + 0.1 * rng.normal())
        seen, squared = w + noise_std * rng.normal(), w**2 * 1.01 + squared_noise_std * rng.normal()
        told = told_weights(seen, squared, noise_std=noise_std, squared_noise_std=squared_noise_std)
        errors.append(told.mean - w)
        claimed.append(told.std)
        alone.append((seen - w, math.sqrt(max(squared, 0.01)) - w))
    error = np.sqrt(np.mean(np.square(errors)))
    assert error < np.sqrt(np.mean(np.square(alone), axis=0)).min()
    assert 0.6 < error / np.mean(claimed) < 1.3


def test_the_level_is_told_by_counts_alone_where_columns_may_matter_and_by_all_sums_where_they_do_not() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(0.2, 1, size=(4000, 6))
    rows[:, -1] = 1.0
    M, q = rows.T @ rows, np.eye(6)[-1]
    along = M @ q
    Q = (M - np.outer(along, along) / along[-1]) / len(rows)
    H, noise = 0.25 * M, 1e4

    def variance(right: np.ndarray) -> float:
        found = shrunken([H], right[None], np.zeros((1, 6)), variance=noise, spread=Q, free=q)
        return found.level_variance

    counts = noise + float(q @ H @ q)  # of q'right
    x = H @ q  # how an intercept moves all of right
    everything = float(x @ q) ** 2 / float(x @ np.linalg.solve(H + noise * np.eye(6), x))
    assert everything < 0.5 * counts
    nothing = variance(np.zeros(6))
    strong = variance(H @ np.array([6.0, -6.0, 6.0, -6.0, 6.0, 0.0]))
    assert everything <= nothing < strong <= counts * (1 + 1e-9)
    assert nothing < 1.5 * everything


def test_without_a_signal_the_model_is_nearly_as_good_as_the_class_frequencies() -> None:
    rng = np.random.default_rng(0)
    groups = [np.eye(6)[rng.integers(0, 6, size=20_000)] for _ in range(5)]
    X = np.concatenate(groups, axis=1) / math.sqrt(5)
    y = (rng.random(20_000) < 0.12).astype(int)
    p = float(y.mean())
    excess = []
    for seed in range(12):
        parties = Federation.split(X, y, weights=WEIGHTS, norm_bound=1.0, rng=Rng.seeded(seed))
        scores = PrivateNewton(epsilon=0.1).fit(parties).decision_function(X)
        loss = np.mean(np.logaddexp(0, np.where(y == 1, -scores, scores)))
        excess.append(loss + p * math.log(p) + (1 - p) * math.log(1 - p))
        assert abs(float(np.mean(expit(scores))) - p) < 0.2
    assert np.mean(excess) < 0.0075  # 0.010 when counts alone told the level, with the noise of weights uncounted
