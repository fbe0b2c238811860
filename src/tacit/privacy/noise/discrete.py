"""Exact integer noise: the discrete Laplace and the discrete Gaussian laws, vectorised.

No draw is rounded from a float, so no low bit betrays the value that the noise hides (Mironov 2012). Floats only steer:
they decide a comparison when it is clear, and exact arithmetic decides it when it is not.

Proof of exactness. Let U be a real uniform on [0, 1) whose binary digits are drawn as they are needed: the first 64 are
a word w, so w <= 2**64 U < w + 1. Floats are dyadic rationals, so `scale` and `noise_std` are exact, and every exponent
g below is an exact rational.

1. *Is U < exp(-g)?* (`_accept`) Let u^, g^, p^ be the floats for U, g, exp(-g). In each use |g^ - g| is below
   2**-50 (z + z**2), z = sqrt(2 g), and exp(-z**2/2) (z + z**2) < 1.35; numpy's exp errs by at most 4 units in the last
   place. So |p^ - exp(-g)| < 2**-48, and |u^ - U| < 2**-53: if |u^ - p^| > 2**-43, the floats compare as the reals do.
   Otherwise, about once in 2**42 times, `LazyUniform` draws more digits of this very U and encloses exp(-g) by decimal
   arithmetic of rising precision until the two are apart; exp(-g) is irrational for rational g > 0, and exp(0) = 1 is
   above every U, so that ends with probability 1. The answer is that of the reals: exactly Bernoulli(exp(-g)).

2. *Geometric V, P(V >= k) = exp(-k g)* (`_geometric_by_inversion`): V = max{k : U < exp(-k g)}, which is floor(x) with
   x = -log(U) / g but for ties of probability 0. Its float errs by at most 2**-43 (x + 1/g) + 1/((w + 1/2) g) if w > 0
   (the last term is for the digits of U not drawn yet). Where that leaves the floor in doubt, or w = 0, the
   comparisons U < exp(-k g) are made one by one as in 1.

3. *Geometric X, P(X = x) proportional to exp(-x/s)* (`_geometric`): X = A + t V, A in {0, ..., t-1}, V >= 0. Since
   exp(-(a + t v)/s) = exp(-a/s) exp(-t v/s), A and V are independent: A is uniform on {0, ..., t-1} accepted with
   probability exp(-A/s), and V is as in 2 with g = t/s. Any integer t will do; a power of two near s/8 makes A a slice
   of bits and accepts 19 in 20.

4. *Discrete Laplace*: a fair sign, and (-, 0) is refused, so that 0 is not counted twice.

5. *Discrete Gaussian* (Canonne, Kamath and Steinke 2020, Algorithm 3): Y discrete Laplace of scale t = floor(sigma) + 1
   is accepted with probability exp(-(|Y| - sigma**2/t)**2 / (2 sigma**2)); the product of the two is proportional to
   exp(-Y**2 / (2 sigma**2)).

Rejection keeps the first `size` accepted proposals of an independent sequence, so what is kept is independent too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import SettingError
from tacit.privacy.noise.uniform import LazyUniform
from tacit.rand import Rng

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Size = int | tuple[int, ...]

LARGEST_SCALE = 2.0**40  # an int64 must hold every likely draw, with room for sums
SMALLEST_SCALE = 2.0**-40  # less noise than this is none, and its exponents would overflow
_MARGIN = 2.0**-43
_CHUNK = 1 << 16  # proposals made at once: they stay in the cache


def discrete_laplace(scale: float, size: Size, *, rng: Rng) -> Ints:
    """Integers k with probability proportional to exp(-|k| / scale), exactly.

    Guarantees:
        Added to an integer vector of L1 sensitivity D, it makes the sum (D / scale)-differentially private.
    """
    check_noise_parameter("scale", scale)
    return _fill(size, lambda n: _laplace(scale, n, rng))


def discrete_gaussian(noise_std: float, size: Size, *, rng: Rng) -> Ints:
    """Integers k with probability proportional to exp(-k**2 / (2 noise_std**2)), exactly.

    Guarantees:
        Added to an integer vector of L2 sensitivity D, it makes the sum (D / noise_std)**2 / 2 zero-concentrated
        differentially private (Canonne, Kamath and Steinke 2020, Theorem 14). Its variance is at most noise_std**2.
    """
    check_noise_parameter("noise_std", noise_std)
    t = math.floor(noise_std) + 1
    variance = Fraction(noise_std) ** 2
    centre = variance / t

    def propose(n: int) -> Ints:
        y = _laplace(float(t), n, rng)
        z = (np.abs(y) - float(centre)) / noise_std
        return y[_accept(0.5 * z * z, lambda i: (abs(int(y[i])) - centre) ** 2 / (2 * variance), rng)]

    return _fill(size, propose)


def check_noise_parameter(name: str, value: float) -> None:
    """Refuse a noise parameter for which the proof above does not hold."""
    if not (isinstance(value, int | float) and SMALLEST_SCALE <= value <= LARGEST_SCALE):
        raise SettingError(f"{name} = {value!r} must lie between 2**-40 and 2**40 grid steps; choose another grid step")


def _fill(size: Size, propose: Callable[[int], Ints]) -> Ints:
    """The first accepted draws, in order, until `size` is full."""
    shape = size if isinstance(size, tuple) else (size,)
    if any(n < 0 for n in shape):
        raise SettingError(f"size = {size} must not be negative")
    out = np.empty(math.prod(shape), dtype=np.int64)
    filled = 0
    while filled < out.size:
        missing = out.size - filled
        accepted = propose(min(_CHUNK, missing + missing // 4 + 8))[:missing]
        out[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return out.reshape(shape)


def _laplace(scale: float, n: int, rng: Rng) -> Ints:
    """At most n discrete Laplace draws, from n proposals (4 of the proof)."""
    magnitude = _geometric(scale, n, rng)
    negative = rng.bits(magnitude.size)
    magnitude[negative] *= -1
    kept: Ints = magnitude[~(negative & (magnitude == 0))]
    return kept


def _geometric(scale: float, n: int, rng: Rng) -> Ints:
    """At most n draws with P(X = x) proportional to exp(-x / scale), from n proposals (3 of the proof)."""
    s = Fraction(scale)
    log_t = max(0, math.floor(math.log2(scale)) - 3)
    t = 1 << log_t
    if log_t == 0:
        return _geometric_by_inversion(t / s, n, rng)
    a: Ints = (rng.words(n) >> np.uint64(64 - log_t)).astype(np.int64)
    a = a[_accept(a / scale, lambda i: int(a[i]) / s, rng)]
    return a + t * _geometric_by_inversion(t / s, a.size, rng)


def _geometric_by_inversion(exponent: Fraction, n: int, rng: Rng) -> Ints:
    """n draws with P(V >= k) = exp(-k exponent), one word each (2 of the proof)."""
    g = float(exponent)
    words = rng.words(n)
    middle = words.astype(np.float64) + 0.5
    quotient = (64 * math.log(2) - np.log(middle)) / g
    v = np.floor(quotient)
    counts: Ints = v.astype(np.int64)
    doubt = 2.0**-40 * (quotient + 1 / g) + 1 / (middle * g)
    above = quotient - v
    for i in np.flatnonzero((above <= doubt) | (above >= 1 - doubt) | (words == 0)):
        counts[i] = _exact_count(int(words[i]), exponent, rng)
    return counts


def _exact_count(word: int, exponent: Fraction, rng: Rng) -> int:
    """max{k : U < exp(-k exponent)} for the uniform U that begins with `word`."""
    uniform = LazyUniform(word, rng=rng)
    # U < (word + 1) / 2**64 gives a sure lower bound (less one for the floats), from which to count up.
    k = max(0, math.floor((64 * math.log(2) - math.log(word + 1)) / float(exponent)) - 1)
    while uniform.is_below_exp((k + 1) * exponent):
        k += 1
    return k


def _accept(exponents: Floats, exact: Callable[[int], Fraction], rng: Rng) -> NDArray[np.bool_]:
    """Independent Bernoulli(exp(-exponent)), where `exact(i)` is what `exponents[i]` approximates (1 of the proof)."""
    words = rng.words(exponents.size)
    gap = words * 2.0**-64 - np.exp(-exponents)
    accepted: NDArray[np.bool_] = gap < 0
    for i in np.flatnonzero(np.abs(gap) <= _MARGIN):
        accepted[i] = LazyUniform(int(words[i]), rng=rng).is_below_exp(exact(int(i)))
    return accepted
