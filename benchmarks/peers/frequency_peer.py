"""Learned class frequencies: the counts of the two classes under the whole promise, and nothing else.

Under replace-one the number of records is public, and the count of positive ones moves by 1. Under add-remove the two
counts are told, and one of them moves by 1. So the noise is 1 / mu either way.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from peers.task import Task


def frequency_scores(task: Task) -> npt.NDArray[np.float64]:
    """The same log odds for every test row; a count below one half counts as one half."""
    n, positive = len(task.y), float(task.y.sum())
    noise = task.rng.normal(scale=1 / task.mu, size=2)
    first = positive + noise[0]
    second = n - first if task.relation == "replace-one" else n - positive + noise[1]
    odds = math.log(max(first, 0.5) / max(second, 0.5))
    return np.full(len(task.X_test), odds)
