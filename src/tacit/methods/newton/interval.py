"""Intervals of private Newton: which values of a coefficient agree with what was opened.

The model for prediction is drawn towards its start, so its coefficients are no estimates. The table shows the free
solution of the same equation, and everything in a row comes from one test.

1. *Equation.* At the population's parameter w* the sums agree: t = S(w*) + e. S is what the rounds say, moved from
   where they were asked: S(w) = sum_k share_k (S_k + S'(w) - S'(w_k)). S' is the response of made-up rows. Their
   columns are of the kinds that the schema names, and have the opened moments (`stand_in`, `row_weight`,
   `row_population`).
2. *Noise.* e has the covariance V(w) = Sigma + v I + (what the noise E of M does on the way) + (a curvature that is
   off). Sigma is the sampling error, which the made-up rows tell; v is the variance of t's noise and of the rounds',
   averaged. The noise of M enters as K E d, d = w - sum share_k w_k: how far w is from where we asked. For a
   combination p of the equations its variance is s_M^2 / 2 (||K d||^2 ||p||^2 + (p.K d)^2), and with G = p'K d for
   several scores s_M^2 / 2 (||G||^2 + tr G^2). A curvature may be off by
   c in its worst direction. As a random symmetric matrix of that norm it adds c^2 / (4 k) (d'Sigma d p'Sigma p +
   (p'Sigma d)^2).
   With `robust` the middle of the sandwich was opened, C = sum (label - prediction)^2 u u'. Then p'Sigma p is what the
   rows or C say, whichever is more: where the model is wrong, gradients may vary more than the curvature tells.
3. *M as it is.* Noise spreads the eigenvalues of M. On average it moves the i-th by s_M^2 / 2 sum_j 1 / (l_i - l_j)
   (second-order perturbation). That is taken back, and values that change places are averaged (Stein). None is raised.
   Averaging takes noise away, too: s_M in step 2 is what Stein's estimate says is left (`moments`, 6).
   A direction whose curvature is not three standard errors above 0 is *drowned*: its equation is left out (`drowned`).
4. *Assumption.* No number moves log odds by much more than 160 from one of its bounds to the other, and no category or
   yes by much more than 10, two standard deviations each: coefficients of encoded columns have the laws N(0, 40^2) and
   N(0, 5^2) beforehand, an intercept N(0, 80^2). Without it a drowned direction could be as long as it likes, and take
   every other coefficient with it. The equation is taken as the straight line that it is at a likely model (5). The
   estimate is where the posterior of that is largest, and D its covariance there, along what is seen.
5. *Test.* For each coefficient b = a.w, w moves from the estimate along D a, the direction that fits worst to it
   (`profile`). The noise of M, which grows with the way, is counted where the coefficient is said to be. All others
   are taken to be where scores spread as far as the estimate's do without its noise. The estimate itself is too long,
   and its noise would count twice. With one direction and no assumption this is Fieller's interval for a ratio. With
   several it is the profile of a test that keeps its level though some directions are hardly known (Guggenberger,
   Kleibergen, Mavroeidis and Chen 2012, for a noise of product form, which this one has but for E being symmetric). It
   is made among runs whose direction is seen: what selection does is counted. Two variances come on top:
   a. what a coefficient leans on drowned directions (`drowned`, 3 and 4);
   b. scores that drowned directions spread, unseen, make all others too small, by 1 / sqrt(1 + 0.346 v) for a variance
      v (Zeger, Liang and Albert 1988). Along a drowned direction r = K M w is known, so v is taken to be
      |w| |r| / (K n), with the standard deviation of w, and 0.5 at most. It draws coefficients towards 0, never beyond.
      So it is counted on the side away from 0.
6. *Told.* The interval reaches to where Q exceeds z^2 and stays above it. z is the root of the least Q at 0 or beyond,
   so that p < 0.05 says that 0 is outside. The standard error is the interval's width over 2 z. Where it is more than
   half of what was assumed beforehand, little was learned: the coefficient is *not identified* at this epsilon. Nor is
   one where noise leaves less open than drowned columns do of which the mean is known, as an intercept's may be: its
   interval would tell what was assumed.

What this rests on. Steps 1 to 3 are approximations: `benchmarks/intervals.py` measures how often intervals hold. Its
drawn rows were looked at while this was built, and of its real data sets adult and bank marketing. Three standard
errors, and 0.5 in step 5b, were chosen on other draws of the same laws. The law of a yes was chosen on adult: with
N(0, 2.5^2) intervals miss there. Where a few large values of a column decide,
the rounds may end before they have reached its coefficient, and the interval misses it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from tacit.data.feature import Numeric
from tacit.data.schema import Schema
from tacit.methods.newton.drowned import Directions, leaning, leaning_alone, without_correlations
from tacit.methods.newton.moments import noise_left, unspread
from tacit.methods.newton.profile import Course, Lines
from tacit.methods.newton.row_population import RowPopulation
from tacit.methods.newton.solver import CURVED, Equation
from tacit.methods.newton.stand_in import made_up_rows
from tacit.methods.newton.tangent import Solved
from tacit.models.inference import Inference

Floats = npt.NDArray[np.float64]

MOST_PARAMETERS = 2000
"""For which a covariance is worked out."""
_ASSUMED = 40.0  # standard deviation of the coefficient of a number in [-1, 1]; twice that of an intercept
_ASSUMED_YES = 5.0  # that of a column of 0 and 1
_UNKNOWN = 0.5  # of what is assumed: a larger standard error says that little was learned
_COUNTED = "Intervals count the sampling error and the noise that was added for privacy. The model for prediction "
_DRAWN = "is drawn towards its start, as far as noise hides what it is; the estimates are not"
_SET = "has the regularisation that was set; the estimates have none"
_ROBUST = (
    ". How much records vary about the model was measured. Where no such model is right, intervals are for the one "
    "that is best for the weighted records: long rows count less in it"
)
_HIDDEN = (
    "A coefficient is not identified where noise hides how much its column varies. Nor is an intercept that depends on "
    "such a column. Narrower public bounds, more records or a larger epsilon would show it"
)
_ATTENUATED = 0.346  # (16 sqrt 3 / (15 pi))^2: what scores that are left out do to the others (Zeger et al. 1988)
_UNSEEN = 0.5  # the most that drowned directions are taken to spread scores, as a variance
_STEPS = 200  # of Newton's method, at most
_STILL = 1e-3  # of a standard error: a step that is no longer is the last


@dataclass(frozen=True, kw_only=True)
class _Told:
    """The equation t = S(w) in a basis of the models, and the law of its noise."""

    basis: Floats  # (n_scores k, m)
    population: RowPopulation
    t: Floats  # less what the rounds say beyond the population
    noise_variance: float  # v
    centre: Floats  # in the basis: where the noise of M has no lever
    M_noise: float
    middle: Floats | None  # what was measured of Sigma, where the model need not be right
    law: Floats  # (k n_scores, m): a model in units of what is assumed of it
    directions: Directions
    is_plain: bool  # whether `basis` is the identity

    def model(self, w: Floats) -> Floats:
        return (self.basis @ w).reshape(len(self.population.K), -1)

    def curvature(self, w: Floats) -> Floats:
        return self._over_basis(self.population.curvature(self.model(w)))

    def sampling(self, w: Floats) -> Floats:
        """Sigma at a model."""
        return _positive(self._over_basis(self.population.sampling(self.model(w))))

    def _over_basis(self, A: Floats) -> Floats:
        """A quadratic form over the models in terms of `basis`, which is the identity for two classes as a rule."""
        return A if self.is_plain else np.asarray(self.basis.T @ A @ self.basis, dtype=np.float64)

    def sampled(self, P: Floats, sampling: Floats) -> Floats:
        """p'Sigma p for each row p: what the rows say, or what was measured, whichever is more."""
        made = _square(P, sampling)
        return made if self.middle is None else np.maximum(made, _square(P, self.middle))

    def residual(self, w: Floats) -> Floats:
        r: Floats = self.basis.T @ (self.t - self.population.response(self.model(w))).ravel()
        return r

    def steeper(self, w: Floats) -> float:
        """By what share coefficients may be too small since drowned directions spread scores, and the model does not.

        Along these, r = K M w is known and w is not: scores spread by w.r / (K n) there, at most |w| |r| / (K n).
        """
        drowned = self.directions.drowned
        if not drowned.shape[1]:
            return 0.0
        r = drowned.T @ self.residual(w)
        noise = self.noise_variance + float(np.trace(drowned.T @ self.sampling(w) @ drowned)) / len(r)
        length = math.sqrt(max(float(r @ r) - (len(r) - 1) * noise, 0.0))
        longest = math.sqrt(float(np.trace(np.linalg.inv(drowned.T @ self.law.T @ self.law @ drowned))))
        steepest = float(np.linalg.eigvalsh(self.population.K)[-1])
        spread = min(longest * length / (steepest * self.population.n_records), _UNSEEN)
        return math.sqrt(1 + _ATTENUATED * spread) - 1

    def between(self, predicted: Floats, w: Floats, D: Floats) -> Floats:
        """A model on the way from `predicted` to w that spreads scores as far as w does, but for noise D in it."""
        full = self._over_basis(np.kron(np.eye(len(self.population.K)), self.population.scores))
        way = w - predicted
        start, slope, bend = (
            float(one @ full @ other) for one, other in ((predicted,) * 2, (predicted, way), (way,) * 2)
        )
        wanted = float(w @ full @ w) - max(0.0, float(np.sum(full * D)))
        if wanted <= start or bend <= 0:
            return predicted
        share = (math.sqrt(max(0.0, slope**2 + bend * (wanted - start))) - slope) / bend  # of a quadratic equation
        return predicted + min(share, 1.0) * way

    def of_moments(self, P: Floats, one: Floats, other: Floats) -> Floats:
        """The covariance of p.K E one and p.K E other, for each row p of P."""
        scores = len(self.population.K)
        shape = (len(P), scores, -1)
        full = (P @ self.basis.T).reshape(shape)
        first, second = (
            np.einsum("cd,qdk->qck", self.population.K, (way @ self.basis.T).reshape(shape)) for way in (one, other)
        )
        both = np.einsum("qck,qdk,qcl,qdl->q", first, second, full, full, optimize=True)
        both += np.einsum("qck,qcl,qdl,qdk->q", first, full, second, full, optimize=True)
        told: Floats = self.M_noise**2 / 2 * both
        return told

    def of_bend(self, P: Floats, one: Floats, other: Floats, sampling: Floats) -> Floats:
        """The covariance that a curvature which is off adds, for each row p of P."""
        first, second = one @ sampling, other @ sampling
        both = np.einsum("qi,qi->q", first, other) * _square(P, sampling)
        both += np.einsum("qi,qi->q", first, P) * np.einsum("qi,qi->q", second, P)
        told: Floats = CURVED**2 / (4 * P.shape[1]) * both
        return told


@dataclass(frozen=True, kw_only=True)
class _Estimate:
    """Where the posterior is largest (4), its covariance along what is seen, and the equations' weights H V^-1."""

    w: Floats
    likely: Floats  # a model that spreads scores as far as w does without the noise in it
    D: Floats
    information: Floats  # of the equations that are used, and what is assumed
    weights: Floats
    H: Floats
    sampling: Floats  # Sigma there


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
    z = float(ndtri(0.5 + confidence / 2))
    course = _course(told, found, a)
    line = Lines.of(course, z)
    estimate = a @ found.w
    low, high = estimate - line.reach(z, 0), estimate + line.reach(z, 1)
    error = (high - low) / (2 * z)
    beforehand = np.sqrt(_square(a, np.linalg.pinv(told.law.T @ told.law)))
    alone = leaning_alone(told.directions, a, told.law.T @ told.law)
    known = (error < _UNKNOWN * beforehand) & (alone * course.curvature**2 <= course.noise)
    score = np.where(known, np.sign(estimate) * line.score(estimate), 0.0)
    return Inference(
        estimate=np.where(known, estimate, 0.0),
        standard_error=np.where(known, error, np.inf),
        z=score,
        p=2 * ndtr(-np.abs(score)),
        low=np.where(known, low, -np.inf),
        high=np.where(known, high, np.inf),
        covariance=a @ np.linalg.inv(found.information) @ a.T,
        confidence=confidence,
        log_likelihood=math.nan,
        aic=math.nan,
        n_records=n_records,
    )


def interval_notices(inference: Inference | None, *, robust: bool, is_set: bool = False) -> list[str]:
    """What a reader of intervals should know; `is_set` if somebody chose an l2."""
    if inference is None:
        return []
    notices = [_COUNTED + (_SET if is_set else _DRAWN) + (_ROBUST if robust else "")]
    return notices if np.isfinite(inference.standard_error).all() else [*notices, _HIDDEN]


def _told(equation: Equation, solved: Solved, schema: Schema) -> _Told:
    """Steps 1 to 4."""
    plan, model = equation.plan, solved.model
    n_scores = plan.n_scores
    M = unspread(equation.opened, equation.M_noise)
    rows = made_up_rows(M, equation.M_noise, equation.B, plan.cohort.constant, schema)
    population = RowPopulation.of(
        rows,
        B=equation.B,
        rho=equation.rho,
        M=M,
        M_noise=equation.M_noise,
        n_records=equation.n_records,
        model=model,
    )
    across = np.eye(1) if n_scores == 1 else np.linalg.svd(np.ones((1, n_scores)))[2][1:].T  # scores that sum to 0
    basis = np.kron(across, equation.basis)
    rounds = equation.observations
    variances = np.array([equation.variance_of(one, model) for one in rounds])
    shares = 1 / variances / np.sum(1 / variances) if rounds else variances
    t, centre, variance = equation.t.copy(), np.zeros_like(model), equation.t_noise**2
    for share, one in zip(shares, rounds, strict=True):
        t -= share * (one.response - population.response(one.model))
        centre += share * one.model
        variance += share**2 * one.noise_std**2
    if not rounds:
        variance += equation.unasked_variance(model)
    plain = without_correlations(M, equation.B, plan.cohort.constant)
    own = Directions.of(*(equation.basis.T @ A @ equation.basis for A in (M, plain)), noise_std=equation.M_noise)
    scale = 1 / np.append(_assumed(schema), 2 * _ASSUMED / plan.cohort.constant)
    return _Told(
        basis=basis,
        population=population,
        t=t,
        noise_variance=variance,
        centre=basis.T @ centre.ravel(),
        M_noise=noise_left(equation.opened, equation.M_noise),
        middle=None if equation.middle is None else basis.T @ equation.middle @ basis,
        law=np.asarray(np.kron(np.eye(n_scores), (equation.B * scale).T / equation.rho) @ basis, dtype=np.float64),
        directions=own.over(across.shape[1]),
        is_plain=n_scores == 1 and equation.has_intercept,
    )


def _estimate(told: _Told, predicted: Floats) -> _Estimate:
    """Newton's method to where the posterior is largest (4); curvature and V follow on the way.

    Curvature falls as scores spread. The model for prediction spreads them less than the truth does, and the estimate
    further, by the noise in it. So curvature is taken between the two, where they spread as far as without that noise.
    """
    K, seen = told.population.K, told.directions.seen
    steep = float(np.linalg.eigvalsh(K)[-1]) ** 2 * told.M_noise**2 / 2 / len(K)
    away, prior = 0.0, told.law.T @ told.law
    at = predicted
    for step in range(_STEPS):
        sampling, H = told.sampling(at), told.curvature(at)
        V = sampling + (told.noise_variance + steep * away) * np.eye(len(at))
        weights = (seen @ np.linalg.solve(seen.T @ V @ seen, seen.T @ H)).T
        information = weights @ H + prior
        w = at + np.linalg.solve(information, weights @ told.residual(at) - prior @ at)
        D = seen @ np.linalg.inv(seen.T @ information @ seen) @ seen.T
        before, at = at, at + min(0.5, 4 / (step + 1)) * (told.between(predicted, w, D) - at)  # so that none circles
        away = float(np.sum((at - told.centre) ** 2))
        if step and float((at - before) @ information @ (at - before)) <= _STILL**2:
            break
    return _Estimate(w=w, likely=at, D=D, information=information, weights=weights, H=H, sampling=sampling)


def _course(told: _Told, found: _Estimate, a: Floats) -> Course:
    """Step 5: the lines through an estimate. The other coefficients are where it has them, and move along."""
    prior = told.law.T @ told.law
    Da = a @ found.D
    lean = leaning(told.directions, a, found.information, prior)
    estimate = a @ found.w
    beyond = lean + (told.steeper(found.w) * estimate) ** 2
    spread = np.maximum(np.einsum("qi,qi->q", Da, a), 1e-12 * beyond)
    ways, P = Da / spread[:, None], Da @ found.weights
    here = _here(told, found, a, ways)
    noise = told.noise_variance * np.einsum("qi,qi->q", P, P) + told.sampled(P, found.sampling)
    pairs = ((here, here), (here, ways), (ways, ways))
    of_M = [told.of_moments(P, *pair) for pair in pairs]
    at, once, twice = (M + told.of_bend(P, *pair, found.sampling) for M, pair in zip(of_M, pairs, strict=True))
    return Course(
        spread=spread,
        assumed=np.maximum(_square(ways, prior), 1e-12 / (spread + beyond)),
        curvature=np.einsum("qi,ij,qj->q", P, found.H, ways, optimize=True),
        above=told.directions.above_limit(a, found.D),
        noise=noise + at,
        by=(once, twice),
        of_curvature=(of_M[1], of_M[2]),
        lean=(np.where(estimate < 0, beyond, lean), np.where(estimate < 0, lean, beyond)),
    )


def _here(told: _Told, found: _Estimate, a: Floats, ways: Floats) -> Floats:
    """The way from where the noise of M has no lever: each coefficient as estimated, all others as is likely.

    An estimate is longer than the truth, by the noise in it. If all of it counted, that noise would count twice.
    """
    here: Floats = found.likely - told.centre + (a @ (found.w - found.likely))[:, None] * ways
    return here


def _assumed(schema: Schema) -> Floats:
    """The standard deviation beforehand of the coefficient of each encoded column (4)."""
    told: list[float] = []
    for feature in schema.features:
        own = [_ASSUMED_YES] * len(feature.columns(schema.coding))
        if isinstance(feature, Numeric):
            own[0] = _ASSUMED if math.isfinite(feature.largest_square) else _ASSUMED / float(schema.radius or 1.0)
        told += own
    return np.array(told)


def _positive(A: Floats) -> Floats:
    """A symmetric matrix without its negative eigenvalues."""
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(A)
        return A  # there are none
    values, vectors = np.linalg.eigh(A)
    lifted: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return lifted


def _square(rows: Floats, A: Floats) -> Floats:
    """r'A r of each row r."""
    squares: Floats = np.einsum("qi,ij,qj->q", rows, A, rows, optimize=True)
    return squares
