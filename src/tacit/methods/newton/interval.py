"""Intervals of private Newton: which values of a coefficient agree with what was opened.

The model for prediction is drawn towards its start, so its coefficients are no estimates. The table shows the free
solution of the same equation, and everything in a row comes from one test.

1. *Equation.* At the population's parameter w* the sums agree: t = S(w*) + e. S is what the rounds say, moved from
   where they were asked by a normal population: S(w) = sum_k share_k (S_k + S'(w) - S'(w_k)), S' of `population`.
2. *Noise.* e has the covariance V(w) = Sigma + v I + (what the noise E of M does on the way) + (a curvature that is
   off). Sigma = H is the sampling error; v is the variance of t's noise and of the rounds', averaged. All rounds move
   with the same M, so its noise enters as K E d, d = w - sum share_k K_k w_k / K: how far w is from where we asked. For
   a combination p of the equations its variance is s_M^2 / 2 (||K d||^2 ||p||^2 + (p.K d)^2). A curvature that is off
   by c adds c^2 (d'H d / k) p'H p.
3. *M as it is.* Noise spreads the eigenvalues of M. On average it moves the i-th by s_M^2 / 2 sum_j 1 / (l_i - l_j)
   (second-order perturbation). That is taken back, and values that change places are averaged (Stein). None is raised:
   a direction that noise drowns keeps a curvature that may as well be 0.
4. *Assumption.* No column moves log odds by much more than 40 from one of its bounds to the other: coefficients of
   encoded columns have the law N(0, 20^2) beforehand, an intercept N(0, 40^2). Without it a drowned direction could be
   as long as it likes, and take every other coefficient with it. The estimate is where the posterior is largest, and D
   its covariance there.
5. *Test.* For each coefficient b = a.w, w moves from the estimate along D a, the direction that fits worst to it. At
   distance x, with p the weights of the equations in b,

       Q(x) = x^2 (I C / c(x) + what is assumed),   C = p'V p,   c(x) = p'V(w(x)) p,

   I the information of the equations. So the noise of M, which grows with the way, is counted where the coefficient is
   said to be. With one direction and no assumption this is Fieller's interval for a ratio. With several it is the
   profile of a test that keeps its level though some directions are hardly known (Guggenberger, Kleibergen, Mavroeidis
   and Chen 2012, for a noise of product form, which this one has but for E being symmetric).
6. *Told.* The interval reaches to where Q exceeds z^2 and stays above it. z is the root of the least Q at 0 or beyond,
   so that p < 0.05 says that 0 is outside. The standard error is the interval's width over 2 z. Where it is more than
   a quarter of what was assumed beforehand, little was learned: the coefficient is *not identified* at this epsilon.

What this rests on. Steps 1 to 3 are approximations: `benchmarks/intervals.py` measures how often intervals hold. Its
drawn rows were looked at while this was built, its comparisons on real data sets were not. Where effects are very
strong a normal population bends more than rows within bounds do, and intervals are too wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from tacit.bisection import bisect
from tacit.data.schema import Schema
from tacit.methods.newton.moments import unspread
from tacit.methods.newton.population import Population
from tacit.methods.newton.solver import CURVED, Equation, Solved
from tacit.models.inference import Inference

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 2000
"""For which a covariance is worked out."""
_ASSUMED = 20.0  # standard deviation of a coefficient over a column in [-1, 1]; twice that of an intercept
_UNKNOWN = 0.25  # of what is assumed: a larger standard error says that little was learned
_STEPS = 15  # of Newton's method
_STRIDES, _HALVINGS = 60, 40


@dataclass(frozen=True, kw_only=True)
class _Told:
    """The equation t = S(w) in a basis of the models, and the law of its noise."""

    basis: Floats  # (n_scores k, m)
    population: Population
    t: Floats  # less what the rounds say beyond the population
    sampling: Floats  # Sigma, at the model for prediction
    noise_variance: float  # v
    K: Floats  # (n_scores, n_scores)
    centre: Floats  # in the basis: where the noise of M has no lever
    M_noise: float
    law: Floats  # (k n_scores, m): a model in units of what is assumed of it

    def model(self, w: Floats) -> Floats:
        return (self.basis @ w).reshape(len(self.K), -1)

    def curvature(self, w: Floats) -> Floats:
        at = self.population.steepness(self.model(w))
        full = np.kron(at.K, self.population.M) + (at.G if len(at.K) == 1 else 0.0)
        H: Floats = self.basis.T @ full @ self.basis
        return H

    def residual(self, w: Floats) -> Floats:
        r: Floats = self.basis.T @ (self.t - self.population.response(self.model(w))[0]).ravel()
        return r

    def spread(self, w: Floats) -> float:
        """The variance of a model's scores."""
        return max(0.0, float(np.trace(self.population.scores(self.model(w))[2])))

    def between(self, predicted: Floats, w: Floats, D: Floats) -> Floats:
        """A model on the way from `predicted` to w that spreads scores as far as w does, but for noise D in it."""
        scores = self.population.M / self.population.n_records - np.outer(self.population.mean, self.population.mean)
        full = self.basis.T @ np.kron(np.eye(len(self.K)), scores) @ self.basis
        wanted = self.spread(w) - max(0.0, float(np.sum(full * D)))

        def is_near(share: float) -> bool:
            return self.spread(predicted + share * (w - predicted)) <= wanted

        return predicted + bisect(is_near, yes=0.0, no=1.0, tolerance=1e-6) * (w - predicted)

    def of_moments(self, P: Floats, one: Floats, other: Floats) -> Floats:
        """The covariance of p.K E one and p.K E other, and of a curvature that is off, for each row p of P."""
        scores, size = len(self.K), P.shape[1]
        shape = (len(P), scores, -1)
        full = (P @ self.basis.T).reshape(shape)
        first, second = (np.einsum("cd,qdk->qck", self.K, (way @ self.basis.T).reshape(shape)) for way in (one, other))
        both = np.einsum("qck,qdk,qcl,qdl->q", first, second, full, full, optimize=True)
        both += np.einsum("qck,qck->q", first, full) * np.einsum("qck,qck->q", second, full)
        away = np.einsum("qi,ij,qj->q", one, self.sampling, other) / size
        told: Floats = self.M_noise**2 / 2 * both + CURVED**2 * away * _square(P, self.sampling)
        return told


@dataclass(frozen=True, kw_only=True)
class _Estimate:
    """Where the posterior is largest, its covariance there, and the weights H V^-1 of the equations."""

    w: Floats
    D: Floats
    weights: Floats
    V: Floats


def interval(
    equation: Equation, solved: Solved, schema: Schema, n_records: int, confidence: float = 0.95
) -> Inference | None:
    """Intervals in original units, of a fit to so many records; None if it has too many parameters."""
    plan = equation.plan
    if plan.n_scores * plan.width > MOST_PARAMETERS:
        return None
    told = _told(equation, solved, schema)
    found = _estimate(told, told.basis.T @ solved.model.ravel())
    units = schema.original_units().copy()
    units[:, -1] *= plan.cohort.constant
    a = np.kron(np.eye(plan.n_scores), units @ equation.B / equation.rho) @ told.basis
    line = _Line.of(told, found, a, told.basis.T @ solved.model.ravel())
    z = float(ndtri(0.5 + confidence / 2))
    estimate = a @ found.w
    low, high = estimate - line.reach(z, -1.0), estimate + line.reach(z, 1.0)
    error = (high - low) / (2 * z)
    beforehand = np.sqrt(_square(a, np.linalg.pinv(told.law.T @ told.law)))
    known = error < _UNKNOWN * beforehand
    score = np.where(known, np.sign(estimate) * line.score(-estimate, z), 0.0)
    return Inference(
        estimate=np.where(known, estimate, 0.0),
        standard_error=np.where(known, error, np.inf),
        z=score,
        p=2 * ndtr(-np.abs(score)),
        low=np.where(known, low, -np.inf),
        high=np.where(known, high, np.inf),
        covariance=a @ found.D @ a.T,
        confidence=confidence,
        log_likelihood=math.nan,
        aic=math.nan,
        n_records=n_records,
    )


def _told(equation: Equation, solved: Solved, schema: Schema) -> _Told:
    """Steps 1 to 4."""
    plan, model = equation.plan, solved.model
    n_scores = plan.n_scores
    M = unspread(equation.opened, equation.M_noise)
    population = equation.population_of(M)
    across = np.eye(1) if n_scores == 1 else np.linalg.svd(np.ones((1, n_scores)))[2][1:].T  # scores that sum to 0
    basis = np.kron(across, equation.basis)
    rounds = equation.observations
    variances = np.array([equation.variance_of(one, model) for one in rounds])
    shares = 1 / variances / np.sum(1 / variances) if rounds else variances
    t, K = equation.t.copy(), np.zeros((n_scores, n_scores))
    pull, variance = np.zeros_like(model), equation.t_noise**2
    for share, one in zip(shares, rounds, strict=True):
        t -= share * (one.response - population.response(one.model)[0])
        K += share * one.steepness.K
        pull += share * one.steepness.K @ one.model
        variance += share**2 * one.noise_std**2
    if not rounds:
        K = population.steepness(model).K
        variance += equation.unasked_variance(model)
    at = equation.population.steepness(model)
    full = np.kron(at.K, equation.M) + (at.G if n_scores == 1 else 0.0)
    scale = np.append(_column_reach(schema), plan.cohort.constant / 2) / _ASSUMED
    return _Told(
        basis=basis,
        population=population,
        t=t,
        sampling=_positive(basis.T @ full @ basis),
        noise_variance=variance,
        K=K,
        centre=basis.T @ np.linalg.lstsq(K, pull, rcond=1e-9)[0].ravel(),
        M_noise=equation.M_noise,
        law=np.asarray(np.kron(np.eye(n_scores), (equation.B * scale).T / equation.rho) @ basis, dtype=np.float64),
    )


def _estimate(told: _Told, predicted: Floats) -> _Estimate:
    """Newton's method to where the posterior is largest; curvature and V follow on the way.

    Curvature falls as scores spread. The model for prediction spreads them less than the truth does, and the estimate
    further, by the noise in it. So curvature is taken between the two, where they spread as far as without that noise.
    """
    steep = float(np.linalg.eigvalsh(told.K)[-1]) ** 2 * told.M_noise**2 / 2 / len(told.K)
    away, prior = 0.0, told.law.T @ told.law
    at = predicted
    for _ in range(_STEPS):
        V = told.sampling + (told.noise_variance + steep * away) * np.eye(len(at))
        H = told.curvature(at)
        weights = np.linalg.solve(V, H).T
        D = np.linalg.inv(weights @ H + prior)
        w = at + D @ (weights @ told.residual(at) - prior @ at)
        away = float(np.sum((w - told.centre) ** 2)) + float(np.trace(D))
        at = 0.5 * (at + told.between(predicted, w, D))
    return _Estimate(w=w, D=D, weights=weights, V=V)


@dataclass(frozen=True, kw_only=True)
class _Line:
    """Step 5, for each coefficient: along which line w moves, and how badly it then fits."""

    information: Floats  # I C
    assumed: Floats
    constant: Floats  # v ||p||^2
    sampled: Floats  # p'Sigma p
    of_moments: tuple[Floats, Floats, Floats]  # of the variance c(x): its value, slope and half its bend

    @classmethod
    def of(cls, told: _Told, found: _Estimate, a: Floats, predicted: Floats) -> _Line:
        """The lines through an estimate; nuisances are taken to be where the model for prediction has them."""
        Da = a @ found.D
        spread = np.einsum("qi,qi->q", Da, a)
        along, P = Da / spread[:, None], Da @ found.weights
        assumed = np.sum((along @ told.law.T) ** 2, axis=1)
        here = (predicted - told.centre) + (a @ (found.w - predicted))[:, None] * along
        return cls(
            information=np.maximum(1 / spread - assumed, 0.0) * _square(P, found.V),
            assumed=assumed,
            constant=told.noise_variance * np.einsum("qi,qi->q", P, P),
            sampled=_square(P, told.sampling),
            of_moments=(
                told.of_moments(P, here, here),
                told.of_moments(P, here, along),
                told.of_moments(P, along, along),
            ),
        )

    def misfit(self, x: Floats) -> Floats:
        """Q at a distance for each coefficient."""
        value, slope, bend = self.of_moments
        noise = self.constant + self.sampled + np.maximum(value + 2 * slope * x + bend * x * x, 0.0)
        told: Floats = x * x * (self.information / np.maximum(noise, 1e-300) + self.assumed)
        return told

    def least_misfit(self, x: Floats, furthest: Floats) -> Floats:
        """The least Q at this distance or further away on the same side."""
        ways = np.geomspace(1.0, np.maximum(furthest / np.maximum(np.abs(x), 1e-300), 1.0), _STRIDES)
        least: Floats = self.misfit(x * ways).min(axis=0)
        return least

    def score(self, x: Floats, z: float) -> Floats:
        """The root of the least Q at x or beyond."""
        return np.sqrt(self.least_misfit(x, z / np.sqrt(self.assumed)))

    def reach(self, z: float, side: float) -> Floats:
        """How far each coefficient can go to one side until Q exceeds z^2 and stays there."""
        furthest = z / np.sqrt(self.assumed)
        low, high = np.zeros_like(furthest), furthest
        for _ in range(_HALVINGS):
            x = (low + high) / 2
            inside = self.least_misfit(side * x, furthest) <= z * z
            low, high = np.where(inside, x, low), np.where(inside, high, x)
        return high


def _column_reach(schema: Schema) -> Floats:
    """The largest value that each encoded column can have."""
    reach = []
    for feature in schema.features:
        largest = 1.0 if math.isfinite(feature.largest_square) else float(schema.radius or 1.0)
        reach += [largest] * len(feature.columns(schema.coding))
    return np.array(reach)


def _positive(A: Floats) -> Floats:
    """A symmetric matrix without its negative eigenvalues."""
    values, vectors = np.linalg.eigh(A)
    lifted: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return lifted


def _square(rows: Floats, A: Floats) -> Floats:
    """r'A r of each row r."""
    squares: Floats = np.einsum("qi,ij,qj->q", rows, A, rows, optimize=True)
    return squares
