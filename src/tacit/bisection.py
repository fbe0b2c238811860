"""Bisection: where a yes-or-no question changes its answer, rounded to the side of yes.

>>> bisect(lambda x: x * x >= 2, yes=2.0, no=1.0, tolerance=1e-9)  # never below the root of 2
1.4142135623842478
"""

from __future__ import annotations

import math
from collections.abc import Callable


def arithmetic_mean(a: float, b: float) -> float:
    """Half-way between two numbers."""
    return 0.5 * (a + b)


def geometric_mean(a: float, b: float) -> float:
    """Half-way between two positive numbers of different order."""
    return math.sqrt(a * b)


def bisect(
    question: Callable[[float], bool],
    *,
    yes: float,
    no: float,
    tolerance: float,
    middle: Callable[[float, float], float] = arithmetic_mean,
) -> float:
    """The last point known to answer yes, on the way from `yes` to `no`.

    Args:
        question: changes its answer once between the two ends.
        yes: where the answer is known to be yes; it may lie above or below `no`.
        no: where the answer is known to be no. Neither end is asked.
        tolerance: how far apart yes and no may be in the end, as a share of the larger. 0 goes on until no number lies
            between them.
        middle: where to ask next; `geometric_mean` if the ends are of different order.

    Guarantees:
        The result is `yes` or a point that was asked and answered yes. So a caller whose yes means "private enough"
        rounds towards privacy.
    """
    while abs(yes - no) > tolerance * max(yes, no):
        asked = middle(yes, no)
        if asked in (yes, no):
            break
        if question(asked):
            yes = asked
        else:
            no = asked
    return yes
