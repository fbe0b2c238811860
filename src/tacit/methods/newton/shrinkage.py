"""How far a model is drawn towards its start: as far as what was opened says, and no further.

The equation of a fit is right = H w + noise, where the noise has the covariance H + v I: the sampling error, and what
was added for privacy. Shrinking is post-processing: it costs nothing.

1. *What is likely beforehand.* A change of the model from its start spreads scores by w'Q w, Q the covariance of the
   rows. All directions are taken to spread scores alike, by tau^2 each; so w ~ N(start, tau^2 Q^-1). The constant's
   direction q, in which Q is 0, is left free: an intercept is not shrunk.
2. *Whitened.* With N = H + v I, y = N^(-1/2) (right - H start) has unit noise. What the intercept explains is
   projected out. In the singular directions of the rest, of values s, the coordinates of y are independent, each
   N(0, tau^2 s^2 + 1).
3. *How much.* Given tau the best answer is tau^2 s / (tau^2 s^2 + 1) times the coordinate: Wiener's filter. tau is not
   known; answers for a grid of tau are averaged by their likelihood, with the half-Cauchy law of scale 1, cut off at
   1.5, for the spread tau sqrt(k) of all scores. A direction that noise drowns has a small s and stays at the start.
   Where nothing can be seen all of them do, and the model says what the class frequencies say.
4. *Whether there is anything.* Twice the log-likelihood of the best tau over that of tau = 0. Without a signal it
   exceeds 2.71 with a chance of 5 % (half of it a chi-square of one degree of freedom, half 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SEEN = 2.71
"""What `Shrunken.evidence` exceeds with a chance of 5 % where there is nothing to see."""
_SPREADS = np.geomspace(1e-3, 1.5, 60)  # of all scores beforehand, standard deviations


@dataclass(frozen=True, kw_only=True)
class Shrunken:
    """Models, a row for each equation, and twice the log of how much likelier they are than their starts."""

    models: Floats
    evidence: float


@dataclass(frozen=True, kw_only=True)
class _Whitened:
    """One equation in the directions of step 2."""

    start: Floats
    y: Floats
    X: Floats
    free: Floats | None  # what the intercept explains, of length 1
    directions: Floats  # (k, m), of unit spread of the scores
    turned: Floats  # (m, m): those in which all is independent
    s: Floats
    seen: Floats  # the coordinates of y


def shrunken(
    Hs: Sequence[Floats],
    rights: Floats,
    starts: Floats,
    *,
    variance: float,
    spread: Floats,
    free: Floats | None,
) -> Shrunken:
    """The models of the equations right = H w + noise.

    Args:
        Hs: a curvature for each equation.
        rights: their right sides, a row for each.
        starts: towards what each is drawn.
        variance: v, of the privacy noise, a coordinate.
        spread: Q.
        free: q, the direction that is not shrunk; None if there is none.
    """
    directions = _directions(spread, free)
    parts = [
        _whitened(H, right, start, variance, directions, free)
        for H, right, start in zip(Hs, rights, starts, strict=True)
    ]
    s, seen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("s", "seen"))
    tau2 = _SPREADS**2 / max(1, directions.shape[1])
    variances = tau2[:, None] * s**2 + 1
    logs = -0.5 * np.sum(np.log(variances) + seen**2 / variances, axis=1)
    nothing = -0.5 * float(np.sum(seen**2))
    weights = np.exp(logs - logs.max()) * _SPREADS / (1 + _SPREADS**2)
    weights = weights / weights.sum()
    kept = [weights @ (tau2[:, None] * part.s / (tau2[:, None] * part.s**2 + 1)) for part in parts]
    models = np.array([_model(part, gain, free) for part, gain in zip(parts, kept, strict=True)])
    return Shrunken(models=models, evidence=max(0.0, 2 * (float(logs.max()) - nothing)))


def _directions(spread: Floats, free: Floats | None) -> Floats:
    """Columns that spread scores by 1 each; without the free direction."""
    values, vectors = np.linalg.eigh(spread)
    known = values > 1e-9 * values[-1]
    if free is not None:
        known[0] = False  # Q is 0 along it
    columns: Floats = vectors[:, known] / np.sqrt(values[known])
    return columns


def _whitened(
    H: Floats, right: Floats, start: Floats, variance: float, directions: Floats, free: Floats | None
) -> _Whitened:
    values, U = np.linalg.eigh(H)
    values = np.maximum(values, 0.0)
    scale = 1 / np.sqrt(values + variance + 1e-300)
    y = U @ (scale * (U.T @ (right - H @ start)))
    X = (U * (scale * values)) @ U.T
    explained, left, Z = None, y, X @ directions
    if free is not None and np.linalg.norm(X @ free) > 0:
        explained = X @ free / np.linalg.norm(X @ free)
        left = y - explained * float(explained @ y)
        Z = Z - np.outer(explained, explained @ Z)
    squares, turned = np.linalg.eigh(Z.T @ Z)  # a singular value decomposition does not always end here
    s = np.sqrt(np.maximum(squares, 1e-15 * max(float(squares[-1]), 0.0) + 1e-300))
    seen = (Z @ turned).T @ left / s
    return _Whitened(start=start, y=y, X=X, free=explained, directions=directions, turned=turned, s=s, seen=seen)


def _model(part: _Whitened, gain: Floats, free: Floats | None) -> Floats:
    """The start, what is kept of each direction, and the intercept that goes with it."""
    change: Floats = part.directions @ (part.turned @ (gain * part.seen))
    if free is not None and part.free is not None:
        level = float(part.free @ (part.y - part.X @ change)) / float(np.linalg.norm(part.X @ free))
        change = change + level * free
    moved: Floats = part.start + change
    return moved if math.isfinite(float(moved.sum())) else part.start
