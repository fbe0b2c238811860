"""A penalised fit of few rows with many columns: Newton steps by a matrix that is as large as the rows are many.

Every parameter is penalised, so the curvature is H = l2 I + A'A with A = D^(1/2) X and D the records' own curvatures.
By Woodbury's identity

    H^-1 g = (g - A'(l2 I + A A')^-1 A g) / l2,   A A' = D^(1/2) K D^(1/2),   K = X X'.

K is made once; rows of mostly zeros, such as texts, are multiplied as such. A step then costs n^3 / 3 + 4 n d instead
of n d^2 / 2 + d^3 / 3. A factor is kept while steps with it halve the gradient. What comes out is a guess:
`solver` certifies it by its gradient in the given columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from tacit.models.loss import Array, Rows
from tacit.models.problem import Problem

_LEAST_COLUMNS = 256  # with fewer, the curvature itself is cheap
_MOST_ROWS = 4096  # a matrix of 128 MB
_KEPT = 0.5  # a factor is kept while the gradient shrinks to so much of itself
_MOST_STEPS = 100
_SHORTEST = 2.0**-30
_SPARSE = 0.1  # a share of entries that are not 0, below which rows are worth keeping as sparse ones


def is_wide(n_rows: int, problem: Problem) -> bool:
    """Whether a fit of so many rows is better made by their products than by the curvature of the columns."""
    columns = problem.loss.width
    binary = problem.n_classes == 2 and problem.strongly_convex
    return binary and columns >= _LEAST_COLUMNS and n_rows <= min(_MOST_ROWS, 1.25 * columns)


def wide_guess(rows: Sequence[Rows], problem: Problem) -> Array:
    """A model near the optimum of `problem` on these rows, which may have weights; nothing is promised of it."""
    return _WideFit(rows, problem).solve()


class _WideFit:
    """One fit: theta, the rows' scores, and a factor that is nearly right."""

    def __init__(self, rows: Sequence[Rows], problem: Problem) -> None:
        loss, self.l2, self.tolerance = problem.loss, problem.l2, problem.tolerance
        X = np.concatenate([block[0] for block in rows]) if len(rows) > 1 else rows[0][0]
        X = np.column_stack([X, np.full(len(X), loss.constant)]) if loss.constant else X
        self.X: Any = sparse.csr_matrix(X) if np.count_nonzero(X) < _SPARSE * X.size else X
        self.y = np.concatenate([block[1] for block in rows]).astype(np.float64)
        self.weights = np.concatenate([block[2] if len(block) > 2 else np.ones(len(block[1])) for block in rows])
        self.linear = np.zeros(loss.width) if problem.linear is None else problem.linear
        K: Any = self.X @ self.X.T
        self.K = K.toarray() if sparse.issparse(K) else K

    def solve(self) -> Array:
        theta = -self.linear / self.l2  # the optimum of penalty and linear term
        scores, factor, before = self.X @ theta, None, math.inf
        for _ in range(_MOST_STEPS):
            p = expit(scores)
            gradient = self.X.T @ (self.weights * (p - self.y)) + self.l2 * theta + self.linear
            size = float(np.linalg.norm(gradient))
            if size <= 0.1 * self.l2 * self.tolerance * max(1.0, float(np.linalg.norm(theta))):
                break
            if factor is None or size > _KEPT * before:
                root = np.sqrt(self.weights * p * (1 - p))
                try:
                    inner = self.K * np.outer(root, root)
                    inner[np.diag_indices_from(inner)] += self.l2
                    factor = root, cho_factor(inner, lower=True, overwrite_a=True)
                except LinAlgError:
                    break
            step = self._step(gradient, *factor)
            moved = self.X @ step
            length = self._shortened(theta, scores, step, moved)
            if length < _SHORTEST:
                break
            theta, scores, before = theta + length * step, scores + length * moved, size
        return theta

    def _step(self, gradient: Array, root: Array, factor: tuple[Array, bool]) -> Array:
        inner = cho_solve(factor, root * (self.X @ gradient))
        step: Array = (self.X.T @ (root * inner) - gradient) / self.l2
        return step

    def _shortened(self, theta: Array, scores: Array, step: Array, moved: Array) -> float:
        """The share of the step with which the objective falls; rounding may hide its fall near the optimum."""
        here, length = self._objective(theta, scores), 1.0
        enough = here + 1e-13 * abs(here)
        while length >= _SHORTEST:
            if self._objective(theta + length * step, scores + length * moved) <= enough:
                return length
            length /= 2
        return 0.0

    def _objective(self, theta: Array, scores: Array) -> float:
        losses = np.logaddexp(0.0, (1 - 2 * self.y) * scores)
        return float(self.weights @ losses + self.l2 / 2 * theta @ theta + self.linear @ theta)
