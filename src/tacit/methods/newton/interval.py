"""Intervals of private Newton: where the unpenalised equation has its solution, and how far chance and noise move it.

The penalty draws a model towards its start, so intervals are about the solution without one. Its equation is the mean
of the rounds' expansions S_k + H_k (w - w_k) = t, weighted as in `solver`, with two changes that trade variance,
which an interval shows, for bias, which it would not: M is taken as it was opened, noise and all, but for eigenvalues
that its noise has all but drowned, which are raised; and the normal population gives H_k in full,

    H = n (E sigma' (m m' + Cov) + E sigma'' (m a' + a m') + E sigma''' a a'),   a = Cov w     (two classes)

by Stein's lemma, but no equation of its own, unless there is no other. For more classes H = K (x) M.

The noise of the equation has the variance of t's and of the average, and what the noise of M does on the way from w_k.
At the parameter of the population the gradient S - t has the covariance sum sigma' u u', which is H as taken here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.schema import Schema
from tacit.methods.newton.solver import NODES, WEIGHTS, Equation, Solved
from tacit.models.inference import Inference
from tacit.models.noisy_inference import noisy_covariance, noisy_inference

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 2000
"""For which a covariance is worked out."""
_CLEAR = 0.7  # of the spread of the noise's eigenvalues, s_M sqrt(2 k): smaller ones are raised
_ITERATIONS = 10
_LONGEST_WAY = 1e12  # squared, between two models: beyond it there is no unpenalised solution


@dataclass(frozen=True, kw_only=True)
class _Term:
    """One expansion: right - H model has this variance a coordinate, and more on the way from `model`."""

    model: Floats
    H: Floats
    right: Floats
    variance: float
    steepness: float  # how much of the way meets the noise of M


def interval(equation: Equation, solved: Solved, schema: Schema, n_records: int) -> Inference | None:
    """Intervals in original units, of a fit to so many records; None if it has too many parameters or no solution."""
    plan = equation.plan
    if plan.n_scores * plan.width > MOST_PARAMETERS:
        return None
    basis = np.kron(np.eye(plan.n_scores), equation.basis)
    found = _free_solution(equation, solved, basis)
    if found is None:
        return None
    model, H, variance = found
    units = schema.original_units().copy()
    units[:, -1] *= plan.cohort.constant
    shaped = np.kron(np.eye(plan.n_scores), units @ equation.B / equation.rho) @ basis
    return noisy_inference(model, noisy_covariance(H, variance), shaped, n_records=n_records)


def _free_solution(equation: Equation, solved: Solved, basis: Floats) -> tuple[Floats, Floats, float] | None:
    """The unpenalised solution, the curvature there and the variance of its noise; None if noise leaves no solution."""
    M, M_noise = _second_moments(equation), equation.M_noise
    terms = _terms(equation, solved, M, basis)
    model = basis.T @ solved.model.ravel()
    for _ in range(_ITERATIONS):
        ways = [float(np.sum((model - term.model) ** 2)) for term in terms]
        if not max(ways) < _LONGEST_WAY:
            return None
        variances = [
            term.variance + (term.steepness * M_noise) ** 2 / 2 * way / equation.plan.n_scores
            for term, way in zip(terms, ways, strict=True)
        ]
        total = 1 / sum(1 / variance for variance in variances)
        shares = [total / variance for variance in variances]
        H = np.sum([share * term.H for share, term in zip(shares, terms, strict=True)], axis=0)
        right = np.sum([share * term.right for share, term in zip(shares, terms, strict=True)], axis=0)
        model = np.linalg.lstsq(H, right, rcond=1e-10)[0]
    return model, H, total + equation.t_noise**2


def _second_moments(equation: Equation) -> Floats:
    """M as opened, with no eigenvalue too small for its noise."""
    values, vectors = np.linalg.eigh(equation.opened)
    least = _CLEAR * equation.M_noise * math.sqrt(2 * len(values))
    raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return raised


def _terms(equation: Equation, solved: Solved, M: Floats, basis: Floats) -> list[_Term]:
    t = equation.t.ravel()
    terms = []
    for one in equation.observations:
        H, model = _curvature(equation, M, one.model), one.model.ravel()
        terms.append(
            _Term(
                model=basis.T @ model,
                H=basis.T @ H @ basis,
                right=basis.T @ (t + H @ model - one.response.ravel()),
                variance=one.noise_std**2,
                steepness=float(np.linalg.eigvalsh(one.curvature)[-1]),
            )
        )
    if not terms:
        expected, K = equation.population(solved.model)
        H, model = _curvature(equation, M, solved.model), solved.model.ravel()
        steepness = float(np.linalg.eigvalsh(K)[-1])
        terms = [
            _Term(
                model=basis.T @ model,
                H=basis.T @ H @ basis,
                right=basis.T @ (t + H @ model - expected.ravel()),
                variance=(steepness * equation.M_noise) ** 2 / 2 * float(model @ model) / equation.plan.n_scores,
                steepness=steepness,
            )
        ]
    return terms


def _curvature(equation: Equation, M: Floats, model: Floats) -> Floats:
    """H of a normal population with these second moments, over model.ravel()."""
    if equation.plan.cohort.n_classes > 2:
        return np.kron(equation.population(model)[1], M)
    n, w = equation.n_records, model[0]
    m = M @ equation.constant_row * (equation.rho / (n * equation.plan.cohort.constant))
    a = M @ w / n - m * (m @ w)
    p = expit(m @ w + math.sqrt(max(float(w @ a), 0.0)) * NODES)
    slope = p * (1 - p)
    first, second, third = (float(WEIGHTS @ f) for f in (slope, slope * (1 - 2 * p), slope * (1 - 6 * slope)))
    return first * M + n * (second * (np.outer(m, a) + np.outer(a, m)) + third * np.outer(a, a))
