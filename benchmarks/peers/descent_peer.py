"""Tuned DP-SGD: full batches, exact Gaussian accounting, and settings chosen by an oracle.

All records are in every batch: for a given promise no sampling does better on a convex loss, and none is cheaper to
account for exactly. Each of T steps opens the sum of gradients at a cost of mu / sqrt(T). No gradient is longer than 1,
so none is clipped. The model is the mean of the second half of the steps.

NOT PRIVATE in one respect, in the peer's favour: the number of steps, the rate and the momentum are those of a public
grid with the least log-loss *on the test records*, over two runs each. Who tunes honestly pays for it and does worse.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from peers.task import Task

Floats = npt.NDArray[np.float64]

Settings = tuple[int, float, float]

# Steps, rate over mean gradients (4 is one over the largest curvature) and momentum.
GRID: tuple[Settings, ...] = tuple(product((10, 30, 100), (2.0, 8.0), (0.0, 0.9)))
TRIALS = 2


def descent_scores(task: Task) -> Floats:
    """Log odds on the test rows, with the settings that an oracle chose for this promise."""
    return task.scores(descend(task, *oracle(task)))


def descend(task: Task, steps: int, rate: float, momentum: float) -> Floats:
    """The mean of the second half of so many noisy steps."""
    U, n, d = task.rows, len(task.y), task.rows.shape[1]
    theta, velocity, total = np.zeros(d), np.zeros(d), np.zeros(d)
    for k in range(steps):
        g = U.T @ (expit(U @ theta) - task.y) + task.noise(task.mu / math.sqrt(steps), d)
        velocity = momentum * velocity - (rate / n) * g
        theta = theta + velocity
        total += theta if 2 * k >= steps else 0.0
    found: Floats = total / (steps - math.ceil(steps / 2))
    return found


_chosen: list[tuple[tuple[object, ...], Settings]] = []


def oracle(task: Task) -> Settings:
    """The settings with the least log-loss on the test records; kept for the runs of one cell."""
    key = (id(task.X), task.epsilon, task.delta, task.relation)
    if not _chosen or _chosen[0][0] != key:
        _chosen[:] = [(key, min(GRID, key=lambda settings: _test_loss(task, settings)))]
    return _chosen[0][1]


def _test_loss(task: Task, settings: Settings) -> float:
    assert task.y_test is not None
    losses = []
    for trial in range(TRIALS):
        tried = replace(task, seed=10_000 + trial)
        scores = task.scores(descend(tried, *settings))
        losses.append(np.mean(np.logaddexp(0.0, np.where(task.y_test == 1, -scores, scores))))
    return float(np.mean(losses))
