"""The audit: finds what is there, and no more than that."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import SettingError
from tacit.privacy.audit import audit_outcomes
from tacit.privacy.gaussian import gaussian_mu


def laplace(chance: np.random.Generator, shift: float, scale: float, n: int) -> np.ndarray:
    return chance.laplace(shift, scale, n)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_it_comes_near_the_truth_for_laplace_noise(epsilon: float) -> None:
    chance = np.random.default_rng(1)
    found = audit_outcomes(laplace(chance, 0, 1 / epsilon, 20_000), laplace(chance, 1, 1 / epsilon, 20_000))
    assert 0.8 * epsilon - 0.1 < found.epsilon <= epsilon


def test_what_keeps_its_promise_is_rarely_found_to_break_it() -> None:
    """At confidence 90 % the bound may exceed the truth in one audit of ten; here in 200 audits."""
    chance = np.random.default_rng(2)
    exceeded = 0
    for _ in range(200):
        first, second = (laplace(chance, shift, 1.0, 400) for shift in (0, 1))
        exceeded += audit_outcomes(first, second, confidence=0.9).epsilon > 1.0
    assert exceeded <= 30  # binomial(200, 0.1) exceeds 30 with probability below 0.01


def test_half_the_noise_is_caught_pure_and_gaussian() -> None:
    chance = np.random.default_rng(3)
    assert audit_outcomes(laplace(chance, 0, 0.5, 4000), laplace(chance, 1, 0.5, 4000)).epsilon > 1.0
    half = 1 / gaussian_mu(1.0, 0.01) / 2
    found = audit_outcomes(chance.normal(0, half, 8000), chance.normal(1, half, 8000), delta=0.01)
    assert found.epsilon > 1.0
    right = audit_outcomes(chance.normal(0, 2 * half, 8000), chance.normal(1, 2 * half, 8000), delta=0.01)
    assert right.epsilon <= 1.0


def test_a_difference_hidden_in_correlated_numbers_is_found() -> None:
    chance = np.random.default_rng(4)
    common = chance.normal(size=(2, 4000, 1)) * 100
    noise = chance.normal(size=(2, 4000, 2)) * 0.1
    outcomes = common + noise
    outcomes[1, :, 0] += 0.5  # five standard deviations of what remains when the common part is taken away
    assert audit_outcomes(outcomes[0], outcomes[1]).epsilon > 3


def test_equal_distributions_show_nothing() -> None:
    chance = np.random.default_rng(5)
    assert audit_outcomes(chance.normal(size=(2000, 3)), chance.normal(size=(2000, 3))).epsilon < 0.2


def test_a_certain_difference_is_bounded_by_the_number_of_runs_only() -> None:
    found = audit_outcomes(np.zeros(1000), np.ones(1000))
    assert 3 < found.epsilon < math.log(1000)


def test_bad_input_is_named() -> None:
    with pytest.raises(SettingError, match="20 runs or more"):
        audit_outcomes(np.zeros(10), np.zeros(10))
    with pytest.raises(SettingError, match="alike"):
        audit_outcomes(np.zeros((30, 2)), np.zeros((30, 3)))
    with pytest.raises(SettingError, match="confidence = 1"):
        audit_outcomes(np.zeros(30), np.zeros(30), confidence=1)
