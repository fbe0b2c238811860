"""Steps that the rounds contradict are taken back.

Where rows are far from normal, as in fraud, a normal population's curvature can be far too flat. Steps then go too far,
and go back too far, and the last model is not the best one. What was opened shows it. All this is post-processing.

1. *Which of two models is better.* With the gradients g = S - t at both ends of a way d, the loss rises by about
   d.(g_1 + g_2) / 2, the trapezoidal rule. Its noise is known: that of t counts in full, and that of the two rounds
   is averaged.
2. *A step back.* A model that is worse than the best so far, by more than three standard deviations of that noise, is
   not where the next one starts. On the way between the two the next one is where the slope would be 0, if it changed
   evenly. The share of the way that is gone there limits the next step; each that succeeds doubles it, up to 1.
3. *Downhill.* A way on which the loss rises at its very beginning, by the gradient there, is not gone. Where noise
   hides next to nothing (twice the log below is over 100) the step with the curvature's upper bound takes its place
   (Boehning and Lindsay 1988). Without noise it cannot go too far; with noise it goes wherever that points.

Where noise hides such differences nothing is contradicted, and nothing changes. Where a model is hardly likelier than
its start, a step that was just contradicted is taken back, and that is all: steps with no regard to noise would only
make it worse there. Ten is enough, as twice the log of how much likelier it is: where steps have led away from a good
model, little seems to speak for any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.methods.newton.population import steepest
from tacit.methods.newton.solver import Equation, Observation
from tacit.methods.newton.tangent import Solved

Floats = npt.NDArray[np.float64]

_SURE = 3.0  # standard deviations
_CLEAR = 10.0  # twice the log of how much likelier a model is than its start
_VERY_CLEAR = 100.0  # noise hides nothing
_LEAST_SHARE = 0.1


@dataclass(kw_only=True)
class Safeguard:
    """The best model that was asked about, and how far to go from it."""

    equation: Equation
    best: Observation | None = None
    failed: Observation | None = None  # the last round, if it was worse
    share: float = 1.0
    is_needed: bool = False  # some step was contradicted
    evidence: float = 0.0  # the most that spoke for a model so far

    def take(self) -> None:
        """Look at the last round."""
        last = self.equation.observations[-1]
        if self.best is not None and self._is_worse(self.best, last):
            self.failed, self.is_needed = last, True
            return
        self.best, self.failed, self.share = last, None, min(1.0, 2 * self.share)

    def step(self, found: Solved) -> Floats:
        """The model that was found, or less of the way to it."""
        candidate, self.evidence = found.model, max(self.evidence, found.evidence or 0.0)
        is_clear = self.evidence >= _CLEAR
        if self.best is None or not self.is_needed or not (is_clear or self.failed):
            return candidate
        way = (candidate if self.failed is None else self.failed.model) - self.best.model
        slope = self._slope(self.best, way)
        if slope >= 0:
            return self._safe(self.best) if self.evidence >= _VERY_CLEAR else self.best.model
        if self.failed is not None:
            self.share = min(max(slope / (slope - self._slope(self.failed, way)), _LEAST_SHARE), 1 - _LEAST_SHARE)
        return self.best.model + self.share * way

    def _slope(self, one: Observation, way: Floats) -> float:
        return float(np.sum((one.response - self.equation.t) * way))

    def _is_worse(self, one: Observation, other: Observation) -> bool:
        way, t = other.model - one.model, self.equation.t
        rise = 0.5 * float(np.sum((one.response + other.response - 2 * t) * way))
        variance = (one.noise_std**2 + other.noise_std**2) / 4 + self.equation.t_noise**2
        return rise > _SURE * math.sqrt(variance * float(np.sum(way**2)))

    def _safe(self, one: Observation) -> Floats:
        """The step with the curvature's upper bound."""
        K = steepest(self.equation.plan.cohort.n_classes)
        right = K @ one.model @ self.equation.M + self.equation.t - one.response
        return self.equation.solution(K, right, 0.0)
