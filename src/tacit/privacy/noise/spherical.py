"""Spherical Laplace noise, and its shares: density proportional to exp(-||x||_2 / s) in dimension d.

The law is infinitely divisible. Its characteristic function is (1 + s**2 ||t||**2)**(-(d+1)/2), which is
E exp(-G s**2 ||t||**2) for G ~ Gamma((d+1)/2, 1), so X = s sqrt(2 G) Z with Z standard normal in R**d; and if G_j is
Gamma((d+1)/(2 h), 1), the sum of any h independent shares X_j = s sqrt(2 G_j) Z_j has exactly the law of X. So h honest
parties make the noise and nobody knows it; further shares only add independent noise.

Floats. Each draw is a certified approximation of an ideal real draw: there is a coupling of the two under which they
differ by at most `share_error` in every coordinate, but for an event of probability below 2**-100 a coordinate that no
data can influence. `privacy.noise.grid` covers that error with discrete noise. A float share must not be released by
itself.

The ideal draw is the same algorithm on real uniforms whose binary digits are drawn as needed, in real arithmetic:
Box-Muller, and Marsaglia and Tsang (2000) with Gamma(a) = Gamma(a + 1) U**(1/a) for a < 1. Allow numpy's log, log1p,
exp, cos and sin four units in the last place, 2**-50 relative.

1. A uniform is kept to a relative error of 2**-51.4: 64 digits, or 192 if the first 12 are zero.
2. An exponential is -log(U') or -log1p(-U') as a fair bit says, U' uniform on (0, 1/2): relative error below 2**-49,
   close to 0 as well. R = sqrt(2 E) is good to 2**-49.5, and R <= R_max but for probability 2**-128.
3. A normal is R times the cosine or sine of an angle in (0, pi/2) with a fair sign: error below 2**-48 R.
4. Marsaglia-Tsang: with k = a - 1/3 >= 2/3 and c = 1/sqrt(9 k), G = k w**3 with w = 1 + c x if accepted. The error of w
   is below 2**-47.7 (1 + c R), and w <= w_max = 1 + c R_max, so sqrt(G) errs by less than 2**-47 sqrt(k) w_max**1.5.
   The choice to accept is that of the reals: it is left to floats only if the two sides differ by more than their error
   (`_margin`), else interval arithmetic decides on the very same uniforms, with more of their digits.
5. The factor U**(1/(2a)) = exp(-E/(2a)) <= 1 errs by less than 2**-49, since t exp(-t) < 0.37; where it underflows, by
   less than the least positive double.

Together X_j errs by less than 2**-46 B, where B = s sqrt(2 k) w_max**1.5 R_max (`noise_bound`) bounds each coordinate
but for the same rare event; `share_error` is twice that.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from mpmath.ctx_iv import MPIntervalContext
from numpy.typing import NDArray

from tacit.errors import SettingError
from tacit.rand import Rng

Floats = NDArray[np.float64]

_R_MAX = math.sqrt(2 * 128 * math.log(2))  # P(R > R_max) = 2**-128
_RELATIVE_ERROR = 2.0**-45
_NEAR_ZERO = 2.0**-30  # where the logarithm of w = 1 + c x is left to interval arithmetic


def spherical_laplace_share(scale: float, dimension: int, honest: int, *, rng: Rng) -> Floats:
    """One party's share of spherical Laplace noise; `honest` = 1 gives the whole.

    Guarantees:
        The sum of any `honest` independent shares has a density proportional to exp(-||x||_2 / scale), up to the
        coupling described above. Not fit for release by itself: use `privacy.noise.grid`.
    """
    return spherical_laplace_shares(scale, dimension, honest, 1, rng=rng).reshape(dimension)


def spherical_laplace_shares(scale: float, dimension: int, honest: int, n_shares: int, *, rng: Rng) -> Floats:
    """`n_shares` independent shares, one a row: as many calls of `spherical_laplace_share`, but fast."""
    _check(scale, dimension, honest)
    roots = math.sqrt(2) * scale * _root_gammas(_shape(dimension, honest), n_shares, rng)
    shares: Floats = roots[:, None] * _normals(n_shares * dimension, rng).reshape(n_shares, dimension)
    return shares


def noise_bound(scale: float, dimension: int, honest: int) -> float:
    """What no coordinate of a share exceeds in size, but for a chance below 2**-100."""
    _check(scale, dimension, honest)
    k, c = _constants(_boosted(_shape(dimension, honest)))
    w_max = 1 + c * _R_MAX
    return scale * math.sqrt(2 * k * w_max) * w_max * _R_MAX * (1 + 2.0**-40)


def share_error(scale: float, dimension: int, honest: int) -> float:
    """How far a computed share may be from its ideal in any coordinate, but for a chance below 2**-100."""
    return _RELATIVE_ERROR * noise_bound(scale, dimension, honest)


def _check(scale: float, dimension: int, honest: int) -> None:
    if not (isinstance(scale, int | float) and 2.0**-500 <= scale <= 2.0**500):
        raise SettingError(f"scale = {scale!r} must be a positive number of ordinary size")
    if dimension < 1:
        raise SettingError(f"dimension = {dimension} must be at least 1")
    if honest < 1:
        raise SettingError(f"honest = {honest} must be at least 1: somebody has to add noise that others don't know")


def _shape(dimension: int, honest: int) -> Fraction:
    """The shape of G_j; a fraction, since `honest` shares must add up to (d+1)/2 exactly."""
    return Fraction(dimension + 1, 2 * honest)


def _boosted(shape: Fraction) -> Fraction:
    return shape if shape >= 1 else shape + 1


def _constants(shape: Fraction) -> tuple[float, float]:
    """k and c of Marsaglia and Tsang (2000), section 2, for a shape of at least 1."""
    k = float(shape - Fraction(1, 3))
    return k, 1 / math.sqrt(9 * k)


class _Digits:
    """A column of real uniforms on (0, 1), of which 64 binary digits are drawn and the rest when they are asked for."""

    def __init__(self, size: int, rng: Rng) -> None:
        self._rng = rng
        self.words = rng.words(size)
        self._tails: dict[int, tuple[int, int]] = {}  # further digits, and how many

    def leading(self, position: int) -> NDArray[np.bool_]:
        """Digit number `position` (0 is the first) of each: a fair bit."""
        return (self.words >> np.uint64(63 - position) & np.uint64(1)).astype(np.bool_)

    def after(self, skip: int) -> Floats:
        """The uniforms made of the digits after the first `skip`, each to a relative error of 2**-51.4."""
        kept = self.words & np.uint64(2 ** (64 - skip) - 1)
        value: Floats = (kept.astype(np.float64) + 0.5) * 2.0 ** (skip - 64)
        for i in np.flatnonzero(kept < 2**52):
            value[i] = (2 * (self.integer(int(i), 192) % 2 ** (192 - skip)) + 1) / 2 ** (193 - skip)
        return value

    def integer(self, i: int, n_digits: int) -> int:
        """The first `n_digits` (a multiple of 64) of uniform i, as an integer."""
        tail, length = self._tails.get(i, (0, 0))
        while length < n_digits - 64:
            tail, length = (tail << 64) | int(self._rng.words(1)[0]), length + 64
        self._tails[i] = tail, length
        return ((int(self.words[i]) << length) | tail) >> (64 + length - n_digits)


def _exponentials(digits: _Digits) -> Floats:
    """-log(U') or -log1p(-U'), U' uniform on (0, 1/2) (2 above)."""
    u = 0.5 * digits.after(1)
    return np.where(digits.leading(0), -np.log(u), -np.log1p(-u))


def _polar(radii: _Digits, angles: _Digits) -> tuple[Floats, Floats, Floats]:
    """R, and two independent normals R cos, R sin (3 above)."""
    radius = np.sqrt(2 * _exponentials(radii))
    angle = 0.5 * math.pi * angles.after(2)
    cosine = np.where(angles.leading(0), -np.cos(angle), np.cos(angle))
    sine = np.where(angles.leading(1), -np.sin(angle), np.sin(angle))
    return radius, radius * cosine, radius * sine


def _normals(size: int, rng: Rng) -> Floats:
    half = (size + 1) // 2
    _, first, second = _polar(_Digits(half, rng), _Digits(half, rng))
    return np.concatenate([first, second])[:size]


def _root_gammas(shape: Fraction, size: int, rng: Rng) -> Floats:
    """Square roots of Gamma(shape, 1) draws, for any positive shape (4 and 5 above)."""
    roots = np.empty(0)
    while roots.size < size:
        missing = size - roots.size
        roots = np.concatenate([roots, _accepted_roots(_boosted(shape), missing + missing // 8 + 4, rng)])
    roots = roots[:size]
    if shape >= 1:
        return roots
    boosts: Floats = np.exp(_exponentials(_Digits(size, rng)) / float(-2 * shape))
    return roots * boosts


def _accepted_roots(shape: Fraction, n: int, rng: Rng) -> Floats:
    """sqrt(G) for those of n proposals that are accepted (Marsaglia and Tsang 2000)."""
    k, c = _constants(shape)
    radii, angles, uniforms = _Digits(n, rng), _Digits(n, rng), _Digits(n, rng)
    radius, x, _ = _polar(radii, angles)
    w = 1 + c * x
    safe = np.maximum(w, _NEAR_ZERO)
    exponential = _exponentials(uniforms)
    # Accept if log(U) < x**2/2 + k - k v + k log(v), v = w**3; here -log(U) is the exponential.
    excess = exponential + 0.5 * x * x + k * (1 - safe**3 + 3 * np.log(safe))
    accepted: NDArray[np.bool_] = (w > _NEAR_ZERO) & (excess > 0)
    doubtful = (np.abs(w) <= _NEAR_ZERO) | (
        (w > _NEAR_ZERO) & (np.abs(excess) <= _margin(exponential, radius, safe, k, c))
    )
    for i in np.flatnonzero(doubtful):
        accepted[i] = _accept_exactly(int(i), shape, (radii, angles, uniforms))
    roots: Floats = np.sqrt(k * safe[accepted] ** 3)
    return roots


def _margin(exponential: Floats, radius: Floats, w: Floats, k: float, c: float) -> Floats:
    """More than the error of `excess`: that of w is below 2**-47.7 (1 + c R), the other terms are good to 2**-48."""
    spread = 1 + c * radius
    error: Floats = 1 + exponential + radius**2 + k * (2 + w**3 + (w**2 + 1 / w) * spread + np.abs(np.log(w)))
    return 2.0**-44 * error


def _accept_exactly(i: int, shape: Fraction, columns: tuple[_Digits, _Digits, _Digits]) -> bool:
    """The choice of the reals on proposal i, by interval arithmetic on as many digits as it takes."""
    radii, angles, uniforms = columns
    n_digits = 128
    while True:
        iv = MPIntervalContext()  # its own, for the precision is part of its state
        iv.prec = n_digits + 64
        k = iv.mpf(shape.numerator) / shape.denominator - iv.mpf(1) / 3
        cosine = iv.cos(iv.pi / 2 * _interval(iv, angles, i, 2, n_digits))
        x = iv.sqrt(2 * _exponential_interval(iv, radii, i, n_digits)) * (-cosine if _bit(angles, i) else cosine)
        w = 1 + x / iv.sqrt(9 * k)
        if w.b <= 0:
            return False
        if w.a > 0:
            exponential = _exponential_interval(iv, uniforms, i, n_digits)
            excess = exponential + x**2 / 2 + k * (1 - w**3 + 3 * iv.log(w))
            if excess.a > 0 or excess.b < 0:
                return bool(excess.a > 0)
        n_digits += 64


def _bit(digits: _Digits, i: int) -> bool:
    return bool(int(digits.words[i]) >> 63)


def _interval(iv: MPIntervalContext, digits: _Digits, i: int, skip: int, n_digits: int):  # type: ignore[no-untyped-def]
    """An enclosure of what `after(skip)` approximates."""
    low = digits.integer(i, n_digits) % 2 ** (n_digits - skip)
    return iv.mpf([low, low + 1]) / 2 ** (n_digits - skip)


def _exponential_interval(iv: MPIntervalContext, digits: _Digits, i: int, n_digits: int):  # type: ignore[no-untyped-def]
    u = _interval(iv, digits, i, 1, n_digits) / 2
    return -iv.log(u) if _bit(digits, i) else -iv.log(1 - u)
