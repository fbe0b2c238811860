"""The coordinator's side of private Newton: from opened sums to a model. All of it is post-processing.

Wanted is the zero of S(W) - t, S(W) the sum of responses u (prediction - 1/C), drawn towards a start where noise
hides it. Opened are t, the second moments M of the rows u, and S at a few models, each with known noise. A row counts
as u = a g, but its scores are those of g. We express a model as W, scaled so that a typical row scores W.u. With rho =
sum a / sum a^2 the same model is W / rho on g and W B / rho on z.

1. *Curvature.* M is brought nearer to what the squares say of it, as far as noise hides it. Along t, less what an
   intercept explains, it is as steep as was opened: there the answer lies (`moments`, 3 and 4).
2. *A normal population* with these moments says how S bends (`population`), and what S is before anything was asked.
   Where rounds contradict it beyond their noise, it bends as they show (`secant`).
3. *All rounds at once.* S(W) = S_k + H_k (W - W_k) is an estimate of S(W) for every round k; the normal population is
   one more. They are averaged with weights 1 / variance. A round's variance is its noise, what the noise of M does on
   the way from W_k to W, and what a curvature that is 30 % off does there. So rounds near the solution count most,
   rounds equally near are averaged, and with little noise the last ones decide.
4. *The normal population's* variance counts the noise of M on its way from 0, and that of the mean, which is read from
   M as well: its response contains n (E p - 1/C) m. How far it is off is seen in the rounds: the mean square of S_k -
   S(W_k), averaged over rounds, beyond four times what their noise explains; 1 % at least. Rows with many duplicates or
   long tails respond otherwise, and it then soon counts for nothing.
5. *Solution.* The weighted equation is linear in W. Its eigenvectors on the side of the classes split it into one
   system of size k for each. `shrinkage` says how far each is drawn towards the start; an l2 that was asked for takes
   its place. No model is asked about whose scores would spread by more than 12 in a normal population: nothing could
   be learned from its answers.
   Nor does any row's score differ by more than 4 from the start's, if nothing speaks for the model; what speaks for it
   raises that in proportion. Noise that is taken for signal is then no disaster.
6. *Not far from what was asked.* Where rounds contradict a normal population, it tells little of models far from
   theirs. A model's scores then differ from those of the nearest one that was asked about by 0.5 at most, as a standard
   deviation in that population.
7. *Intercept.* That of two classes gives the mean chance that was opened (`level`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from tacit.methods.newton.level import Level
from tacit.methods.newton.moments import constant_row
from tacit.methods.newton.population import Population, Steepness
from tacit.methods.newton.secant import Rise, as_shown
from tacit.methods.newton.shrinkage import SEEN, Law, known_laws, shrunken_by
from tacit.methods.newton.statistic import Plan
from tacit.methods.newton.tangent import Solved, Tangent

Floats = npt.NDArray[np.float64]

_MISFIT = 0.01  # of a normal population's responses: how far records respond otherwise at least
_CONTRADICTED = 4.0  # times the variance that noise explains: rounds that differ by more say that it is off
CURVED = 0.3  # of a change of responses: how far it may be off when curvature is that of a normal population
_WIDEST = 12.0  # of the scores of a normal population
_FURTHEST = 0.5  # of log odds, the standard deviation of how far scores go beyond what was asked about
_UNSEEN = 4.0  # log odds of any row, by a model that cannot be told from its start


@dataclass(frozen=True, kw_only=True)
class Observation:
    """S at one model, the standard deviation of its noise, and what a normal population would say there."""

    model: Floats  # (n_scores, k)
    response: Floats
    noise_std: float
    steepness: Steepness
    surprise: Floats  # the response beyond that of a normal population
    surprise_variance: float  # a coordinate, of the noise of M in it


@dataclass(kw_only=True)
class Equation:
    """What has been opened so far, and the model that follows from it."""

    plan: Plan
    B: Floats
    rho: float
    n_records: float
    t: Floats
    opened: Floats  # M as it was opened
    M: Floats  # as curvature (`moments`, 3 and 4)
    t_noise: float
    M_noise: float
    weight_error: float  # of the sum of weights, a relative standard deviation
    start: Floats
    l2: float | None
    has_intercept: bool
    mean_kept: float = 1.0  # of the noise of M in the mean row (`moments`, 5)
    observations: list[Observation] = field(default_factory=list)
    middle: Floats | None = None  # of the sandwich, if it was asked for

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

    def _over_basis(self, A: Floats) -> Floats:
        """A quadratic form over the models in terms of `basis`."""
        return A if self.has_intercept else self.basis.T @ A @ self.basis

    def population_of(self, M: Floats) -> Population:
        """A normal population with these second moments of rows u; its mean row is in them."""
        mean = M @ self.constant_row * (self.rho / (self.n_records * self.plan.cohort.constant))
        return Population(M, mean, self.n_records, self.plan.cohort.n_classes)

    @cached_property
    def population(self) -> Population:
        """The normal population with the moments that are used as curvature."""
        return self.population_of(self.M)

    @cached_property
    def _mean_variance(self) -> float:
        """Of n times the mean row, a coordinate, by the noise of M."""
        q, c = self.constant_row, self.plan.cohort.constant
        return (self.rho / c) ** 2 * float(q @ q) * self.mean_kept * self.M_noise**2 / 2

    @cached_property
    def _level(self) -> Level:
        q, c = self.constant_row, self.plan.cohort.constant
        return Level(
            population=self.population,
            q=q,
            counted=self.rho * float(q @ self.opened @ q) / c,
            weight_error=self.weight_error,
            mean_variance=self._mean_variance,
            t_noise=self.t_noise,
            lowest=-_WIDEST * self.rho / c,
        )

    @cached_property
    def _spread(self) -> Floats:
        """Q: W Q W' is how far a model spreads scores, along the constant not at all."""
        along = self.M @ self.constant_row
        square = float(self.constant_row @ along)
        counted = square / self.plan.cohort.constant**2  # the sum of squared weights
        Q: Floats = self.M - np.outer(along, along) / square if self.has_intercept else self.M
        return Q / (counted * self.rho**2)

    @cached_property
    def _uneven(self) -> Floats:
        """Columns of the uneven law (`shrinkage`): coefficients of encoded columns with the covariance Q^(-1/2).

        The shape is known best of what tells Q: it is A^(-1/2), up to scale and floors.
        """
        inverse = np.linalg.inv(self.B)
        A = inverse @ inverse
        Q = A[:-1, :-1] - np.outer(A[:-1, -1], A[-1, :-1]) / A[-1, -1] if self.has_intercept else A[:-1, :-1]
        values, vectors = np.linalg.eigh(Q)
        values = np.maximum(values, 1e-9 * values[-1])
        columns: Floats = self.basis.T @ inverse[:, :-1] @ ((vectors * values**-0.25) @ vectors.T)
        return columns

    @cached_property
    def _laws(self) -> tuple[Law, ...]:
        """What is likely of a model beforehand (`shrinkage`, 1)."""
        free = self.constant_row if self.has_intercept else None
        return known_laws(self._over_basis(self._spread), free, self._uneven)

    def observe(self, model: Floats, response: Floats, noise_std: float) -> None:
        """Add a round."""
        expected, above = self.population.response(model)
        steepness = self.population.steepness(model)
        self.observations.append(
            Observation(
                model=model,
                response=response,
                noise_std=noise_std,
                steepness=steepness,
                surprise=response - expected,
                surprise_variance=self._noise_of_moments(steepness.K @ model) + self._noise_of_mean(above),
            )
        )

    def solve(self, model: Floats, iterations: int) -> Solved:
        """The model that solves the weighted equation, from `model` on: weights and curvature depend on it a little."""
        is_levelled = self.l2 is None and self.has_intercept and self.plan.cohort.n_classes == 2
        for _ in range(iterations):
            tangent = self._linearised(model)
            found = self._solution(tangent)
            solved = replace(found, model=self._near(self._within(self._narrowed(found.model), found.evidence)))
            if is_levelled:
                solved = replace(solved, model=self._level.levelled(solved.model, model, tangent, found))
            model = 0.5 * (model + solved.model)
        return solved

    def evidence_at_start(self) -> float:
        """Whether there is anything to see, by the equation near the start: near a steep model it is flat."""
        return self._solution(self._linearised(self.start)).evidence or 0.0

    def _narrowed(self, model: Floats) -> Floats:
        """The model, made shorter if its scores are spread too wide."""
        centre, _, spread = self.population.scores(model)
        width = float(np.linalg.norm(centre)) + math.sqrt(max(0.0, float(np.trace(spread))))
        return model * min(1.0, _WIDEST / max(width, 1e-300))

    def _within(self, model: Floats, evidence: float | None) -> Floats:
        """The model, nearer to its start if little speaks for it and some row's score could be far off (5)."""
        if evidence is None:
            return model
        change = model - self.start
        furthest = float(np.linalg.norm((change @ self.B)[:, :-1])) * self.plan.cohort.radius / self.rho
        return self.start + change * min(1.0, _UNSEEN * max(1.0, evidence / SEEN) / max(furthest, 1e-300))

    def _near(self, model: Floats) -> Floats:
        """The model, or less of the way to it from the nearest one that was asked about (6)."""
        if self._contradicted <= 0:
            return model
        ways = [model - one.model for one in self.observations]
        spreads = [math.sqrt(max(0.0, float(np.sum((way @ self._spread) * way)))) for way in ways]
        spread, way = min(zip(spreads, ways, strict=True), key=itemgetter(0))
        return model - max(0.0, 1 - _FURTHEST / max(spread, 1e-300)) * way

    def _linearised(self, model: Floats) -> Tangent:
        """The weighted equation near a model."""
        expected, above = self.population.response(model)
        here = self.population.steepness(model)
        precisions = [1 / self._population_variance(model, expected, above, here)]
        precisions += [1 / self.variance_of(one, model) for one in self.observations]
        total = 1 / sum(precisions)
        bend = self._bend(here)
        here = replace(here, G=here.G + bend)
        right = self.t + here.along(model, self.M) - expected
        for precision, one in zip(precisions[1:], self.observations, strict=True):
            right -= total * precision * (one.surprise + (model - one.model) @ bend)
        variance = total + self.t_noise**2
        return Tangent(steepness=here, right=right, variance=variance, unasked=total * precisions[0])

    def _bend(self, here: Steepness) -> Floats:
        """What the rounds show of the curvature of two classes beyond a normal population's (`secant`)."""
        if self.plan.cohort.n_classes > 2 or len(self.observations) < 2:
            return np.zeros_like(self.M)
        H = here.K[0, 0] * self.M + here.G
        bend: Floats = as_shown(H, self._changes()) - H
        return bend

    def _changes(self) -> Iterator[Rise]:
        """From each round to the next."""
        for one, other in itertools.pairwise(self.observations):
            seen = (other.response - one.response)[0]
            yield Rise(
                way=(other.model - one.model)[0],
                seen=seen,
                expected=seen - (other.surprise - one.surprise)[0],
                variance=one.noise_std**2 + other.noise_std**2,
            )

    def variance_of(self, one: Observation, model: Floats) -> float:
        """Of a round's estimate of S(model), a coordinate: its noise, that of M on the way, and a bend that is off."""
        way = model - one.model
        change = self.population.response(model)[0] - self.population.response(one.model)[0]
        off = CURVED**2 * float(np.mean(change**2))
        return one.noise_std**2 + self._noise_of_moments(one.steepness.K @ way) + off + 1e-24 * self.n_records**2

    def unasked_variance(self, model: Floats) -> float:
        """Of a normal population's estimate of S(model), a coordinate, where nobody was asked; but for M on the way."""
        expected, above = self.population.response(model)
        return self._misfit(expected) ** 2 + self._noise_of_mean(above)

    def _population_variance(self, model: Floats, expected: Floats, above: Floats, here: Steepness) -> float:
        """Of a normal population's estimate of S(model), a coordinate."""
        way = model if model.any() else np.full_like(model, 4 / math.sqrt(model.shape[1]))
        noise = self._noise_of_moments(here.K @ way) + self._noise_of_mean(above)
        return self._misfit(expected) ** 2 + noise + 1e-24 * self.n_records**2

    def _misfit(self, expected: Floats) -> float:
        """How far a normal population's responses are off, a coordinate: what the rounds show, and no less than 1 %."""
        least = _MISFIT * float(np.linalg.norm(expected)) / math.sqrt(expected.size)
        return max(least, math.sqrt(self._contradicted))

    @property
    def _contradicted(self) -> float:
        """By how much the mean square of a normal population's error exceeds what noise explains; 0 if it does not."""
        if not self.observations:
            return 0.0
        seen = float(np.mean(np.mean([one.surprise for one in self.observations], axis=0) ** 2))
        of_rounds = float(np.mean([one.noise_std**2 for one in self.observations])) / len(self.observations)
        of_moments = float(np.mean([one.surprise_variance for one in self.observations]))
        return max(0.0, seen - _CONTRADICTED * (of_rounds + of_moments))

    def _noise_of_moments(self, way: Floats) -> float:
        """What the noise of M adds to a coordinate of way @ M: s_M^2 / 2 off the diagonal."""
        return float(np.sum(way**2)) / len(way) * self.M_noise**2 / 2

    def _noise_of_mean(self, above: Floats) -> float:
        """What the noise of the mean row, which is M q rho / (n c), adds to a coordinate of n (E p - 1/C) m."""
        return float(np.sum(above**2)) / len(above) * self._mean_variance

    def _solution(self, tangent: Tangent) -> Solved:
        """W of K W M + W G = right, as far as its noise lets it be seen; or with the l2 that was set."""
        values, vectors = np.linalg.eigh(tangent.steepness.K)
        rows, starts = vectors.T @ tangent.right, vectors.T @ self.start
        kept = [i for i, value in enumerate(values) if value > 1e-9 * values[-1]]  # the others change no probability
        if not kept:  # so far out that no probability changes any more
            return Solved(model=self.start, evidence=0.0)
        Hs = [values[i] * self.M + tangent.steepness.G for i in kept]
        models = np.zeros_like(rows)
        if self.l2 is not None:
            models[kept] = [self._ridge(H, rows[i], starts[i], self.l2) for H, i in zip(Hs, kept, strict=True)]
            return Solved(model=np.asarray(vectors @ models, dtype=np.float64))
        found = shrunken_by(
            self._laws,
            [self._over_basis(H) for H in Hs],
            rows[kept] @ self.basis,
            starts[kept] @ self.basis,
            variance=tangent.variance,
            free=self.constant_row if self.has_intercept else None,
            is_off=self._contradicted > 0,
        )
        models[kept] = found.models @ self.basis.T
        model = np.asarray(vectors @ models, dtype=np.float64)
        return Solved(model=model, evidence=found.evidence, level_variance=found.level_variance)

    def solution(self, K: Floats, right: Floats, l2: float) -> Floats:
        """W of K W M + l2 (W - start) P = right."""
        values, vectors = np.linalg.eigh(K)
        rows, starts = vectors.T @ right, vectors.T @ self.start
        models = np.zeros_like(rows)
        for i, value in enumerate(values):
            if value > 1e-9 * values[-1]:  # not the direction in which no probability changes
                models[i] = self._ridge(value * self.M, rows[i], starts[i], l2)
        return np.asarray(vectors @ models, dtype=np.float64)

    def _ridge(self, H: Floats, right: Floats, start: Floats, l2: float) -> Floats:
        """w of H w + l2 P (w - start) = right, among the models that there are."""
        left = self._over_basis(H + l2 * self.penalised)
        model: Floats = self.basis @ np.linalg.solve(left, self.basis.T @ (right + l2 * self.penalised @ start))
        return model


def answer_directions(t: Floats, M: Floats, q: Floats | None) -> Floats:
    """Where t points beyond what an intercept explains: orthonormal rows, one for each two classes told apart."""
    along = t if q is None else t - np.outer(t @ q, M @ q) / float(q @ M @ q)
    _, sizes, rows = np.linalg.svd(along, full_matrices=False)
    pointed: Floats = rows[: max(1, len(t) - 1)][sizes[: max(1, len(t) - 1)] > 0]
    return pointed
