from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import SettingError
from tacit.privacy.noise import spherical
from tacit.privacy.noise.spherical import noise_bound, share_error, spherical_laplace_share, spherical_laplace_shares
from tacit.rand import Rng

DIMENSIONS = [1, 3, 20, 123]


def totals(dimension: int, honest: int, n: int, seed: int) -> NDArray[np.float64]:
    shares = spherical_laplace_shares(2.0, dimension, honest, n * honest, rng=Rng.seeded(seed))
    return shares.reshape(n, honest, dimension).sum(axis=1)


@pytest.mark.parametrize("honest", [1, 2, 7, 100])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_shares_add_up_to_the_spherical_laplace_law(dimension: int, honest: int) -> None:
    X = totals(dimension, honest, 2000 if honest < 100 else 500, seed=31)
    radius = np.linalg.norm(X, axis=1)
    assert stats.kstest(radius, stats.gamma(dimension, scale=2.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_second_moment(dimension: int) -> None:
    squares = (totals(dimension, 1, 40_000, seed=3) ** 2).sum(axis=1)
    assert squares.mean() == pytest.approx(dimension * (dimension + 1) * 4.0, rel=0.05)


@pytest.mark.parametrize("honest", [1, 5])
@pytest.mark.parametrize("dimension", [3, 20])
def test_directions_are_uniform_and_independent_of_the_radius(dimension: int, honest: int) -> None:
    X = totals(dimension, honest, 4000, seed=11)
    radius = np.linalg.norm(X, axis=1)
    cosine = X @ np.ones(dimension) / math.sqrt(dimension) / radius
    # The square of one coordinate of a uniform direction is Beta(1/2, (d-1)/2).
    assert stats.kstest(cosine**2, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > 1e-3
    assert abs(np.mean(cosine > 0) - 0.5) < 0.03
    assert stats.spearmanr(radius, np.abs(cosine)).pvalue > 1e-3


@pytest.mark.parametrize("shape", [Fraction(31, 10_000), Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(62)])
def test_root_gammas(shape: Fraction) -> None:
    gammas = spherical._root_gammas(shape, 20_000, Rng.seeded(2)) ** 2
    # In the logarithm: for a tiny shape most draws are next to nothing, or underflow to 0 as the docstring says.
    positive = gammas[gammas > 1e-280]
    law = stats.gamma(float(shape))
    tail = law.sf(1e-280)
    assert positive.size / gammas.size == pytest.approx(tail, abs=0.02)
    assert stats.kstest(positive, lambda x: 1 - law.sf(x) / tail).pvalue > 1e-3


def test_normals() -> None:
    draws = spherical._normals(50_001, Rng.seeded(6))
    assert draws.size == 50_001
    assert stats.kstest(draws, stats.norm.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(draws[:25_000], draws[25_001:50_001])[0, 1]) < 0.03


def test_one_share_is_a_row_of_many() -> None:
    one = spherical_laplace_share(2.0, 5, 3, rng=Rng.seeded(1))
    many = spherical_laplace_shares(2.0, 5, 3, 1, rng=Rng.seeded(1))
    assert (one == many[0]).all()


def _proposals(shape: Fraction, n: int) -> tuple[spherical._Digits, spherical._Digits, spherical._Digits]:
    rng = Rng.seeded(40 + int(shape))
    return spherical._Digits(n, rng), spherical._Digits(n, rng), spherical._Digits(n, rng)


def _normal_of(radii: spherical._Digits, angles: spherical._Digits, i: int) -> mpmath.mpf:
    """The ideal first normal of pair i, from 512 digits of its uniforms."""
    exponential = _exponential_of(radii, i)
    angle = mpmath.pi / 2 * mpmath.mpf(angles.integer(i, 512) % 2**510) / 2**510
    sign = -1 if angles.integer(i, 64) >> 63 else 1
    return sign * mpmath.sqrt(2 * exponential) * mpmath.cos(angle)


def _exponential_of(digits: spherical._Digits, i: int) -> mpmath.mpf:
    u = mpmath.mpf(digits.integer(i, 512) % 2**511) / 2**512
    return -mpmath.log(u) if digits.integer(i, 64) >> 63 else -mpmath.log(1 - u)


def test_floats_are_as_close_to_the_ideal_as_the_proof_says() -> None:
    n = 500
    radii, angles, uniforms = _proposals(Fraction(2), n)
    radius, first, _ = spherical._polar(radii, angles)
    exponentials = spherical._exponentials(uniforms)
    with mpmath.workprec(600):
        for i in range(n):
            assert abs(first[i] - _normal_of(radii, angles, i)) <= 2.0**-48 * radius[i]
            assert abs(exponentials[i] / _exponential_of(uniforms, i) - 1) <= 2.0**-49


def test_uniforms_that_begin_with_zeros_keep_their_relative_precision() -> None:
    digits = spherical._Digits(3, Rng.seeded(1))
    digits.words = np.array([2**63, 2**63 + 1, 2**63 + 2**40], dtype=np.uint64)  # next to 0 after the first digit
    values = digits.after(1)
    exponentials = spherical._exponentials(digits)
    for i in range(3):
        exact = Fraction(digits.integer(i, 512) % 2**511, 2**511)
        assert abs(Fraction(values[i]) / exact - 1) < Fraction(1, 2**51)
        with mpmath.workprec(600):
            assert abs(exponentials[i] / _exponential_of(digits, i) - 1) < 2.0**-49


@pytest.mark.parametrize("shape", [Fraction(1), Fraction(10_031, 10_000), Fraction(2), Fraction(62)])
def test_exact_acceptance_agrees_with_floats_and_with_mpmath(shape: Fraction) -> None:
    n = 150
    columns = _proposals(shape, n)
    k, c = spherical._constants(shape)
    _, x, _ = spherical._polar(columns[0], columns[1])
    w = 1 + c * x
    exponentials = spherical._exponentials(columns[2])
    for i in range(n):
        excess = exponentials[i] + x[i] ** 2 / 2 + k * (1 - w[i] ** 3 + 3 * math.log(w[i])) if w[i] > 0 else -1.0
        assert spherical._accept_exactly(i, shape, columns) == (excess > 0)


def test_a_doubtful_proposal_is_decided_on_more_digits_of_the_same_uniforms() -> None:
    """A uniform chosen to agree with its threshold in 190 digits: 64 or 128 of them cannot tell."""
    shape, found = Fraction(1), 0
    for i in range(200):
        columns = _proposals(shape, 200)
        radii, angles, uniforms = columns
        with mpmath.workprec(700):
            k = mpmath.mpf(2) / 3
            w = 1 + _normal_of(radii, angles, i) / mpmath.sqrt(9 * k)
            if w <= 0:
                continue
            x = (w - 1) * mpmath.sqrt(9 * k)
            threshold = -(x**2 / 2 + k * (1 - w**3 + 3 * mpmath.log(w)))  # of the exponential: accept above
            if threshold <= mpmath.log(2):  # then it is of the form -log(u), u < 1/2, first digit 1
                continue
            u = int(mpmath.floor(mpmath.exp(-threshold) * 2**256))
        found += 1
        for shift, accepted in ((-(2**60), True), (2**60, False)):
            value = 2**255 + u + shift  # 256 digits: a one, then those of 2 u
            uniforms.words = uniforms.words.copy()
            uniforms.words[i] = value >> 192
            uniforms._tails[i] = value % 2**192, 192
            assert spherical._accept_exactly(i, shape, columns) is accepted
    assert found >= 1


def test_every_decision_made_exactly_gives_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = spherical._Digits
    monkeypatch.setattr(digits, "integer", _with_separate_tail(digits))
    fast = spherical_laplace_shares(1.0, 3, 4, 60, rng=Rng.seeded(9))
    monkeypatch.setattr(spherical, "_margin", lambda *_: np.inf)
    assert (spherical_laplace_shares(1.0, 3, 4, 60, rng=Rng.seeded(9)) == fast).all()


def _with_separate_tail(digits: type[spherical._Digits]):  # type: ignore[no-untyped-def]
    """Further digits from a stream of each uniform's own, so that the words of later draws stay the same."""
    real = digits.integer

    def integer(self: spherical._Digits, i: int, n_digits: int) -> int:
        mine, self._rng = self._rng, Rng.seeded(int(self.words[i]))
        try:
            return real(self, i, n_digits)
        finally:
            self._rng = mine

    return integer


@pytest.mark.parametrize("honest", [1, 20_000])
def test_bounds(honest: int) -> None:
    shares = spherical_laplace_shares(3.0, 123, honest, 2000, rng=Rng.seeded(2))
    assert np.abs(shares).max() < noise_bound(3.0, 123, honest)
    assert share_error(3.0, 123, honest) == 2.0**-45 * noise_bound(3.0, 123, honest)
    assert np.isfinite(shares).all()


@pytest.mark.parametrize(
    ("scale", "dimension", "honest", "message"),
    [
        (0.0, 1, 1, "scale = 0.0"),
        (math.nan, 1, 1, "scale = nan"),
        (1.0, 0, 1, "dimension = 0"),
        (1.0, 1, 0, "honest = 0"),
    ],
)
def test_settings_are_checked(scale: float, dimension: int, honest: int, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        spherical_laplace_share(scale, dimension, honest, rng=Rng.seeded(1))
