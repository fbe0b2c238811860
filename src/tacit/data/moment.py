"""Sums over a table's rows that no model enters: what a fit asks of its records first, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tacit.data.block import Block
from tacit.data.encoding import Floats

_CHUNK_ROWS = 2048  # few enough to stay in cache; it divides BLOCK_ROWS


class Moments(NamedTuple):
    """X'X, and the sum of each class's rows, of shape (C, d)."""

    square: Floats
    by_class: Floats

    @property
    def total(self) -> Floats:
        """The sum of all rows."""
        total: Floats = self.by_class.sum(axis=0)
        return total


@np.errstate(over="ignore", invalid="ignore")
def row_moments(blocks: Iterable[Block], *, n_columns: int, n_classes: int) -> tuple[Floats, Floats]:
    """The moments of some blocks; those of two tables add up."""
    square, by_class = np.zeros((n_columns, n_columns)), np.zeros((n_classes, n_columns))
    classes = np.arange(n_classes)[:, None]
    for block in blocks:
        for start in range(0, len(block.y), _CHUNK_ROWS):
            X, y = block.X[start : start + _CHUNK_ROWS], block.y[start : start + _CHUNK_ROWS]
            square += X.T @ X
            by_class += (y == classes).astype(np.float64) @ X
    return square, by_class
