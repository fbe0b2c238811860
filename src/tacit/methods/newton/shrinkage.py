"""How far a model is drawn towards its start: as far as what was opened says, and no further.

The equation of a fit is right = H w + noise, where the noise has the covariance H + v I: the sampling error, and what
was added for privacy. Shrinking is post-processing: it costs nothing.

1. *What is likely beforehand.* A change of the model from its start spreads scores by w'Q w, Q the covariance of the
   rows. The *even* law has all directions spread scores alike: w ~ N(start, tau^2 Q^-1), up to scale. It suits rows
   whose narrow directions matter, as in fraud. The *uneven* law has directions in which rows vary more spread scores
   more: over encoded columns its covariance is Q^(-1/2), between Q^-1 and that of a ridge. It suits tables of one-hot
   columns. The even law has the weight 3/4. The constant's direction q, in which Q is 0, is left free: an intercept is
   not shrunk.
2. *Whitened.* With N = H + v I, y = N^(-1/2) (right - H start) has unit noise. What the intercept explains is
   projected out. In the singular directions of the rest, of values s, the coordinates of y are independent, each
   N(0, tau^2 s^2 + 1).
3. *How much.* Given tau the best answer is tau^2 s / (tau^2 s^2 + 1) times the coordinate: Wiener's filter. tau is not
   known; answers of both laws for a grid of tau are averaged by their likelihood, with the half-Cauchy law of scale 1,
   cut off at 1.5, for the spread of all scores. A direction that noise drowns has a small s and stays at the start.
   Where nothing can be seen all of them do, and the model says what the class frequencies say.
4. *Whether there is anything.* Twice the log-likelihood of the best tau over that of tau = 0. Without a signal it
   exceeds 2.71 with a chance of 5 % (half of it a chi-square of one degree of freedom, half 0). Of two laws the
   likelihoods are averaged with their weights before the log is taken, which makes it no likelier.
5. *The level.* The constant's part of an answer is q'H w: it moves the mean chance. Its variance counts the noise that
   hides the intercept, and what is not known of the other directions, each with tau^2 / (tau^2 s^2 + 1). With a large
   tau it is that of q'right, so that class counts alone tell the level. With a small one all of right tells it.
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
_EVEN = 0.75  # the weight of the even law


@dataclass(frozen=True, kw_only=True)
class Shrunken:
    """Models, a row for each equation, and twice the log of how much likelier they are than their starts."""

    models: Floats
    evidence: float
    level_variance: float = 0.0  # of q'H w of the first equation (5)


@dataclass(frozen=True, kw_only=True)
class _Equation:
    """One equation with unit noise (2)."""

    start: Floats
    y: Floats
    X: Floats
    free: Floats | None  # what the intercept explains, of length 1


@dataclass(frozen=True, kw_only=True)
class _Whitened:
    """One equation in the directions of one law."""

    equation: _Equation
    directions: Floats  # (k, m), of unit spread of the scores
    turned: Floats  # (m, m): those in which all is independent
    s: Floats
    seen: Floats  # the coordinates of y


@dataclass(frozen=True, kw_only=True)
class _Law:
    """The equations in the directions of one law, and how likely each spread is under it, as logs."""

    parts: list[_Whitened]
    logs: Floats  # of the likelihood over that of tau = 0, one for each spread
    weight: float

    @classmethod
    def of(cls, parts: list[_Whitened], weight: float) -> _Law:
        s, seen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("s", "seen"))
        variances = _SPREADS[:, None] ** 2 * s**2 + 1
        logs = -0.5 * np.sum(np.log(variances) + seen**2 / variances - seen**2, axis=1)
        return cls(parts=parts, logs=logs, weight=weight)

    def models(self, weights: Floats, free: Floats | None) -> Floats:
        """The models of its equations, averaged with these weights of the spreads, times their sum."""
        share = float(weights.sum())
        squares = _SPREADS[:, None] ** 2
        gains = [weights @ (squares * part.s / (squares * part.s**2 + 1)) / share for part in self.parts]
        return share * np.array([_model(part, gain, free) for part, gain in zip(self.parts, gains, strict=True)])

    def level_variance(self, weights: Floats, H: Floats, free: Floats) -> float:
        """The variance of q'H w of the first equation, averaged with these weights of the spreads, times their sum."""
        part, along = self.parts[0], H @ free
        told = part.equation.X @ free
        beside = along - part.equation.X.T @ told * (float(free @ along) / float(told @ told))
        levers = (beside @ part.directions @ part.turned) ** 2
        squares = _SPREADS[:, None] ** 2
        left = (squares / (squares * part.s**2 + 1)) @ levers
        return float(weights @ (left + float(free @ along) ** 2 / float(told @ told)))


def shrunken(
    Hs: Sequence[Floats],
    rights: Floats,
    starts: Floats,
    *,
    variance: float,
    spread: Floats,
    free: Floats | None,
    uneven: Floats | None = None,
) -> Shrunken:
    """The models of the equations right = H w + noise.

    Args:
        Hs: a curvature for each equation.
        rights: their right sides, a row for each.
        starts: towards what each is drawn.
        variance: v, of the privacy noise, a coordinate.
        spread: Q.
        free: q, the direction that is not shrunk; None if there is none.
        uneven: columns whose products are the uneven law's covariance, up to scale; None for the even law alone.
    """
    return shrunken_by(known_laws(spread, free, uneven), Hs, rights, starts, variance=variance, free=free)


def known_laws(spread: Floats, free: Floats | None, uneven: Floats | None) -> tuple[tuple[Floats, float], ...]:
    """Of each law its directions, of unit spread of all scores, and its weight: the same for all equations of a fit."""
    columns = [_directions(spread, free)] if uneven is None else [_directions(spread, free), uneven]
    lengths = [math.sqrt(max(float(np.sum(one * (spread @ one))), 1e-300)) for one in columns]
    weights = [1.0] if uneven is None else [_EVEN, 1 - _EVEN]
    return tuple((one / length, weight) for one, length, weight in zip(columns, lengths, weights, strict=True))


def shrunken_by(
    known: Sequence[tuple[Floats, float]],
    Hs: Sequence[Floats],
    rights: Floats,
    starts: Floats,
    *,
    variance: float,
    free: Floats | None,
) -> Shrunken:
    """The same as `shrunken`, by laws that are known already (`known_laws`)."""
    equations = [
        _in_unit_noise(H, right, start, variance, free) for H, right, start in zip(Hs, rights, starts, strict=True)
    ]
    laws = [_Law.of([_turned(one, directions) for one in equations], weight) for directions, weight in known]
    largest = max(float(law.logs.max()) for law in laws)
    beforehand = _SPREADS / (1 + _SPREADS**2)
    weights = [law.weight * np.exp(law.logs - largest) * beforehand + 1e-300 for law in laws]
    total = sum(float(one.sum()) for one in weights)
    models = np.sum([law.models(one / total, free) for law, one in zip(laws, weights, strict=True)], axis=0)
    best = sum(law.weight * math.exp(float(law.logs.max()) - largest) for law in laws)
    told = 0.0
    if free is not None and equations[0].free is not None:
        told = sum(law.level_variance(one / total, Hs[0], free) for law, one in zip(laws, weights, strict=True))
    return Shrunken(models=models, evidence=max(0.0, 2 * (largest + math.log(best))), level_variance=told)


def _directions(spread: Floats, free: Floats | None) -> Floats:
    """Columns that spread scores by 1 each; without the free direction."""
    values, vectors = np.linalg.eigh(spread)
    known = values > 1e-9 * values[-1]
    if free is not None:
        known[0] = False  # Q is 0 along it
    columns: Floats = vectors[:, known] / np.sqrt(values[known])
    return columns


def _in_unit_noise(H: Floats, right: Floats, start: Floats, variance: float, free: Floats | None) -> _Equation:
    """Step 2, the same for every law: any root of N will do, since all that follows is free of rotations."""
    root = _root(H, variance)
    if root is None:  # a curvature that is not positive
        values, U = np.linalg.eigh(H)
        values = np.maximum(values, 0.0)
        scale = 1 / np.sqrt(values + variance + 1e-300)
        y = scale * (U.T @ (right - H @ start))
        X = (U * (scale * values)).T
    else:
        whole = np.linalg.solve(root, np.column_stack([H, right - H @ start]))
        X, y = whole[:, :-1], whole[:, -1]
    explained = None
    if free is not None and np.linalg.norm(X @ free) > 0:
        explained = X @ free / np.linalg.norm(X @ free)
    return _Equation(start=start, y=y, X=X, free=explained)


def _root(H: Floats, variance: float) -> Floats | None:
    """Cholesky's root of H + v I, if H is positive: a tenth of the work of its eigenvectors."""
    try:
        root = np.linalg.cholesky(H)
        return np.linalg.cholesky(H + variance * np.eye(len(H))) if variance > 0 else root
    except np.linalg.LinAlgError:
        return None


def _turned(equation: _Equation, directions: Floats) -> _Whitened:
    Z, left, explained = equation.X @ directions, equation.y, equation.free
    if explained is not None:
        left = left - explained * float(explained @ left)
        Z = Z - np.outer(explained, explained @ Z)
    squares, turned = np.linalg.eigh(Z.T @ Z)  # a singular value decomposition does not always end here
    s = np.sqrt(np.maximum(squares, 1e-15 * max(float(squares[-1]), 0.0) + 1e-300))
    seen = turned.T @ (Z.T @ left) / s
    return _Whitened(equation=equation, directions=directions, turned=turned, s=s, seen=seen)


def _model(part: _Whitened, gain: Floats, free: Floats | None) -> Floats:
    """The start, what is kept of each direction, and the intercept that goes with it."""
    change: Floats = part.directions @ (part.turned @ (gain * part.seen))
    known = part.equation
    if free is not None and known.free is not None:
        level = float(known.free @ (known.y - known.X @ change)) / float(np.linalg.norm(known.X @ free))
        change = change + level * free
    moved: Floats = known.start + change
    return moved if math.isfinite(float(moved.sum())) else known.start
