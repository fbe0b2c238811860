"""Laws under which single columns may matter far more than others: the heavy form of a law in `shrinkage`.

A law says w = D b with b ~ N(0, tau^2 I). Its axes D lie near the columns, one each. In the heavy form each axis has a
scale of its own, tau r_i. r_i is 1 or more: it lies on a grid up to 30, and the log of it is half-normal with standard
deviation 0.5 beforehand. So most axes count as before, and few are shrunk less.

1. *In turns* (variational Bayes). Given precisions a_i of the b_i, their covariance is C = (G + diag a)^-1, and their
   mean is C v, with G = Z'Z and v = Z'y of the whitened equation y = Z b + unit noise. Given their mean squares, each
   r_i has a law on the grid, and a_i is the mean of 1 / (tau r_i)^2. How often each r occurs is learned from all axes,
   with as many made-up axes beforehand. Four turns are enough: the bound below hardly moves after two.
2. *How likely.* The turns raise a lower bound of the log-likelihood. Where an axis is not seen at all the bound is too
   low by a number that is known: `_SLACK`. It is added for each axis, times the share of a_i C_ii that is prior. So an
   axis that tells nothing speaks neither for the heavy form nor against it.
3. *One tau*, that of the law's best answer. What other scales would add is taken to be what they add to the law itself.

Nothing is read but the equation: post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_RATIOS = np.geomspace(1.0, 30.0, 19)  # r
_BEFOREHAND = np.exp(-0.5 * (np.log(_RATIOS) / 0.5) ** 2)
_BEFOREHAND = _BEFOREHAND / _BEFOREHAND.sum()
_TURNS = 4


@dataclass(frozen=True, kw_only=True)
class Heavier:
    """The answer of one equation under a heavy law."""

    mean: Floats  # E b
    gain: float  # the log of how much likelier the equation is than under the law itself, about


def heavier(Z: Floats, y: Floats, tau: float) -> Heavier:
    """The answer to y = Z b + unit noise, with the law's best tau."""
    mean, gain, unseen = _turns(Z, y, tau)
    return Heavier(mean=mean, gain=gain + _SLACK * unseen)


def _turns(Z: Floats, y: Floats, tau: float) -> tuple[Floats, float, float]:
    """E b, the bound over the likelihood of the law itself, and in how many axes the law speaks, not the equation."""
    G, v = Z.T @ Z, Z.T @ y
    precisions, shares, alone = np.full(len(G), tau**-2), _BEFOREHAND, 0.0
    for turn in range(_TURNS):
        L = np.linalg.cholesky(G + np.diag(precisions))
        inverse = np.linalg.inv(L)
        if turn == 0:  # the law itself
            alone = 0.5 * float(np.sum((inverse @ v) ** 2)) - float(np.log(np.diag(L)).sum()) - len(G) * math.log(tau)
        mean, spreads = inverse.T @ (inverse @ v), np.einsum("ij,ij->j", inverse, inverse)
        given, told = _scales(mean**2 + spreads, shares, tau)
        bound = _bound(mean, v, precisions, spreads, L) + told
        unseen = float(np.minimum(precisions * spreads, 1.0).sum())
        precisions = given @ (tau * _RATIOS) ** -2
        shares = (given.mean(axis=0) + _BEFOREHAND) / 2
    return mean, bound - alone, unseen


def _scales(squares: Floats, shares: Floats, tau: float) -> tuple[Floats, float]:
    """For each axis, how likely each scale is given its mean square; and the log of what all of them add up to."""
    scales = tau * _RATIOS
    logs = np.log(shares) - np.log(scales) - squares[:, None] / (2 * scales**2)
    largest = logs.max(axis=1, keepdims=True)
    likely = np.exp(logs - largest)
    total = likely.sum(axis=1, keepdims=True)
    return likely / total, float((largest + np.log(total)).sum())


def _bound(mean: Floats, v: Floats, precisions: Floats, spreads: Floats, L: Floats) -> float:
    """The bound (2) but for the scales: y's likelihood over that of b = 0, and the entropy of b.

    With C = (G + a)^-1 the mean of b'G b is v.mean - sum a (mean^2 + spread) + the number of axes.
    """
    seen = float(v @ mean) - float(precisions @ (mean**2 + spreads)) + len(v)
    return float(v @ mean) - 0.5 * seen - float(np.log(np.diag(L)).sum()) + 0.5 * len(v)


_SLACK = -_turns(np.zeros((1, 1)), np.zeros(1), 1.0)[1]
