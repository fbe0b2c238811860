"""A uniform real number whose binary digits are drawn as they are needed, so that comparisons with it are exact."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from tacit.rand import Rng


class LazyUniform:
    """A real uniform on [0, 1) that begins with the 64 digits of `word`; more are drawn when needed, and kept.

    Attributes:
        digits: the digits drawn so far, as an integer.
        n_digits: how many they are.
    """

    def __init__(self, word: int, *, rng: Rng) -> None:
        """Begin with `word`; `rng` gives the rest."""
        self.digits, self.n_digits, self._rng = word, 64, rng

    def refine(self) -> None:
        """Draw 64 digits more."""
        self.digits = (self.digits << 64) | int(self._rng.words(1)[0])
        self.n_digits += 64

    def bounds(self, context: Any) -> tuple[Any, Any]:
        """Two numbers with the uniform between them, at the precision of an mpmath context."""
        low = context.mpf(self.digits) / (1 << self.n_digits)
        return low, low + context.mpf(1) / (1 << self.n_digits)

    def is_below_exp(self, exponent: Fraction, factor: Fraction = Fraction(1)) -> bool:
        """Whether it is less than factor * exp(-exponent): the exact answer, whatever precision that takes."""
        while True:
            low, high = _enclose_exp(exponent, self.n_digits)
            if self.digits + 1 <= factor * low:
                return True
            if self.digits >= factor * high:
                return False
            self.refine()


def _enclose_exp(exponent: Fraction, n_digits: int) -> tuple[int, int]:
    """Integers below and above 2**n_digits exp(-exponent), at most two apart."""
    if exponent == 0:
        return 2**n_digits, 2**n_digits
    precision = n_digits // 3 + 20  # decimal digits, worth more than n_digits binary ones
    down, up = (
        Context(prec=precision, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    numerator, denominator = Decimal(exponent.numerator), Decimal(exponent.denominator)
    # Decimal.exp is correctly rounded to nearest, so the true value lies between the neighbours of the result.
    # copy_negate, since a unary minus would round to the thread's own context.
    low = down.next_minus(down.exp(up.divide(numerator, denominator).copy_negate()))
    high = up.next_plus(up.exp(down.divide(numerator, denominator).copy_negate()))
    power = Decimal(2**n_digits)
    floor = down.multiply(low, power).to_integral_value(ROUND_FLOOR)
    ceiling = up.multiply(high, power).to_integral_value(ROUND_CEILING)
    return int(floor), int(ceiling)
