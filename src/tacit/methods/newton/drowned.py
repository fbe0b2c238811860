"""Directions that noise drowns: which they are, and which coefficients lean on them.

A column that hardly varies within its bounds has next to no curvature. Noise of M may then be all that is seen of it.

1. *Which.* Rows with the opened means and variances, whose columns do not go together, have eigenvectors v that owe
   nothing to the noise between columns. Along each of them v'M v has normal noise of size s, that of M's diagonal. A
   direction counts as seen if v'M v exceeds 3 s. Without any curvature that happens in 13 of 10,000 runs.
2. *Left out.* The equations along drowned directions say nothing, since what they are divided by may be 0. So they are
   not used. What is known of a model along these directions is what is assumed of every model beforehand.
3. *Leaning.* As a model moves along a drowned direction v by 1, the seen equations hold if it moves by some other
   steps too. A coefficient then moves by b. Its own column's does so in full: it is *not identified*. Others do as far
   as columns go together, and noise hides how far: it moves b by sum_j (a.v_j) E_jv / l_j, to first order, v_j the
   seen directions and l_j = v_j'M v_j. That adds s^2 / 2 sum_j (a.v_j / l_j)^2 to b^2 on average, and is taken off
   again. What is left is right on average, whether columns go together or not.
4. *Alone.* A coefficient can lean in a way that no noise hides: an intercept belongs to a row of zeros, and every
   column's mean is known. So b^2 is no less than (a.v)^2, what it is where columns do not go together. Where that is
   most of a coefficient's variance, what is told of it would be little more than what was assumed: it is *not
   identified* (`interval`, 6).
5. *Among those told.* Of the runs in which a direction is seen, those count most in which noise made its curvature too
   large. `profile` allows for that. It needs (l - 3 s) / l of the direction that a coefficient rests on.

Nothing is used here but M, the schema and what is assumed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LIMIT = 3.0  # standard errors by which the curvature of a direction must exceed 0
_MOST = 0.5  # of a coefficient's variance: it rests on a direction that has more


@dataclass(frozen=True, kw_only=True)
class Directions:
    """Those of the models, orthonormal columns: seen, with their curvatures in units of the noise, or drowned."""

    seen: Floats
    ratios: Floats  # v'M v / s of each that is seen
    drowned: Floats

    @classmethod
    def of(cls, M: Floats, plain: Floats, *, noise_std: float) -> Directions:
        """Of second moments with such noise on their diagonal; `plain` are those without correlations."""
        vectors = np.linalg.eigh(plain)[1]
        ratios = np.einsum("ij,ij->j", vectors, M @ vectors) / max(noise_std, 1e-300)
        is_seen = ratios > _LIMIT
        return cls(seen=vectors[:, is_seen], ratios=ratios[is_seen], drowned=vectors[:, ~is_seen])

    def over(self, n_scores: int) -> Directions:
        """The same for models of several scores."""
        seen, drowned = (np.kron(np.eye(n_scores), one) for one in (self.seen, self.drowned))
        return Directions(seen=seen, ratios=np.tile(self.ratios, n_scores), drowned=drowned)

    def above_limit(self, a: Floats, D: Floats) -> Floats:
        """(l - 3 s) / l of the direction on which each coefficient a.w rests; 1 if it rests on none (5)."""
        parts = (a @ self.seen) ** 2 * np.einsum("ij,ij->j", self.seen, D @ self.seen)
        rests = parts > _MOST * np.sum(parts, axis=1, keepdims=True)
        share: Floats = np.where(rests, 1 - _LIMIT / self.ratios, 1.0).min(axis=1, initial=1.0)
        return share


def leaning(directions: Directions, a: Floats, information: Floats, prior: Floats) -> Floats:
    """The variance of each coefficient a.w along what is drowned (3 and 4).

    Args:
        directions: as they are.
        a: a row for each coefficient.
        information: the inverse of a model's covariance, drowned directions being known as far as is assumed.
        prior: what is assumed.
    """
    drowned, seen = directions.drowned, directions.seen
    if not drowned.shape[1]:
        return np.zeros(len(a))
    follow = np.linalg.solve(seen.T @ information @ seen, seen.T @ information @ drowned)
    moved, free = _along(drowned - seen @ follow, information, a)
    of_noise = 0.5 * np.sum((a @ seen / directions.ratios) ** 2, axis=1) * free
    return np.maximum(moved - of_noise, leaning_alone(directions, a, prior))


def leaning_alone(directions: Directions, a: Floats, prior: Floats) -> Floats:
    """The variance of each coefficient a.w along what is drowned, if columns do not go together (4)."""
    return _along(directions.drowned, prior, a)[0] if directions.drowned.shape[1] else np.zeros(len(a))


def _along(moves: Floats, information: Floats, a: Floats) -> tuple[Floats, float]:
    """The variance of each coefficient along `moves` of a model, and the trace of theirs."""
    D = np.linalg.inv(moves.T @ information @ moves)
    lean = a @ moves
    return np.einsum("qi,ij,qj->q", lean, D, lean, optimize=True), float(np.trace(D))


def without_correlations(M: Floats, B: Floats, constant: float) -> Floats:
    """Second moments of rows in the shape B with the same means and variances of columns that do not go together."""
    inverse = np.linalg.inv(B)
    squares = inverse @ M @ inverse
    least = 1e-9 * float(np.abs(squares).max()) + 1e-300  # noise may leave nothing of it
    counted = max(float(squares[-1, -1]), least) / constant**2  # the sum of squared weights
    mean = np.append(squares[:-1, -1] / (counted * constant), constant)
    variances = np.append(np.maximum(np.diag(squares)[:-1] / counted - mean[:-1] ** 2, 0.0), 0.0)
    plain: Floats = counted * B @ (np.outer(mean, mean) + np.diag(variances)) @ B
    return plain
