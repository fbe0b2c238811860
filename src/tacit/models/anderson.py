"""Ascent of a likelihood by steps that a fixed curvature gives, accelerated (Anderson 1965) and safeguarded.

An oracle knows a concave function l, the penalised log-likelihood, and a matrix B >= -l'' everywhere. At a public
point v it tells, as far as it is asked, whether l(v) is at least l(a), a being the point accepted last: one bit; and
the step s(v) = B^-1 grad l(v). The next point to ask about is a function of what was told before, so nothing else is
ever learned. One question is one round.

The plain image a + s(a) is the document's method (Wang, equation 5.4). Acceleration takes, instead, the combination of
the last points that would bring the step to zero if s were linear (type II, memory 5). Differences of steps that lie
within an angle of the newer ones are left out (Pollock and Rebholz 2023, angle filtering): they carry curvature from
far away rather than a new direction.

How far steps fall short. B bounds the curvature, so that steps are too short, in most directions by about the same
factor. From 0 and with two classes (`Ascending.from_zero`) it is known what normal rows would do.

1. With normal rows of second moments S, the mean of p x at v is k(r) S v / 4 (Stein 1981): r^2 = v'S v, k(r) is the
   mean of 4 p (1 - p), and p = 1 / (1 + exp(-r Z)) with Z standard normal. With B = S / 4 the steps are s(v) = s(0) -
   k(r) v. The optimum is s(0) / k(r), where r k(r) is the length of s(0) in the metric of S.
2. *The first step.* k(r) is nearly 1 / sqrt(1 + pi r^2 / 8) (MacKay 1992), so that 1 / k(r) = 1 / sqrt(1 - pi L^2 / 8)
   for a step of length L. In public units columns have about unit variance, and L is taken to be the plain length.
3. *Later ones.* Whatever S is, s(0) - s(v) = k(r) v tells k(r) at every point v. What acceleration leaves of a step,
   beyond the directions that its memory spans, is divided by it.

*Loose bounds.* Where B is known to be loose (`Ascending.is_loose`), say by a factor b in most directions, what
acceleration leaves of a step is divided by the slope of steps along the last way: with y the change of -s and x that of
points, the ratio x'y / y'y (Barzilai and Borwein 1988), within 1 and 8.

Rows are never quite normal. That costs rounds and nothing else: such points are compared like all accelerated ones.

Safeguard. A point with a lower l is rejected and its step is never asked for: the next question is the plain image of
the last accepted point. From the second rejection on, half as much of the way beyond the plain image is taken each
time, until one is accepted. At least one question in every `PLAIN_EVERY` is a plain image.

Claim. Up to the rounding of l, (a) no accepted point lowers l; (b) with m > 0 the least eigenvalue of B^-1 (-l'')
where l is at least l(start), the distance of l(a) from its maximum shrinks by the factor 1 - m or more in any
`PLAIN_EVERY` rounds.

Proof. (a) Accelerated points are compared. For a plain image, l(a + s) >= l(a) + g's - s'Bs/2 = l(a) + g'B^-1 g / 2
with s = B^-1 g (Bohning and Lindsay 1988). (b) Where l >= l(start), a convex set, l(u) <= l(a) + g'(u - a) - m ||u -
a||_B^2 / 2. The right side is largest at u = a + B^-1 g / m, so that max l - l(a) <= g'B^-1 g / (2 m), and by (a) a
plain image gains at least m times that distance. The other rounds do not lose any. QED

With B^-1 known only approximately, as P, both hold while P <= 2 B^-1: the gain is then s'(P^-1 - B/2)s.

Where to stop. A small step is not a small error: the error is up to 1/m times it. The accelerated step shows by how
much a plain one falls short; the largest such ratio of the last few rounds, times the plain step, is the estimated
error.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tacit.models.loss import Array

PLAIN_EVERY = 10
"""In so many rounds at least one asks about a plain image: that is what the rate is proved from."""

_LEAST_SINE = 0.2  # of the angle between a difference of steps and the newer ones
_TINY = 2.0**-1000
_LEAST_NORM = 2.0**-10  # of a point, when an error is told relative to it
_FURTHEST = 16.0  # times as far as the step itself: what is left of a step may be lengthened so much
_LOOSEST = 8.0  # times as far, where the bound is loose
_LONGEST_FIRST = 2.5  # times the first step


class Oracle(Protocol):
    """Whoever can tell steps and compare likelihoods: parties with a center, or parties whose sums are opened."""

    def ask(self, point: Array) -> None:
        """Ask about a point."""
        ...

    def is_better(self) -> bool:
        """Whether l at the point asked about last is at least l at the accepted point, up to rounding."""
        ...

    def accept(self) -> Array:
        """Accept the point asked about last, and tell its step."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ascending:
    """Settings: `memory` 0 is the plain method; `tolerance` bounds the estimated relative error at the stop.

    `from_zero` says that a likelihood of two classes is ascended from 0, in units in which columns have about unit
    variance. The first accelerated step is then as long as normal rows would have it.
    """

    memory: int = 5
    tolerance: float = 1e-6
    max_rounds: int = 200
    from_zero: bool = False
    is_loose: bool = False  # whether B is far above the curvature in most directions


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One round: the point, whether it was a plain image (or the start), and the step there; None if rejected."""

    point: Array
    plain: bool
    step: Array | None


@dataclass
class Ascent:
    """How far an ascent came.

    Attributes:
        visits: every round.
        point: where the next question would be; the result, if it has converged.
        error: its estimated distance from the optimum, relative to its norm.
        shortfall: by how much plain steps fell short of accelerated ones lately, at most: an estimate of 1/m.
        converged: whether the error is within the tolerance.
    """

    visits: list[Visit] = field(default_factory=list)
    point: Array = field(default_factory=lambda: np.zeros(0))
    error: float = np.inf
    shortfall: float = 1.0
    converged: bool = False

    @property
    def n_compared(self) -> int:
        """How many points were compared with the one accepted before: all but the start and plain images."""
        return sum(not visit.plain for visit in self.visits)

    @property
    def n_rejected(self) -> int:
        """How many rounds asked about a point that was not accepted."""
        return sum(visit.step is None for visit in self.visits)


def ascend(
    oracle: Oracle,
    start: Array,
    *,
    settings: Ascending | None = None,
    on_round: Callable[[Ascent], None] | None = None,
) -> Ascent:
    """Ascend from `start` until the estimated error is within the tolerance, or the rounds are used up.

    Guarantees:
        The accepted points' likelihoods never fall, up to the oracle's rounding; at least one point in every
        `PLAIN_EVERY` is a plain image.
    """
    settings = Ascending() if settings is None else settings
    ascent = Ascent(point=start)
    accepted: deque[tuple[Array, Array]] = deque(maxlen=max(1, settings.memory) + 1)
    shortfalls: deque[float] = deque(maxlen=5)
    plain, since_plain = True, 0  # what the next question is, and how long ago the last plain one was
    refusals = 0  # accelerated points rejected since the last that was accepted
    while True:
        oracle.ask(ascent.point)
        since_plain = 0 if plain else since_plain + 1
        taken = plain or oracle.is_better()  # a plain image is better: nobody need tell
        step = oracle.accept() if taken else None
        ascent.visits.append(Visit(point=ascent.point, plain=plain, step=step))
        if step is not None:
            accepted.append((ascent.point, step))
        if not plain:
            refusals = 0 if taken else refusals + 1
        further = _further(ascent, list(accepted), settings)
        image = _estimate(ascent, accepted[-1], further, shortfalls, taken=taken)
        ascent.converged = ascent.error <= settings.tolerance
        is_blind = len(accepted) == 1 and np.array_equal(further, image)  # nothing says how far steps fall short
        plain = settings.memory == 0 or is_blind or not taken or since_plain >= PLAIN_EVERY - 1
        if ascent.converged and settings.memory:
            ascent.point = further
        else:
            ascent.point = image if plain else image + 0.5 ** max(0, refusals - 1) * (further - image)
        if on_round is not None:
            on_round(ascent)
        if ascent.converged or len(ascent.visits) >= settings.max_rounds:
            return ascent


def _further(ascent: Ascent, accepted: list[tuple[Array, Array]], settings: Ascending) -> Array:
    """How far one would extrapolate from the accepted points."""
    if settings.is_loose:
        return extrapolate(accepted, lengthened=_looseness(accepted))
    origin = ascent.visits[0].step if settings.from_zero else None
    if origin is None:
        return extrapolate(accepted)
    if len(accepted) == 1:
        return normal_optimum(origin)
    return extrapolate(accepted, lengthened=_shortness(origin, *accepted[-1]))


def _estimate(
    ascent: Ascent, last: tuple[Array, Array], further: Array, shortfalls: deque[float], *, taken: bool
) -> Array:
    """Tell the ascent its error; returns the last accepted point's image."""
    point, step = last
    image: Array = point + step
    if taken:
        shortfalls.append(_norm(further - point) / max(_norm(step), _TINY))
    ascent.shortfall = max([1.0, *shortfalls])
    ascent.error = _norm(step) * ascent.shortfall / max(_norm(image), _LEAST_NORM)
    return image


def normal_optimum(step: Array) -> Array:
    """About where normal rows of two classes have their optimum, if this is the step from 0.

    A step longer than any of theirs is left as it is: the columns' variances are not about 1.
    """
    rest = 1 - math.pi / 8 * float(step @ step)
    return step * min(_LONGEST_FIRST, 1 / math.sqrt(rest)) if rest > 0 else step


def _shortness(origin: Array, point: Array, step: Array) -> float:
    """1 / k(r): by how much steps fall short at a point, if `origin` is the step from 0 and rows are normal."""
    if not (told := float((origin - step) @ point)) > 0:
        return 1.0
    return min(max(1.0, float(point @ point) / told), _FURTHEST)


def _looseness(accepted: list[tuple[Array, Array]]) -> float:
    """By how much steps fall short along the last way."""
    if len(accepted) < 2:
        return 1.0
    (before, first), (point, step) = accepted[-2:]
    changed = first - step
    told = float((point - before) @ changed)
    return min(max(1.0, told / float(changed @ changed)), _LOOSEST) if told > 0 else 1.0


def extrapolate(accepted: list[tuple[Array, Array]], *, lengthened: float = 1.0) -> Array:
    """The point at which the step would be least if it were linear: from accepted points and steps, oldest first.

    What the memory does not explain of the step is `lengthened`.
    """
    point, step = accepted[-1]
    chosen: list[tuple[Array, Array]] = []  # differences of points and of steps, in units of the latter
    directions: list[Array] = []  # orthonormal, spanning the differences of steps
    for i in range(len(accepted) - 1, 0, -1):
        moved, changed = accepted[i][0] - accepted[i - 1][0], accepted[i][1] - accepted[i - 1][1]
        length = _norm(changed)
        if not length > 0:
            continue
        rest = changed / length
        for direction in directions:
            rest = rest - (direction @ rest) * direction
        if (sine := _norm(rest)) >= _LEAST_SINE:
            directions.append(rest / sine)
            chosen.append((moved / length, changed / length))
    image: Array = point + step
    if not chosen:
        return image
    X, F = (np.stack(columns, axis=1) for columns in zip(*chosen, strict=True))
    weights = np.linalg.lstsq(F, step, rcond=None)[0]
    further: Array = point - X @ weights + lengthened * (step - F @ weights)
    return further


def _norm(v: Array) -> float:
    return float(np.linalg.norm(v))
