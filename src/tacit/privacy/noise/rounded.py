"""Rounded Gaussian noise: round(N(0, s**2)), exactly, which added to integers is the continuous Gaussian mechanism.

Why not the discrete Gaussian: for sampled batches the accountant knows the continuous one. Let S be a vector of
integers and N a continuous Gaussian vector. Then S + round(N) = round(S + N): what leaves is a function of S + N. So it
costs what S + N costs, and no float approximates anything.

Proof of exactness. Let U be a real uniform on [0, 1) whose digits are drawn as needed, 64 of them as a word w first.

1. |N| / s = X := -Phi^-1(U / 2), with a fair sign.
2. Its float is x^ = -ndtri(u / 2), u = (w + 1/2) / 2**64. It is off by at most 2**-46 (1 + X) + 1/w.
3. The first term is 2**4 times what ndtri's documentation and float64 allow. The second is for the digits not drawn
   yet: |dX/dU| = 1 / (2 phi(X)) and phi(X) >= X U / 2.
4. If s x^ is further than s times that from every half-integer, round(s x^) = round(s X).
5. Otherwise (about once in a million draws) more digits of this very U are drawn and compared with
   erfc(k / (s sqrt 2)) at rising precision, until the answer is that of the real numbers.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tacit.errors import SettingError
from tacit.privacy.noise.uniform import LazyUniform
from tacit.rand import Rng

Ints = npt.NDArray[np.int64]

_NORMAL_ERROR = 2.0**-46


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
    uniform = LazyUniform(word, rng=rng)
    k = max(0, guess - 1)
    while k > 0 and not _is_beyond(uniform, (k - Fraction(1, 2)) / noise_std):
        k -= 1
    while _is_beyond(uniform, (k + Fraction(1, 2)) / noise_std):
        k += 1
    return k


def _is_beyond(uniform: LazyUniform, x: Fraction) -> bool:
    """Whether X = -Phi^-1(U / 2) exceeds x, that is, U < erfc(x / sqrt 2)."""
    while True:
        context = mpmath.MPContext()
        # erfc(x / sqrt 2) may be as small as exp(-x**2/2).
        context.prec = uniform.n_digits + 64 + 2 * max(0, int(x * x))
        tail = context.erfc(context.mpf(x.numerator) / x.denominator / context.sqrt(2))
        margin = tail * context.mpf(2) ** (-uniform.n_digits - 32)
        low, high = uniform.bounds(context)
        if high < tail - margin:
            return True
        if low > tail + margin:
            return False
        uniform.refine()
