"""Real numbers of any ordinary size as digits that can be added up exactly, without a bound known beforehand."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIGIT_BITS = 40  # so that digits of some millions of numbers may be added up in 64 bits
DIGITS = 13
_LEAST_BIT = 256  # the last digit ends at 2**-256

LARGEST = 2.0 ** (DIGITS * DIGIT_BITS - _LEAST_BIT - 1)
"""Numbers must be smaller than this, in size."""


def to_digits(values: Floats) -> Ints:
    """Numbers of any ordinary size as 13 signed digits of 40 bits, which may be added up digit by digit."""
    digits = np.zeros((*values.shape, DIGITS), dtype=np.int64)
    for at, value in np.ndenumerate(values):
        whole = int(math.ldexp(abs(float(value)), _LEAST_BIT))
        sign = -1 if value < 0 else 1
        for j in range(DIGITS):
            digits[(*at, j)] = sign * ((whole >> (DIGIT_BITS * j)) & ((1 << DIGIT_BITS) - 1))
    return digits


def from_digits(digits: Ints) -> Floats:
    """The numbers whose digits, or sums of digits, these are."""
    values = np.zeros(digits.shape[:-1])
    for at in np.ndindex(values.shape):
        whole = sum(int(digit) << (DIGIT_BITS * j) for j, digit in enumerate(digits[at]))
        values[at] = math.ldexp(float(whole), -_LEAST_BIT)
    return values
