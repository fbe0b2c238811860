"""A private choice of the n largest coordinates with their signs, by Gumbel noise that is never released.

Proof of exactness. Let U be a real uniform on [0, 1) whose digits are drawn as needed, 64 of them as a word w first.

1. Gumbel noise is G = -log E, E = -log(1 - U). Its float is off by at most
   2**-44 (1 + |G|) + 2/w + 2**-50 / (1 - u), u = (w + 1/2) / 2**64.
2. A choice of the n largest depends on comparisons alone.
3. Those comparisons that this error leaves in doubt are made anew, with more digits of the same U.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from tacit.privacy.noise.uniform import LazyUniform
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_GUMBEL_ERROR = 2.0**-44


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
        self._uniforms: dict[tuple[int, int], LazyUniform] = {}
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
        uniform = self._uniforms.setdefault(candidate, LazyUniform(int(self._words[row, j]), rng=self._rng))
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
