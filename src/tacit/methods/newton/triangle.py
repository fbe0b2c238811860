"""Symmetric matrices as the numbers of their upper triangles: as they travel, and as their norms are counted."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def upper(B: Floats) -> Floats:
    """The upper triangle of a symmetric matrix, as it is."""
    triangle: Floats = B[np.triu_indices(len(B))]
    return triangle


def mirrored(triangle: Floats) -> Floats:
    """The matrix of an `upper` triangle, to the last digit: coordinator and parties must size noise by the same one."""
    k = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    B = np.zeros((k, k))
    B[np.triu_indices(k)] = triangle
    return np.triu(B) + np.triu(B, 1).T


def triangle(A: Floats) -> Floats:
    """The upper triangle of a symmetric matrix, off the diagonal times sqrt 2: its norm is Frobenius' norm."""
    rows, columns = np.triu_indices(len(A))
    packed: Floats = A[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2))
    return packed


def symmetric(packed: Floats) -> Floats:
    """The matrix of a `triangle`."""
    A: Floats = mirrored(packed)
    A[~np.eye(len(A), dtype=bool)] *= math.sqrt(0.5)
    return A
