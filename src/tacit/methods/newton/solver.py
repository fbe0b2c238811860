"""The coordinator's side of private Newton: from opened sums to a model. All of it is post-processing.

Wanted is the zero of S(W) - t + l2 (W - start) P, S(W) the sum of responses u (prediction - 1/C). Opened are t, the
second moments M of the rows u, and S at a few models, each with known noise. A row counts as u = a g, but its scores
are those of g; so models are over a typical u: W has the scores W u / (a rho), rho = sum a / sum a^2, which is W u for
a typical row, and is the model W / rho over g and W B / rho over z. P is what an l2 on the features is for W.

1. *Curvature.* Eigenvalues of M are raised to 0.8 s_M sqrt(k), s_M the noise of an entry on its diagonal. (Before the
   shaping, off the diagonal and beside its largest eigenvector, A is mostly noise, of known size: that part is shrunk
   by the share of its energy that is not noise, Wiener's rule: `denoised`.)
2. *Response of a normal population.* If rows are normal with these moments, S(W) = n (E p - 1/C) m' + n K W Cov by
   Stein's lemma, m their mean, K = E (Diag p - p p') the mean curvature of a record's loss, a C x C matrix (one number,
   E sigma', for two classes). Nothing else is opened for it. All rows have the same constant, q.g = c, so that M tells
   both sum a^2 = q'M q / c^2 and the mean, M q = c sum a u.
3. *All rounds at once.* S(W) = S_k + K_k (W - W_k) M is an estimate of S(W) for every round k; the normal population is
   one more. They are averaged with weights 1 / variance. A round's variance is its noise, what the noise of M does on
   the way from W_k to W, and what a curvature that is 30 % off does there: s_k^2 + ||K_k (W - W_k)||^2 s_M^2 / 2 + 0.09
   ||K_k (W - W_k) M||^2 / size, a coordinate. So rounds near the solution count most, rounds equally near are averaged,
   and with little noise the last ones decide. The normal population's way starts at 0. How far it is off is seen in the
   rounds: the mean square of S_k - S(W_k), averaged over rounds, beyond four times what their noise explains; 1 % at
   least. Rows with many duplicates or long tails respond otherwise, and it then soon counts for nothing.
4. *Solution.* The weighted equation is linear in W. Its eigenvectors on the side of the classes split it into one
   system of size k for each. The penalty is that of `default_l2`; the intercept has none. No model is asked about whose
   scores would spread by more than 12 in a normal population: nothing could be learned from its answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri, roots_hermitenorm, softmax

from tacit.errors import NotConverged
from tacit.methods.newton.rule import default_l2
from tacit.methods.newton.statistic import Plan

Floats = npt.NDArray[np.float64]

_FLOOR = 0.8
_MISFIT = 0.01  # of a normal population's responses: how far records respond otherwise at least
_CONTRADICTED = 4.0  # times the variance that noise explains: rounds that differ by more say that it is off
_CURVED = 0.3  # of a change of responses: how far it may be off when curvature is that of a normal population
_WIDEST = 12.0  # of the scores of a normal population
MOST_EXACT_ROUNDS = 1000  # without noise
_EXACT = 1e-11
NODES, WEIGHTS = roots_hermitenorm(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
_POINTS = 256  # of the low-discrepancy sequence that stands for a normal population's scores


@dataclass(frozen=True, kw_only=True)
class Observation:
    """S at one model, the standard deviation of its noise, and what a normal population would say there."""

    model: Floats  # (n_scores, k)
    response: Floats
    noise_std: float
    curvature: Floats  # (n_scores, n_scores): the mean curvature of a record
    surprise: Floats  # the response beyond that of a normal population
    surprise_variance: float  # a coordinate, of the noise of M in it


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A model with what is needed to say how sure it is."""

    model: Floats  # (n_scores, k)
    noise_variance: float  # of the equation, a coordinate
    curvature: Floats  # K
    l2: float


@dataclass(kw_only=True)
class Equation:
    """What has been opened so far, and the model that follows from it."""

    plan: Plan
    B: Floats
    rho: float
    n_records: float
    t: Floats
    opened: Floats  # M as it was opened
    M: Floats  # with no eigenvalue that noise could have made
    t_noise: float
    M_noise: float
    start: Floats
    l2: float | None
    has_intercept: bool
    observations: list[Observation] = field(default_factory=list)

    @cached_property
    def constant_row(self) -> Floats:
        """q: q.g is the constant c for every row."""
        return constant_row(self.B)

    @cached_property
    def penalised(self) -> Floats:
        """P: what an l2 on the features is for W."""
        features: Floats = self.B[:, :-1] / self.rho
        return features @ features.T

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal columns that span the models; without an intercept, those that have none."""
        k = len(self.B)
        if self.has_intercept:
            return np.eye(k)
        columns: Floats = np.linalg.svd(self.B[:, -1:])[0][:, 1:]
        return columns

    @property
    def mean(self) -> Floats:
        """m: the mean row."""
        row: Floats = self.M @ self.constant_row * (self.rho / (self.n_records * self.plan.cohort.constant))
        return row

    def population(self, model: Floats) -> tuple[Floats, Floats]:
        """S(model) and K of a normal population with the opened moments."""
        m, n = self.mean, self.n_records
        centre, along, spread = self._scores(model)
        above, K = (
            _binary_population(float(centre[0]), float(spread[0, 0]))
            if self.plan.cohort.n_classes == 2
            else _softmax_population(centre, spread)
        )
        return n * (np.outer(above, m) + K @ along), K

    def _scores(self, model: Floats) -> tuple[Floats, Floats, Floats]:
        """Of a normal population: their mean, W Cov, and their covariance W Cov W'."""
        centre: Floats = model @ self.mean
        along: Floats = model @ self.M / self.n_records - np.outer(centre, self.mean)
        return centre, along, along @ model.T

    def observe(self, model: Floats, response: Floats, noise_std: float) -> None:
        """Add a round."""
        expected, K = self.population(model)
        self.observations.append(
            Observation(
                model=model,
                response=response,
                noise_std=noise_std,
                curvature=K,
                surprise=response - expected,
                surprise_variance=self._variance(0.0, K @ model),
            )
        )

    def solve(self, model: Floats, iterations: int, *, l2: float | None = None) -> Solved:
        """The model that solves the weighted equation, from `model` on: weights and curvature depend on it a little."""
        for _ in range(iterations):
            solved = self._solve_at(model, l2)
            solved = replace(solved, model=self._narrowed(solved.model))
            model = 0.5 * (model + solved.model)
        return solved

    def _narrowed(self, model: Floats) -> Floats:
        """The model, made shorter if its scores are spread too wide."""
        centre, _, spread = self._scores(model)
        width = float(np.linalg.norm(centre)) + math.sqrt(max(0.0, float(np.trace(spread))))
        return model * min(1.0, _WIDEST / max(width, 1e-300))

    def _solve_at(self, model: Floats, l2: float | None) -> Solved:
        expected, K_0 = self.population(model)
        way = model if model.any() else np.full_like(model, 4 / math.sqrt(model.shape[1]))
        terms = [(self._variance(self._misfit(expected), K_0 @ way), K_0, K_0 @ model @ self.M - expected)]
        for one in self.observations:
            K = one.curvature
            way = K @ (one.model - model)
            variance = self._variance(one.noise_std, way) + _CURVED**2 * float(np.mean((way @ self.M) ** 2))
            terms.append((variance, K, K @ one.model @ self.M - one.response))
        total = 1 / sum(1 / variance for variance, _, _ in terms)
        K_mean = np.sum([K * (total / variance) for variance, K, _ in terms], axis=0)
        right = self.t + np.sum([r * (total / variance) for variance, _, r in terms], axis=0)
        variance = total + self.t_noise**2
        penalty = self.penalty(variance, K_mean) if l2 is None else l2
        return Solved(
            model=self.solution(K_mean, right, penalty), noise_variance=variance, curvature=K_mean, l2=penalty
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
        """Of a round, a coordinate: M enters as way @ M, and its noise has s_M^2 / 2 off the diagonal."""
        walked = float(np.sum(way**2)) / len(way)
        return noise_std**2 + walked * self.M_noise**2 / 2 + 1e-24 * self.n_records**2

    def penalty(self, variance: float, K: Floats) -> float:
        """The l2 that was asked for, or that of the rule for noise of this variance in a coordinate of the equation.

        In terms of z the noise has the covariance (B / rho)^-2 times that; the rule is given its harmonic mean. And a
        record counts as its curvature says, against that of an even chance: where one class is rare, few count.
        """
        if self.l2 is not None:
            return self.l2
        unshaped = math.sqrt(variance * len(self.B)) * self.rho / float(np.linalg.norm(self.B))
        even = 0.25 if self.plan.cohort.n_classes == 2 else 1 - 1 / self.plan.cohort.n_classes
        return default_l2(unshaped, self.n_records * float(np.trace(K)) / even, self.plan.cohort.radius)

    def solution(self, K: Floats, right: Floats, l2: float) -> Floats:
        """W of K W M + l2 (W - start) P = right."""
        values, vectors = np.linalg.eigh(K)
        rows = vectors.T @ (right + l2 * self.start @ self.penalised)
        solution = np.zeros_like(rows)
        for i, value in enumerate(values):
            if value > 1e-9 * values[-1]:  # not the direction in which no probability changes
                H = self.basis.T @ (value * self.M + l2 * self.penalised) @ self.basis
                solution[i] = self.basis @ np.linalg.solve(H, self.basis.T @ rows[i])
        return np.asarray(vectors @ solution, dtype=np.float64)


def constant_row(B: Floats) -> Floats:
    """q of a shape B: B q is the last unit vector, so that q.g is a row's constant."""
    row: Floats = np.linalg.solve(B, np.eye(len(B))[-1])
    return row


def with_constant(M: Floats, q: Floats, square: float) -> Floats:
    """M, changed along q alone so that q'M q = square."""
    changed: Floats = M + (square - q @ M @ q) * np.outer(q, q) / float(q @ q) ** 2
    return changed


def raised(M: Floats, noise_std: float) -> Floats:
    """M with no eigenvalue below the floor for noise of this standard deviation on its diagonal."""
    values, vectors = np.linalg.eigh(M)
    lifted: Floats = (vectors * np.maximum(values, _FLOOR * noise_std * math.sqrt(len(M)))) @ vectors.T
    return lifted


def denoised(A: Floats, noise_std: float) -> Floats:
    """Squares with less noise (1 in the heading of this file); `noise_std` is that of a diagonal entry.

    Guarantees:
        Symmetric, with no negative eigenvalue.
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
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive


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
    from scipy.stats import qmc  # takes long to import, and only more than two classes need it

    points: Floats = ndtri(qmc.Halton(dimension, scramble=False).random(_POINTS + 1)[1:])
    points = points - points.mean(axis=0)
    root = np.linalg.cholesky(points.T @ points / len(points))
    return np.asarray(np.linalg.solve(root, points.T).T, dtype=np.float64)


def exact_solution(ask: Callable[[Floats], Floats], equation: Equation, l2: float) -> Floats:
    """The zero of S(W) - t + l2 (W - start) P where nothing is noised, to rounding; `ask(model)` gives S.

    Steps with the curvature's upper bound M/4 (M/2 for softmax, Boehning and Lindsay 1988), extrapolated from the last
    five (Anderson). Only for epsilon = infinity: the number of rounds depends on the data.
    """
    C = equation.plan.cohort.n_classes
    K = np.array([[0.25]]) if C == 2 else 0.5 * (np.eye(C) - 1 / C)
    model = equation.start.copy()
    steps: list[Floats] = []
    images: list[Floats] = []
    for _ in range(MOST_EXACT_ROUNDS):
        image = equation.solution(K, K @ model @ equation.M + equation.t - ask(model), l2)
        step = image - model
        if np.linalg.norm(step) <= _EXACT * (1 + np.linalg.norm(model)):
            return image
        if steps and np.linalg.norm(step) > 10 * np.linalg.norm(steps[-1]):
            steps, images = [], []
        steps, images = [*steps[-5:], step], [*images[-5:], image]
        model = _extrapolated(steps, images)
    raise NotConverged(f"no certified optimum after {MOST_EXACT_ROUNDS} rounds without noise; choose a larger l2")


def _extrapolated(steps: list[Floats], images: list[Floats]) -> Floats:
    """Anderson's mixture: the combination of the last images whose combined step is shortest."""
    if len(steps) == 1:
        return images[-1]
    differences = np.stack([(steps[-1] - one).ravel() for one in steps[:-1]], axis=1)
    weights = np.linalg.lstsq(differences, steps[-1].ravel(), rcond=1e-10)[0]
    return images[-1] - np.tensordot(weights, np.stack([images[-1] - one for one in images[:-1]]), axes=1)
