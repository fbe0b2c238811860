"""Sums over a table's rows that no model enters: what a fit asks of its records first, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from tacit.data.block import Block
from tacit.data.encoding import Floats
from tacit.data.stream import RowStream

_CHUNK_ROWS = 2048  # few enough to stay in cache; it divides BLOCK_ROWS


class Moments(NamedTuple):
    """X'X, or its diagonal alone; and the sum of each class's rows, of shape (C, d)."""

    square: Floats
    by_class: Floats

    @property
    def total(self) -> Floats:
        """The sum of all rows."""
        total: Floats = self.by_class.sum(axis=0)
        return total

    @property
    def squares(self) -> Floats:
        """The sum of the squares of each column's entries."""
        return self.square if self.square.ndim == 1 else np.diag(self.square)


def moments_of(rows: RowStream, n_columns: int, n_classes: int, *, crossed: bool = True) -> Moments:
    """The moments of rows, with products of different columns if they are to be `crossed`; takes one pass."""
    return Moments(*rows.total(partial(_part_sum, n_columns=n_columns, n_classes=n_classes, crossed=crossed)))


@np.errstate(over="ignore", invalid="ignore")
def _part_sum(blocks: Iterable[Block], *, n_columns: int, n_classes: int, crossed: bool) -> tuple[Floats, Floats]:
    square = np.zeros((n_columns, n_columns) if crossed else n_columns)
    by_class = np.zeros((n_classes, n_columns))
    classes = np.arange(n_classes)[:, None]
    for block in blocks:
        for start in range(0, len(block.y), _CHUNK_ROWS):
            X, y = block.X[start : start + _CHUNK_ROWS], block.y[start : start + _CHUNK_ROWS]
            square += X.T @ X if crossed else np.einsum("ij,ij->j", X, X)
            by_class += (y == classes).astype(np.float64) @ X
    return square, by_class
