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
4. *Single columns.* Both laws take it that no column matters far more than others. In some tables one does, as gains
   from capital do for an income. So each law has a *heavy* form with the weight 1/2 of its own: `heavy` says how.
5. *Whether there is anything.* Twice the log-likelihood of the best tau over that of tau = 0. Without a signal it
   exceeds 2.71 with a chance of 5 % (half of it a chi-square of one degree of freedom, half 0). Of two laws the
   likelihoods are averaged with their weights before the log is taken, which makes it no likelier. Where rounds
   contradict the curvature, a model may have to be longer than it says. So tau up to 5 is then tried for this, too.
6. *The level.* The constant's part of an answer is q'H w: it moves the mean chance. Its variance counts the noise that
   hides the intercept, and what is not known of the other directions, each with tau^2 / (tau^2 s^2 + 1). With a large
   tau it is that of q'right, so that class counts alone tell the level. With a small one all of right tells it. A
   heavy form leaves unknown what its law does: it has one tau, and what is not seen is not likelier to be large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.methods.newton.heavy import heavier

Floats = npt.NDArray[np.float64]

SEEN = 2.71
"""What `Shrunken.evidence` exceeds with a chance of 5 % where there is nothing to see."""
_SPREADS = np.geomspace(1e-3, 1.5, 60)  # of all scores beforehand, standard deviations
_FURTHER = np.geomspace(1.5, 5.0, 20)  # those that are tried as well where the curvature is off (5)
_BEFOREHAND = _SPREADS / (1 + _SPREADS**2)  # of each, on a grid of logs
_EVEN = 0.75  # the weight of the even law
_HEAVY = 0.5  # that of a heavy form, times that of its law


@dataclass(frozen=True, kw_only=True)
class Shrunken:
    """Models, a row for each equation, and twice the log of how much likelier they are than their starts."""

    models: Floats
    evidence: float
    level_variance: float = 0.0  # of q'H w of the first equation (6)


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

    directions: Floats  # (k, m), of unit spread of the scores
    turned: Floats  # (m, m): those in which all is independent
    s: Floats
    seen: Floats  # the coordinates of y


@dataclass(frozen=True, kw_only=True)
class Law:
    """What is likely of a model beforehand: directions of unit spread of all scores, and how much the law counts.

    `axes` are the same directions, turned so that they lie near the columns: along these a heavy law has its scales.
    """

    directions: Floats
    axes: Floats
    weight: float


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What one law says of the equations, with how much it counts."""

    changes: list[Floats]
    left: Floats  # the variance that is left of the first equation's change, as a root: (k, m)
    log_weight: float


def _answers(law: Law, equations: Sequence[_Equation], *, is_off: bool) -> tuple[list[_Answer], float]:
    """Those of a law and of its heavy form, and the log of the likelihood of its best tau over that of tau = 0."""
    parts = [_turned(one, law.directions) for one in equations]
    s, seen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("s", "seen"))
    squares = _SPREADS[:, None] ** 2
    logs = _log_likelihoods(squares, s, seen)
    largest = float(logs.max())
    best = max(largest, float(_log_likelihoods(_FURTHER[:, None] ** 2, s, seen).max())) if is_off else largest
    weights = np.exp(logs - largest) * _BEFOREHAND
    total = float(weights.sum())
    weights = weights / total
    gains = [weights @ (squares * part.s / (squares * part.s**2 + 1)) for part in parts]
    spreads = weights @ (squares / (squares * parts[0].s ** 2 + 1))
    plain = _Answer(
        changes=[part.directions @ (part.turned @ (gain * part.seen)) for part, gain in zip(parts, gains, strict=True)],
        left=parts[0].directions @ (parts[0].turned * np.sqrt(spreads)),
        log_weight=math.log(law.weight) + largest + math.log(total),
    )
    tau = float(_SPREADS[np.argmax(logs + np.log(_BEFOREHAND))])
    try:
        heavy = [heavier(*_beside(one, law.axes), tau) for one in equations]
    except np.linalg.LinAlgError:  # numbers so large that rounding hides what is assumed: nothing need be assumed then
        return [plain], best
    gain = sum(one.gain for one in heavy)
    if not math.isfinite(gain):
        return [plain], best
    single = _Answer(
        changes=[law.axes @ one.mean for one in heavy],
        left=plain.left,
        log_weight=plain.log_weight + math.log(_HEAVY) + gain,
    )
    return [plain, single], best


def _log_likelihoods(squares: Floats, s: Floats, seen: Floats) -> Floats:
    """Of each tau^2, over that of tau = 0."""
    variances = squares * s**2 + 1
    logs: Floats = -0.5 * np.sum(np.log(variances) + seen**2 / variances - seen**2, axis=1)
    return logs


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


def known_laws(spread: Floats, free: Floats | None, uneven: Floats | None) -> tuple[Law, ...]:
    """The laws, of unit spread of all scores: the same for all equations of a fit."""
    directions, turn = _directions(spread, free)
    if uneven is None:
        return (_law(directions, directions @ turn, spread, 1.0),)
    return _law(directions, directions @ turn, spread, _EVEN), _law(uneven, uneven, spread, 1 - _EVEN)


def _law(directions: Floats, axes: Floats, spread: Floats, weight: float) -> Law:
    length = math.sqrt(max(float(np.sum(directions * (spread @ directions))), 1e-300))
    return Law(directions=directions / length, axes=axes / length, weight=weight)


def shrunken_by(
    laws: Sequence[Law],
    Hs: Sequence[Floats],
    rights: Floats,
    starts: Floats,
    *,
    variance: float,
    free: Floats | None,
    is_off: bool = False,
) -> Shrunken:
    """The same as `shrunken`, by laws that are known already (`known_laws`); `is_off` if rounds contradict Hs (5)."""
    equations = [
        _in_unit_noise(H, right, start, variance, free) for H, right, start in zip(Hs, rights, starts, strict=True)
    ]
    found = [_answers(law, equations, is_off=is_off) for law in laws]
    answers = [answer for of_law, _ in found for answer in of_law]
    logs = np.array([answer.log_weight for answer in answers])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    changes = [sum(w * a.changes[i] for w, a in zip(weights, answers, strict=True)) for i in range(len(equations))]
    largest = max(best for _, best in found)
    best = sum(law.weight * math.exp(log - largest) for law, (_, log) in zip(laws, found, strict=True))
    return Shrunken(
        models=np.array(
            [_model(one, np.asarray(change), free) for one, change in zip(equations, changes, strict=True)]
        ),
        evidence=max(0.0, 2 * (largest + math.log(best))),
        level_variance=_level_variance(equations[0], Hs[0], free, weights, [answer.left for answer in answers]),
    )


def _level_variance(
    equation: _Equation, H: Floats, free: Floats | None, weights: Floats, left: Sequence[Floats]
) -> float:
    """The variance of q'H w (6), averaged over what the laws leave unknown."""
    if free is None or equation.free is None:
        return 0.0
    along, told = H @ free, equation.X @ free
    beside = along - equation.X.T @ told * (float(free @ along) / float(told @ told))
    unknown = [weight * float(np.sum((beside @ root) ** 2)) for weight, root in zip(weights, left, strict=True)]
    return float(sum(unknown)) + float(free @ along) ** 2 / float(told @ told)


def _directions(spread: Floats, free: Floats | None) -> tuple[Floats, Floats]:
    """Columns that spread scores by 1 each, without the free direction; and what turns them next to the columns."""
    values, vectors = np.linalg.eigh(spread)
    known = values > 1e-9 * values[-1]
    if free is not None:
        known[0] = False  # Q is 0 along it
    return vectors[:, known] / np.sqrt(values[known]), vectors[:, known].T


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


def _beside(equation: _Equation, directions: Floats) -> tuple[Floats, Floats]:
    """An equation in such directions, less what the intercept explains of both sides."""
    Z, left, explained = equation.X @ directions, equation.y, equation.free
    if explained is not None:
        left = left - explained * float(explained @ left)
        Z = Z - np.outer(explained, explained @ Z)
    return Z, left


def _turned(equation: _Equation, directions: Floats) -> _Whitened:
    Z, left = _beside(equation, directions)
    squares, turned = np.linalg.eigh(Z.T @ Z)  # a singular value decomposition does not always end here
    s = np.sqrt(np.maximum(squares, 1e-15 * max(float(squares[-1]), 0.0) + 1e-300))
    seen = turned.T @ (Z.T @ left) / s
    return _Whitened(directions=directions, turned=turned, s=s, seen=seen)


def _model(known: _Equation, change: Floats, free: Floats | None) -> Floats:
    """The start, what is kept of each direction, and the intercept that goes with it."""
    if free is not None and known.free is not None:
        level = float(known.free @ (known.y - known.X @ change)) / float(np.linalg.norm(known.X @ free))
        change = change + level * free
    moved: Floats = known.start + change
    return moved if math.isfinite(float(moved.sum())) else known.start
