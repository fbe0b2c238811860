"""How far a penalised optimum moves when one record, or a whole party, is replaced.

The mean form is J(w) = (1/n) sum_i loss_i(w) + (l2_mean / 2) ||w||^2, so that l2 = n l2_mean in the sum form; every
parameter is penalised and ||(x, constant)|| <= radius =: R. Binary labels are signs: u = +-(x, constant), and the
gradient of a record is -sigma(-w.u) u.

Sensitivity. If w1 and w2 minimise J on data sets that differ in one record, strong convexity gives
    l2_mean ||w1 - w2|| <= ||grad J_1(w2)|| = ||grad J_1(w2) - grad J_2(w2)|| <= D / n,
with D the largest distance of two records' gradients at any w that can be a minimiser, ||w|| <= B.

Norm of a minimiser, C classes. Let s = W x be a record's scores, p its probabilities and q = p_y that of its label.

1. At the minimiser the gradient of J is 0. Its inner product with W says that l2_mean ||W||^2 is the mean over the
   records of f = s_y - sum_c p_c s_c. For two classes and one vector that is f = m sigma(-m), m = w.u. A record that
   adds no loss has f = 0.
2. Scores differ by s_y - s_c = log(q / p_c), so f = sum over c != y of p_c log(q / p_c). The logarithm is concave: for
   a given q this is largest if the other p_c are all equal. So f <= h(a) with h(a) = (C - 1) a / (e^a + C - 1) and a =
   log((C - 1) q / (1 - q)).
3. h is negative below 0, rises to a* = 1 + W((C - 1) / e) and falls then, W being Lambert's function: h'(a) = 0 says
   (a - 1) e^a = C - 1. There h(a*) = a* - 1 = W((C - 1) / e). Hence l2_mean ||W||^2 <= W((C - 1) / e).
4. Short models do not reach a*. For two classes a = m <= R ||w||. For more, a = s_y - log(mean of e^(s_c) over c != y),
   at most s_y less the mean of these s_c. That is a product of s, of norm at most R ||W||, with a vector of norm
   sqrt(C / (C - 1)). So a <= k ||W|| with k = R, or k = R sqrt(C / (C - 1)).
5. Together l2_mean b^2 <= h(min(k b, a*)) for b = ||W||. Since h(t) / t^2 falls, B is where both sides are equal. If a*
   is reached there, B = sqrt(W((C - 1) / e) / l2_mean). Otherwise l2_mean B = k (C - 1) / (e^(k B) + C - 1).

One record of the right length has a minimiser as long as that. J(w*) <= J(0) would give sqrt(2 ln C / l2_mean) alone.

Diameter, binary. D(B, R) = sup ||sigma(-w.u) u - sigma(-w.u') u'|| over ||w|| <= B, ||u||, ||u'|| <= R. Scaling gives
D(B, R) = R D(RB, 1). Let w = b e, ||e|| = 1, and split u = s e + t with t orthogonal to e. Given s, s' the distance is
largest when t and t' are opposite and as long as they may be, so u and u' are unit vectors at angles a and -a' from e,
    D^2 = sup p^2 + p'^2 - 2 p p' cos(a + a'),   p = sigma(-b cos a), p' = sigma(-b cos a'),   0 <= a, a' <= pi.
Only b = RB matters: at a smaller b, replace s, s' by f s, f s' with f = b / RB < 1. That keeps p and p', and does not
raise cos(a + a') = s s' - sqrt(1 - s^2) sqrt(1 - s'^2). If s s' >= 0 neither term rises; if s s' < 0 it becomes
-cos(arcsin f|s| - arcsin f|s'|), and the difference of the arcsines falls with f, as arcsin' rises on [0, 1]. So D is
the largest distance from the plane curve p(a) (cos a, sin a) to its mirror image, found below by branch and bound.

All results are rounded up.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit, lambertw

from tacit.bisection import bisect
from tacit.errors import SettingError
from tacit.models.loss import Array

_UP = 1 + 2.0**-40
"""Larger than the rounding errors of any expression here."""
_GAP = 1e-7
"""How far above the true diameter the certified one may lie, at radius 1."""
_MOST_PAIRS = 2_000_000
"""A search that grows beyond this settles for the bound that it has."""


def minimiser_norm_bound(l2_mean: float, radius: float, n_classes: int = 2) -> float:
    """B: no minimiser of J is longer, whatever the records.

    The module's text has the proof, in five steps.

    Guarantees:
        ||w*|| <= the result for every data set with rows of norm at most `radius`.
    """
    _check(l2_mean=l2_mean, radius=radius)
    _check_classes(n_classes)
    return _norm_bound(l2_mean, radius, n_classes)


@lru_cache(maxsize=1024)
def _norm_bound(l2_mean: float, radius: float, n_classes: int) -> float:
    others = n_classes - 1
    largest = float(lambertw(others / math.e).real) * _UP  # h(a*)
    k = radius * (1.0 if n_classes == 2 else math.sqrt(n_classes / others)) * _UP
    bound = math.sqrt(largest / l2_mean) * _UP
    if k * bound >= 1 + largest:
        return bound

    def is_enough(b: float) -> bool:
        return l2_mean * b >= k * float(expit(math.log(others) - k * b))

    return bisect(is_enough, yes=bound, no=0.0, tolerance=1e-13) * _UP


def gradient_diameter(minimiser_bound: float, radius: float) -> float:
    """D(B, R), binary: the largest distance of two records' gradients at any parameter of norm at most B.

    Guarantees:
        D(B, R) <= the result <= min(2 R sigma(R B), 2 R) up to rounding.
    """
    if not (minimiser_bound >= 0 and math.isfinite(minimiser_bound)):
        raise SettingError(f"minimiser_bound = {minimiser_bound} must be 0 or positive, and finite")
    _check(radius=radius)
    ceiling = 2 * float(expit(radius * minimiser_bound)) * _UP  # ||sigma(-w.u) u|| <= R sigma(R B)
    return radius * min(_unit_diameter(radius * minimiser_bound), ceiling) * _UP


def minimiser_sensitivity(n_records: int, l2_mean: float, radius: float, n_classes: int = 2) -> float:
    """The most that the minimiser moves, in L2 norm, when one of `n_records` records is replaced by any other.

    Guarantees:
        ||w1 - w2|| <= the result for any two data sets of n_records rows of norm at most `radius` that differ in one.
    """
    if n_records < 1:
        raise SettingError(f"n_records = {n_records} must be at least 1")
    bound = minimiser_norm_bound(l2_mean, radius, n_classes)
    binary = n_classes == 2
    diameter = gradient_diameter(bound, radius) if binary else 2 * gradient_norm(bound, radius, n_classes)
    by_record = diameter / n_records / l2_mean * _UP
    return min(by_record, party_sensitivity(l2_mean, radius, n_classes))


def party_sensitivity(l2_mean: float, radius: float, n_classes: int = 2) -> float:
    """The most that the minimiser moves when all of its records are replaced: 2 B.

    Guarantees:
        ||w1 - w2|| <= the result for any two data sets with rows of norm at most `radius`.
    """
    return 2 * minimiser_norm_bound(l2_mean, radius, n_classes)


def gradient_norm(bound: float, radius: float, n_classes: int) -> float:
    """The largest gradient norm of a record where ||w|| <= bound.

    Binary: R sigma(R B). Softmax: ||p - e_y|| <= sqrt 2 (1 - p_y), and two scores differ by at most sqrt 2 R B, hence
    1 - p_y <= pi = (C - 1) e^{sqrt 2 R B} / (1 + (C - 1) e^{sqrt 2 R B}).
    """
    if n_classes == 2:
        return radius * float(expit(radius * bound)) * _UP
    pi = float(expit(math.sqrt(2) * radius * bound + math.log(n_classes - 1)))
    return math.sqrt(2) * radius * pi * _UP


@lru_cache(maxsize=1024)
def _unit_diameter(b: float) -> float:
    """D(b, 1), from above by at most _GAP: pairs of arcs whose distance could still be the largest are halved."""
    if b > 1000:
        return 2.0  # D <= 2 always, and D(1000, 1) is 1.9998 already
    middles, half = (np.arange(64) + 0.5) * (math.pi / 64), math.pi / 128
    first, second = (side.ravel() for side in np.meshgrid(middles, middles))
    keep = first <= second  # the distance is symmetric in a and a'
    first, second = first[keep], second[keep]
    best = 1.0  # attained at a + a' = pi
    while True:
        distance, upper = _pair_distances(b, first, second, half)
        best = max(best, float(distance.max()))
        limit = max(best + _GAP, float(upper.max()))
        if limit == best + _GAP or len(first) > _MOST_PAIRS:
            return limit
        keep = upper > best + _GAP
        first, second, half = first[keep], second[keep], half / 2
        first = np.concatenate([first - half, first - half, first + half, first + half])
        second = np.concatenate([second - half, second + half, second - half, second + half])


def _pair_distances(b: float, first: Array, second: Array, half: float) -> tuple[Array, Array]:
    """Distances of the middles of two arcs, and upper bounds on that of any two of their points."""
    p, p_slope, p_reach = _arc(b, first, half)
    q, q_slope, q_reach = _arc(b, second, half)
    cos, sin = np.cos(first + second), np.sin(first + second)
    square = (p - q) ** 2 + 2 * p * q * (1 - cos)  # p^2 + q^2 - 2 p q cos(a + a')
    distance = np.sqrt(square)
    # Taylor: |p'| <= b/4 and |p''| <= b/4 + b^2 / (6 sqrt 3) bound the second derivatives of the square, so that its
    # remainder is at most (0.64 b^2 + 3 b + 4) half^2. Far from the optimum the arcs' own reach says more.
    tilt = np.abs(2 * p * p_slope - 2 * q * (p_slope * cos - p * sin))
    tilt += np.abs(2 * q * q_slope - 2 * p * (q_slope * cos - q * sin))
    taylor = np.sqrt(square + tilt * half + (0.64 * b**2 + 3 * b + 4) * half**2)
    return distance, np.minimum(distance + p_reach + q_reach, taylor) * _UP


def _arc(b: float, a: Array, half: float) -> tuple[Array, Array, Array]:
    """p and its slope in the middle of the arcs a +- half, and how far their points lie from the middle at most."""
    low, p, high = (expit(-b * np.cos(np.clip(a + shift, 0.0, math.pi))) for shift in (-half, 0.0, half))
    slope = b * np.sin(a) * p * (1 - p)
    return p, slope, half * high + np.maximum(high - p, p - low)  # p rises with a


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise SettingError(f"{name} = {value} must be positive and finite")


def _check_classes(n_classes: int) -> None:
    if n_classes < 2:
        raise SettingError(f"n_classes = {n_classes}; a classifier needs at least 2")
