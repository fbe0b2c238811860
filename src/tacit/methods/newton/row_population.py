"""How made-up rows respond to a model, corrected for how far their moments are from those that were opened.

With rows u of scores W v (v = g / rho, so that a typical row has v = u), each standing for w records (`row_weight`),

    S(W) = sum w (prediction - 1/C) u  +  K W (M - sum w u u'),

K the mean curvature of a record's loss at one model, the same in all of S. The second part moves no row: it is what
opened moments say beyond the made-up ones. So all the noise of M enters S as K W E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from tacit.methods.newton.row_weight import row_weights
from tacit.methods.newton.statistic import shaped

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RowPopulation:
    """Records, of which each made-up row stands for some."""

    u: Floats  # (N, k)
    v: Floats
    weights: Floats  # (N,): how many records each row stands for
    K: Floats  # (n_scores, n_scores)
    beyond: Floats  # (k, k): the second moments that rows lack

    @classmethod
    def of(
        cls, Z: Floats, *, B: Floats, rho: float, M: Floats, M_noise: float, n_records: float, model: Floats
    ) -> RowPopulation:
        """The population of rows z in the shape B; K is taken at `model`."""
        rows = shaped(Z, B)
        v = rows.g / rho
        weights = row_weights(rows.u, M, M_noise=M_noise, n_records=n_records)
        P, share = probabilities(v @ model.T), weights / n_records
        K = (P * (1 - P)).T @ share[:, None] if len(model) == 1 else np.diag(share @ P) - (P * share[:, None]).T @ P
        beyond = M - (rows.u * weights[:, None]).T @ rows.u
        return cls(u=rows.u, v=v, weights=weights, K=K, beyond=beyond)

    @property
    def n_records(self) -> float:
        """How many records there are."""
        return float(self.weights.sum())

    def response(self, model: Floats) -> Floats:
        """S(model)."""
        P = probabilities(self.v @ model.T)
        above = P - (0.5 if len(model) == 1 else 1 / len(model))
        told: Floats = (above * self.weights[:, None]).T @ self.u + self.K @ model @ self.beyond
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
        counted = P * self.weights[:, None]
        blocks = [
            [(self.u * (counted[:, [c]] * ((c == d) - P[:, [d]]))).T @ other for d in range(size)] for c in range(size)
        ]
        told: Floats = np.block(blocks) + np.kron(self.K, self.beyond)
        return told

    @cached_property
    def scores(self) -> Floats:
        """The covariance of v."""
        share = self.weights / self.n_records
        centred = self.v - share @ self.v
        told: Floats = (centred * share[:, None]).T @ centred
        return told


def probabilities(scores: Floats) -> Floats:
    """Of the second class (N, 1), or of each of several."""
    told: Floats = expit(scores) if scores.shape[-1] == 1 else softmax(scores, axis=-1)
    return told
