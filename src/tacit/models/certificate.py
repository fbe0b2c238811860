"""How far an iterate is from the optimum at most, rounding errors of its gradient and curvature included.

Let F be the objective, g and H its gradient and curvature at theta, v = theta* - theta and nu^2 = g'H^{-1}g. Let m be
such that every record's score moves by at most m ||w||_H along any direction w. For softmax this is to hold of every
difference of two scores of a record.

Claim. If q = m nu < 1, the optimum exists and ||v||_H <= -ln(1 - q) / m.

Proof (the idea is that of Bach 2010, "Self-concordant analysis for logistic regression").

1. Along v the third derivative of a record's loss is the third central moment of its scores. That is at most their
   range times their variance, so at most r = m ||v||_H times the second derivative. The penalty has none.
2. So F''(theta + tv) >= exp(-rt) F''(theta) in direction v.
3. Integrating, v'(grad F(theta*) - g) >= ||v||_H^2 (1 - e^{-r}) / r. The left side is -v'g <= ||v||_H nu.
4. Hence 1 - e^{-r} <= r nu / ||v||_H = m nu = q, which is the claim's bound.
5. The same inequality on the sphere ||v||_H = -ln(1 - q') / m with q < q' < 1 shows that F grows outwards there. So an
   optimum exists inside. QED

All norms are computed in units s_j = H_jj^{-1/2} of the parameters, so that nothing depends on the units of a feature:
m <= max_i ||S x_i|| sqrt(lambda_max((S H S)^{-1})), and ||v||_2 <= ||v||_H sqrt(lambda_max(H^{-1})).

When every parameter is penalised, F is l2-strongly convex and ||v||_2 <= ||g|| / l2 as well: the smaller bound counts.

Rounding. With u = 2^-53 and gamma_n = n u / (1 - n u), a sum of n products has an error of at most gamma_n times that
of the absolute products, whatever its order (Higham 2002, section 3.1). A gradient entry is summed over chunks of
`CHUNK_ROWS` rows and then over the chunks, so that n = CHUNK_ROWS + n_chunks. A score has an error of at most
gamma_{k+2} T, T = sum_j |theta_j| max_i |x_ij|. The probability of a wrong class, from which `loss` computes residuals
and curvatures, is an exponential of scores, so that an error of theirs is a *relative* error of it, next to a few u of
its own. These are worst cases; actual errors are smaller by orders of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tacit.models.loss import CHUNK_ROWS, Array, Loss, Sums

_U = 2.0**-53


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Upper bounds on ||theta - theta*||_2; infinite where nothing can be said.

    `computed` takes the computed gradient and curvature at their word. `distance_bound` allows for their rounding
    errors and is what a proof must use.
    """

    computed: float
    distance_bound: float


@dataclass(frozen=True, kw_only=True)
class FitPoint:
    """What the certificate needs to know of an iterate.

    `gradient` and `curvature` are the objective's, `sums` the data's part of it; `column_bound` bounds |x_ij| per
    column, the constant included; `l2_floor` is the strong convexity that the penalty ensures in all directions.
    """

    theta: Array
    gradient: Array
    curvature: Array
    sums: Sums
    column_bound: Array
    l2_floor: float


def certify(point: FitPoint, loss: Loss) -> Certificate:
    """Bounds on the distance of `point` from the optimum.

    If theta and theta* are known to lie in a subspace (softmax parameters that sum to zero over the classes), the
    curvature may be raised on the orthogonal complement of it.

    Guarantees:
        distance_bound >= computed >= 0, and ||theta - theta*||_2 <= distance_bound if that is finite.
    """
    s = 1 / np.sqrt(np.diag(point.curvature))
    gradient_error, curvature_error = rounding_errors(point, loss)
    computed = distance_bound = math.inf
    inverse = _inverse(point.curvature * np.outer(s, s))
    low = 0.0 if inverse is None else 1 / _largest_eigenvalue(inverse)
    if inverse is not None and low > 2 * curvature_error:
        g = s * point.gradient.ravel()
        nu = math.sqrt(max(0.0, float(g @ inverse @ g)))
        spread = math.sqrt(_largest_eigenvalue(inverse * np.outer(s, s)))
        reach = _reach(point.column_bound, s.reshape(loss.shape)) / math.sqrt(low)
        computed = spread * _self_concordant(nu, reach)
        # Scaled, the computed curvature is off by at most curvature_error, hence H >= (1 - curvature_error / low) H^.
        slack = math.sqrt(1 - curvature_error / low)
        nu_error = float(np.linalg.norm(s * gradient_error.ravel())) / math.sqrt(low)
        distance_bound = spread / slack * _self_concordant((nu + nu_error) / slack, reach / slack)
    by_gradient = certify_by_gradient(point, loss)
    computed, distance_bound = min(computed, by_gradient.computed), min(distance_bound, by_gradient.distance_bound)
    representation = 4 * _U * float(np.linalg.norm(point.theta))
    return Certificate(computed=computed, distance_bound=max(computed, distance_bound) + representation)


def certify_by_gradient(point: FitPoint, loss: Loss) -> Certificate:
    """What strong convexity alone certifies, ||g|| / l2; the point's curvature is not looked at.

    Guarantees: as `certify`.
    """
    if not point.l2_floor > 0:
        return Certificate(computed=math.inf, distance_bound=math.inf)
    norm = float(np.linalg.norm(point.gradient))
    error = float(np.linalg.norm(_gradient_error(point, loss)[0]))
    representation = 4 * _U * float(np.linalg.norm(point.theta))
    computed = norm / point.l2_floor
    return Certificate(computed=computed, distance_bound=(norm + error) / point.l2_floor + representation)


def rounding_errors(point: FitPoint, loss: Loss) -> tuple[Array, float]:
    """Worst-case rounding errors: of each gradient entry, and of the curvature in units of its own diagonal."""
    size = point.theta.size
    gradient_error, relative, summation = _gradient_error(point, loss)
    # |H_jl| <= sqrt(H_jj H_ll) turns relative errors into errors in units of the diagonal; the last term is the
    # backward error of a Cholesky inverse (Higham 2002, theorem 10.3).
    return gradient_error, size * (summation + 4 * relative + (16 + 4 * size) * _U)


def _gradient_error(point: FitPoint, loss: Loss) -> tuple[Array, float, float]:
    """The worst-case error of each gradient entry, with the relative errors of a probability and of a sum."""
    bound = point.column_bound
    score_error = _gamma(loss.width + 2) * float((np.abs(point.theta) @ bound).max(initial=0.0))
    # A wrong class's probability is exp(score - true score - loss): four scores' errors, and that of the exponential.
    relative = math.expm1(6 * score_error) + (32 + 2 * loss.n_classes) * _U
    summation = _gamma(min(CHUNK_ROWS, point.sums.n_records) + point.sums.n_chunks + 2)
    data = (summation + 2 * relative) * point.sums.residual * np.broadcast_to(bound, loss.shape)
    penalty = np.abs(point.gradient) + np.abs(point.gradient - point.sums.gradient)
    return data + 4 * _U * penalty, relative, summation


def _inverse(H: Array) -> Array | None:
    try:
        inverse: Array = cho_solve(cho_factor(H, lower=True), np.eye(len(H)))
    except LinAlgError:
        return None
    return (inverse + inverse.T) / 2


def _largest_eigenvalue(A: Array) -> float:
    """An upper bound for positive A: (tr A^32)^(1/32), at most k^(1/32) too large; cheaper than an eigenvalue."""
    size = float(np.diag(A).max())  # no entry is larger
    log, power = math.log(size), 1
    A = A / size
    for _ in range(4):
        A, power = A @ A, 2 * power
        size = float(np.linalg.norm(A))
        log, A = log + math.log(size) / power, A / size
    return math.exp(log) * (1 + 64 * len(A) * _U)  # ||A^16||_F = (tr A^32)^(1/2)


def _self_concordant(nu: float, m: float) -> float:
    """-ln(1 - m nu) / m, the bound on ||v||_H, or infinity."""
    q = m * nu
    if not q < 1:
        return math.inf
    return nu if q < _U else -math.log1p(-q) / m * (1 + 4 * _U)


def _reach(column_bound: Array, s: Array) -> float:
    """max ||S x||; for softmax sqrt 2 times it, as (V_a - V_b).x <= sqrt 2 ||V|| ||x||."""
    lengths = np.linalg.norm(s * column_bound, axis=-1)
    return float(lengths) if s.ndim == 1 else math.sqrt(2) * float(lengths.max())


def _gamma(n: int) -> float:
    return n * _U / (1 - n * _U)
