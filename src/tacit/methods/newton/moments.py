"""Second moments with noise of known size, and what can be made of them.

1. *Squares.* Off the diagonal and beside their largest eigenvector they are mostly noise. That part is shrunk by the
   share of its energy that is not noise, Wiener's rule (`denoised`).
2. *Eigenvalues.* Noise of s^2 on the diagonal and s^2 / 2 off it moves the i-th eigenvalue by s^2 / 2 sum_j 1 / (l_i -
   l_j) on average, to second order. That is taken back, and values that change places are averaged (`unspread`; after
   Stein). Eigenvalues that were alike come together again, and one that lies apart stays there.
3. *Floor.* Where moments are used as curvature, no eigenvalue is below 0.4 s sqrt(k) (`raised`).

All rows have the same constant c as their last entry. In the shape B they are g = B z, and q.g = c for q = B^-1 e.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FLOOR = 0.4


def constant_row(B: Floats) -> Floats:
    """q of a shape B: B q is the last unit vector, so that q.g is a row's constant."""
    row: Floats = np.linalg.solve(B, np.eye(len(B))[-1])
    return row


def with_constant(M: Floats, q: Floats, square: float) -> Floats:
    """M, changed along q alone so that q'M q = square."""
    changed: Floats = M + (square - q @ M @ q) * np.outer(q, q) / float(q @ q) ** 2
    return changed


def raised(M: Floats, noise_std: float) -> Floats:
    """M with no eigenvalue that noise of this standard deviation on its diagonal could have made (2 and 3)."""
    values, vectors = np.linalg.eigh(unspread(M, noise_std))
    lifted: Floats = (vectors * np.maximum(values, _FLOOR * noise_std * math.sqrt(len(M)))) @ vectors.T
    return lifted


def denoised(A: Floats, noise_std: float) -> Floats:
    """Squares with less noise (1); `noise_std` is that of a diagonal entry.

    Guarantees:
        Symmetric, with no negative eigenvalue.
    """
    k = len(A)
    if noise_std > 0:
        values, vectors = np.linalg.eigh(A)
        largest = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        rest = A - largest
        diagonal = np.diag(rest)
        beside = rest - np.diag(diagonal)
        energy = float(np.sum(beside**2))
        expected = k * (k - 1) * noise_std**2 / 2
        kept = max(0.0, 1 - expected / energy) if energy > 0 else 0.0
        A = largest + np.diag(np.maximum(diagonal, 0.0)) + kept * beside
    values, vectors = np.linalg.eigh(A)
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive


def unspread(M: Floats, noise_std: float) -> Floats:
    """M with eigenvalues as they are on average without noise (2); `noise_std` is that of a diagonal entry."""
    values, vectors = np.linalg.eigh(M)
    apart = values[:, None] - values[None, :]
    least = 1e-3 * noise_std + 1e-300
    apart = np.where(np.abs(apart) < least, np.copysign(least, apart), apart)
    np.fill_diagonal(apart, np.inf)
    groups: list[tuple[float, int]] = []  # of values in their order: the mean, and how many
    for value in values - noise_std**2 / 2 * np.sum(1 / apart, axis=1):
        mean, count = float(value), 1
        while groups and groups[-1][0] > mean:
            before, others = groups.pop()
            mean, count = (mean * count + before * others) / (count + others), count + others
        groups.append((mean, count))
    told: Floats = (vectors * np.concatenate([np.full(count, mean) for mean, count in groups])) @ vectors.T
    return told
