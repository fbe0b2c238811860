"""Private Newton without noise: the same equation, solved to rounding. For epsilon = infinity alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.errors import NotConverged
from tacit.methods.newton.population import steepest
from tacit.methods.newton.solver import Equation

Floats = npt.NDArray[np.float64]

MOST_EXACT_ROUNDS = 1000
_EXACT = 1e-11


def exact_solution(ask: Callable[[Floats], Floats], equation: Equation, l2: float) -> Floats:
    """The zero of S(W) - t + l2 (W - start) P where nothing is noised, to rounding; `ask(model)` gives S.

    Steps with the curvature's upper bound M/4 (M/2 for softmax, Boehning and Lindsay 1988), extrapolated from the last
    five (Anderson). Only for epsilon = infinity: the number of rounds depends on the data.
    """
    K = steepest(equation.plan.cohort.n_classes)
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
