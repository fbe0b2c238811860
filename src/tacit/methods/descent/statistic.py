"""One round of noisy descent at a party: the sum of its records' gradients, clipped, perhaps sampled, and noised.

How far one record moves the sum. At a public parameter theta, b = ||theta||, a record's gradient has a norm of at most
G(b), and two records' gradients are at most D(b) apart:

    two classes    G(b) = R sigma(R b)                              D(b, R), certified (`models.sensitivity`)
    more classes   G(b) = sqrt 2 R pi(b), pi as in that module      2 G(b)

Clipping to norm C is a projection onto a ball: it brings no two gradients further apart, and it bounds G by C. So
replacing a record moves the sum by at most min(D, 2 C), and adding one by at most min(G, C). Both are functions of
theta, which is public.

Where a person or a party is the unit, its m records weigh 1/m each, after clipping. So it adds the mean of clipped
gradients, and moves the sum no further than one record does (`methods.cohort`). Such a round is never of a sample.

Rounding errors are part of both. A computed sum of n gradients is within e n G of the true one, e the sum of the
relative errors of a sum over chunks (as in `models.certificate`) and of a record's residual; so 2 e n G is added.

Noise. A round's sum is opened with discrete Gaussian shares that do as well as continuous noise, of every record or of
a sample (`privacy.noise.continuous` has the proof, step 9 for samples). So a full round costs what a `Gaussian` event
does. Where each record enters with probability q, by itself and unknown to others, it costs `PoissonSampled(q,
Gaussian)`, and the sensitivity is that of adding a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.data.block import Block
from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise, bound_of
from tacit.models.loss import CHUNK_ROWS, Array, Loss, Rows
from tacit.models.residual import residuals
from tacit.models.sensitivity import gradient_diameter, gradient_norm
from tacit.privacy.event import Event, PoissonSampled
from tacit.privacy.noise.discrete import discrete_gaussian
from tacit.privacy.noise.grid import NoiseGrid, exact_grid, mu_event, mu_grid
from tacit.privacy.noise.norm import gaussian_norm
from tacit.rand import Rng
from tacit.secure.bound import NormBound

Ints = npt.NDArray[np.int64]

_U = 2.0**-53
_UP = 1 + 2.0**-40
_MOST_REACH = 1e6  # of R ||theta||: beyond it residuals are 0 or 1, and rounding errors begin to count


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    Attributes:
        cohort: who takes part, with which rows.
        promise: what the run promises in all its rounds.
        rounds: how many gradients are asked for.
        mu: that of one round, as if nothing were sampled: sensitivity over noise; infinite for no noise.
        probability: with which a record enters a round; 1 means every record.
        clip: the norm to which each record's gradient is scaled down; infinity clips nothing.
        paper_std: the document's noise, added to the whole gradient; 0 for the sound calibration.
    """

    cohort: Cohort
    promise: Promise
    rounds: int
    mu: float
    probability: float
    clip: float
    paper_std: float

    @property
    def loss(self) -> Loss:
        """The loss of one record, without a penalty."""
        return self.cohort.loss

    @property
    def dimension(self) -> int:
        """How many numbers a gradient has."""
        return math.prod(self.loss.shape)

    def norm_bound(self, theta: Array) -> float:
        """min(G, C): no record's clipped gradient is longer."""
        longest = gradient_norm(float(np.linalg.norm(theta)), self.cohort.row_norm, self.cohort.n_classes)
        return min(longest, self.clip) * _UP

    def sensitivity(self, theta: Array) -> float:
        """How far one record moves the computed sum: replaced or, in a sampled round, added."""
        moved = bound = self.norm_bound(theta)
        if self.probability == 1:
            moved = 2 * bound
            if self.cohort.n_classes == 2:
                moved = min(moved, gradient_diameter(float(np.linalg.norm(theta)) * _UP, self.cohort.row_norm))
        return (moved + 2 * self._relative_error(theta) * self.cohort.n_largest * bound) * _UP

    def _relative_error(self, theta: Array) -> float:
        """Of a computed sum of gradients, as a share of the sum of their norms."""
        summing = CHUNK_ROWS + self.cohort.most_rows / CHUNK_ROWS + 12
        reach = self.cohort.row_norm * float(np.linalg.norm(theta))
        return 2 * _U * (summing + 8 * (self.cohort.n_features + 4) * (1 + reach))

    def grid(self, theta: Array) -> NoiseGrid:
        """Where the sum is rounded to, and what noise each party adds to it."""
        total = self.cohort.total(
            dimension=self.dimension,
            sensitivity=self.sensitivity(theta),
            value_bound=2 * self.cohort.n_largest * self.norm_bound(theta) + 40 * self.paper_std,
            norm_bound=1.01 * self.cohort.n_largest * self.norm_bound(theta),
        )
        return exact_grid(total) if math.isinf(self.mu) else self.cohort.check_rounding(mu_grid(total, mu=self.mu))

    def event(self) -> Event:
        """What opening one sum costs."""
        return self.promise.not_private or round_event(self.mu, self.probability)


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterate:
    """Where the coordinator wants the gradient."""

    theta: Array

    def check(self, plan: Plan) -> None:
        """Refuse an iterate that does not fit the plan, or that floats cannot compute with."""
        if self.theta.shape != plan.loss.shape:
            raise PolicyRefusal(f"the iterate has shape {self.theta.shape}; the run's model has {plan.loss.shape}")
        if not float(np.linalg.norm(self.theta)) * plan.cohort.row_norm <= _MOST_REACH:
            raise PolicyRefusal("the iterate is too long to compute with; choose a smaller learning_rate")


def round_event(mu: float, probability: float) -> Event:
    """What one round costs at so much noise, of a sample or of every record."""
    event = mu_event(mu)
    return event if probability == 1 else PoissonSampled(probability=probability, event=event)


@step("noisy-descent/gradient", version=3, plan=Plan, values=Iterate, seated=True)
def party_gradient(table: Table, plan: Plan, iterate: Iterate, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """Seal the sum of this party's gradients, with its share of the noise."""
    iterate.check(plan)
    party = seat.party if seat is not None else None
    part_sum = partial(gradient_sum, plan.loss, theta=iterate.theta, clip=plan.clip)
    if plan.probability < 1:  # of records: nothing else is sampled
        gradient = part_sum(_sampled(table, plan.probability, rng))
    else:
        gradient = plan.cohort.stream(table, plan.cohort.share(party)).total(part_sum)
    grid = plan.grid(iterate.theta)
    addend = grid.to_grid(gradient.ravel(), rng=rng)
    event = plan.cohort.cost(plan.event(), party)
    return Sealed(addend=addend, event=event, n_parties=grid.total.least, bound=bound_of(grid))


@step("noisy-descent/whole-gradient", version=2, plan=Plan, values=Iterate)
def party_gradient_and_noise(table: Table, plan: Plan, iterate: Iterate, *, rng: Rng) -> Sealed:
    """As the document prints it, NOT PRIVATE: the exact sum, and beside it this party's share of the noise."""
    iterate.check(plan)
    grid = plan.grid(iterate.theta)
    gradient = table.stream().total(partial(gradient_sum, plan.loss, theta=iterate.theta, clip=plan.clip))
    noise, share_std = np.zeros(plan.dimension, dtype=np.int64), 0.0
    if plan.paper_std:
        share_std = plan.paper_std / math.sqrt(plan.cohort.n_parties) / grid.step
        coarse = 2.0 ** max(0, math.ceil(math.log2(share_std)) - 30)  # steps at a time
        noise = int(coarse) * discrete_gaussian(share_std / coarse, plan.dimension, rng=rng)
    addend = np.stack([grid.to_grid(gradient.ravel(), rng=rng), noise])
    event = replace(plan.promise, calibration="paper").event()
    longest = gaussian_norm(share_std, plan.dimension)
    bound = (*bound_of(grid), NormBound(size=plan.dimension, norm=math.ceil(longest) + 1))
    return Sealed(addend=addend, event=event, n_parties=grid.total.least, bound=bound)


def gradient_sum(loss: Loss, blocks: Iterable[Rows], theta: Array, *, clip: float) -> Array:
    """The sum of the records' gradients, each scaled down to norm `clip` and then weighed, in the shape of theta."""
    total = np.zeros((len(np.atleast_2d(theta)), loss.width))
    for X, y, *weights in blocks:
        for start in range(0, len(X), CHUNK_ROWS):
            rows, labels = X[start : start + CHUNK_ROWS], y[start : start + CHUNK_ROWS]
            residual = residuals(loss.scores(rows, theta).reshape(len(rows), -1), labels)
            if math.isfinite(clip):
                squares = np.einsum("ij,ij->i", residual, residual)
                squares *= np.einsum("ij,ij->i", rows, rows) + loss.constant**2
                residual *= (clip / np.sqrt(np.maximum(squares, clip**2)))[:, None]
            if weights:
                residual *= weights[0][start : start + CHUNK_ROWS, None]
            total[:, : loss.n_features] += residual.T @ rows
            if loss.constant != 0:
                total[:, -1] += loss.constant * residual.sum(axis=0)
    return total.reshape(theta.shape)


def _sampled(table: Table, probability: float, rng: Rng) -> Iterator[Block]:
    """The rows that enter a round, each with the given probability, rounded down to a multiple of 2**-64."""
    threshold = np.uint64(int(Fraction(probability) * 2**64))
    for X, y in table.blocks():
        kept = rng.words(len(y)) < threshold
        yield Block(X[kept], y[kept])
