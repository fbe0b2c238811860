"""From a sum of gradients to two bits a coordinate: noise, choice of the largest, and packing.

    rounded_gaussian     round(N(0, s^2)), exactly: added to integers it is the continuous Gaussian mechanism, rounded
    signed_gumbel_top    the n largest coordinates with their signs, by n draws of the exponential mechanism
    largest              the n largest of a noisy vector
    report_noisy_top_n   Wang's Algorithm 3, which is NOT PRIVATE as printed
    pack, unpack         a choice of coordinates, with signs or values, as bytes

Why not the discrete Gaussian: for sampled batches the accountant knows the continuous one. Let S be a vector of
integers and N a continuous Gaussian vector. Then S + round(N) = round(S + N): what leaves is a function of S + N, so it
costs what S + N costs, and no float approximates anything.

Proof of exactness. Let U be a real uniform on [0, 1) whose digits are drawn as needed, 64 of them as a word w first.

1. |N| / s = X := -Phi^-1(U / 2), with a fair sign. x^ = -ndtri(u / 2), u = (w + 1/2) / 2**64, is off by at most
   2**-46 (1 + X) + 1/w: the first term is 2**4 times what ndtri's documentation and float64 allow, the second is for
   the digits not drawn yet, |dX/dU| = 1 / (2 phi(X)) and phi(X) >= X U / 2. If s x^ is further than s times that from
   every half-integer, round(s x^) = round(s X). Otherwise (about once in a million draws) more digits of this very U
   are drawn and compared with erfc(k / (s sqrt 2)) at rising precision, until the answer is that of the real numbers.

2. Gumbel noise is G = -log E, E = -log(1 - U), off by at most 2**-44 (1 + |G|) + 2/w + 2**-50 / (1 - u). A choice of
   the n largest depends on comparisons alone; those that are in doubt are made anew, with more digits.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tacit.errors import SettingError, WireError
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng
from tacit.wire import Value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NORMAL_ERROR = 2.0**-46
_GUMBEL_ERROR = 2.0**-44


class _LazyUniform:
    """A real uniform on [0, 1), known to as many digits as were needed so far."""

    def __init__(self, word: int, rng: Rng) -> None:
        self.digits, self.n_digits, self._rng = word, 64, rng

    def refine(self) -> None:
        self.digits = (self.digits << 64) | int(self._rng.words(1)[0])
        self.n_digits += 64

    def bounds(self, context: Any) -> tuple[Any, Any]:
        """Two numbers with the uniform between them, at the context's precision."""
        low = context.mpf(self.digits) / (1 << self.n_digits)
        return low, low + context.mpf(1) / (1 << self.n_digits)


# --- Gaussian noise --------------------------------------------------------------------------------------------------


def rounded_gaussian(noise_std: float, size: int, *, rng: Rng) -> Ints:
    """Integers round(N), N continuous Gaussian of that standard deviation, exactly.

    Guarantees:
        Added to an integer vector whose L2 sensitivity is D, it costs no more than the continuous Gaussian mechanism of
        noise multiplier noise_std / D, sampled or not.
    """
    if not 1 <= noise_std <= 2.0**40:
        raise SettingError(f"noise_std = {noise_std!r} must lie between 1 and 2**40 steps; choose another step")
    words = rng.words(size)
    middle = words.astype(np.float64) + 0.5
    x = -ndtri(middle * 2.0**-65)
    y = noise_std * x
    magnitude = np.floor(y + 0.5)
    counts: Ints = magnitude.astype(np.int64)
    doubt = noise_std * (_NORMAL_ERROR * (1 + x) + 1 / middle)
    near = np.abs(y - np.floor(y) - 0.5) <= doubt
    for i in np.flatnonzero(near | (words == 0)):
        counts[i] = _exact_round(int(words[i]), int(counts[i]), Fraction(noise_std), rng)
    counts[rng.bits(size)] *= -1
    return counts


def _exact_round(word: int, guess: int, noise_std: Fraction, rng: Rng) -> int:
    """round(s X) for the uniform that begins with `word`: the largest k with U <= erfc((k - 1/2) / (s sqrt 2))."""
    uniform = _LazyUniform(word, rng)
    k = max(0, guess - 1)
    while k > 0 and not _is_beyond(uniform, (k - Fraction(1, 2)) / noise_std):
        k -= 1
    while _is_beyond(uniform, (k + Fraction(1, 2)) / noise_std):
        k += 1
    return k


def _is_beyond(uniform: _LazyUniform, x: Fraction) -> bool:
    """Whether X = -Phi^-1(U / 2) exceeds x, that is, U < erfc(x / sqrt 2)."""
    while True:
        context = mpmath.MPContext()
        context.prec = (
            uniform.n_digits + 64 + 2 * max(0, int(x * x))
        )  # erfc(x / sqrt 2) may be as small as exp(-x**2/2)
        tail = context.erfc(context.mpf(x.numerator) / x.denominator / context.sqrt(2))
        margin = tail * context.mpf(2) ** (-uniform.n_digits - 32)
        low, high = uniform.bounds(context)
        if high < tail - margin:
            return True
        if low > tail + margin:
            return False
        uniform.refine()


# --- Gumbel noise ----------------------------------------------------------------------------------------------------


def signed_gumbel_top(sums: Ints, noise_scale: float, n: int, *, rng: Rng) -> tuple[Bools, Bools]:
    """The n coordinates that win, and which of them are negative, exactly as n draws of the exponential mechanism.

    Candidate (j, +) has the score S_j, (j, -) has -S_j; Gumbel noise of `noise_scale` is added to each, every j keeps
    the better of its two and the n best j are chosen. That is the outcome of drawing (j, sign) n times in proportion to
    exp(score / noise_scale), each time without the j drawn before (Durfee and Rogers 2019).

    Guarantees:
        If a unit of privacy moves no S_j by more than D, each draw is of bounded range e = 2 D / noise_scale, and the
        choice is n e**2 / 8 zero-concentrated private (Dong et al. 2020; Cesar and Rogers 2021).
    """
    candidates = _Candidates(sums, noise_scale, rng)
    negative = candidates.keys[1] > candidates.keys[0]
    unsure = np.abs(candidates.keys[1] - candidates.keys[0]) <= candidates.errors.sum(axis=0)
    for j in np.flatnonzero(unsure):
        negative[j] = candidates.compare((1, int(j)), (0, int(j))) > 0
    rows = negative.astype(np.int64)
    at = np.arange(len(sums))
    keys, errors = candidates.keys[rows, at], candidates.errors[rows, at]
    chosen = np.zeros(len(sums), dtype=bool)
    chosen[np.argpartition(-keys, n - 1)[:n]] = True
    if n < len(sums):
        lowest, highest = np.min((keys - errors)[chosen]), np.max((keys + errors)[~chosen])
        if lowest <= highest:
            zone = np.flatnonzero((keys + errors >= lowest) & (keys - errors <= highest))
            missing = int(chosen[zone].sum())
            entries = [(int(rows[j]), int(j)) for j in zone]
            entries.sort(key=functools.cmp_to_key(candidates.compare), reverse=True)
            chosen[zone] = False
            chosen[[j for _, j in entries[:missing]]] = True
    return chosen, negative & chosen


class _Candidates:
    """Scores with Gumbel noise, in units of its scale: floats with error bounds, and exact comparisons."""

    def __init__(self, sums: Ints, noise_scale: float, rng: Rng) -> None:
        self._sums, self._scale, self._rng = sums, Fraction(noise_scale), rng
        self._words = rng.words(2 * len(sums)).reshape(2, -1)
        self._uniforms: dict[tuple[int, int], _LazyUniform] = {}
        middle = self._words.astype(np.float64) + 0.5
        u = middle * 2.0**-64
        exponential = -np.log1p(-np.minimum(u, 1 - 2.0**-53))
        noise = -np.log(exponential)
        self.keys: Floats = np.stack([sums, -sums]) / noise_scale + noise
        self.errors: Floats = (
            _GUMBEL_ERROR * (1 + np.abs(self.keys) + np.abs(noise))
            + 2 / middle
            + 2.0**-50 / np.maximum(1 - u, 2.0**-53)
        )

    def compare(self, first: tuple[int, int], second: tuple[int, int]) -> int:
        """1 if the first candidate's key is the larger, else -1; the same one is 0."""
        if first == second:
            return 0
        while True:
            (low, high), (other_low, other_high) = self._enclose(first), self._enclose(second)
            if low > other_high:
                return 1
            if high < other_low:
                return -1
            for candidate in (first, second):
                self._uniforms[candidate].refine()

    def _enclose(self, candidate: tuple[int, int]) -> tuple[Any, Any]:
        row, j = candidate
        uniform = self._uniforms.setdefault(candidate, _LazyUniform(int(self._words[row, j]), self._rng))
        context = mpmath.MPContext()
        context.prec = uniform.n_digits + 128
        score = Fraction(int(self._sums[j]) * (1 - 2 * row)) / self._scale
        centre = context.mpf(score.numerator) / score.denominator
        margin = context.mpf(2) ** (-uniform.n_digits) * (1 + abs(centre))
        low, high = uniform.bounds(context)
        least = -context.inf if low == 0 else context.log(-context.log1p(-low))
        most = context.inf if high == 1 else context.log(-context.log1p(-high))
        # The noise -log(-log(1 - U)) falls as U grows.
        return centre - most - margin, centre - least + margin


# --- choosing and packing --------------------------------------------------------------------------------------------


def largest(noisy: Floats | Ints, n: int) -> Bools:
    """The n entries that are largest in size; zeros are never chosen."""
    size = np.abs(noisy)
    chosen = np.zeros(len(noisy), dtype=bool)
    chosen[np.argpartition(-size, n - 1)[:n]] = True
    return chosen & (size > 0)


def report_noisy_top_n(values: Ints, noise_scale: float, n: int, *, rng: Rng) -> tuple[Ints, Ints]:
    """Wang's Algorithm 3 as printed: the indices of the n largest noisy values, and these values.

    NOT PRIVATE for the 2 n epsilon that is claimed: the values tell about every coordinate that was not chosen.
    """
    noisy = values + discrete_laplace(noise_scale, len(values), rng=rng)
    indices = np.argpartition(-noisy, n - 1)[:n].astype(np.int64)
    return indices, noisy[indices]


def pack(chosen: Bools, *, negative: Bools | None = None, values: Floats | Ints | None = None) -> dict[str, Value]:
    """A choice of coordinates as one bit each, and for the chosen ones a bit for the sign, or a number."""
    packed: dict[str, Value] = {"chosen": np.packbits(chosen)}
    if negative is not None:
        packed["negative"] = np.packbits(negative[chosen])
    if values is not None:
        packed["values"] = values[chosen]
    return packed


def unpack(packed: Mapping[str, Value], size: int) -> Floats:
    """The vector that `pack` made: signs or values of the chosen coordinates, 0 elsewhere."""
    match packed:
        case {"chosen": np.ndarray() as bits, **rest} if _is_packed(bits, size):
            chosen = np.unpackbits(bits.astype(np.uint8), count=size).astype(bool)
        case _:
            raise WireError(f"a choice among {size} coordinates was expected and something else came")
    n = int(chosen.sum())
    vector = np.zeros(size)
    match rest:
        case {"negative": np.ndarray() as bits} if _is_packed(bits, n):
            vector[chosen] = 1.0 - 2.0 * np.unpackbits(bits.astype(np.uint8), count=n)
        case {"values": np.ndarray() as values} if values.shape == (n,) and values.dtype.kind in "if":
            vector[chosen] = values
        case _:
            raise WireError(f"{n} signs or values were expected and something else came")
    return vector


def _is_packed(bits: npt.NDArray[Any], size: int) -> bool:
    return bits.dtype == np.uint8 and bits.shape == ((size + 7) // 8,)
