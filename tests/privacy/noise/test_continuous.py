"""The claim of `privacy.noise.continuous`, in numbers: laws that are worked out, not drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import SettingError
from tacit.privacy.accounting import epsilon_of, mu_for
from tacit.privacy.event import Repeated
from tacit.privacy.gaussian import gaussian_delta
from tacit.privacy.noise.continuous import LEAST_PARAMETER, ROUNDED, share_parameter
from tacit.privacy.noise.grid import VectorSum, gaussian_grid, mu_event, mu_grid

Law = np.ndarray[tuple[int], np.dtype[np.float64]]


def law_of_sum(parameter: float, shares: int) -> Law:
    """The law of the sum of so many discrete Gaussians, about the middle of the array."""
    k = np.arange(-math.ceil(12 * parameter), math.ceil(12 * parameter) + 1)
    one = np.exp(-(k**2) / (2 * parameter**2))
    one /= one.sum()
    total = one
    for _ in range(shares - 1):
        total = np.convolve(total, one)
    return total


def hockey_stick(law: Law, moved: int, epsilon: float) -> float:
    """The least delta at epsilon for a law and the same law moved by so many steps: exact, by summing it up."""
    padded = np.pad(law, moved)
    return float(np.maximum(padded[moved:] - math.exp(epsilon) * padded[: padded.size - moved], 0).sum())


def test_discrete_noise_is_a_random_function_of_continuous_noise() -> None:
    """Steps 2 and 3: two discrete Gaussians, and N(0, 16) rounded at random."""
    k = np.arange(-60, 61)
    one = np.exp(-(k**2) / 32.0)
    one /= one.sum()
    total = np.convolve(one, one)[60:-60]  # the sum of two: S^2 = 32
    z = np.linspace(-60, 60, 12_001)
    weights = np.exp(-((k[:, None] - z[None, :]) ** 2) / 32.0)  # r = 4
    weights /= np.exp(-((np.arange(-120, 121)[:, None] - z[None, :]) ** 2) / 32.0).sum(axis=0)
    law = (weights * stats.norm(0, 4).pdf(z)).sum(axis=1) * (z[1] - z[0])  # S^2 - r^2 = 16
    middle = np.abs(k) <= 25
    np.testing.assert_allclose(law[middle], total[middle], rtol=1e-9)


def test_below_the_least_parameter_sums_are_not_gaussian() -> None:
    """The condition is needed: at a parameter of 0.4 a sum of shares is far from a discrete Gaussian."""
    for parameter, is_close in ((LEAST_PARAMETER, True), (0.4, False)):
        law = law_of_sum(parameter, 2)
        k = np.arange(law.size) - law.size // 2
        ideal = np.exp(-(k**2) / (4 * parameter**2))
        near = np.abs(k) <= 4 * parameter
        apart = np.abs(np.log(law[near] / (ideal[near] / ideal.sum()))).max()
        assert (apart < 1e-12) == is_close


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("honest", [1, 2, 5])
@pytest.mark.parametrize("moved", [8, 60])
def test_the_profile_of_the_opened_sum_is_that_of_continuous_noise(epsilon: float, honest: int, moved: int) -> None:
    """The exact delta of the shares, from their law, is at most what is charged; with less noise it is more."""
    delta = 1e-6
    noise_std = moved / mu_for(epsilon, delta)
    parameter = share_parameter(noise_std, honest)
    assert hockey_stick(law_of_sum(parameter, honest), moved, epsilon) <= delta
    less = math.sqrt(noise_std**2 * 0.98 / honest)
    assert hockey_stick(law_of_sum(less, honest), moved, epsilon) > delta
    if noise_std > 100:
        assert hockey_stick(law_of_sum(parameter, honest), moved, epsilon) > 0.95 * delta


def test_what_rounding_takes_is_added() -> None:
    for noise_std, honest in ((20.0, 1), (300.0, 7)):
        total = honest * share_parameter(noise_std, honest) ** 2
        assert noise_std**2 + ROUNDED <= total <= (noise_std**2 + ROUNDED) * (1 + 1e-11)
    assert share_parameter(1.0, 100) == LEAST_PARAMETER  # more noise than was asked, and never less
    with pytest.raises(SettingError, match="noise_std = 0"):
        share_parameter(0.0, 1)
    with pytest.raises(SettingError, match="honest = 0"):
        share_parameter(5.0, 0)


def test_a_grid_that_sums_make_coarse_keeps_its_promise() -> None:
    """A value bound so large that a step is a quarter of the sensitivity: rounding and the 16 are in the noise."""
    total = VectorSum(dimension=1, sensitivity=1.0, value_bound=2.0**57, n_parties=2, colluders=1)
    grid = gaussian_grid(total, epsilon=1.0, delta=1e-6)
    assert grid.step == 0.25
    moved = round(total.sensitivity / grid.step) + 1  # the rounding of either value
    law = law_of_sum(grid.share_parameter, 1)  # type: ignore[attr-defined]
    assert 0.5e-6 < hockey_stick(law, moved, 1.0) <= 1e-6


@pytest.mark.parametrize("x", [-6.0, -1.5, -0.1, 0.0, 0.7, 4.0])
def test_the_logit_of_a_normal_chance_is_at_least_as_steep_as_in_the_middle(x: float) -> None:
    """Step 6: what a factor of exp(eta) does to a test moves Phi^-1 by 1.26 eta at most."""
    slope = stats.norm.pdf(x) / (stats.norm.cdf(x) * stats.norm.sf(x))
    assert slope >= 4 / math.sqrt(2 * math.pi) * (1 - 1e-12)
    eta = 1e-3
    # The largest chance that keeps both ratios, p'/p <= exp(eta) and (1 - p')/(1 - p) >= exp(-eta).
    most = min(stats.norm.cdf(x) * math.exp(eta), 1 - stats.norm.sf(x) * math.exp(-eta))
    assert 0 < stats.norm.ppf(most) - x <= 1.26 * eta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (3.0, 1e-9), (20.0, 1e-5)])
@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_releases_cost_what_was_asked_and_no_more(epsilon: float, delta: float, rounds: int) -> None:
    mu = mu_for(epsilon, delta)
    event = mu_grid(VectorSum(dimension=3, sensitivity=1.0, value_bound=9.0), mu=mu / math.sqrt(rounds)).event()
    assert event == mu_event(mu / math.sqrt(rounds))
    assert epsilon * (1 - 1e-9) <= epsilon_of(Repeated(event=event, count=rounds), delta) <= epsilon
    assert gaussian_delta(epsilon, mu) <= delta
