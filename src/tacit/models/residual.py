"""Residuals: prediction minus label, accurate however sure the prediction is.

The entry of the true class is p_y - 1. It is computed as minus the sum of the other classes' probabilities, which keeps
its digits where p_y is close to 1. So an error of the scores is a relative error of every entry (see `certificate`).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Real = TypeVar("Real", np.float64, np.longdouble)
Labels = npt.NDArray[np.int64]


def residuals(scores: npt.NDArray[Real], y: Labels) -> npt.NDArray[Real]:
    """The residuals of m records, in the scores' precision.

    Args:
        scores: (m, 1) for two classes, where the only score is the log-odds of class 1; (m, C) for more.
        y: the class of each record.
    """
    if scores.shape[1] == 1:
        sign = (2 * y - 1)[:, None]
        two: npt.NDArray[Real] = -sign * expit(-sign * scores)  # sigma(s) - y
        return two
    _, P = softmax(scores, y)
    return subtract_label(P, y)


def softmax(scores: npt.NDArray[Real], y: Labels) -> tuple[npt.NDArray[Real], npt.NDArray[Real]]:
    """The losses -log p_y, of shape (...), and the probabilities, of shape (..., C), for scores of that shape.

    Scores are taken relative to the true class, so that a small loss keeps its digits.
    """
    relative = scores - np.take_along_axis(scores, y[..., None], axis=-1)
    loss: npt.NDArray[Real] = np.logaddexp.reduce(relative, axis=-1)
    return loss, np.exp(relative - loss[..., None])


def subtract_label(P: npt.NDArray[Real], y: Labels) -> npt.NDArray[Real]:
    """p - e_y, in place of the probabilities P of shape (..., C)."""
    true = y[..., None]
    np.put_along_axis(P, true, 0.0, axis=-1)
    np.put_along_axis(P, true, -P.sum(axis=-1, keepdims=True), axis=-1)
    return P
