"""The coordinator's side of private Newton: from opened sums to a model. All of it is post-processing.

Wanted is the zero of S(W) - t + l2 (W - start), S(W) the sum of responses. Opened are t, the second moments A, and S at
a few models W_k, each with known noise.

1. *Curvature.* Off the diagonal and beside its largest eigenvector, A is mostly noise, of known size: that part is
   shrunk by the share of its energy that is not noise (Wiener), and eigenvalues are raised to 0.4 s_A sqrt(k).
2. *Response of a normal population.* If rows are normal with these moments, S(W) = n (E p - 1/C) m' + n K W Cov by
   Stein's lemma, m their mean, K = E (Diag p - p p') the mean curvature of a record's loss, a C x C matrix (one number,
   E sigma', for two classes). Nothing else is opened for it.
3. *All rounds at once.* S(W) = S_k + K_k (W - W_k) A is an estimate of S(W) for every round k; the normal population is
   one more. They are averaged with weights 1 / variance. A round's variance is its noise, what the noise of A does on
   the way from W_k to W, and what a curvature that is 30 % off does there: s_k^2 + ||K_k (W - W_k)||^2 s_A^2 / 2 + 0.09
   ||K_k (W - W_k) A||^2 / size, a coordinate. So rounds near the solution count most, rounds equally near are averaged,
   and with little noise the last ones decide. The normal population's way starts at 0. How far it is off is seen in the
   rounds: the mean square of S_k - S(W_k), averaged over rounds, beyond four times what their noise explains; 1 % at
   least. Rows with many duplicates or long tails respond otherwise, and it then soon counts for nothing.
4. *Solution.* The weighted equation is linear in W. Its eigenvectors on the side of the classes split it into one
   system of size k for each. The penalty is that of `default_l2`; the intercept has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri, roots_hermitenorm, softmax
from scipy.stats import qmc

from tacit.errors import NotConverged
from tacit.methods.newton_rule import default_l2
from tacit.methods.newton_sum import Plan

Floats = npt.NDArray[np.float64]

_FLOOR = 0.4
_MISFIT = 0.01  # of a normal population's responses: how far records respond otherwise at least
_CONTRADICTED = 4.0  # times the variance that noise explains: rounds that differ by more say that it is off
_CURVED = 0.3  # of a change of responses: how far it may be off when curvature is that of a normal population
_LONGEST = 1e4  # of R ||theta||: no model that is asked about is longer
_MOST_ROUNDS = 1000  # without noise
_EXACT = 1e-11
NODES, WEIGHTS = roots_hermitenorm(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
_POINTS = 256  # of the low-discrepancy sequence that stands for a normal population's scores


@dataclass(frozen=True, kw_only=True)
class Observation:
    """S at one model, the standard deviation of its noise, and what a normal population would say there."""

    theta: Floats  # (n_scores, k)
    response: Floats
    noise_std: float
    curvature: Floats  # (n_scores, n_scores): the mean curvature of a record
    surprise: Floats  # the response beyond that of a normal population
    surprise_variance: float  # a coordinate, of the noise of A in it


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A model with what is needed to say how sure it is."""

    theta: Floats  # (n_scores, k)
    noise_variance: float  # of the equation, a coordinate
    curvature: Floats  # K
    l2: float


@dataclass(kw_only=True)
class Equation:
    """What has been opened so far, and the model that follows from it."""

    plan: Plan
    n_records: float
    t: Floats
    opened: Floats  # A as it was opened
    A: Floats  # denoised
    t_noise: float
    A_noise: float
    start: Floats
    l2: float | None
    has_intercept: bool
    observations: list[Observation] = field(default_factory=list)

    @property
    def mean(self) -> Floats:
        """m: the mean row, with its constant."""
        row: Floats = self.A[-1] / (self.n_records * self.plan.constant)
        row[-1] = self.plan.constant
        return row

    def population(self, theta: Floats) -> tuple[Floats, Floats]:
        """S(theta) and K of a normal population with the opened moments."""
        m, n = self.mean, self.n_records
        centre = theta @ m
        along: Floats = theta @ self.A / n - np.outer(centre, m)  # W Cov
        spread = along @ theta.T
        above, K = (
            _binary_population(float(centre[0]), float(spread[0, 0]))
            if self.plan.n_classes == 2
            else _softmax_population(centre, spread)
        )
        return n * (np.outer(above, m) + K @ along), K

    def observe(self, theta: Floats, response: Floats, noise_std: float) -> None:
        """Add a round."""
        expected, K = self.population(theta)
        self.observations.append(
            Observation(
                theta=theta,
                response=response,
                noise_std=noise_std,
                curvature=K,
                surprise=response - expected,
                surprise_variance=self._variance(0.0, K @ theta),
            )
        )

    def solve(self, theta: Floats, iterations: int, *, l2: float | None = None) -> Solved:
        """The model that solves the weighted equation, from `theta` on: weights and curvature depend on it a little."""
        for _ in range(iterations):
            solved = self._solve_at(theta, l2)
            length = float(np.linalg.norm(solved.theta)) * self.plan.reach
            if length > _LONGEST:
                solved = replace(solved, theta=solved.theta * (_LONGEST / length))
            theta = 0.5 * (theta + solved.theta)
        return solved

    def _solve_at(self, theta: Floats, l2: float | None) -> Solved:
        expected, K_0 = self.population(theta)
        way = theta if theta.any() else np.full_like(theta, 4 / self.plan.reach / math.sqrt(theta.shape[1]))
        terms = [(self._variance(self._misfit(expected), K_0 @ way), K_0, K_0 @ theta @ self.A - expected)]
        for one in self.observations:
            K = one.curvature
            way = K @ (one.theta - theta)
            variance = self._variance(one.noise_std, way) + _CURVED**2 * float(np.mean((way @ self.A) ** 2))
            terms.append((variance, K, K @ one.theta @ self.A - one.response))
        total = 1 / sum(1 / variance for variance, _, _ in terms)
        K_mean = np.sum([K * (total / variance) for variance, K, _ in terms], axis=0)
        right = self.t + np.sum([r * (total / variance) for variance, _, r in terms], axis=0)
        variance = total + self.t_noise**2
        penalty = self.penalty(variance) if l2 is None else l2
        return Solved(
            theta=self.solution(K_mean, right, penalty), noise_variance=variance, curvature=K_mean, l2=penalty
        )

    def _misfit(self, expected: Floats) -> float:
        """How far a normal population's responses are off, a coordinate: what the rounds show, and no less than 1 %."""
        least = _MISFIT * float(np.linalg.norm(expected)) / math.sqrt(expected.size)
        if not self.observations:
            return least
        seen = float(np.mean(np.mean([one.surprise for one in self.observations], axis=0) ** 2))
        of_rounds = float(np.mean([one.noise_std**2 for one in self.observations])) / len(self.observations)
        of_moments = float(np.mean([one.surprise_variance for one in self.observations]))
        return max(least, math.sqrt(max(0.0, seen - _CONTRADICTED * (of_rounds + of_moments))))

    def _variance(self, noise_std: float, way: Floats) -> float:
        """Of a round, a coordinate: A enters as way @ A, and its noise has s_A^2 / 2 off the diagonal."""
        walked = float(np.sum(way**2)) / len(way)
        return noise_std**2 + walked * self.A_noise**2 / 2 + 1e-24 * (self.n_records * self.plan.reach) ** 2

    def penalty(self, variance: float) -> float:
        """The l2 that was asked for, or that of the rule."""
        if self.l2 is not None:
            return self.l2
        return default_l2(math.sqrt(variance), self.n_records, self.plan.radius)

    def solution(self, K: Floats, right: Floats, l2: float) -> Floats:
        """W of K W A + l2 (W - start) = right, the intercept's l2 being 0."""
        used = self.plan.width if self.has_intercept else self.plan.n_features
        penalties = np.full(used, l2)
        if self.has_intercept:
            penalties[-1] = 0.0
        values, vectors = np.linalg.eigh(K)
        start = vectors.T @ self.start
        rows = vectors.T @ right
        solution = np.zeros_like(rows)
        for i, value in enumerate(values):
            if value > 1e-9 * values[-1]:  # not the direction in which no probability changes
                H = value * self.A[:used, :used] + np.diag(penalties)
                solution[i, :used] = np.linalg.solve(H, rows[i, :used] + penalties * start[i, :used])
        return np.asarray(vectors @ solution, dtype=np.float64)


def denoised(A: Floats, noise_std: float) -> Floats:
    """Second moments with less noise (1 in the heading of this file); `noise_std` is that of a diagonal entry.

    Guarantees:
        Symmetric, with no eigenvalue below the floor. Without noise it is A with negative eigenvalues set to 0.
    """
    k = len(A)
    if noise_std > 0:
        values, vectors = np.linalg.eigh(A)
        largest = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        rest = A - largest
        diagonal = np.diag(rest)
        beside = rest - np.diag(diagonal)
        energy = float(np.sum(beside**2))
        expected = k * (k - 1) * noise_std**2 / 2
        kept = max(0.0, 1 - expected / energy) if energy > 0 else 0.0
        A = largest + np.diag(np.maximum(diagonal, 0.0)) + kept * beside
    values, vectors = np.linalg.eigh(A)
    raised: Floats = (vectors * np.maximum(values, _FLOOR * noise_std * math.sqrt(k))) @ vectors.T
    return raised


def _binary_population(centre: float, variance: float) -> tuple[Floats, Floats]:
    p = expit(centre + math.sqrt(max(variance, 0.0)) * NODES)
    return np.array([WEIGHTS @ p - 0.5]), np.array([[WEIGHTS @ (p * (1 - p))]])


def _softmax_population(centre: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    C = len(centre)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    P = softmax(centre + normal_points(C) @ root.T, axis=1)
    K: Floats = np.diag(P.mean(axis=0)) - P.T @ P / len(P)
    return P.mean(axis=0) - 1 / C, K


def normal_points(dimension: int) -> Floats:
    """Points of a Halton sequence, made normal, with mean 0 and covariance I; the same every time."""
    points: Floats = ndtri(qmc.Halton(dimension, scramble=False).random(_POINTS + 1)[1:])
    points = points - points.mean(axis=0)
    root = np.linalg.cholesky(points.T @ points / len(points))
    return np.asarray(np.linalg.solve(root, points.T).T, dtype=np.float64)


def exact_solution(ask: Callable[[Floats, int], Floats], equation: Equation, l2: float) -> Floats:
    """The zero of S(W) - t + l2 (W - start) where nothing is noised, to rounding; `ask(theta, turn)` gives S.

    Steps with the curvature's upper bound A/4 (A/2 for softmax, Boehning and Lindsay 1988), extrapolated from the last
    five (Anderson). Only for epsilon = infinity: the number of rounds depends on the data.
    """
    C = equation.plan.n_classes
    K = np.array([[0.25]]) if C == 2 else 0.5 * (np.eye(C) - 1 / C)
    penalties = np.full(equation.plan.width, l2)
    penalties[-1] = 0.0
    theta = equation.start.copy()
    steps: list[Floats] = []
    images: list[Floats] = []
    for turn in range(_MOST_ROUNDS):
        gradient = ask(theta, turn) - equation.t + penalties * (theta - equation.start)
        step = (
            equation.solution(K, K @ theta @ equation.A - gradient + penalties * (theta - equation.start), l2) - theta
        )
        if np.linalg.norm(step) <= _EXACT * (1 + np.linalg.norm(theta)):
            return theta + step
        if steps and np.linalg.norm(step) > 10 * np.linalg.norm(steps[-1]):
            steps, images = [], []
        steps, images = [*steps[-5:], step], [*images[-5:], theta + step]
        theta = _extrapolated(steps, images)
    raise NotConverged(f"no certified optimum after {_MOST_ROUNDS} rounds without noise; choose a larger l2")


def _extrapolated(steps: list[Floats], images: list[Floats]) -> Floats:
    """Anderson's mixture: the combination of the last images whose combined step is shortest."""
    if len(steps) == 1:
        return images[-1]
    differences = np.stack([(steps[-1] - one).ravel() for one in steps[:-1]], axis=1)
    weights = np.linalg.lstsq(differences, steps[-1].ravel(), rcond=1e-10)[0]
    return images[-1] - np.tensordot(weights, np.stack([images[-1] - one for one in images[:-1]]), axes=1)
