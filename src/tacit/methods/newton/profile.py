"""How badly a model fits as one coefficient moves: the lines on which intervals of private Newton are read.

At distance x from the estimate, along the way that fits worst to it, with p the weights of the equations,

    Q(x) = x^2 (h^2 / c(x) + what is assumed),   h = p'H way,   c(x) = p'V(w(x)) p.

That is step 5 of `interval`. What a coefficient leans on drowned directions is a variance on top (`drowned`):
x^2 / (x^2 / Q + lean).

*Told, not any.* A coefficient is told where its curvature h exceeds three standard errors (`drowned`, 1). Runs in which
noise made h too large are told more often, and their coefficients are too small. So the test at x is made among runs
that are told (Fithian, Sun and Taylor 2014).

1. At x the equation's error D has the variance c(x). Its covariance with h is that of the noise of M in both.
2. Given what is independent of D, h moves with D by g = cov / c(x). Only those D are told with which h stays above its
   limit.
3. That cuts off the law of D where h and D go against each other: at tau = (h - limit) sqrt(c) / |cov| standard
   deviations from what was seen. With R = sqrt Q, the chance of a worse fit is Phi(-R) / Phi(tau - R), not Phi(-R).
4. Where h is far above the limit, tau is large and nothing changes. Where it is near, the interval reaches far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri_exp

Floats = npt.NDArray[np.float64]

_NEAR, _FAR = 16, 10  # points at which a line is looked at: up to 8 standard errors, and from there on


@dataclass(frozen=True, kw_only=True)
class Course:
    """Of each coefficient, what its line needs: a number each.

    Attributes:
        spread: the variance of its estimate, along what is seen.
        assumed: what is assumed, as information.
        curvature: h.
        above: the share of h that is above its limit.
        noise: c at the estimate.
        by: half of what x adds to c, and what x^2 adds.
        of_curvature: the covariance of h with the equation's error: at the estimate, and by x; with its sign turned.
        lean: the variance along what is drowned: below the estimate, and above.
    """

    spread: Floats
    assumed: Floats
    curvature: Floats
    above: Floats
    noise: Floats
    by: tuple[Floats, Floats]
    of_curvature: tuple[Floats, Floats]
    lean: tuple[Floats, Floats]

    def root(self, x: Floats) -> Floats:
        """sqrt Q at distances x (points, q) to one side, among the runs that are told."""
        noise = np.maximum(self.noise + 2 * x * self.by[0] + x * x * self.by[1], 1e-300)
        root = np.sqrt(x * x * (self.curvature**2 / noise + self.assumed))
        against = np.sign(x) * (self.of_curvature[0] + x * self.of_curvature[1])
        above = np.maximum(self.above * self.curvature, 0.0) * np.sqrt(noise)
        cut = np.where(against > 0, above / np.maximum(against, 1e-300), np.inf)
        cut = np.where(self.above < 1, cut, np.inf)
        root = np.maximum(-ndtri_exp(np.minimum(log_ndtr(-root) - log_ndtr(cut - root), -1e-12)), 0.0)
        lean = np.where(x < 0, *self.lean)
        leaned: Floats = root * np.abs(x) / np.sqrt(np.maximum(x * x + lean * root**2, 1e-300))
        return leaned


@dataclass(frozen=True, kw_only=True)
class Lines:
    """For each coefficient, how badly it fits to either side."""

    distances: tuple[Floats, Floats]  # (points, q) below and above the estimate
    roots: tuple[Floats, Floats]  # of the least Q there or beyond

    @classmethod
    def of(cls, course: Course, z: float) -> Lines:
        """The lines through an estimate, as far as z standard deviations of what is assumed."""
        sides = []
        for side, lean in zip((-1.0, 1.0), course.lean, strict=True):
            error = np.sqrt(course.spread + lean)
            x = side * error * _distances(1.001 * z * np.sqrt(1 / course.assumed + lean) / error)
            root = course.root(x)
            sides.append((np.abs(x), np.minimum.accumulate(root[::-1], axis=0)[::-1]))
        return cls(distances=(sides[0][0], sides[1][0]), roots=(sides[0][1], sides[1][1]))

    def score(self, estimate: Floats) -> Floats:
        """The root of the least Q where a coefficient is 0, or beyond."""
        side = np.where(estimate > 0, 0, 1)
        told = [
            np.interp(abs(x), self.distances[side[q]][:, q], self.roots[side[q]][:, q]) for q, x in enumerate(estimate)
        ]
        return np.array(told)

    def reach(self, z: float, side: int) -> Floats:
        """How far each coefficient can go to one side until Q exceeds z^2 and stays there."""
        x, root = self.distances[side], self.roots[side]
        return np.array([np.interp(z, root[:, q], x[:, q]) for q in range(x.shape[1])])


def _distances(furthest: Floats) -> Floats:
    """(points, q): where each line is looked at, in standard errors."""
    near = np.minimum(furthest, 8.0)
    further = np.geomspace(near, furthest, _FAR + 1)[1:]
    return np.concatenate([np.linspace(0.0, near, _NEAR + 1), further])
