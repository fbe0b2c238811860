"""Objective perturbation with tight noise: Redberg, Koskela and Wang, arXiv 2401.00583v1 (NeurIPS 2023), Theorem 3.1.

One fit, argmin L(w) + (l2/2) ||w||^2 + b.w with b ~ N(0, s^2 I), over rows of norm at most 1.

Add-remove. With u the row that is added, f(b) the noise's density and c = log(1 + 1/(4 l2)) for the change of volume,

1. the densities of w differ by at most e^c f(b) / f(b + v), where v = a u, |a| <= 1 (the paper has c = -log(1 - 1/(4
   l2)), which is more; one rank-one term of curvature at most 1/4 is added to at least l2);
2. log f(b) / f(b + v) = (2 b.v + ||v||^2) / (2 s^2) <= |Z| / s + 1 / (2 s^2), Z = b.u / (s ||u||) standard normal;
3. with t = epsilon - c - 1 / (2 s^2), delta(epsilon) <= E (1 - exp(t - |Z| / s))_+. For t >= 0 that is twice the
   exact Gaussian profile at epsilon - c, for t < 0 it is 1 - e^t E exp(-|Z| / s): the paper's two cases.

Replace-one. The least of two proven ways: the same analysis for two rows at once (`tacit.methods.objective.statistic`,
(3): dGM(e1; 2/s) + 2 dGM(e1; 1/s)), or twice the promise of add-remove, (epsilon, delta) = (2 e, (1 + exp(e)) d).

l2 is the rule of `tacit.methods.objective.method.default_l2` for one party: of public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import erfcx, expit

from peers.task import Task
from tacit.bisection import bisect, geometric_mean
from tacit.privacy.gaussian import gaussian_delta

Floats = npt.NDArray[np.float64]


def tight_objective_scores(task: Task) -> Floats:
    """Log odds on the test rows."""
    d = task.rows.shape[1]
    if math.isinf(task.epsilon):
        return task.scores(fit(task, l2=1.0, linear=np.zeros(d)))
    least = 0.25 / math.expm1(task.epsilon / 10)  # where the change of volume costs a tenth of epsilon
    floor = max(1.0, least)
    l2 = max(floor, noise_std(task, floor) * math.sqrt(d / 128))
    return task.scores(fit(task, l2=l2, linear=task.rng.normal(scale=noise_std(task, l2), size=d)))


def noise_std(task: Task, l2: float) -> float:
    """The least s, rounded up."""
    c = math.log1p(0.25 / l2)
    if task.relation == "add-remove":
        return _least(lambda s: one_row_delta(task.epsilon, s, c) <= task.delta)
    e1, half = task.epsilon - c, task.epsilon / 2
    direct = _least(lambda s: gaussian_delta(e1, 2 / s) + 2 * gaussian_delta(e1, 1 / s) <= task.delta)
    twice = _least(lambda s: (1 + math.exp(half)) * one_row_delta(half, s, c) <= task.delta)
    return min(direct, twice)


def one_row_delta(epsilon: float, s: float, c: float) -> float:
    """The delta that is proved for one row more or less."""
    left = epsilon - c - 1 / (2 * s**2)
    if left >= 0:
        return 2 * gaussian_delta(epsilon - c, 1 / s)
    return 1 - math.exp(left) * float(erfcx(1 / (s * math.sqrt(2))))  # E exp(-a |Z|) = erfcx(a / sqrt 2)


def _least(is_private: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    while not is_private(high):
        low, high = high, 2 * high
    return bisect(is_private, yes=high, no=low or 1e-6, tolerance=1e-9, middle=geometric_mean)


def fit(task: Task, *, l2: float, linear: Floats) -> Floats:
    """The minimiser over `rows`."""
    U, y = task.rows, task.y.astype(np.float64)

    def objective(w: Floats) -> tuple[float, Floats]:
        s = U @ w
        value = float(np.sum(np.logaddexp(0.0, s) - y * s)) + 0.5 * l2 * float(w @ w) + float(linear @ w)
        return value / len(y), (U.T @ (expit(s) - y) + l2 * w + linear) / len(y)

    settings = {"maxiter": 2000, "gtol": 1e-9, "ftol": 1e-14}
    found: Floats = minimize(objective, np.zeros(U.shape[1]), jac=True, method="L-BFGS-B", options=settings).x
    return found
