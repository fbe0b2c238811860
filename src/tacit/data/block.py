"""Row blocks: how a table's rows travel within a party."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.data.encoding import Floats, Ints

BLOCK_ROWS = 16384


class Block(NamedTuple):
    """Some rows of a table: X of shape (m, n_columns), and y, their class indices. Both are read-only."""

    X: Floats
    y: Ints

    def __repr__(self) -> str:
        """The shape alone: records are never shown."""
        return f"Block({self.X.shape[0]} rows x {self.X.shape[1]} columns)"


class WeightedBlock(NamedTuple):
    """Some rows of a table with what each weighs, in (0, 1]."""

    X: Floats
    y: Ints
    weights: Floats

    def __repr__(self) -> str:
        """The shape alone: records are never shown."""
        return f"WeightedBlock({self.X.shape[0]} rows x {self.X.shape[1]} columns)"


def regroup(blocks: Iterator[WeightedBlock], rows: int) -> Iterator[WeightedBlock]:
    """The same rows in blocks of exactly `rows`; a block that has that size already is not copied."""
    waiting: list[WeightedBlock] = []
    n_waiting = 0
    for block in blocks:
        if not waiting and len(block.y) == rows:
            yield block
            continue
        waiting.append(block)
        n_waiting += len(block.y)
        if n_waiting >= rows:
            joined = _joined(waiting)
            whole = n_waiting - n_waiting % rows
            for start in range(0, whole, rows):
                yield _cut(joined, start, start + rows)
            waiting = [_cut(joined, whole, n_waiting)] if whole < n_waiting else []
            n_waiting -= whole
    if waiting:
        yield _joined(waiting)


def _cut(block: WeightedBlock, start: int, end: int) -> WeightedBlock:
    return WeightedBlock(block.X[start:end], block.y[start:end], block.weights[start:end])


def _joined(blocks: list[WeightedBlock]) -> WeightedBlock:
    if len(blocks) == 1:
        return blocks[0]
    X, y, weights = zip(*blocks, strict=True)
    return WeightedBlock(np.concatenate(X), np.concatenate(y), np.concatenate(weights))
