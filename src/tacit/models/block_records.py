"""Records as row blocks, as the solver asks for them: sums, and what the first pass over them saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from tacit.errors import DataError
from tacit.models.loss import Array, Blocks, FineArray, Labels, Rows, Sums, total
from tacit.models.problem import Problem

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Private: column bounds (for the rounding bound) and class counts (to detect an empty class)."""

    column_bound: Array  # (d,): the largest entry of each column, in size
    class_counts: Labels  # (C,): the number of records of each class


class BlockRecords:
    """Records as row blocks: checked and measured on the first pass over them."""

    def __init__(self, blocks: Blocks, problem: Problem) -> None:
        self._blocks, self._problem = blocks, problem
        self._extent: Extent | None = None

    def sums(self, theta: Array, *, curvature: bool = True) -> Sums:
        """Value, gradient and curvature at `theta`, in one pass."""
        loss = self._problem.loss
        if self._extent is not None:
            return loss.sums(self._blocks, theta, curvature=curvature)
        fold = partial(loss.fold, theta=theta, curvature=curvature)
        sums, self._extent = total(self._blocks, partial(_measured, problem=self._problem, fold=fold), _both)
        return sums

    def fine_gradient(self, theta: Array) -> FineArray:
        """The gradient at `theta` in the finest floats."""
        return self._problem.loss.fine_gradient(self._blocks, theta)

    def extent(self) -> Extent:
        """What the first pass saw."""
        if self._extent is None:
            _, self._extent = total(self._blocks, partial(_measured, problem=self._problem, fold=_nothing), _extents)
        return self._extent


Measured = tuple[Kind, Extent]


def _measured(blocks: Iterable[Rows], *, problem: Problem, fold: Callable[[Iterable[Rows]], Kind]) -> Measured[Kind]:
    """What `fold` makes of the blocks, which are checked and measured in the same pass."""
    bound = np.zeros(problem.n_features)
    counts = np.zeros(problem.n_classes, dtype=np.int64)

    def checked() -> Iterator[Rows]:
        for block in blocks:
            X, y = block[:2]
            check_block(X, y, problem)
            if len(X):
                np.maximum(bound, np.maximum(X.max(axis=0), -X.min(axis=0)), out=bound)
                np.add(counts, np.bincount(y, minlength=problem.n_classes), out=counts)
            if not np.isfinite(bound).all():
                columns = ", ".join(problem.column_name(int(j)) for j in np.flatnonzero(~np.isfinite(bound)))
                raise DataError(f"missing or infinite values in column {columns}; drop or impute them first")
            yield block

    return fold(checked()), Extent(column_bound=bound, class_counts=counts)


def _nothing(blocks: Iterable[Rows]) -> None:
    for _ in blocks:
        pass


def _extents(one: Measured[Kind], other: Measured[Kind]) -> Measured[Kind]:
    """The extent of both, and what was folded first."""
    bound = np.maximum(one[1].column_bound, other[1].column_bound)
    return one[0], Extent(column_bound=bound, class_counts=one[1].class_counts + other[1].class_counts)


def _both(one: Measured[Sums], other: Measured[Sums]) -> Measured[Sums]:
    """The sums and the extent of both."""
    return one[0] + other[0], _extents(one, other)[1]


def check_block(X: Array, y: Labels, problem: Problem) -> None:
    """Refuse a block that is not of the problem's columns and classes."""
    if X.ndim != 2 or X.shape[1] != problem.n_features or X.dtype != np.float64:
        raise DataError(
            f"a block has shape {X.shape} and type {X.dtype}; want (rows, {problem.n_features}) and float64"
        )
    if y.shape != X.shape[:1] or y.dtype != np.int64:
        raise DataError(f"labels have shape {y.shape} and type {y.dtype}; want ({len(X)},) and int64")
    if len(y) and not (y.min() >= 0 and y.max() < problem.n_classes):
        raise DataError(f"labels must be class indices from 0 to {problem.n_classes - 1}; some lie outside")
