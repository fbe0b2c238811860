"""Exact integer noise: the discrete Laplace and the discrete Gaussian laws, vectorised.

No draw is rounded from a float, so no low bit betrays the value that the noise hides (Mironov 2012). Floats only steer:
they decide a comparison when it is clear, and exact arithmetic decides it when it is not.

Proof of exactness. The law is f(x) = exp(-g(x)) up to a constant: g(x) = |x| / scale or x**2 / (2 noise_std**2). Floats
are dyadic rationals, so every g(x) is an exact rational. A draw is proposed with a known probability q(x), a rational,
and accepted with probability p(x) = f(x) / (M q(x)) <= 1. What is accepted then has the law f, whatever q and M are.

1. *Proposals* (`_Slots`). There are S = 2**12 slots, all of them equally likely. All but two belong to blocks of t
   integers, t a power of two: x = a t + b with 0 <= b < t lies in block a. Block a has n_a slots, and b is uniform. So
   q(x) = n_a / (S t).

2. *Tails.* One slot stands for x >= R, and one for x < -R. Its level l >= 1 has probability 2**-l, by fair bits. Then
   x, or -1 - x, is uniform among the T integers from R + (l - 1) T on. So q(x) = 2**-l / (S T).

3. *Acceptance.* With a float C and M = S t / C, p(x) is f(x) C / n_a in a block and f(x) C 2**l T / t in a tail.
   In a block p < 1: n_a exceeds C f^(x) (1 + 2**-40) at the x nearest to 0, f^ being the float for f. The relative
   error of f^ is below 2**-40 if g < 700; beyond that C f < 1 <= n_a. In a tail p <= 1: C < S, since the block at 0
   alone has more than C slots, and R is so large that 2 S f(R) T / t <= 1. One level further f is at most half as
   large, since T >= scale and R >= scale.

4. *One word for a proposal.* The first 12 bits of a uniform word are the slot, its last 16 are r, and b is as many of
   the others as it needs. Let U be a real uniform on [0, 1) that begins with the digits of r; x is accepted if
   U < p(x). The number `sure` is at most 2**16 p at the far end of the block. If r < sure, then U < (r + 1) / 2**16
   <= p(x): that needs no exponential. Otherwise 48 more digits of U are drawn, and 5 decides.

5. *Is U < p?* (`_accept`) Let u^, g^, p^ be the floats for U, g, p. The relative error of g^ is below 2**-50, that of
   numpy's exp at most 4 units in the last place, and that of the factor below 2**-51. So |p^ - p| < 2**-46 (1 + g^ p^)
   and |u^ - U| < 2**-52: if |u^ - p^| > 2**-43 (1 + g^ p^), the floats compare as the reals do. Otherwise, about once
   in 2**42 times, `LazyUniform` draws more digits of this very U and encloses p by decimal arithmetic of rising
   precision until the two are apart. That ends with probability 1, since U = p has probability 0.

Rejection keeps the first `size` accepted proposals of an independent sequence, so what is kept is independent too.
Blocks and tails are those of the ziggurat (Marsaglia and Tsang 2000), with known probabilities and exact comparisons.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import SettingError
from tacit.privacy.noise.uniform import LazyUniform
from tacit.rand import Rng

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Size = int | tuple[int, ...]

LARGEST_SCALE = 2.0**40  # an int64 must hold every likely draw, with room for sums
SMALLEST_SCALE = 2.0**-40  # less noise than this is none
_MARGIN = 2.0**-43
_CHUNK = 1 << 14  # proposals made at once: they stay in the cache
_SLOT_BITS, _SURE_BITS = 12, 16
_FINENESS = 4  # blocks of a wide law have between 2**-5 and 2**-4 of its scale: 15 of 16 proposals are accepted
_UPPER, _LOWER = -2, -1  # the slots of the two tails


def discrete_laplace(scale: float, size: Size, *, rng: Rng) -> Ints:
    """Integers k with probability proportional to exp(-|k| / scale), exactly.

    Guarantees:
        Added to an integer vector of L1 sensitivity D, it makes the sum (D / scale)-differentially private.
    """
    check_noise_parameter("scale", scale)
    return _draw(_Laplace(float(scale)), size, rng)


def discrete_gaussian(noise_std: float, size: Size, *, rng: Rng) -> Ints:
    """Integers k with probability proportional to exp(-k**2 / (2 noise_std**2)), exactly.

    Guarantees:
        Added to an integer vector of L2 sensitivity D, it makes the sum (D / noise_std)**2 / 2 zero-concentrated
        differentially private (Canonne, Kamath and Steinke 2020, Theorem 14). Its variance is at most noise_std**2.
    """
    check_noise_parameter("noise_std", noise_std)
    return _draw(_Gaussian(float(noise_std)), size, rng)


def check_noise_parameter(name: str, value: float) -> None:
    """Refuse a noise parameter for which the proof above does not hold."""
    if not (isinstance(value, int | float) and SMALLEST_SCALE <= value <= LARGEST_SCALE):
        raise SettingError(f"{name} = {value!r} must lie between 2**-40 and 2**40 grid steps; choose another grid step")


@dataclass(frozen=True)
class _Laplace:
    """g(x) = |x| / scale, in floats and exactly, and where it is about as large as is asked."""

    scale: float

    def exponents(self, x: Ints) -> Floats:
        g: Floats = np.abs(x) / self.scale
        return g

    def exact_exponent(self, x: int) -> Fraction:
        return abs(x) / Fraction(self.scale)

    def reach(self, exponent: float) -> float:
        return exponent * self.scale


@dataclass(frozen=True)
class _Gaussian:
    """The same for g(x) = x**2 / (2 scale**2)."""

    scale: float

    def exponents(self, x: Ints) -> Floats:
        z = x / self.scale
        g: Floats = 0.5 * z * z
        return g

    def exact_exponent(self, x: int) -> Fraction:
        return (x / Fraction(self.scale)) ** 2 / 2

    def reach(self, exponent: float) -> float:
        return math.sqrt(2 * exponent) * self.scale


_Law = _Laplace | _Gaussian


class _Slots:
    """What a proposal's slot stands for: the start of its block, n_a, and for which r it is surely accepted.

    Attributes:
        law: the law f.
        log_t: the binary logarithm of t.
        first: the smallest integer of each slot's block.
        taken: n_a, the number of slots of that block.
        sure: see 4 of the proof.
        constant, reach, stride: C, R and T of the proof.
    """

    def __init__(self, law: _Law) -> None:
        n_slots, log_scale = 1 << _SLOT_BITS, math.log2(law.scale)
        self.law = law
        self.log_t = max(0, math.floor(log_scale) - _FINENESS)
        t = 1 << self.log_t
        self.stride = 1 << max(0, math.ceil(log_scale))
        # One block more than the floats say makes up for their errors.
        side = math.ceil(law.reach(math.log(2 * n_slots * self.stride / t)) / t) + 1
        self.reach = side * t
        upper = t * np.arange(side)
        first = np.concatenate([upper, -t - upper])
        nearest, farthest = np.concatenate([upper, 1 + upper]), np.concatenate([upper + t - 1, upper + t])
        heights, lowest = np.exp(-law.exponents(nearest)), np.exp(-law.exponents(farthest))
        self.constant = float((n_slots - 2 - side) / heights.sum())
        while (taken := _rounded_up(self.constant * heights)).sum() > n_slots - 2:
            self.constant *= 0.999
        taken[0] += n_slots - 2 - taken.sum()
        sure = np.floor(2.0**_SURE_BITS * (1 - 2.0**-40) * self.constant * lowest / taken)
        self.first = np.append(np.repeat(first, taken), [0, 0])
        self.taken = np.append(np.repeat(taken, taken), [1, 1])
        self.sure: Words = np.append(np.repeat(sure, taken), [0, 0]).astype(np.uint64)

    def propose(self, n: int, rng: Rng) -> Ints:
        """What is accepted of n proposals, in their order."""
        words = rng.words(n)
        slots = (words >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
        x: Ints = self.first.take(slots)
        if self.log_t:
            x += ((words >> np.uint64(_SURE_BITS)) & np.uint64((1 << self.log_t) - 1)).view(np.int64)
        r = words & np.uint64((1 << _SURE_BITS) - 1)
        accepted = r < self.sure.take(slots)
        open_ = np.flatnonzero(~accepted)
        if open_.size:
            x[open_], accepted[open_] = self._decide(x[open_], slots[open_], r[open_], rng)
        return x[accepted]

    def _decide(self, x: Ints, slots: Ints, r: Words, rng: Rng) -> tuple[Ints, Bools]:
        """These proposals, drawn on where they lie in a tail, and which of them are accepted."""
        level = np.zeros(x.size, dtype=np.int64)
        for slot, sign in ((_UPPER, 1), (_LOWER, -1)):
            tail = np.flatnonzero(slots == slot % (1 << _SLOT_BITS))
            level[tail] = _levels(tail.size, rng)
            distance = self.reach + (level[tail] - 1) * self.stride + rng.below(self.stride, tail.size)
            x[tail] = distance if sign > 0 else -1 - distance
        spread = np.where(level > 0, self.stride >> self.log_t, 1)
        taken = self.taken[slots]

        def exact(i: int) -> tuple[Fraction, Fraction]:
            factor = Fraction(self.constant) * int(spread[i]) * 2 ** int(level[i]) / int(taken[i])
            return self.law.exact_exponent(int(x[i])), factor

        words = (r << np.uint64(64 - _SURE_BITS)) | (rng.words(x.size) >> np.uint64(_SURE_BITS))
        factors = np.ldexp(self.constant * spread / taken, level)
        return x, _accept(words, self.law.exponents(x), factors, exact, rng)


_slots = functools.lru_cache(maxsize=64)(_Slots)


def _draw(law: _Law, size: Size, rng: Rng) -> Ints:
    """The first accepted proposals, in order, until `size` is full."""
    shape = size if isinstance(size, tuple) else (size,)
    if any(n < 0 for n in shape):
        raise SettingError(f"size = {size} must not be negative")
    slots = _slots(law)
    out = np.empty(math.prod(shape), dtype=np.int64)
    filled = 0
    while filled < out.size:
        missing = out.size - filled
        accepted = slots.propose(min(_CHUNK, missing + missing // 8 + 8), rng)[:missing]
        out[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return out.reshape(shape)


def _rounded_up(values: Floats) -> Ints:
    """Integers that exceed the reals for which `values` stand (3 of the proof)."""
    above: Ints = np.floor(values * (1 + 2.0**-40)).astype(np.int64) + 1
    return above


def _levels(n: int, rng: Rng) -> Ints:
    """n integers, each l >= 1 with probability 2**-l."""
    levels = np.ones(n, dtype=np.int64)
    rising = np.arange(n)
    while rising.size:
        rising = rising[rng.bits(rising.size)]
        levels[rising] += 1
    return levels


def _accept(
    words: Words, exponents: Floats, factors: Floats, exact: Callable[[int], tuple[Fraction, Fraction]], rng: Rng
) -> Bools:
    """Whether uniforms that begin with `words` are below factor * exp(-exponent), exactly (5 of the proof).

    `exact(i)` is the exponent and the factor that `exponents[i]` and `factors[i]` approximate.
    """
    p = factors * np.exp(-exponents)
    gap = words * 2.0**-64 - p
    accepted: Bools = gap < 0
    for i in np.flatnonzero(~(np.abs(gap) > _MARGIN * (1 + exponents * p))):
        accepted[i] = LazyUniform(int(words[i]), rng=rng).is_below_exp(*exact(int(i)))
    return accepted
