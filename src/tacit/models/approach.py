"""A first guess for the fit of a long stream: the optimum of its first rows, then steps with their curvature."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tacit.models.loss import Array, Rows, Sums
from tacit.models.problem import Problem


class Summing(Protocol):
    """Whatever can add up the statistics of all records."""

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        """Value and gradient at `theta`, and the curvature if it is asked for."""
        ...


def rough_fit(head: list[Rows], problem: Problem) -> tuple[Array, Array]:
    """Newton steps on `head` alone, under a ridge that makes them safe: where they lead, and the mean curvature there.

    theta = 0 if they lead nowhere.
    """
    loss, penalty = problem.loss, problem.penalty
    theta = np.zeros(loss.shape)
    ridge = None
    for _ in range(8):
        sums = loss.fold(head, theta)
        assert sums.curvature is not None
        ridge = penalty.ravel() + 1e-4 * (np.diag(sums.curvature) + 1) if ridge is None else ridge
        gradient = sums.gradient.ravel() + ridge * theta.ravel()
        step = np.linalg.solve(sums.curvature + np.diag(ridge), gradient)
        mean_curvature = sums.curvature / sums.n_records
        if not np.isfinite(step).all():
            return np.zeros(loss.shape), mean_curvature
        theta = theta - step.reshape(loss.shape)
        if np.linalg.norm(step) <= 1e-3 * np.linalg.norm(theta):
            break
    return theta, mean_curvature


def approach(records: Summing, problem: Problem, theta: Array, mean_curvature: Array) -> tuple[Array, int]:
    """Steps with a curvature that is only nearly right, until one Newton step can finish; and the passes they took.

    A pass without curvature costs a third of one with it. Given up when a step is not a fifth of the one before.
    """
    penalty, linear = problem.penalty, 0.0 if problem.linear is None else problem.linear
    longest, passes = max(1.0, float(np.linalg.norm(theta))), 0
    while True:
        sums, passes = records.sums(theta, curvature=False), passes + 1
        gradient = sums.gradient + penalty * theta + linear
        try:
            factor = cho_factor(mean_curvature * sums.n_records + np.diag(penalty.ravel()), lower=True)
            step: Array = cho_solve(factor, gradient.ravel()).reshape(theta.shape)
        except (LinAlgError, ValueError):
            return theta, passes  # the search says what is the matter
        length = float(np.linalg.norm(step))
        if length > 0.2 * longest:
            return theta, passes
        theta, shrinks, longest = theta - step, length / longest, length
        if length * shrinks <= 0.1 * math.sqrt(problem.tolerance) * max(1.0, float(np.linalg.norm(theta))):
            return theta, passes
