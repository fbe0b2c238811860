"""The exact privacy of Gaussian noise, mu = L2 sensitivity / standard deviation.

    delta(epsilon; mu) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)

(Balle and Wang 2018, Theorem 8; the profile of mu-Gaussian differential privacy, Dong, Roth and Su 2022). Compositions
of Gaussian releases, adaptive ones too, are again of this kind with mu**2 the sum of the mu_k**2. Every number returned
leans towards privacy: delta and epsilon are rounded up, mu is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import erfcx, erfinv, ndtr, ndtri

from tacit.bisection import bisect, geometric_mean
from tacit.errors import SettingError
from tacit.privacy.guarantee import check_delta

_LEAST = math.ulp(0.0)
_LEAST_MU, _LARGEST_MU = 1e-12, 2e3  # more noise than any use, and less


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta for which mu-Gaussian noise is (epsilon, delta)-differentially private, rounded up.

    Guarantees:
        At least the true value; above it by less than 1e-9 relative where that is at least 1e-28 and mu at least 1e-4.
    """
    return min(1.0, max(_LEAST, math.exp(log_gaussian_delta(epsilon, mu)) * (1 + 1e-14)))


def log_gaussian_delta(epsilon: float, mu: float) -> float:
    """The logarithm of `gaussian_delta`, where that would underflow."""
    if not (epsilon >= 0 and mu > 0 and math.isfinite(mu)):
        raise SettingError(f"epsilon = {epsilon} must not be negative, and mu = {mu} must be positive and finite")
    if math.isinf(epsilon):
        return -math.inf
    a = mu / 2 - epsilon / mu
    size = mu / 2 + epsilon / mu  # bounds |a| and, times the unit roundoff, the error of a
    # exp(epsilon) phi(-mu/2 - epsilon/mu) = phi(a), so with the Mills ratio M(x) = Phi(-x) / phi(x) both terms have the
    # factor phi(a): delta = phi(a) (M(-a) - M(mu - a)). What is added to a difference is more than its rounding error.
    if a > 0:
        log_delta = math.log(ndtr(a) - _normal_density(a) * _mills(size) + 1e-15 * (2 + size))
    else:
        log_delta = -0.5 * a * a - 0.5 * math.log(2 * math.pi) + 1e-15 * (1 + size) ** 2
        log_delta += math.log(_mills(-a) - _mills(size) + 1e-15 * _mills(-a))
    return min(0.0, log_delta + 1e-14)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon for which mu-Gaussian noise is (epsilon, delta)-differentially private, rounded up."""
    check_delta(delta)
    return least_epsilon(lambda epsilon: log_gaussian_delta(epsilon, mu), delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which Gaussian noise is (epsilon, delta)-differentially private, rounded down."""
    check_delta(delta)
    target = math.log(delta)

    def is_private(mu: float) -> bool:
        return log_gaussian_delta(epsilon, mu) <= target

    if not is_private(_LEAST_MU):
        raise SettingError(f"epsilon = {epsilon} and delta = {delta} are too small together for any Gaussian noise")
    return bisect(is_private, yes=_LEAST_MU, no=_LARGEST_MU, tolerance=1e-13, middle=geometric_mean)


def mu_of_pure(epsilon: float) -> float:
    """The mu for which every epsilon-differentially private release is mu-Gaussian private, rounded up.

    The trade-off curve of pure epsilon is two straight lines from (0, 1) over (p, p) to (1, 0), 1/p = 1 + exp(epsilon);
    that of mu is convex with the same ends, so it lies below if it passes through (p, p), that is, if Phi(-mu/2) = p.
    """
    if epsilon > 700:
        return math.inf
    exact = float(-2 * ndtri(1 / (1 + math.exp(epsilon))) if epsilon > 1 else erfinv(math.tanh(epsilon / 2)) * 8**0.5)
    return exact * (1 + 1e-13)


def least_epsilon(log_delta: Callable[[float], float], delta: float, *, tolerance: float = 1e-13) -> float:
    """The least epsilon >= 0 with log_delta(epsilon) <= log(delta), for a falling function; rounded up, or infinity."""
    target = math.log(delta) if delta > 0 else -math.inf
    if log_delta(0.0) <= target:
        return 0.0
    low, high = 0.0, 1e-6
    while log_delta(high) > target:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    return bisect(lambda epsilon: log_delta(epsilon) <= target, yes=high, no=low, tolerance=tolerance)


def _normal_density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _mills(x: float) -> float:
    """Phi(-x) / phi(x) for x >= 0."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))
