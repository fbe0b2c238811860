"""Intervals of private Newton: where the unpenalised equation has its solution, and how far chance and noise move it.

The penalty draws a model towards its start, so intervals are about the solution without one. Its equation is the mean
of the rounds' expansions S_k + H_k (w - w_k) = t, weighted as in `newton_solve`, with two changes that trade variance,
which an interval shows, for bias, which it would not: A is taken as it was opened, noise and all, but for eigenvalues
that its noise has all but drowned, which are raised; and the normal population gives H_k in full,

    H = n (E sigma' (m m' + Cov) + E sigma'' (m a' + a m') + E sigma''' a a'),   a = Cov w     (two classes)

by Stein's lemma, but no equation of its own, unless there is no other. For more classes H = K (x) A.

The noise of the equation has the variance of t's and of the average, and what the noise of A does on the way from w_k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.schema import Schema
from tacit.methods.newton_solve import NODES, WEIGHTS, Equation, Solved
from tacit.models.inference import Inference
from tacit.models.noisy_inference import noisy_covariance, noisy_inference

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 2000
"""For which a covariance is worked out."""
_CLEAR = 0.3  # of the spread of the noise's eigenvalues, s_A sqrt(2 k): smaller ones are raised
_ITERATIONS = 10
_LONGEST_WAY = 1e12  # squared, between two models: beyond it there is no unpenalised solution


@dataclass(frozen=True, kw_only=True)
class _Term:
    """One expansion: right - H theta has this variance a coordinate, and more on the way from `theta`."""

    theta: Floats
    H: Floats
    right: Floats
    variance: float
    steepness: float  # how much of the way meets the noise of A


def interval(equation: Equation, solved: Solved, schema: Schema) -> Inference | None:
    """Intervals in original units; None if there are too many parameters, or if noise leaves no solution."""
    plan = equation.plan
    if plan.n_scores * plan.width > MOST_PARAMETERS:
        return None
    used = _used(equation)
    found = _free_solution(equation, solved, used)
    if found is None:
        return None
    theta, H, variance = found
    units = schema.original_units()[:, : plan.width if equation.has_intercept else plan.n_features].copy()
    if equation.has_intercept:
        units[:, -1] *= plan.constant
    return noisy_inference(
        theta, noisy_covariance(H, variance), np.kron(np.eye(plan.n_scores), units), n_records=round(equation.n_records)
    )


def _used(equation: Equation) -> npt.NDArray[np.intp]:
    """The positions of the parameters that are fitted, in theta.ravel()."""
    plan = equation.plan
    at = np.arange(plan.n_scores * plan.width).reshape(plan.n_scores, plan.width)
    return at.ravel() if equation.has_intercept else at[:, :-1].ravel()


def _free_solution(
    equation: Equation, solved: Solved, used: npt.NDArray[np.intp]
) -> tuple[Floats, Floats, float] | None:
    """The unpenalised solution, the curvature there and the variance of its noise; None if noise leaves no solution."""
    A, A_noise = _second_moments(equation), equation.A_noise
    terms = _terms(equation, solved, A, used)
    theta = solved.theta.ravel()[used]
    for _ in range(_ITERATIONS):
        ways = [float(np.sum((theta - term.theta) ** 2)) for term in terms]
        if not max(ways) < _LONGEST_WAY:
            return None
        variances = [
            term.variance + (term.steepness * A_noise) ** 2 / 2 * way / equation.plan.n_scores
            for term, way in zip(terms, ways, strict=True)
        ]
        total = 1 / sum(1 / variance for variance in variances)
        shares = [total / variance for variance in variances]
        H = np.sum([share * term.H for share, term in zip(shares, terms, strict=True)], axis=0)
        right = np.sum([share * term.right for share, term in zip(shares, terms, strict=True)], axis=0)
        theta = np.linalg.lstsq(H, right, rcond=1e-10)[0]
    return theta, H, total + equation.t_noise**2


def _second_moments(equation: Equation) -> Floats:
    """A as opened, with no eigenvalue too small for its noise."""
    values, vectors = np.linalg.eigh(equation.opened)
    least = _CLEAR * equation.A_noise * math.sqrt(2 * len(values))
    raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return raised


def _terms(equation: Equation, solved: Solved, A: Floats, used: npt.NDArray[np.intp]) -> list[_Term]:
    t = equation.t.ravel()[used]
    terms = []
    for one in equation.observations:
        H = _curvature(equation, A, one.theta)[np.ix_(used, used)]
        theta = one.theta.ravel()[used]
        terms.append(
            _Term(
                theta=theta,
                H=H,
                right=t + H @ theta - one.response.ravel()[used],
                variance=one.noise_std**2,
                steepness=float(np.linalg.eigvalsh(one.curvature)[-1]),
            )
        )
    if not terms:
        expected, K = equation.population(solved.theta)
        H = _curvature(equation, A, solved.theta)[np.ix_(used, used)]
        theta = solved.theta.ravel()[used]
        steepness = float(np.linalg.eigvalsh(K)[-1])
        of_moments = (steepness * equation.A_noise) ** 2 / 2 * float(theta @ theta) / equation.plan.n_scores
        right = t + H @ theta - expected.ravel()[used]
        terms = [_Term(theta=theta, H=H, right=right, variance=of_moments, steepness=steepness)]
    return terms


def _curvature(equation: Equation, A: Floats, theta: Floats) -> Floats:
    """H of a normal population with these second moments, over theta.ravel()."""
    if equation.plan.n_classes > 2:
        return np.kron(equation.population(theta)[1], A)
    n, m, w = equation.n_records, A[-1] / (equation.n_records * equation.plan.constant), theta[0]
    a = A @ w / n - m * (m @ w)
    p = expit(m @ w + math.sqrt(max(float(w @ a), 0.0)) * NODES)
    slope = p * (1 - p)
    first, second, third = (float(WEIGHTS @ f) for f in (slope, slope * (1 - 2 * p), slope * (1 - 6 * slope)))
    return first * A + n * (second * (np.outer(m, a) + np.outer(a, m)) + third * np.outer(a, a))
