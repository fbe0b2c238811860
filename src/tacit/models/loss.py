"""Logistic and softmax loss: every statistic is a sum over records, hence over row blocks, hence over parties.

Conventions. A record is a row x of X (m, d) and a class index y in 0..C-1. With a `constant` c the row is lengthened to
(x, c), so that k = d + 1, otherwise k = d. Two classes use one vector theta of shape (k,), P(y = 1) = sigma(theta.x);
more classes use a matrix of shape (C, k), P(y = c) proportional to exp(theta_c.x). Curvature is a square matrix over
theta.ravel(). Nothing here is penalised: see `solver`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.stream import RowStream
from tacit.errors import SettingError
from tacit.models.residual import residuals, softmax, subtract_label

Array = NDArray[np.float64]
FineArray = NDArray[np.longdouble]
Labels = NDArray[np.int64]
Rows = tuple[Array, Labels] | tuple[Array, Labels, Array]
"""A row block (X, y), or (X, y, weights) where records do not count alike."""

Blocks = Callable[[], Iterable[Rows]]
"""A function that starts a new pass over the row blocks of a table, or a table's `RowStream`."""

Sum = TypeVar("Sum")

CHUNK_ROWS = 2048
"""Rows that are summed at a time: few enough to stay in cache, and to keep the chain of roundings short."""


def total(
    blocks: Blocks, part_sum: Callable[[Iterable[Rows]], Sum], join: Callable[[Sum, Sum], Sum] | None = None
) -> Sum:
    """What `part_sum` makes of all blocks: where they lie, if they are a table's."""
    return blocks.total(part_sum, join) if isinstance(blocks, RowStream) else part_sum(blocks())


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Sums over records at one parameter; those of two sets of records add up.

    `residual` is the sum of the absolute entries of (prediction - label), and `n_chunks` the number of partial sums:
    both enter the bound on rounding errors (see `certificate`).
    """

    loss: float
    gradient: Array
    curvature: Array | None
    n_records: int
    residual: float
    n_chunks: int

    def __add__(self, other: Sums) -> Sums:
        """The sums over both sets of records."""
        both = self.curvature is not None and other.curvature is not None
        return Sums(
            loss=self.loss + other.loss,
            gradient=self.gradient + other.gradient,
            curvature=self.curvature + other.curvature if both else None,  # type: ignore[operator]
            n_records=self.n_records + other.n_records,
            residual=self.residual + other.residual,
            n_chunks=self.n_chunks + other.n_chunks,
        )

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of the records: minus the loss."""
        return -self.loss


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The loss of a linear classifier with `n_classes` classes; `constant` 0 means no intercept."""

    n_features: int
    n_classes: int = 2
    constant: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be fitted."""
        if self.n_features < 0 or (self.n_features == 0 and self.constant == 0):
            raise SettingError(f"n_features = {self.n_features} leaves nothing to fit; give at least one feature")
        if self.n_classes < 2:
            raise SettingError(f"n_classes = {self.n_classes}; a classifier needs at least 2")
        if not math.isfinite(self.constant):
            raise SettingError(f"constant = {self.constant} must be finite; 0 means no intercept")

    @property
    def width(self) -> int:
        """The number of parameters per class, k."""
        return self.n_features + (self.constant != 0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a parameter: (k,) for two classes, (C, k) for more."""
        return (self.width,) if self.n_classes == 2 else (self.n_classes, self.width)

    def gradient_norm_bound(self, radius: float) -> float:
        """The largest gradient norm of one record with ||(x, c)|| <= radius: |sigma - y| < 1, ||p - e_y|| < sqrt 2."""
        return radius if self.n_classes == 2 else math.sqrt(2) * radius

    def smoothness_bound(self, radius: float) -> float:
        """The largest curvature of one record with ||(x, c)|| <= radius: sigma' <= 1/4, Diag(p) - pp' <= 1/2."""
        return radius**2 / 4 if self.n_classes == 2 else radius**2 / 2

    def zero(self, *, curvature: bool = True) -> Sums:
        """The sums over no records."""
        size = math.prod(self.shape)
        H = np.zeros((size, size)) if curvature else None
        return Sums(loss=0.0, gradient=np.zeros(self.shape), curvature=H, n_records=0, residual=0.0, n_chunks=0)

    def scores(self, X: Array, theta: Array) -> Array:
        """The scores theta.(x, c) of the rows: (m,) for two classes, (m, C) for more."""
        scores: Array = X @ theta[..., : self.n_features].T
        if self.constant != 0:
            scores += self.constant * theta[..., -1]
        return scores

    def sums(self, blocks: Blocks, theta: Array, *, curvature: bool = True) -> Sums:
        """Value and gradient, and the curvature if asked for, in one pass over the blocks."""
        return total(blocks, partial(self.fold, theta=theta, curvature=curvature))

    def fold(self, blocks: Iterable[Rows], theta: Array, *, curvature: bool = True) -> Sums:
        """`sums` over blocks that can be read only once; every statistic of a record counts with its weight."""
        loss, residual, n_records, n_chunks = 0.0, 0.0, 0, 0
        total = self.zero(curvature=curvature)
        part = _binary_chunk if self.n_classes == 2 else _softmax_chunk
        for X, y, *own in blocks:
            for start in range(0, len(X), CHUNK_ROWS):
                rows, labels = X[start : start + CHUNK_ROWS], y[start : start + CHUNK_ROWS]
                weights = own[0][start : start + CHUNK_ROWS] if own else None
                # The two arrays of `total` are filled in place: adding Sums would copy the curvature for each chunk.
                chunk_loss, chunk_residual = part(self, (rows, labels, weights), theta, total)
                loss, residual = loss + chunk_loss, residual + chunk_residual
                n_records, n_chunks = n_records + len(rows), n_chunks + 1
        return Sums(
            loss=loss,
            gradient=total.gradient,
            curvature=total.curvature,
            n_records=n_records,
            residual=residual,
            n_chunks=n_chunks,
        )

    def fine_gradient(self, blocks: Blocks, theta: Array) -> FineArray:
        """The sum of the records' gradients in the finest floats that there are; `assured` bounds its error."""
        return total(blocks, partial(self._fine_part, theta=theta))

    def _fine_part(self, blocks: Iterable[Rows], theta: Array) -> FineArray:
        W = np.atleast_2d(theta).astype(np.longdouble)
        total = np.zeros(W.shape, dtype=np.longdouble)
        for X, y, *weights in blocks:
            for start in range(0, len(X), CHUNK_ROWS):
                part, labels = X[start : start + CHUNK_ROWS], y[start : start + CHUNK_ROWS]
                rows = np.column_stack([part, np.full(len(part), self.constant)]) if self.constant else part
                fine = rows.astype(np.longdouble)
                residual = residuals(fine @ W.T, labels)
                if weights:
                    residual *= weights[0][start : start + CHUNK_ROWS, None]
                total += residual.T @ fine
        return total.reshape(theta.shape)

    def _add_gram(self, X: Array, weights: Array, out: Array) -> None:
        """Add sum_i weights_i (x_i, c)(x_i, c)' to `out`, for weights >= 0."""
        d, c = self.n_features, self.constant
        scaled = X * np.sqrt(weights)[:, None]
        out[:d, :d] += scaled.T @ scaled
        if c != 0:
            border = c * (weights @ X)
            out[:d, d] += border
            out[d, :d] += border
            out[d, d] += c * c * weights.sum()


Chunk = tuple[Array, Labels, Array | None]


def _binary_chunk(model: Loss, chunk: Chunk, theta: Array, total: Sums) -> tuple[float, float]:
    X, y, weights = chunk
    sign = 2.0 * y - 1.0
    margin = sign * model.scores(X, theta)
    # One exponential gives both probabilities, each with its digits for margins of either sign, and the loss.
    small = np.exp(-np.abs(margin))
    both, is_right = 1.0 + small, margin >= 0
    wrong = np.where(is_right, small, 1.0) / both  # the probability of the other class
    losses = np.log1p(small) - np.minimum(margin, 0.0)
    if weights is not None:
        wrong, losses = wrong * weights, losses * weights
    residual = -sign * wrong
    total.gradient[: model.n_features] += residual @ X
    if model.constant != 0:
        total.gradient[-1] += model.constant * residual.sum()
    if total.curvature is not None:
        model._add_gram(X, wrong * np.where(is_right, 1.0, small) / both, total.curvature)
    return float(losses.sum()), float(wrong.sum())


def _softmax_chunk(model: Loss, chunk: Chunk, theta: Array, total: Sums) -> tuple[float, float]:
    X, y, weights = chunk
    loss, P = softmax(model.scores(X, theta), y)
    if total.curvature is not None:
        _add_softmax_curvature(model, X, P if weights is None else P * np.sqrt(weights)[:, None], total.curvature)
    residual = subtract_label(P, y)
    if weights is not None:
        residual, loss = residual * weights[:, None], loss * weights
    total.gradient[:, : model.n_features] += residual.T @ X
    if model.constant != 0:
        total.gradient[:, -1] += model.constant * residual.sum(axis=0)
    right = residual[np.arange(len(y)), y]  # p_y - 1, minus the probability of all wrong classes
    return float(loss.sum()), -2.0 * float(right.sum())


def _add_softmax_curvature(model: Loss, X: Array, P: Array, H: Array) -> None:
    """Add sum_i (Diag(p_i) - p_i p_i') (x) x_i x_i', written as a graph Laplacian so that its null space is exact."""
    k = model.width
    for a in range(model.n_classes):
        for b in range(a):
            gram = np.zeros((k, k))
            model._add_gram(X, P[:, a] * P[:, b], gram)
            rows_a, rows_b = slice(a * k, (a + 1) * k), slice(b * k, (b + 1) * k)
            H[rows_a, rows_a] += gram
            H[rows_b, rows_b] += gram
            H[rows_a, rows_b] -= gram
            H[rows_b, rows_a] -= gram
