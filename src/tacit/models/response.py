"""A record's response to a model, (prediction - the same for every class) times its row: how far one record moves it.

The gradient of the loss is the sum of responses minus a sum t of labels times rows, which no model enters:

    two classes    (sigma(w.x + b) - 1/2) (x, c)            t = sum (y - 1/2) (x, c)
    more classes   (p(x) - 1/C) (x, c)', a matrix           t = sum (e_y - 1/C) (x, c)'

b is the intercept, c the fixed value of its feature. A response depends on no label, has a norm of at most R/2, R =
||(r, c)|| (two classes), and is 0 at the zero model; a gradient's is up to R, and R/2 there.

Two classes. Let x = s e + v, e the direction of w, v orthogonal to it; rho = r ||w||, and r = 1 without loss. With q(s)
= sigma(rho s + b) - 1/2 the squared distance of two responses is
    |q s - q' s'|^2 + |q v - q' v'|^2 + c^2 (q - q')^2,
for given s, s' largest if q v and q' v' are opposite and v, v' as long as they may be, that is, if s = cos a, ||v|| =
sin a. So the diameter is the largest distance of two points f(a), g(a') of two curves, found by branch and bound:
    f(a) = (q cos a, |q| sin a, c q),   g(a) = (q cos a, -|q| sin a, c q).
On an arc a +- h no point is further from the middle than h max |q| + sqrt(1 + c^2) max |q - q_middle|, and q falls with
a, so that both are attained at the arc's ends.

More classes. ||p - 1/C||^2 = sum p^2 - 1/C. As a function of one score, sum p^2 first falls and then rises (its
derivative is 2 p_j (p_j - sum p^2)), so it is largest where every score is at an end of the range that they share, m
of them at the upper; two scores differ by at most sqrt 2 R ||W||. The diameter is at most twice the largest norm.

All results are rounded up.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit

from tacit.errors import SettingError
from tacit.models.loss import Array

_UP = 1 + 2.0**-40
_GAP = 1e-3
"""How far above the true diameter the certified one may lie, as a share of the radius."""
_MOST_PAIRS = 500_000
"""A search that grows beyond this settles for the bound that it has."""


def response_norm(theta: Array, radius: float, constant: float, n_classes: int) -> float:
    """The largest norm of a record's response at `theta`, ||x|| <= radius.

    Guarantees:
        No record's response is longer. At most R/2 for two classes, sqrt(1 - 1/C) R for more.
    """
    _check(theta, radius, constant)
    R = math.hypot(radius, constant)
    if n_classes == 2:
        reach = radius * float(np.linalg.norm(theta[:-1])) * _UP + abs(constant * float(theta[-1]))
        return R * (float(expit(reach)) - 0.5) * _UP + 1e-300
    gap = math.sqrt(2) * R * float(np.linalg.norm(theta)) * _UP
    low = math.exp(-min(gap, 700.0))  # of the odds of the lower end
    squares = [(m + (n_classes - m) * low**2) / (m + (n_classes - m) * low) ** 2 for m in range(1, n_classes)]
    return R * math.sqrt(max(0.0, max(squares) - 1 / n_classes) + 1e-15) * _UP


def response_diameter(theta: Array, radius: float, constant: float, n_classes: int) -> float:
    """The largest distance of two records' responses at `theta`, ||x|| <= radius.

    Guarantees:
        No two records' responses are further apart. At most R for two classes.
    """
    ceiling = 2 * response_norm(theta, radius, constant, n_classes)
    if n_classes != 2:
        return ceiling
    reach = radius * float(np.linalg.norm(theta[:-1])) * _UP
    found = _unit_diameter(reach, abs(constant * float(theta[-1])), constant / radius)
    return min(radius * found * _UP, ceiling)


@lru_cache(maxsize=1024)
def _unit_diameter(reach: float, offset: float, constant: float) -> float:
    """At radius 1, from above by at most _GAP: pairs of arcs whose distance could still be the largest are halved."""
    slope = math.hypot(1.0, constant)
    middles, half = (np.arange(64) + 0.5) * (math.pi / 64), math.pi / 128
    first, second = (side.ravel() for side in np.meshgrid(middles, middles))
    keep = first <= second  # the distance is symmetric in a and a'
    first, second = first[keep], second[keep]
    best = 0.0
    while True:
        q, q_reach = _arc(reach, offset, slope, first, half)
        p, p_reach = _arc(reach, offset, slope, second, half)
        along = q * np.cos(first) - p * np.cos(second)
        across = np.abs(q) * np.sin(first) + np.abs(p) * np.sin(second)
        distance = np.sqrt(along**2 + across**2 + (constant * (q - p)) ** 2)
        upper = (distance + q_reach + p_reach) * _UP
        best = max(best, float(distance.max()))
        limit = max(best + _GAP, float(upper.max()))
        if limit == best + _GAP or len(first) > _MOST_PAIRS:
            return limit
        keep = upper > best + _GAP
        first, second, half = first[keep], second[keep], half / 2
        first = np.concatenate([first - half, first - half, first + half, first + half])
        second = np.concatenate([second - half, second + half, second - half, second + half])


def _arc(reach: float, offset: float, slope: float, a: Array, half: float) -> tuple[Array, Array]:
    """q in the middle of the arcs a +- half, and how far their points lie from the middle at most."""
    high, q, low = (
        expit(reach * np.cos(np.clip(a + shift, 0.0, math.pi)) + offset) - 0.5 for shift in (-half, 0.0, half)
    )
    return q, half * np.maximum(np.abs(high), np.abs(low)) + slope * np.maximum(high - q, q - low)


def _check(theta: Array, radius: float, constant: float) -> None:
    if not (0 < radius < math.inf and 0 < constant < math.inf):
        raise SettingError(f"radius = {radius} and constant = {constant} must be positive and finite")
    if not np.isfinite(theta).all():
        raise SettingError("theta holds a number that is not finite; give a model that was fitted")
