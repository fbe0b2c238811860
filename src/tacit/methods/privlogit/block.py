"""Wide fits: above a public number of columns the curvature's bound is cut into blocks, each inverted by itself.

A secure inverse costs the cube of its columns, and blocks cost the square of the block's times all columns.

Claim. With A >= 0 cut into b blocks of rows and columns, and D its blocks on the diagonal, A <= b D.

Proof. Write x = x_1 + ... + x_b, x_i being x within block i and 0 elsewhere, and R'R = A.
1. x'A x = ||R x_1 + ... + R x_b||^2.
2. By Cauchy and Schwarz that is at most b (||R x_1||^2 + ... + ||R x_b||^2).
3. Each ||R x_i||^2 is x_i'A x_i, which sees block i alone. Their sum is x'D x. QED

So B = b D bounds the curvature wherever A does. By the claim of `models.anderson` the ascent is monotone and linear
with it, and ends at the same optimum. Steps are shorter, and what goes together across blocks takes more rounds.

Columns are cut in the order of the schema, the constant last. The last block is filled up with columns of no record.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tacit.data.block import Block
from tacit.secure.center.program import BLOCK

Floats = npt.NDArray[np.float64]

WIDEST = 1000
"""Columns, the constant included, whose whole bound is added up and inverted; of more, blocks."""


def is_wide(width: int) -> bool:
    """Whether a fit of so many columns works with blocks: the public rule."""
    return width > WIDEST


def spans(width: int) -> list[slice]:
    """The columns of each block."""
    return [slice(start, min(start + BLOCK, width)) for start in range(0, width, BLOCK)]


@np.errstate(over="ignore", invalid="ignore")
def gram_blocks(blocks: Iterable[Block], *, d: int, width: int) -> Floats:
    """The blocks of X'X on the diagonal, of shape (b, BLOCK, BLOCK); with a constant where width > d."""
    columns = spans(width)
    gram = np.zeros((len(columns), BLOCK, BLOCK))
    for X, _ in blocks:
        for own, span in zip(gram, columns, strict=True):
            Z = X[:, span.start : min(span.stop, d)]
            m = Z.shape[1]
            own[:m, :m] += Z.T @ Z
            if span.stop > d:  # the constant is the last of this block
                own[:m, m] += Z.sum(axis=0)
                own[m, :m] = own[:m, m]
                own[m, m] += len(Z)
    return gram


def on_diagonal(values: Floats, rest: float) -> Floats:
    """A diagonal matrix of these entries as blocks, filled up with `rest`."""
    n_blocks = len(spans(len(values)))
    whole = np.append(values, np.full(n_blocks * BLOCK - len(values), rest)).reshape(n_blocks, BLOCK)
    made: Floats = whole[:, :, None] * np.eye(BLOCK)
    return made
