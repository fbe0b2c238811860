"""An exact fit whose sums over the parties are opened: no secure computation, and more is told."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tacit.federation.channel import Channel
from tacit.methods.privlogit.fit import SAME_LIKELIHOOD, Peak, SecureFit
from tacit.methods.privlogit.statistic import OPENED_BITS, PEAK_BITS, Measure, Questions
from tacit.methods.privlogit.unit import Plan, Units
from tacit.models.diagnosis import collinear_columns, explain_separable
from tacit.secure.digit import from_digits

Floats = npt.NDArray[np.float64]

SINGULAR = 1e-13  # of a curvature's pivots, relative to its largest entry: below it, rounding decides


class SumFit(SecureFit):
    """The sums are opened, and everything is computed here."""

    def __init__(self, channel: Channel, questions: Questions, plan: Plan, units: Units | None) -> None:
        super().__init__(channel, questions, plan, units)
        self._accepted_likelihood = -math.inf

    def invert_bound(self) -> None:
        """Open the curvature's bound and factor it."""
        opened = self.channel.sum(self.questions.open_bound, Measure(units=self.units))
        self._bound = np.ldexp(opened.astype(np.float64), -self.scaling.opened_bits)
        try:
            self._factor = cho_factor(self._bound, lower=True)
            singular = np.diag(self._factor[0]).min() ** 2 < SINGULAR * np.diag(self._bound).max()
        except LinAlgError:
            singular = True
        if singular:
            raise self.explain_singular(collinear_columns(self._bound, self.problem))

    def ask(self, point: Floats) -> None:
        """Open gradient and likelihood at a point."""
        self._take(self.channel.sum(self.questions.open_point, self.at(point)))
        if self.problem.intercept == "free" and not point.any():
            self.class_counts = self._counts_at_zero()

    def is_better(self) -> bool:
        """Whether the likelihood at the point asked about last is at least the accepted one's, up to rounding."""
        return self._likelihood >= self._accepted_likelihood - SAME_LIKELIHOOD

    def accept(self) -> Floats:
        """Accept the point asked about last; its step."""
        self._accepted_likelihood = self._likelihood
        return self._flat(self._solved(self._gradient))

    def peak(self, point: Floats, shortfall: float) -> Peak:
        """Open the true curvature at a point near the optimum."""
        opened = self.channel.sum(self.questions.open_curvature, self.at(point))
        size = self.size
        self._take(opened[size * size :], classes_first=True, bits=PEAK_BITS)
        H = np.ldexp(opened[: size * size].astype(np.float64), -self.scaling.opened_bits).reshape(size, size)
        try:
            factor = cho_factor(H, lower=True)
        except LinAlgError:
            raise explain_separable(self.problem) from None
        contrast = self.scaling.contrast
        covariance = contrast @ cho_solve(factor, contrast.T) / self.n
        return Peak(
            step=cho_solve(factor, self._gradient),
            variances=np.diag(covariance).copy(),
            covariance=covariance,
        )

    def _solved(self, gradient: Floats) -> Floats:
        """The bound's inverse times a gradient of shape (k, C)."""
        solved: Floats = cho_solve(self._factor, gradient)
        return solved

    def _counts_at_zero(self) -> npt.NDArray[np.int64]:
        """The class counts, which the gradient of the intercepts at 0 tells: (count of c - n / C) / n for class c."""
        pull = self._gradient[-1] * self.n
        n_classes = self.problem.n_classes
        shares = self.n * np.full(n_classes, 1 / n_classes)
        counts = shares + (np.array([-pull[0], pull[0]]) if n_classes == 2 else pull)
        whole: npt.NDArray[np.int64] = np.rint(counts).astype(np.int64)
        return whole

    def _take(self, opened: npt.NDArray[np.int64], *, classes_first: bool = False, bits: int = OPENED_BITS) -> None:
        gradient = np.ldexp(opened[: self.size].astype(np.float64), -bits)
        self._gradient = gradient if classes_first else gradient.reshape(self.shape[-1], -1)
        self._likelihood = float(from_digits(opened[self.size :]))
