"""A normal population with the moments that were opened: how it would respond to a model, and how steeply.

If rows u are normal with mean m and covariance Cov, Stein's lemma gives the sum of n responses u (prediction - 1/C):

    S(W) = n ((E p - 1/C) m' + K W Cov),   K = E (Diag p - p p'), which is E sigma' for two classes.

Its derivative for two classes, with a = Cov w, is

    H = n (E sigma' (m m' + Cov) + E sigma'' (m a' + a m') + E sigma''' a a') = K M + G,   M = n (Cov + m m').

For more classes the derivative is taken as K (x) M, and G is 0. Nothing is opened for any of this: the mean is in M,
since all rows have the same constant, q.g = c, so that M q = c sum a u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri, softmax

Floats = npt.NDArray[np.float64]

# An even grid, on which means over a normal law are right to many digits. It must be fine: scores may spread by 12, and
# the third derivative of sigma then lives within two tenths of a standard deviation. Where it is wrong, H is negative.
_NODES = np.linspace(-8.0, 8.0, 401)
_WEIGHTS = np.exp(-(_NODES**2) / 2)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_POINTS = 256  # of the low-discrepancy sequence that stands for a normal population's scores


@dataclass(frozen=True)
class Steepness:
    """The derivative of S: it takes a change W of the model to K W M + W G."""

    K: Floats  # (n_scores, n_scores): the mean curvature of a record's loss
    G: Floats  # (k, k); 0 for more than two classes

    def along(self, way: Floats, M: Floats) -> Floats:
        """How S changes along `way`, of shape (n_scores, k)."""
        change: Floats = self.K @ way @ M + way @ self.G
        return change


@dataclass(frozen=True)
class Population:
    """n normal rows with these second moments and this mean."""

    M: Floats
    mean: Floats
    n_records: float
    n_classes: int

    def scores(self, model: Floats) -> tuple[Floats, Floats, Floats]:
        """Their mean, W Cov, and their covariance W Cov W'."""
        centre: Floats = model @ self.mean
        along: Floats = model @ self.M / self.n_records - np.outer(centre, self.mean)
        return centre, along, along @ model.T

    def response(self, model: Floats) -> tuple[Floats, Floats]:
        """S(model), and E p - 1/C."""
        centre, along, spread = self.scores(model)
        above, K = self._chances(centre, spread)
        return self.n_records * (np.outer(above, self.mean) + K @ along), above

    def steepness(self, model: Floats) -> Steepness:
        """The derivative of S at a model."""
        centre, along, spread = self.scores(model)
        K = self._chances(centre, spread)[1]
        if self.n_classes > 2:
            return Steepness(K, np.zeros_like(self.M))
        a, m = along[0], self.mean
        p = expit(float(centre[0]) + math.sqrt(max(float(spread[0, 0]), 0.0)) * _NODES)
        slope = p * (1 - p)
        second, third = (float(_WEIGHTS @ f) for f in (slope * (1 - 2 * p), slope * (1 - 6 * slope)))
        G = self.n_records * (second * (np.outer(m, a) + np.outer(a, m)) + third * np.outer(a, a))
        return Steepness(K, G)

    def binary(self, centres: Floats, spreads: Floats) -> tuple[Floats, Floats]:
        """E p - 1/2 and E sigma' of two classes, for several laws of the scores."""
        p = expit(centres[:, None] + np.sqrt(np.maximum(spreads, 0.0))[:, None] * _NODES)
        return p @ _WEIGHTS - 0.5, (p * (1 - p)) @ _WEIGHTS

    def _chances(self, centre: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """E p - 1/C, and K."""
        if self.n_classes == 2:
            above, slope = self.binary(centre, spread[0])
            return above, slope[:, None]
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        P = softmax(centre + normal_points(self.n_classes) @ root.T, axis=1)
        K: Floats = np.diag(P.mean(axis=0)) - P.T @ P / len(P)
        return P.mean(axis=0) - 1 / self.n_classes, K


@lru_cache(maxsize=8)
def normal_points(dimension: int) -> Floats:
    """Points of a Halton sequence, made normal, with mean 0 and covariance I; the same every time."""
    from scipy.stats import qmc  # takes long to import, and only more than two classes need it

    points: Floats = ndtri(qmc.Halton(dimension, scramble=False).random(_POINTS + 1)[1:])
    points = points - points.mean(axis=0)
    root = np.linalg.cholesky(points.T @ points / len(points))
    return np.asarray(np.linalg.solve(root, points.T).T, dtype=np.float64)


def steepest(n_classes: int) -> Floats:
    """The largest that a record's curvature can be: 1/4, and for softmax (I - 1/C) / 2 (Boehning and Lindsay 1988)."""
    return np.array([[0.25]]) if n_classes == 2 else 0.5 * (np.eye(n_classes) - 1 / n_classes)
