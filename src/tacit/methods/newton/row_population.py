"""How made-up rows respond to a model, corrected for how far their moments are from those that were opened.

With N rows u of scores W v (v = g / rho, so that a typical row has v = u), each standing for n / N records,

    S(W) = n/N sum (prediction - 1/C) u  +  K W (M - n/N sum u u'),

K the mean curvature of a record's loss at one model, the same in all of S. The second part moves no row: it is what
opened moments say beyond the made-up ones. So all the noise of M enters S as K W E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from tacit.methods.newton.statistic import shaped

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RowPopulation:
    """So many records, of which each made-up row stands for as many."""

    u: Floats  # (N, k)
    v: Floats
    n_records: float
    K: Floats  # (n_scores, n_scores)
    beyond: Floats  # (k, k): the second moments that rows lack

    @classmethod
    def of(cls, Z: Floats, *, B: Floats, rho: float, M: Floats, n_records: float, model: Floats) -> RowPopulation:
        """The population of rows z in the shape B; K is taken at `model`."""
        rows = shaped(Z, B)
        v = rows.g / rho
        P = probabilities(v @ model.T)
        K = np.array([[np.mean(P * (1 - P))]]) if len(model) == 1 else np.diag(P.mean(axis=0)) - P.T @ P / len(P)
        beyond = M - n_records / len(Z) * rows.u.T @ rows.u
        return cls(u=rows.u, v=v, n_records=n_records, K=K, beyond=beyond)

    @property
    def share(self) -> float:
        """How many records a row stands for."""
        return self.n_records / len(self.u)

    def response(self, model: Floats) -> Floats:
        """S(model)."""
        P = probabilities(self.v @ model.T)
        above = P - (0.5 if len(model) == 1 else 1 / len(model))
        told: Floats = self.share * above.T @ self.u + self.K @ model @ self.beyond
        return told

    def curvature(self, model: Floats) -> Floats:
        """The derivative of S at a model, over model.ravel()."""
        H = self._weighted(model, self.v)
        return (H + H.T) / 2

    def sampling(self, model: Floats) -> Floats:
        """The covariance of t - S(model) where the model is right."""
        return self._weighted(model, self.u)

    def _weighted(self, model: Floats, other: Floats) -> Floats:
        P = probabilities(self.v @ model.T)
        size = len(model)
        blocks = [[(self.u * (P[:, [c]] * ((c == d) - P[:, [d]]))).T @ other for d in range(size)] for c in range(size)]
        told: Floats = self.share * np.block(blocks) + np.kron(self.K, self.beyond)
        return told

    @cached_property
    def scores(self) -> Floats:
        """The covariance of v."""
        centred = self.v - self.v.mean(axis=0)
        told: Floats = centred.T @ centred / len(centred)
        return told


def probabilities(scores: Floats) -> Floats:
    """Of the second class (N, 1), or of each of several."""
    told: Floats = expit(scores) if scores.shape[-1] == 1 else softmax(scores, axis=-1)
    return told
