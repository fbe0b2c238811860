"""One party's perturbed objective: how much noise its linear term needs, and how its minimiser is told.

Proof. Party j tells w = argmin L(w) + (Lam/2) ||w||^2 + b.w, L its sum of losses. The map w -> b(w) = -(grad L(w) +
Lam w) is smooth and strongly monotone, hence a diffeomorphism of R^k. For D and D' that differ in one record, the
densities p and p' of w and the noise's density f,

    p(w) / p'(w) = f(b) / f(b + v) * det(A + H) / det(A + H'),

where b = b(w) on D, v is the difference of the two records' gradients at w, A the curvature without them, and H and H'
are theirs.

(1) Volume. A >= Lam I and H, H' >= 0. H has rank r and a trace of at most h R^2: r = 1, h = 1/4 for two classes; r =
    C - 1, h = 1 - 1/C for softmax. The inequality of the means gives det(A + H) / det(A + H') <= det(I + A^{-1} H) <=
    (1 + h R^2 / (r Lam))^r = e^c.
(2) Pure. ||v|| <= G = 2 R (softmax: 2 sqrt 2 R), so that for b spherical Laplace of scale G / e1 the ratio is at most
    e^(e1 + c).
(3) Gaussian, b ~ N(0, s^2 I). v depends on w, hence on b; but it lies in V = {a' u' - a u: a, a' in [0, 1]}, u = y x,
    and log f(b) / f(b + v) = (||b + v||^2 - ||b||^2) / (2 s^2) is convex in v, so that its largest value over V is at a
    vertex of V: 0, -u, u' or u' - u. Therefore, with dGM the exact Gaussian profile, which rises with ||v||,

        delta(e1 + c) <= integral of max_v (f(b) - e^e1 f(b + v))_+ over b, v among the vertices
                      <= sum over the vertices v != 0 of dGM(e1; ||v|| / s) <= dGM(e1; 2R/s) + 2 dGM(e1; R/s).

    The last term is next to nothing, and the first is what a fixed v of norm G would cost. For softmax V has the
    vertices (e_k - e_y) x - (e_l - e_z) x', y and z the classes of the two records. Those with k = y or l = z, but not
    both, are 2 (C-1) and have a norm of at most sqrt 2 R. Of the others, at most C - 1 have <e_k - e_y, e_l - e_z> = 2
    or -2 (k = l if y = z; k = z, l = y if not) and a norm of at most 2 sqrt 2 R; for the rest, at most C (C-2), that
    product is -1, 0 or 1, and their norm is at most sqrt 6 R.
(4) Floats. The computed b is within `noise_error` of an ideal one. (Spherical: `privacy.noise.spherical`. Gaussian: b
    is an exact discrete Gaussian Y of parameter sigma >= 2^37 steps, and N ~ N(0, sigma^2) has P(round N = k) >=
    exp(-1/(8 sigma^2)) P(Y = k), so that the two differ by at most 1/(8 sigma^2) in total variation; what that costs in
    delta is set aside.) w is 1/Lam-Lipschitz in b, and the computed w is within a certified distance of the minimum.
    So it is within tau of the ideal one, where tau is public and reached whatever the data (`models.assured`). On a
    grid of step h, any two values to which one ideal w may lead are within 2 sqrt k tau / h + k in L1 norm; discrete
    Laplace noise of that over e3 makes what is told e3-private given the ideal w. In all e1 + c + e3 = epsilon, with
    e3 = epsilon / 128.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.bisection import bisect
from tacit.data.table import Table
from tacit.errors import SettingError, WireError
from tacit.federation.reply import Disclosed, Noised
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise
from tacit.models.assured import FitBounds, assured_fit
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.event import Approximate, Event, NotPrivate
from tacit.privacy.gaussian import gaussian_delta
from tacit.privacy.noise.discrete import discrete_gaussian, discrete_laplace
from tacit.privacy.noise.norm import laplace_norm
from tacit.privacy.noise.spherical import share_error, spherical_laplace_share
from tacit.rand import Rng
from tacit.wire import Value

Floats = npt.NDArray[np.float64]

_DITHER_SHARE = 1 / 128  # of epsilon, for what rounding and the solver may tell
_RARE = 100 * math.log(2)  # the noise is longer than its bound with probability 2^-100, whatever the data


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    `l2` is Lam, of each party's own sum. `rounds` is 1, but for the document's calibration.
    """

    cohort: Cohort
    promise: Promise
    l2: float
    rounds: int

    @property
    def loss(self) -> Loss:
        """The loss that every party minimises."""
        return self.cohort.loss

    @property
    def dimension(self) -> int:
        """k, how many numbers a party tells."""
        return math.prod(self.loss.shape)

    @property
    def _rank_and_trace(self) -> tuple[int, float]:
        """r and h R^2 of one record's curvature."""
        if self.cohort.n_classes == 2:
            return 1, self.cohort.row_norm**2 / 4
        return self.cohort.n_classes - 1, (1 - 1 / self.cohort.n_classes) * self.cohort.row_norm**2

    @property
    def volume_cost(self) -> float:
        """c, the part of epsilon that the change of volume takes."""
        rank, trace = self._rank_and_trace
        return rank * math.log1p(trace / (rank * self.l2)) * (1 + 1e-14)

    @property
    def noise_epsilon(self) -> float:
        """e1, what is left of epsilon for the noise; a `SettingError` if nothing is."""
        epsilon = self.promise.epsilon
        whole = (1 - _DITHER_SHARE) * epsilon
        if whole > self.volume_cost:
            return whole - self.volume_cost
        least_epsilon = self.volume_cost / (1 - _DITHER_SHARE)
        raise SettingError(
            f"epsilon = {epsilon:g} is used up by l2 = {self.l2:g} before any noise is drawn: with that l2 choose "
            f"an epsilon above {least_epsilon:.4g}, or with that epsilon an l2 above {self.least_l2(whole):.4g}"
        )

    @property
    def dither_epsilon(self) -> float:
        """e3, what the dither takes."""
        return _DITHER_SHARE * self.promise.epsilon

    def least_l2(self, cost: float) -> float:
        """The l2 at which the change of volume takes up `cost`."""
        rank, trace = self._rank_and_trace
        return trace / (rank * math.expm1(cost / rank))

    @property
    def gradient_gap(self) -> float:
        """G, the largest distance of two records' gradients at one parameter."""
        return 2 * self.loss.gradient_norm_bound(self.cohort.row_norm)

    @cached_property
    def noise_scale(self) -> float:
        """The scale of the spherical Laplace noise, or the standard deviation of the Gaussian noise."""
        if self.promise.is_pure:
            return self.gradient_gap / self.noise_epsilon * (1 + 2.0**-50)
        epsilon, delta = self.promise.epsilon, self.promise.settled_delta
        target = delta - self.dimension * (1 + math.exp(min(700.0, epsilon))) * 2.0**-76  # (4), sigma >= 2^37
        if target <= 0:
            raise SettingError(
                f"delta = {delta:g} at epsilon = {epsilon:g} leaves no room for rounding; "
                f"choose a larger delta or a smaller epsilon"
            )
        low, high = 0.0, self.gradient_gap
        while self.delta_bound(high) > target:
            low, high = high, 2 * high
        return bisect(lambda std: self.delta_bound(std) <= target, yes=high, no=low, tolerance=1e-9)

    def delta_bound(self, noise_std: float) -> float:
        """The delta of Gaussian noise at epsilon = e1 + c, by (3) of the proof."""
        C, R, e1 = self.cohort.n_classes, self.cohort.row_norm / noise_std, self.noise_epsilon
        if C == 2:
            return gaussian_delta(e1, 2 * R) + 2 * gaussian_delta(e1, R)
        far, middling, near = (gaussian_delta(e1, math.sqrt(square) * R) for square in (8, 6, 2))
        return (C - 1) * far + C * (C - 2) * middling + 2 * (C - 1) * near

    @property
    def noise_std(self) -> float:
        """The standard deviation of one coordinate of b."""
        return self.noise_scale * (math.sqrt(self.dimension + 1) if self.promise.is_pure else 1.0)

    @property
    def noise_bound(self) -> float:
        """What ||b|| exceeds with probability below 2^-100: tails of Gamma(k) and of a Gaussian vector's norm."""
        k = self.dimension
        if self.promise.is_pure:
            return self.noise_scale * (k + math.sqrt(2 * k * _RARE) + _RARE)
        return self.noise_scale * (math.sqrt(k) + math.sqrt(2 * _RARE)) * (1 + 1e-9)

    @property
    def _noise_step(self) -> float:
        return math.ldexp(1.0, math.frexp(self.noise_scale)[1] - 38)

    @property
    def noise_error(self) -> float:
        """How far, in L2 norm, the computed b may be from the ideal one."""
        if self.promise.is_pure:
            return math.sqrt(self.dimension) * share_error(self.noise_scale, self.dimension, 1)
        return math.sqrt(self.dimension) * self._noise_step / 2

    def draw(self, *, rng: Rng) -> Floats:
        """b, in the parameter's shape."""
        k = self.dimension
        if self.promise.is_exact:
            return np.zeros(self.loss.shape)
        if self.promise.is_paper:
            noise = np.zeros((*self.loss.shape[:-1], self.loss.width))
            scale = 4 / self.promise.epsilon  # Algorithm 2, line 6; the intercept has none, equation (24)
            free = noise[..., : self.cohort.n_features]
            free[...] = discrete_laplace(2.0**30, free.shape, rng=rng) * (scale * 2.0**-30)
            return noise
        if self.promise.is_pure:
            b = spherical_laplace_share(self.noise_scale, k, 1, rng=rng)
        else:
            drawn = discrete_gaussian(self.noise_scale / self._noise_step, k, rng=rng)
            b = drawn * self._noise_step
        b *= min(1.0, self.noise_bound / max(float(np.linalg.norm(b)), self.noise_bound))  # part of the rare event
        return b.reshape(self.loss.shape)

    def norm_bound(self, n_records: int) -> float:
        """No minimiser is longer: its objective is no larger than that of w = 0, n ln C."""
        b = self.noise_bound
        return (b + math.sqrt(b**2 + 2 * self.l2 * n_records * math.log(self.cohort.n_classes))) / self.l2

    def bounds(self, n_records: int) -> FitBounds:
        """What is public about the fit of a party with so many records."""
        return FitBounds(
            loss=self.loss,
            l2=self.l2,
            weight=n_records,
            n_rows=n_records,
            radius=self.cohort.row_norm,
            norm_bound=self.norm_bound(n_records),
            linear_bound=self.noise_bound,
        )

    def check(self) -> None:
        """Refuse a penalty with which a fit could fail on some records: a `SettingError` from public numbers alone."""
        if self.promise.not_private is None:
            self.bounds(self.cohort.n_largest).check(self.slack(self.cohort.n_largest))

    def slack(self, n_records: int) -> float:
        """How far the computed model may be from the minimum under the computed noise: the rest of tau."""
        return self.tolerance(n_records) - self.noise_error / self.l2

    def tolerance(self, n_records: int) -> float:
        """tau, how far the computed model may be from the ideal one.

        So little that the dither is below 1/64 of what the noise does to the model in any direction; or, where floats
        are not good enough for that, what they can reach whatever the data.
        """
        steepest = self.l2 + n_records * self.loss.smoothness_bound(self.cohort.row_norm)
        wanted = self.noise_std / steepest / 64 * self.dither_epsilon / (4 * math.sqrt(2 * self.dimension))
        return max(wanted, 2 * self.noise_error / self.l2) + self.bounds(n_records).reachable

    def problem(self, n_records: int, linear: Floats) -> Problem:
        """A party's fit."""
        return Problem(
            n_features=self.cohort.n_features,
            n_classes=self.cohort.n_classes,
            l2=self.l2,
            intercept="feature" if self.cohort.constant else "none",
            constant=self.cohort.constant or 1.0,
            tolerance=1e-10,
            max_passes=1000,  # with hardly any penalty, as in the document, the way out is long
            linear=linear,
        )

    def on_grid(self, theta: Floats, n_records: int, *, rng: Rng) -> Floats:
        """A certified model rounded to a grid, with the dither that hides what rounding and the solver may tell."""
        h, scale = self._dither(n_records)
        integers = np.rint(theta / h).astype(np.int64) + discrete_laplace(scale, theta.shape, rng=rng)
        told: Floats = integers * h
        return told

    def _dither(self, n_records: int) -> tuple[float, float]:
        """The step of the grid, and the dither's scale in steps."""
        k, tau = self.dimension, self.tolerance(n_records)
        h = math.ldexp(1.0, math.frexp(2 * tau / math.sqrt(k))[1] - 1)
        return h, (2 * math.sqrt(k) * tau / h + k) / self.dither_epsilon * (1 + 2.0**-50)

    def longest(self, n_records: int) -> float:
        """No honest party tells a longer model, but for a chance below 2^-40; infinite where nothing bounds the noise.

        A minimiser is no longer than `norm_bound`. The computed one is within tau of it, rounding moves a coordinate by
        h / 2 at most, and the dither is as long as `laplace_norm` says.
        """
        if self.promise.not_private is not None:
            return math.inf
        h, scale = self._dither(n_records)
        rounding = h * (0.5 * math.sqrt(self.dimension) + laplace_norm(scale, self.dimension))
        return (self.norm_bound(n_records) + self.tolerance(n_records) + rounding) * (1 + 1e-9)

    def read(self, reply: Mapping[str, Value], n_records: int) -> Floats:
        """The model that a party tells; a `WireError` if it is none, or longer than an honest party's can be."""
        match reply:
            case {"theta": np.ndarray() as theta, **rest} if not rest and theta.dtype == np.float64:
                is_short = float(np.linalg.norm(theta)) <= self.longest(n_records)
                if theta.shape == self.loss.shape and np.isfinite(theta).all() and is_short:
                    return np.asarray(theta, dtype=np.float64)
        raise WireError("it sent no model of the study's columns, or one that no records and noise could make")

    def event(self) -> Event:
        """What a party's answer costs each of its records."""
        return event_of(self.promise)


@step("objective-perturbation/model", version=2, plan=Plan)
def perturbed_model(table: Table, plan: Plan, *, rng: Rng) -> Noised | Disclosed:
    """Fit this party's classifier with a random linear term in its objective."""
    n = table.n_records
    # 1. b, by Algorithm 2, line 6. 2. w = argmin L(w) + (Lam/2) ||w||^2 + b.w, line 9. 3. Tell w, on a grid.
    problem = plan.problem(n, plan.draw(rng=rng))
    event = plan.event()
    if isinstance(event, NotPrivate):
        told = {"theta": fit(table.stream(), problem=problem).theta}
        return Disclosed(told, event.why) if plan.promise.is_exact else Noised(told, event)
    theta = assured_fit(table.stream(), problem=problem, bounds=plan.bounds(n), distance=plan.slack(n))
    return Noised({"theta": plan.on_grid(theta, n, rng=rng)}, event)


def event_of(promise: Promise) -> Event:
    """What a model with such noise costs each record of its party; Gaussian noise has no better name than delta."""
    if promise.is_pure or promise.not_private is not None:
        return promise.event()
    return Approximate(epsilon=float(promise.epsilon), delta=promise.settled_delta)
