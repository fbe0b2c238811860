"""What a party of private Newton is asked: its squares, once; its moments, once; its responses to a few models.

Rows are z = (x, c), c the value of the intercept's feature, R^2 = r^2 + c^2 >= ||z||^2. The squares shape the rest: a
public matrix B made of them (`shape`) turns and stretches rows to g = B z, which then count as u = a g with the
weight a = min(1, 1/||g||). With models over g, whose scores are as they would be without the weights,

    squares     A = sum z z'
    moments     t = sum (label - 1/2) u, M = sum u u' and sum a / 10   (softmax: label = e_y, 1/C in place of 1/2)
    responses   S(w) = sum (prediction - 1/2) u, without a look at the labels; the weighted gradient is S - t

Where a person or a party is the unit, a unit's m records weigh 1/m each in every sum, which leaves all that follows as
it is (`methods.cohort` has the proof): "one record" stands for one unit, and n for the number of units.
Each is summed over all parties and opened with Gaussian noise. Weights depend on rows alone, so that a model that is
right for all records is right for the weighted ones too. How far one record moves each sum, whatever B is:

    replaced  A: ||z z' - y y'||^2 <= 2 R^4, z and y at right angles. (t, M sqrt(q/2)) as one vector: 3/2 sqrt(q), q =
              1/2 for two classes, 2 (1 - 1/C) for more (proof in `functional.statistic`: a record cannot move both most
              at once). The sum of weights moves by at most 1. S: twice the norm in `models.response`
    added     A: R^2. t by sqrt(q/2), as ||e_y - 1/C||^2 = 1 - 1/C, and M sqrt(q/2) by as much, so both by sqrt(q).
              The sum of weights: by at most 1. S: the norm there

Rounding errors are part of each: a computed sum of n terms of norm at most 1 is within e n of the true one, e the
relative error of a sum over chunks (`descent.statistic` has the same) and of the terms, which are rounded where z is
multiplied by B, and where a term is multiplied by its weight; 2 e n is added. Where records are added or removed, n is
not public and a bound that no party exceeds takes its place. So it does for the number of rows that e depends on, where
records are not the unit.

Exact Gaussian accounting. Given all that was opened before, each release is mu_k-Gaussian private, its noise being a
sum of discrete Gaussians, one of each party (`privacy.noise.continuous` has the proof and its conditions). All together
are mu-Gaussian private, mu^2 = sum mu_k^2. Concentrated privacy would ask for 6 to 9 % more noise at the same (epsilon,
delta).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from tacit.data.block import WeightedBlock
from tacit.data.part import ONE_IN
from tacit.data.stream import RowStream
from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, bound_of
from tacit.methods.newton.triangle import mirrored, symmetric, triangle
from tacit.models.loss import CHUNK_ROWS
from tacit.models.response import response_norm
from tacit.privacy.event import Event, Gaussian, NotPrivate, Under
from tacit.privacy.guarantee import Relation
from tacit.privacy.noise.grid import NoiseGrid, exact_grid, mu_grid
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

COUNTED = 0.1
"""What the sum of weights is multiplied by before its noise is drawn: it is far from 0, and need not be exact."""
_U = 2.0**-53
_UP = 1 + 2.0**-40
_MOST_REACH = 1e6  # of R ||B|| and of a model: beyond it rounding errors begin to count
_WHY = "epsilon is infinite: no noise is added"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of a run, as every party derives them.

    `mu_squares`, `mu_moments` and `mu_response` are those of the two releases and of each of the others: sensitivity
    over noise; infinite for no noise. `rounds` is how many of the last kind there are at most. The cohort's constant
    is c.
    """

    cohort: Cohort
    mu_squares: float
    mu_moments: float
    mu_response: float
    rounds: int
    relation: Relation
    mu_middle: float = 0.0  # of the sandwich's middle (`middle`); 0 if it is not asked for
    mu_measuring: float = 0.0  # of the histogram of scores (`measuring`); 0 if it is not asked for

    def event(self, mu: float) -> Event:
        """What a release of this run with so little noise costs."""
        return release_event(mu, self.relation)

    @property
    def n_fitted(self) -> float:
        """How much the units weigh together that the model is fitted to: about, where some are kept for measuring."""
        kept = 1 - 1 / ONE_IN if self.mu_measuring else 1.0
        return kept * self.cohort.n_weighted

    def rows(self, table: Table, share: float = 1.0) -> RowStream:
        """A party's rows that the model is fitted to: all, or those that it is not measured on."""
        rows = self.cohort.stream(table, share)
        return rows.chosen(~table.measured) if self.mu_measuring else rows

    @property
    def reach(self) -> float:
        """R: the largest norm of a row with its constant."""
        return self.cohort.row_norm * _UP

    @property
    def width(self) -> int:
        """k, the features with the constant."""
        return self.cohort.n_features + 1

    @property
    def n_scores(self) -> int:
        """How many rows t, S and a model have."""
        return 1 if self.cohort.n_classes == 2 else self.cohort.n_classes

    @property
    def spread(self) -> float:
        """q."""
        return 0.5 if self.cohort.n_classes == 2 else 2 * (1 - 1 / self.cohort.n_classes)

    @property
    def square_unit(self) -> float:
        """What M is divided by before its noise is drawn."""
        return math.sqrt(2 / self.spread)

    # --- squares -----------------------------------------------------------------------------------------------------

    @property
    def squares_sensitivity(self) -> float:
        """How far one record moves A / R, as computed."""
        moved = math.sqrt(2) if self.relation == "replace-one" else 1.0
        return self.reach * (moved + 4 * _U * self._summing * self.cohort.n_largest) * _UP

    @property
    def squares_grid(self) -> NoiseGrid:
        """Where the squares are rounded to, and what noise each party adds to them."""
        bound = 1.01 * self.reach * self.cohort.n_largest
        return self._grid(self.width * (self.width + 1) // 2, self.squares_sensitivity, bound, self.mu_squares)

    @property
    def squares_noise(self) -> float:
        """The standard deviation of the noise on an entry on the diagonal of A."""
        return self.squares_grid.noise_std * self.reach

    def unpack_squares(self, opened: npt.NDArray[np.int64]) -> Floats:
        """A."""
        return symmetric(self.squares_grid.from_grid(opened)) * self.reach

    # --- moments -----------------------------------------------------------------------------------------------------

    def moments_sensitivity(self, B: Floats) -> float:
        """How far one record moves (t, M / square_unit, sum of weights / 10), as computed."""
        moved = math.hypot((1.5 if self.relation == "replace-one" else 1.0) * math.sqrt(self.spread), COUNTED)
        return (moved + 8 * _U * self._errors(B) * self.cohort.n_largest) * _UP

    def moments_grid(self, B: Floats) -> NoiseGrid:
        """Where the moments are rounded to, and what noise each party adds to them."""
        dimension = self.n_scores * self.width + self.width * (self.width + 1) // 2 + 1
        longest = 1.01 * self.cohort.n_largest * math.hypot(1.0, math.sqrt(self.spread), COUNTED)
        return self._grid(dimension, self.moments_sensitivity(B), longest, self.mu_moments)

    def pack(self, t: Floats, M: Floats, weight: float) -> Floats:
        """t, M in its unit, and the sum of weights in its."""
        return np.concatenate([t.ravel(), triangle(M) / self.square_unit, [COUNTED * weight]])

    def unpack(self, opened: npt.NDArray[np.int64], B: Floats) -> tuple[Floats, Floats, float]:
        """t of shape (n_scores, k), M and the sum of weights: the inverse of `pack` and rounding."""
        flat, n_linear = self.moments_grid(B).from_grid(opened), self.n_scores * self.width
        t, M = flat[:n_linear].reshape(self.n_scores, self.width), symmetric(flat[n_linear:-1]) * self.square_unit
        return t, M, float(flat[-1]) / COUNTED

    def moments_noise(self, B: Floats) -> tuple[float, float]:
        """The standard deviation of the noise on an entry of t, and on one on the diagonal of M."""
        noise = self.moments_grid(B).noise_std
        return noise, noise * self.square_unit

    # --- responses ---------------------------------------------------------------------------------------------------

    def response_sensitivity(self, B: Floats, model: Floats) -> float:
        """How far one record moves the computed S at `model`."""
        longest = response_norm(self.reach * float(np.linalg.norm(model @ B)) * _UP + 2.0**-30, self.cohort.n_classes)
        moved = 2 * longest if self.relation == "replace-one" else longest
        errors = 4 * _U * self._errors(B) * (1 + float(np.linalg.norm(model))) * self.cohort.n_largest
        return (moved + errors) * _UP + 2.0**-40

    def response_grid(self, B: Floats, model: Floats) -> NoiseGrid:
        """Where the responses are rounded to, and what noise each party adds to them."""
        sensitivity = self.response_sensitivity(B, model)
        return self._grid(self.n_scores * self.width, sensitivity, 1.01 * self.cohort.n_largest, self.mu_response)

    def middle_sensitivity(self, B: Floats, model: Floats) -> float:
        """How far one record moves the computed middle of the sandwich (proof in `middle`)."""
        moved = math.sqrt(2) if self.relation == "replace-one" else 1.0
        errors = 8 * _U * self._errors(B) * (1 + float(np.linalg.norm(model))) * self.cohort.n_largest
        return self._longest_middle * (moved + errors) * _UP + 2.0**-40

    def middle_grid(self, B: Floats, model: Floats) -> NoiseGrid:
        """Where the middle is rounded to, and what noise each party adds to it."""
        size, longest = self.n_scores * self.width, 1.01 * self._longest_middle * self.cohort.n_largest
        return self._grid(size * (size + 1) // 2, self.middle_sensitivity(B, model), longest, self.mu_middle)

    @property
    def _longest_middle(self) -> float:
        """q of `middle`: the largest square of a record's error."""
        return 1.0 if self.cohort.n_classes == 2 else 2.0

    # --- of all ------------------------------------------------------------------------------------------------------

    @property
    def _summing(self) -> float:
        return CHUNK_ROWS + self.cohort.most_rows / CHUNK_ROWS + 24

    def _errors(self, B: Floats) -> float:
        """Of a term and of the sum, in units of rounding."""
        return self._summing + 8 * (self.width + 4) * (1 + self.reach * float(np.linalg.norm(B)))

    def _grid(self, dimension: int, sensitivity: float, longest: float, mu: float) -> NoiseGrid:
        total = self.cohort.total(dimension=dimension, sensitivity=sensitivity, value_bound=longest, norm_bound=longest)
        return exact_grid(total) if math.isinf(mu) else self.cohort.check_rounding(mu_grid(total, mu=mu))

    def sealed(self, addend: npt.NDArray[np.int64], grid: NoiseGrid, mu: float, party: str | None) -> Sealed:
        """A party's reply on a grid, with so little noise."""
        event = self.cohort.cost(self.event(mu), party)
        return Sealed(addend=addend, event=event, n_parties=self.cohort.n_parties, bound=bound_of(grid))

    # --- what a party checks of values --------------------------------------------------------------------------------

    def checked_shape(self, shape: Floats) -> Floats:
        """B of its triangle, unless it is none, or too large to compute with."""
        if shape.shape != (self.width * (self.width + 1) // 2,):
            raise PolicyRefusal("the shape that was sent does not fit this party's table")
        B = mirrored(shape)
        if not float(np.linalg.norm(B)) * self.reach <= _MOST_REACH:
            raise PolicyRefusal("the shape that was sent is too large")
        return B

    def check_model(self, model: Floats) -> None:
        """Refuse a model that is none, or too long to compute with."""
        if model.shape != (self.n_scores, self.width) or not float(np.linalg.norm(model)) <= _MOST_REACH:
            raise PolicyRefusal("the model that was sent does not fit this party's table, or is too long")


def release_event(mu: float, relation: Relation) -> Event:
    """What a release with so little noise costs."""
    if math.isinf(mu):
        return NotPrivate(why=_WHY)
    event = Gaussian(noise_multiplier=1 / mu)
    return event if relation == "replace-one" else Under(relations=(relation,), event=event)


# --- the steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    """What the coordinator made of the squares: the upper triangle of B."""

    shape: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A model to respond to, over rows in the shape that goes with it."""

    shape: Floats
    model: Floats


@step("private-newton/squares", version=2, plan=Plan, seated=True)
def party_squares(table: Table, plan: Plan, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """Seal this party's A, with its share of the noise."""
    party = seat.party if seat is not None else None
    grid = plan.squares_grid
    addend = grid.to_grid(triangle(squares_sum(table, plan, plan.cohort.share(party))) / plan.reach, rng=rng)
    return plan.sealed(addend, grid, plan.mu_squares, party)


@step("private-newton/moments", version=3, plan=Plan, values=Shape, seated=True)
def party_moments(table: Table, plan: Plan, given: Shape, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """Seal this party's t, M and sum of weights, with its share of the noise."""
    party = seat.party if seat is not None else None
    B = plan.checked_shape(given.shape)
    grid = plan.moments_grid(B)
    addend = grid.to_grid(plan.pack(*moments_sum(table, plan, B, plan.cohort.share(party))), rng=rng)
    return plan.sealed(addend, grid, plan.mu_moments, party)


@step("private-newton/responses", version=3, plan=Plan, values=Trial, seated=True)
def party_responses(table: Table, plan: Plan, trial: Trial, *, rng: Rng, seat: Seat | None = None) -> Sealed:
    """Seal the sum of this party's responses to a model, with its share of the noise."""
    party = seat.party if seat is not None else None
    plan.check_model(trial.model)
    B = plan.checked_shape(trial.shape)
    grid = plan.response_grid(B, trial.model)
    responses = response_sum(table, plan, B, trial.model, plan.cohort.share(party))
    addend = grid.to_grid(responses.ravel(), rng=rng)
    return plan.sealed(addend, grid, plan.mu_response, party)


# --- the sums --------------------------------------------------------------------------------------------------------


def squares_sum(table: Table, plan: Plan, share: float = 1.0) -> Floats:
    """A of a party's records, of which a unit weighs `share`."""
    return plan.rows(table, share).total(partial(_squares, constant=plan.cohort.constant, width=plan.width))


def _squares(blocks: Iterable[WeightedBlock], *, constant: float, width: int) -> Floats:
    A = np.zeros((width, width))
    for Z, _, weights in rows_of(blocks, constant):
        Z *= np.sqrt(weights)[:, None]
        A += Z.T @ Z
    return A


def moments_sum(table: Table, plan: Plan, B: Floats, share: float = 1.0) -> tuple[Floats, Floats, float]:
    """t, of shape (n_scores, k), M and the sum of weights of a party's records, of which a unit weighs `share`."""
    n_classes, constant = plan.cohort.n_classes, plan.cohort.constant
    return plan.rows(table, share).total(partial(_moments, B=B, n_classes=n_classes, constant=constant))


def _moments(
    blocks: Iterable[WeightedBlock], *, B: Floats, n_classes: int, constant: float
) -> tuple[Floats, Floats, float]:
    n_scores = 1 if n_classes == 2 else n_classes
    t, M, weight = np.zeros((n_scores, len(B))), np.zeros((len(B), len(B))), 0.0
    for Z, y, own in rows_of(blocks, constant):
        rows = shaped(Z, B)
        labels = (y - 0.5)[:, None] if n_classes == 2 else np.eye(n_classes)[y] - 1 / n_classes
        t += (labels * own[:, None]).T @ rows.u
        weight += float(own @ rows.weights)
        weighed = rows.u * np.sqrt(own)[:, None]
        M += weighed.T @ weighed
    return t, M, weight


def response_sum(table: Table, plan: Plan, B: Floats, model: Floats, share: float = 1.0) -> Floats:
    """S(model) of a party's records, of which a unit weighs `share`, of shape (n_scores, k)."""
    return plan.rows(table, share).total(partial(_responses, B=B, model=model, constant=plan.cohort.constant))


def _responses(blocks: Iterable[WeightedBlock], *, B: Floats, model: Floats, constant: float) -> Floats:
    total = np.zeros((len(model), len(B)))
    for Z, _, own in rows_of(blocks, constant):
        rows = shaped(Z, B)
        scores = rows.g @ model.T
        above = expit(scores) - 0.5 if len(model) == 1 else softmax(scores, axis=1) - 1 / len(model)
        total += (above * own[:, None]).T @ rows.u
    return total


@dataclass(frozen=True)
class Shaped:
    """Rows g = B z, their weights a, and u = a g."""

    g: Floats
    u: Floats
    weights: Floats


def shaped(Z: Floats, B: Floats) -> Shaped:
    """Rows in the shape B.

    Guarantees:
        No row of u is longer than 1, but for rounding.
    """
    g: Floats = Z @ B
    lengths = np.sqrt(np.einsum("ij,ij->i", g, g))
    weights = 1 / np.maximum(lengths, 1.0)
    return Shaped(g, g * weights[:, None], weights)


def rows_of(blocks: Iterable[WeightedBlock], constant: float) -> Iterator[WeightedBlock]:
    """Rows with their constant, labels and weights, in chunks."""
    for X, y, weights in blocks:
        for start in range(0, len(X), CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            rows = X[chunk]
            yield WeightedBlock(np.column_stack([rows, np.full(len(rows), constant)]), y[chunk], weights[chunk])
