"""A penalised fit that ends within a public distance of its optimum, whatever the records.

A private method that fits before it adds noise may not fail on some records and succeed on others: that it failed would
tell of them, and would cost nothing. `FitBounds` says from public numbers which distance can always be reached, so that
a plan refuses other settings before a record is read. `assured_fit` then reaches it.

Let F(w) = sum_i a_i loss_i(w) + (l2 / 2) ||w||^2 + b.w with n = sum a_i, rows of norm at most R, and ||b|| bounded. Let
R' = R for two classes and sqrt 2 R for softmax, L = l2 + n s with s the loss's smoothness bound, kappa = L / l2, and
nu = ||g||_{H^-1} for gradient g and curvature H at w. Since H >= l2 I, every difference of scores moves by at most
m ||v||_H with m = R' / sqrt l2. Let q = m nu.

Claim. If `FitBounds.holds`, the search of `_follow` ends, with a certified distance of at most `reachable`.

Proof.
1. Along v curvatures change by at most a factor exp(m ||v||_H) (step 1 in `certificate`). So after a Newton step of
   length nu in the norm of H, nu' <= e^(q/2) nu (e^q - 1 - q) / q.
2. Floats. Let H^ be the computed curvature, with the errors of its factors counted in. `curvature_error` <= 1/8 means
   7/8 H <= H^ <= 9/8 H, so a step errs by a seventh of its length at most. The gradient's error E adds E / sqrt l2 to
   nu, and rounding w adds sqrt L u ||w||. By `holds` the two add at most a = 1/64 to q. Together, with
   p = 8 (q + a) / 7, q' <= e^(p/2) (e^p - 1 - p + q/7 + 2 a). Hence q <= 1/2 leads to 0.43, 0.33, 0.21 and 1/8 in
   turn. From q <= 1/8 on, nu' <= nu / 3 + 1.5 (E / sqrt l2 + sqrt L u ||w||).
3. Where q <= 1/8 at l2, let l2' = (1 - c) l2 with c = 1 / (4 (1 + R' ||w||)). The gradient becomes g - c l2 w and the
   curvature H - c l2 I >= (1 - c) H. So q' <= (q + c R' ||w||) / (1 - c) <= 1/2. By step 2 four Newton steps lead
   back to 1/8; one does from q <= 0.2.
4. At w = 0 and l2_0 = 8 R' ||g(0)|| we have q <= 1/8. From there steps 3 lead to l2. None has a smaller c than
   1 / (4 (1 + R' `length`)), because ||w|| <= `length`: an optimum is shorter the stronger its penalty, and
   ||w - w*|| <= 1.4 q / R' wherever q <= 1/2 (`certificate`). So there are finitely many.
5. At l2 further Newton steps lead to nu <= 2.3 (E / sqrt l2 + sqrt L u ||w||), by step 2. The computed nu^ is at most
   1.07 (nu + E / sqrt l2), and nu at most 8/7 nu^ + E / sqrt l2. For q <= 1/8 the distance is at most
   1.1 nu / sqrt l2 (`certificate`). So what is certified falls below 6 E / l2 + 4 sqrt kappa u ||w||. QED

`assured_fit` tries the quick search of `solver` first, then a plain descent. It follows the path where both fail. How
long a fit takes depends on the records; whether it succeeds does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tacit.errors import DataError, RunError, SettingError
from tacit.models.loss import CHUNK_ROWS, Array, Blocks, FineArray, Loss, Sums
from tacit.models.problem import Problem, Solution
from tacit.models.solver import BlockRecords, Extent, fit, minimise

_U = 2.0**-53
_FINE = float(np.finfo(np.longdouble).eps)  # twice the unit roundoff of the finest floats that there are
_MOST_STEPS = 200  # more than step 5 of the proof needs for doubles
_SHORTEST = 2.0**-60  # share of a Newton step


class FineRecords(Protocol):
    """Whatever can add up the statistics of all records, and their gradient in the finest floats."""

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        """Value and gradient at `theta`, and the curvature if it is asked for."""
        ...

    def extent(self) -> Extent:
        """The size of the columns' entries and of the classes."""
        ...

    def fine_gradient(self, theta: Array) -> FineArray:
        """The gradient at `theta`, without penalty."""
        ...


@dataclass(frozen=True, kw_only=True)
class FitBounds:
    """What is public about a penalised fit.

    Attributes:
        loss: of one record.
        l2: the penalty of the sum form, on every parameter.
        weight: n, the number of records, each counted with its weight.
        n_rows: no more rows are read in a pass.
        radius: R, the bound on the norm of a row with its constant.
        norm_bound: no minimiser is longer.
        linear_bound: the bound on the norm of the linear term.
    """

    loss: Loss
    l2: float
    weight: float
    n_rows: int
    radius: float
    norm_bound: float
    linear_bound: float = 0.0

    @property
    def score_radius(self) -> float:
        """R'."""
        return self.radius if self.loss.n_classes == 2 else math.sqrt(2) * self.radius

    @property
    def length(self) -> float:
        """No iterate of the search is longer."""
        return self.norm_bound + 1 / self.radius

    @property
    def steepness(self) -> float:
        """L, the largest curvature."""
        return self.l2 + self.weight * self.loss.smoothness_bound(self.radius)

    @property
    def condition(self) -> float:
        """kappa."""
        return self.steepness / self.l2

    @property
    def gradient_error(self) -> float:
        """E: how far, in L2 norm, the fine gradient may be off at a model no longer than `length`.

        A sum of m products errs by at most gamma_m times that of the absolute ones (Higham 2002, section 3.1): a score
        by gamma_(width + 2) ||w|| R, hence a probability by that relative to itself, and the sum of all records'
        gradients by gamma_m times the sum of their norms.
        """
        pull = self.l2 * self.length + self.linear_bound
        return _FINE * (2 * self.weight * self.radius * self._relative(self.n_rows) + 8 * pull)

    @property
    def curvature_error(self) -> float:
        """How far the curvature and its factors, in doubles, may be off, relative to the least curvature."""
        size = math.prod(self.loss.shape)
        summed = 2 * self.loss.n_classes * self._relative(self.n_rows)
        return self.condition * _U * (summed + 4 * size * (size + 16))

    @property
    def holds(self) -> bool:
        """Whether the search is proven to end."""
        added = self.score_radius * (self.gradient_error / self.l2 + math.sqrt(self.condition) * _U * self.length)
        return self.curvature_error <= 1 / 8 and added <= 1 / 64

    @property
    def reachable(self) -> float:
        """A distance from the optimum that is reached whatever the records; infinite where that is not proven."""
        if not self.holds:
            return math.inf
        return 6 * self.gradient_error / self.l2 + 4 * math.sqrt(self.condition) * _U * self.length

    def check(self, distance: float) -> None:
        """Refuse a distance that is not proven to be reachable; a `SettingError` from public numbers alone."""
        if not (self.holds and self.reachable <= distance):
            raise SettingError(
                f"with l2 = {self.l2:g} a fit of {self.weight:g} records with rows of norm up to {self.radius:g} "
                f"cannot be certified in floating point, whatever they are; choose a larger l2"
            )

    def _relative(self, n_rows: int) -> float:
        of_record = 8 * (self.loss.width + 4) * (1 + self.radius * self.length) + 4 * self.loss.n_classes + 32
        return of_record + CHUNK_ROWS + n_rows / 1024 + 16


def assured_fit(blocks: Blocks, *, problem: Problem, bounds: FitBounds, distance: float) -> Array:
    """A model within `distance` of the optimum of `problem` on the records of the blocks.

    Guarantees:
        If the bounds are true of the records, this returns such a model, whatever they are. A distance below
        bounds.reachable is a `SettingError`, before a record is read.
    """
    bounds.check(distance)
    records = BlockRecords(blocks, problem)
    return _assured(records, lambda: fit(blocks, problem=problem), problem, bounds, distance)


def assured_minimum(
    records: FineRecords,
    *,
    problem: Problem,
    bounds: FitBounds,
    distance: float,
    quick: Callable[[], Solution] | None = None,
) -> Array:
    """The same on whatever answers for the records; `quick` is a search that may fail, by default `minimise`."""
    bounds.check(distance)
    quick = quick or (lambda: minimise(records, problem=problem))
    return _assured(records, quick, problem, bounds, distance)


def _assured(
    records: FineRecords, quick: Callable[[], Solution], problem: Problem, bounds: FitBounds, distance: float
) -> Array:
    try:
        solution = quick()
        if solution.distance_bound <= distance:
            return solution.theta
        first: Array | None = solution.theta
    except (RunError, DataError):  # no records at all is a DataError
        first = None
    path = _Path(records, problem, bounds)
    starts: tuple[Callable[[], Array | None], ...] = (lambda: first, path.descend, path.follow)
    for start in starts:
        theta = path.finish(start(), distance)
        if theta is not None:
            return theta
    # Never reached, by the claim. Were it, an error would tell more of the records than a fixed model does.
    return np.zeros(problem.loss.shape)


class _Path:
    """The optimum as the penalty falls."""

    def __init__(self, records: FineRecords, problem: Problem, bounds: FitBounds) -> None:
        self.records, self.bounds = records, bounds
        self.linear = np.zeros(problem.loss.shape) if problem.linear is None else problem.linear

    def descend(self) -> Array | None:
        """A model near the optimum by damped Newton, judged by slopes alone; None if that takes too long."""
        theta, l2 = np.zeros(self.bounds.loss.shape), self.bounds.l2
        for _ in range(_MOST_STEPS):
            step, nu = self._step(theta, l2)
            if self.bounds.score_radius * nu <= 0.16 * math.sqrt(l2):
                return theta + step
            length = 1.0
            while length > _SHORTEST and self._slope(theta + length * step, step) > 0.5 * nu**2:
                length /= 2
            theta = theta + length * step
        return None

    def _slope(self, theta: Array, step: Array) -> float:
        return float((self._fine_gradient(theta, self.bounds.l2) * step).sum())

    def follow(self) -> Array:
        """A model with q <= 1/8 at l2: steps 3 and 4 of the proof."""
        theta = np.zeros(self.bounds.loss.shape)
        reach, l2 = self.bounds.score_radius, self.bounds.l2
        steepest = float(np.linalg.norm(self._fine_gradient(theta, 0.0)))
        here = max(l2, 8 * reach * steepest)
        while here > l2:
            here = max(l2, here * (1 - 0.25 / (1 + reach * float(np.linalg.norm(theta)))))
            for _ in range(4):
                step, nu = self._step(theta, here)
                theta = theta + step
                if reach * nu <= 0.16 * math.sqrt(here):
                    break  # q was at most 0.2, so that it is 1/8 at most now
        return theta

    def finish(self, theta: Array | None, distance: float) -> Array | None:
        """Newton steps at l2 until the model is certified to be within `distance`; None where that does not happen."""
        for _ in range(_MOST_STEPS):
            if theta is None or not float(np.linalg.norm(theta)) <= self.bounds.length:
                return None
            step, nu = self._step(theta, self.bounds.l2)
            if self._distance(nu) <= distance:
                return theta
            theta = theta + step
        return None

    def _distance(self, nu: float) -> float:
        """Step 5: a bound on the distance from the optimum, from the computed nu; infinite where it says nothing."""
        root = math.sqrt(self.bounds.l2)
        true = 8 / 7 * nu + self.bounds.gradient_error / root
        return 1.1 * true / root if self.bounds.score_radius * true / root <= 1 / 8 else math.inf

    def _step(self, theta: Array, l2: float) -> tuple[Array, float]:
        """The Newton step at a penalty, and nu as computed."""
        curvature = self.records.sums(theta).curvature
        assert curvature is not None
        gradient = self._fine_gradient(theta, l2).astype(np.float64).ravel()
        factor = cho_factor(curvature + l2 * np.eye(len(curvature)), lower=True)
        step = -cho_solve(factor, gradient)
        return step.reshape(theta.shape), math.sqrt(max(0.0, -float(gradient @ step)))

    def _fine_gradient(self, theta: Array, l2: float) -> FineArray:
        fine: FineArray = self.records.fine_gradient(theta) + np.longdouble(l2) * theta.astype(np.longdouble)
        return fine + self.linear
