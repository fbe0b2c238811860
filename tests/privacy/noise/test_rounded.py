"""Rounded Gaussian noise: its law, and that it is exact."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from tacit.errors import SettingError
from tacit.privacy.noise import rounded
from tacit.privacy.noise.rounded import rounded_gaussian
from tacit.rand import Rng


@pytest.mark.parametrize("noise_std", [1.0, 2.7, 40.0])
def test_the_rounded_gaussian_has_its_law(noise_std: float) -> None:
    draws = rounded_gaussian(noise_std, 100_000, rng=Rng.seeded(1))
    reach = int(3 * noise_std)
    k = np.arange(-reach, reach + 1)
    inside = stats.norm.cdf((k + 0.5) / noise_std) - stats.norm.cdf((k - 0.5) / noise_std)
    observed = np.array([np.sum(draws == i) for i in k])
    expected = np.append(inside, 1 - inside.sum()) * len(draws)
    assert stats.chisquare(np.append(observed, len(draws) - observed.sum()), expected).pvalue > 1e-3


def test_the_rounded_gaussian_is_gaussian_on_a_fine_grid() -> None:
    draws = rounded_gaussian(2.0**24, 50_000, rng=Rng.seeded(2)) / 2.0**24
    assert stats.kstest(draws, "norm").pvalue > 1e-3


@pytest.mark.parametrize("noise_std", [1.0, 33.3, 2.0**24])
def test_exact_comparisons_decide_as_floats_do_where_those_are_sure(
    monkeypatch: pytest.MonkeyPatch, noise_std: float
) -> None:
    fast = rounded_gaussian(noise_std, 200, rng=Rng.seeded(3))
    monkeypatch.setattr(rounded, "_NORMAL_ERROR", 1.0)  # now every draw is in doubt
    np.testing.assert_array_equal(rounded_gaussian(noise_std, 200, rng=Rng.seeded(3)), fast)


def test_a_draw_far_out_in_the_tail_is_exact() -> None:
    """The first word 0 says only that U < 2**-64; the next digits decide, here 2**-64 / 2 and 2**-64 / 2**64."""

    class Words:
        def __init__(self, *words: int) -> None:
            self.waiting = list(words)

        def words(self, n: int) -> np.ndarray:
            return np.array([self.waiting.pop(0) for _ in range(n)], dtype=np.uint64)

        def bits(self, n: int) -> np.ndarray:
            return np.zeros(n, dtype=bool)

    for word, tail in ((2**63, mpmath.mpf(2) ** -65), (1, mpmath.mpf(2) ** -128)):
        expected = mpmath.findroot(lambda x, tail=tail: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / tail), 10)
        (drawn,) = rounded_gaussian(100.0, 1, rng=Words(0, word, 7, 7))  # type: ignore[arg-type]
        assert drawn == pytest.approx(float(100 * expected), abs=1)


def test_ndtri_is_as_good_as_the_proof_needs() -> None:
    with mpmath.workdps(40):
        for u in [2.0**-66, 1e-12, 1e-3, 0.06, 0.0677, 0.13, 0.2, 0.4, 0.499999]:
            x = -float(ndtri(u))
            exact = mpmath.findroot(lambda t, u=u: mpmath.erfc(t / mpmath.sqrt(2)) / 2 - u, x)
            assert abs(x - exact) < rounded._NORMAL_ERROR / 16 * (1 + x)


@pytest.mark.parametrize("noise_std", [0.5, math.nan, 2.0**41])
def test_a_noise_that_the_proof_does_not_cover_is_refused(noise_std: float) -> None:
    with pytest.raises(SettingError, match="noise_std = "):
        rounded_gaussian(noise_std, 3, rng=Rng.system())
