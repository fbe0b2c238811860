"""Standard errors, z, p and intervals of a fit (Wald).

At l2 = 0 the covariance is the inverse of the observed information, as statsmodels' Logit and MNLogit report it. At
l2 > 0 it is the inverse of the penalised curvature: the covariance of the Laplace approximation to the posterior under
the prior N(0, I / l2). It is not the sampling covariance of the penalised estimate, which is biased towards 0, so that
z and p are then only a guide.

A softmax fit is told in its symmetric form, parameters that sum to zero over the classes; its covariance is singular in
the directions that change no probability. Contrasts with a reference class are a choice of `units`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr, ndtri

from tacit.errors import SettingError
from tacit.models.loss import Array
from tacit.models.problem import Problem, Solution

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Inference:
    """What a fit says of each reported parameter; all arrays have one entry for each."""

    estimate: Array
    standard_error: Array
    z: Array
    p: Array  # two-sided
    low: Array
    high: Array
    covariance: Array
    confidence: float
    log_likelihood: float
    aic: float
    n_records: int
    null_log_likelihood: float | None = None  # of the model without features; None where class counts are not known
    n_slopes: int = 0  # how many parameters that model lacks


def infer(
    solution: Solution,
    *,
    units: Array | None = None,
    confidence: float = 0.95,
    class_counts: Counts | None = None,
) -> Inference:
    """Wald inference for `units` @ theta.ravel().

    `units` (q, number of parameters) turns the parameters that were fitted, on scaled features, into those of the
    original units. Without it the coefficients are told as fitted, and the intercept times its constant. With
    `class_counts` the likelihood without features is told, too.

    Guarantees:
        At l2 = 0 the numbers are those of the maximum-likelihood fit; low <= estimate <= high.
    """
    if not 0 < confidence < 1:
        raise SettingError(f"confidence = {confidence} must lie between 0 and 1, for example 0.95")
    size = solution.theta.size
    J = _as_fitted(solution) if units is None else units
    if J.ndim != 2 or J.shape[1] != size:
        raise SettingError(f"units has shape {J.shape}; it must have one column for each of {size} parameters")
    found = wald(
        J @ solution.theta.ravel(),
        J @ covariance_of(solution) @ J.T,
        n_parameters=(solution.problem.n_classes - 1) * solution.problem.loss.width,
        log_likelihood=solution.log_likelihood,
        n_records=solution.n_records,
        confidence=confidence,
    )
    return found if class_counts is None else against_null(found, solution.problem, class_counts)


def against_null(found: Inference, problem: Problem, class_counts: Counts) -> Inference:
    """The inference with the likelihood of the model without features, which class counts alone tell."""
    counts = np.asarray(class_counts, dtype=np.float64)
    n = counts.sum()
    share = np.full(len(counts), 1 / len(counts)) if problem.intercept == "none" else counts / n
    null = float(np.sum(counts * np.log(np.where(counts > 0, share, 1.0))))
    return replace(found, null_log_likelihood=null, n_slopes=(problem.n_classes - 1) * problem.n_features)


def wald(
    estimate: Array,
    covariance: Array,
    *,
    n_parameters: int,
    log_likelihood: float,
    n_records: int,
    confidence: float = 0.95,
) -> Inference:
    """Wald inference for estimates of known covariance; entries off its diagonal are not read, and may be unknown."""
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    z = np.divide(estimate, error, out=np.full_like(estimate, np.nan), where=error > 0)
    half = float(ndtri(0.5 + confidence / 2)) * error
    return Inference(
        estimate=estimate,
        standard_error=error,
        z=z,
        p=2 * ndtr(-np.abs(z)),
        low=estimate - half,
        high=estimate + half,
        covariance=covariance,
        confidence=confidence,
        log_likelihood=log_likelihood,
        aic=2 * n_parameters - 2 * log_likelihood,
        n_records=n_records,
    )


def covariance_of(solution: Solution) -> Array:
    """The inverse curvature over theta.ravel(); for softmax, among parameters that sum to zero over the classes."""
    H = solution.curvature
    if solution.theta.ndim == 1:
        return _inverse(H)
    C, k = solution.theta.shape
    centre = np.kron(np.eye(C) - 1 / C, np.eye(k))
    null = np.kron(np.full((C, C), 1 / C), np.diag(np.diag(H).reshape(C, k).max(axis=0)))
    return np.asarray(centre @ _inverse(H + null) @ centre)


def _as_fitted(solution: Solution) -> Array:
    """The identity, but for intercepts, which are told times their constant."""
    factor = np.ones(solution.problem.loss.shape)
    if solution.problem.intercept != "none":
        factor[..., -1] = solution.problem.constant
    return np.diag(factor.ravel())


def _inverse(H: Array) -> Array:
    s = 1 / np.sqrt(np.diag(H))
    inverse: Array = cho_solve(cho_factor(H * np.outer(s, s), lower=True), np.eye(len(H)))
    return inverse * np.outer(s, s)
