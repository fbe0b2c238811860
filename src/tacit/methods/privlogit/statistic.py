"""What parties give to an exact fit by secure sums: statistics of their records in public units, in fixed point.

Sums are means: all are divided by the public number n of all records, so that sizes are of order 1 whatever the data.
No party's part exceeds 2^62 steps: |mean of residual times z_j| <= sqrt 2 by the bounds, or by Cauchy and Schwarz by
the moments. What exceeds that, because a coordinator told other units, is cut off: a refusal would tell of records. The
penalty is added by the parties in proportion to their records. Units, plan and their proofs are in `unit`.

The exact sums carry no noise, so that every reply says NotPrivate. Nothing is sealed for a sum over fewer than two
parties, which would be a party's own: such a cohort has no plan. With a curvature a party declares which contrasts of
its inverse may be opened: those of the regression table (`secure.center.program` says why).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.data.block import Block
from tacit.data.moment import Moments, row_moments
from tacit.data.stream import RowStream
from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.message import question_digest
from tacit.federation.reply import Encrypted, Kept, Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import Step, step
from tacit.methods.privlogit.block import gram_blocks, on_diagonal
from tacit.methods.privlogit.unit import Plan, Scaling, Units, ceiling
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.privacy.event import NotPrivate
from tacit.rand import Rng
from tacit.secure.bound import Bound, NormBound
from tacit.secure.center.product import EncryptedInverse
from tacit.secure.center.program import BLOCK, contrasts_digest
from tacit.secure.digit import DIGIT_BITS, DIGITS, LARGEST, to_digits

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS_OPENED = NotPrivate(why="opened exactly: the steps and the model of a pooled fit")
SUMS_OPENED = NotPrivate(why="opened exactly: the gradients and curvatures of all parties' records together")
MOMENTS_OPENED = NotPrivate(why="opened exactly: means and variances of the columns without declared bounds")
LOSS_OPENED = NotPrivate(why="opened exactly: the likelihood of the pooled fit")

OPENED_BITS = 60  # fraction bits of a gradient
PEAK_BITS = 48  # of one that is opened with a curvature: nodes check the size of both together
KEPT_BITS = 40  # fraction bits of what the center computes with
LOSS_BITS = 59  # of the mean loss, which is cut off at _LARGEST_LOSS
LARGEST_MOMENT = LARGEST / 2  # sums of squares are cut off here
_LARGEST_LOSS = 7.5  # above the ln C of a model that says nothing, for fewer than 1,800 classes: never accepted
_LARGEST_DIGITS = 2.0**200  # of a likelihood in digits: one that is lower is never accepted
_LARGEST_WHOLE = 2.0**62
_LARGEST_SLOPE = 4.0  # of an entry of a mean gradient, which is at most sqrt 2
_NEAR_CENTRE = 16.0  # units from 0: eight of 53 bits are lost in a square
_MOST_NORM = 2**63 - 1


# --- what only the coordinator can know ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """In which units to measure; None if every column has declared bounds."""

    units: Units | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """A parameter in public units, classes first, at which statistics are asked for."""

    point: Floats
    units: Units | None

    def scaling(self, plan: Plan) -> Scaling:
        """The units; a `PolicyRefusal` if this is no point of the fit."""
        if self.point.shape != plan.problem.loss.shape or not np.isfinite(self.point).all():
            raise PolicyRefusal(f"a point of shape {self.point.shape} is no parameter of the fit, or is not finite")
        return plan.scaling(self.units)


@dataclass(frozen=True, kw_only=True, eq=False)
class Multiplied(Point):
    """A point whose gradient is to be multiplied with the encrypted inverse."""

    inverse: EncryptedInverse

    def scaling(self, plan: Plan) -> Scaling:
        """The units; a `PolicyRefusal` if this is no point of the fit, or the inverse not of its size."""
        terms = self.inverse.terms
        if (terms.n_features, terms.n_parties) != (plan.problem.loss.width, plan.cohort.n_parties):
            raise PolicyRefusal("the encrypted inverse is not of this fit's columns and parties")
        return super().scaling(plan)


# --- steps: what a party computes ------------------------------------------------------------------------------------


def _moments(table: Table, plan: Plan, *, rng: Rng) -> Sealed:
    """The sums of the entries and of their squares, of columns without declared bounds."""
    sums = np.stack([table.moments.total, np.diag(table.moments.square)])
    chosen = _within(sums[:, plan.unbounded], LARGEST_MOMENT)
    return Sealed(to_digits(chosen), MOMENTS_OPENED, plan.cohort.n_parties, _digit_bound(chosen.size), exact=True)


def _bound(table: Table, plan: Plan, measure: Measure, *, rng: Rng) -> Kept:
    scaling = plan.scaling(measure.units)
    if plan.is_wide:
        bits = KEPT_BITS - scaling.block_bits
        blocks = _fixed(_block_share(table, scaling), bits)
        return Kept({"blocks": blocks}, STEPS_OPENED, plan.cohort.n_parties, {"blocks": _block_bound(scaling, bits)})
    bits = KEPT_BITS - scaling.trace_bits
    share = _fixed(_bound_share(table, scaling), bits)
    bounds = {"curvature": _curvature_bound(share, scaling, bits)}
    return Kept({"curvature": share}, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _open_bound(table: Table, plan: Plan, measure: Measure, *, rng: Rng) -> Sealed:
    scaling = plan.scaling(measure.units)
    if plan.is_wide:
        share = _fixed(_block_share(table, scaling), scaling.opened_bits)
        bound = _block_bound(scaling, scaling.opened_bits)
    else:
        share = _fixed(_bound_share(table, scaling), scaling.opened_bits)
        bound = _curvature_bound(share, scaling, scaling.opened_bits)
    return Sealed(share, SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _point(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Kept:
    gradient, mean = _point_share(table, at.point, at.scaling(plan))
    addends = {"gradient": _fixed(gradient, OPENED_BITS), "likelihood": _cut(mean)}
    bounds = {name: _whole_bound(addend) for name, addend in addends.items()}
    return Kept(addends, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _product(table: Table, plan: Plan, at: Multiplied, *, rng: Rng, seat: Seat, bound: Step) -> Encrypted:
    """The gradient times the encrypted inverse, if the center's nodes signed that for the bound of this very run."""
    if seat.bond is not None:
        at.inverse.check(_bound_asked(seat, bound, at.units), seat.bond.nodes)
    gradient, mean = _point_share(table, at.point, at.scaling(plan))
    product = at.inverse.times(_fixed(gradient, OPENED_BITS), rng=rng)
    likelihood = _cut(mean)
    bounds = {"likelihood": _whole_bound(likelihood)}
    return Encrypted(product, {"likelihood": likelihood}, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _open_point(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Sealed:
    gradient, mean = _point_share(table, at.point, at.scaling(plan))
    slope = _fixed(gradient, OPENED_BITS)
    bound = _whole_bound(slope) + _digit_bound(1)
    return Sealed(_flat(slope, to_digits(mean)), SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _curvature(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Kept:
    scaling = at.scaling(plan)
    curvature, gradient, mean = _curvature_share(table, at.point, scaling)
    bits = KEPT_BITS - scaling.trace_bits
    addends = {
        "curvature": _fixed(curvature, bits),
        "gradient": _fixed(gradient, OPENED_BITS),
        "likelihood": _cut(mean),
    }
    bounds = {name: _whole_bound(addend) for name, addend in addends.items()}
    bounds["curvature"] = _curvature_bound(addends["curvature"], scaling, bits)
    declared = contrasts_digest({"contrast": scaling.declared_contrast})
    return Kept(addends, STEPS_OPENED, plan.cohort.n_parties, bounds, contrasts=declared)


def _open_curvature(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Sealed:
    scaling = at.scaling(plan)
    curvature, gradient, mean = _curvature_share(table, at.point, scaling)
    square, slope = _fixed(curvature, scaling.opened_bits), _fixed(_within(gradient, _LARGEST_SLOPE), PEAK_BITS)
    longest = math.ceil(_LARGEST_SLOPE * 2.0**PEAK_BITS * math.sqrt(slope.size))
    of_slope = (NormBound(size=slope.size, norm=longest),)
    bound = _curvature_bound(square, scaling, scaling.opened_bits) + of_slope + _digit_bound(1)
    return Sealed(_flat(square, slope, to_digits(mean)), SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _loss(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Sealed:
    """The loss alone, without a penalty."""
    with np.errstate(over="ignore", invalid="ignore"):
        theta = at.scaling(plan).theta(at.point)
        loss = plan.problem.loss.sums(table.stream(), theta, curvature=False).loss
    digits = to_digits(_within(np.array([loss]), _LARGEST_DIGITS))
    return Sealed(digits, LOSS_OPENED, plan.cohort.n_parties, _digit_bound(1), exact=True)


class Questions(NamedTuple):
    """The steps that an exact method asks, registered under its own name."""

    moments: Step
    bound: Step
    open_bound: Step
    point: Step
    product: Step
    open_point: Step
    curvature: Step
    open_curvature: Step
    loss: Step


def register_questions(method: str) -> Questions:
    """Register the steps for a method; a run keeps to the units with which it begins."""

    def register(
        name: str, function: Callable[..., Kept | Sealed | Encrypted], values: type, *, seated: bool = False
    ) -> Step:
        made = step(f"{method}/{name}", version=3, plan=Plan, values=values, pinned=("units",), seated=seated)
        return made(function)

    bound = register("bound", _bound, Measure)
    return Questions(
        moments=step(f"{method}/moments", version=2, plan=Plan)(_moments),
        bound=bound,
        open_bound=register("open-bound", _open_bound, Measure),
        point=register("point", _point, Point),
        product=register("product", partial(_product, bound=bound), Multiplied, seated=True),
        open_point=register("open-point", _open_point, Point),
        curvature=register("curvature", _curvature, Point),
        open_curvature=register("open-curvature", _open_curvature, Point),
        loss=register("loss", _loss, Point),
    )


def _bound_asked(seat: Seat, bound: Step, units: Units | None) -> str:
    """The digest of the question about the curvature's bound in this run: what the inverse must have been made of."""
    asked = replace(
        seat.question, step=bound.name, version=bound.version, turn=0,
        values=bound.encode_values(Measure(units=units)),
    )  # fmt: skip
    return question_digest(asked.encode())


# --- what they are made of -------------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def _bound_share(table: Table, scaling: Scaling) -> Floats:
    """This party's part of h X'X + penalty, in public units, over n: of shape (k, k), whatever the classes."""
    d, k, n = table.n_columns, len(scaling.penalty), scaling.plan.n_records
    is_near = _is_near(scaling)
    square, total = (table.moments.square, table.moments.total) if is_near else _scaled_moments(table, scaling)
    gram = np.zeros((k, k))
    gram[:d, :d] = square
    if k > d:
        gram[:d, d], gram[d, :d], gram[d, d] = total, total, table.n_complete
    if is_near:
        gram = scaling.matrix.T @ gram @ scaling.matrix
    curvature: Floats = scaling.plan.ceiling * gram + np.diag(scaling.penalty) * (table.n_records / n)
    return curvature / n


@np.errstate(over="ignore", invalid="ignore")
def _block_share(table: Table, scaling: Scaling) -> Floats:
    """The same of a wide fit: its blocks alone (`block`)."""
    h, n = scaling.plan.ceiling, scaling.plan.n_records
    gram = _scaled(table, scaling).total(partial(gram_blocks, d=table.n_columns, width=len(scaling.penalty)))
    share = table.n_records / n
    return (h * gram + share * on_diagonal(scaling.penalty, h * n)) / n


def _is_near(scaling: Scaling) -> bool:
    """Whether rows may be squared as they are, without a copy of the table in public units.

    Such squares lose the digits in which a centre is larger than its unit, twice.
    """
    return bool((np.abs(scaling.centre) <= _NEAR_CENTRE * scaling.unit).all())


def _scaled_moments(table: Table, scaling: Scaling) -> tuple[Floats, Floats]:
    """X'X and the sum of the rows, in public units."""
    part_sum = partial(row_moments, n_columns=table.n_columns, n_classes=table.n_classes)
    found = Moments(*_scaled(table, scaling).total(part_sum))
    return found.square, found.total


@np.errstate(over="ignore", invalid="ignore")
def _point_share(table: Table, point: Floats, scaling: Scaling) -> tuple[Floats, Floats]:
    """This party's part of the mean gradient, and of the mean log-likelihood, at a point."""
    loss = scaling.plan.problem.loss
    if point.any():
        sums = loss.sums(table.stream(), scaling.theta(point), curvature=False)
        value, slope = sums.loss, sums.gradient
    else:
        value, slope = _at_zero(table, loss)
    gradient = _gradient(slope @ scaling.matrix, point, table, scaling)
    return gradient, _likelihood(value, point, table, scaling)


def _at_zero(table: Table, loss: Loss) -> tuple[float, Floats]:
    """The loss and its gradient at 0, where every class is as likely: no further pass, once the moments are known."""
    rows = table.moments.by_class
    if loss.constant != 0:
        rows = np.column_stack([rows, loss.constant * table.class_counts])
    slope: Floats = rows.sum(axis=0) / loss.n_classes - rows
    return table.n_complete * math.log(loss.n_classes), slope if loss.n_classes > 2 else slope[1]


@np.errstate(over="ignore", invalid="ignore")
def _curvature_share(table: Table, point: Floats, scaling: Scaling) -> tuple[Floats, Floats, Floats]:
    """Curvature, gradient and likelihood, classes first; softmax curvature is raised where it is flat."""
    problem, n = scaling.plan.problem, scaling.plan.n_records
    n_vectors = len(np.atleast_2d(point))
    is_near = _is_near(scaling)
    rows, theta = (table.stream(), scaling.theta(point)) if is_near else (_scaled(table, scaling), point)
    sums = problem.loss.sums(rows, theta)
    assert sums.curvature is not None
    curvature, slope = sums.curvature, sums.gradient
    if is_near:
        T = np.kron(np.eye(n_vectors), scaling.matrix)
        curvature, slope = T.T @ curvature @ T, slope @ scaling.matrix
    raised = np.diag(np.tile(scaling.penalty, n_vectors))
    if problem.n_classes > 2:
        raised = raised + flat_directions(problem) * n
    return (
        (curvature + table.n_records / n * raised) / n,
        _gradient(slope, point, table, scaling).T.reshape(-1),
        _likelihood(sums.loss, point, table, scaling),
    )


def flat_directions(problem: Problem) -> Floats:
    """h on the directions that add the same to every class, which change no probability: the fit never takes them."""
    C, k = problem.loss.shape
    return np.kron(np.full((C, C), ceiling(C) / C), np.eye(k))


def _gradient(gradient: Floats, point: Floats, table: Table, scaling: Scaling) -> Floats:
    """This party's part of the mean objective's slope, uphill: of shape (k,), or (k, C)."""
    n = scaling.plan.n_records
    return -(gradient + scaling.penalty * point * (table.n_records / n)).T / n


def _likelihood(loss: float, point: Floats, table: Table, scaling: Scaling) -> Floats:
    """This party's part of the mean penalised log-likelihood."""
    n = scaling.plan.n_records
    penalty = 0.5 * float((scaling.penalty * point**2).sum()) * table.n_records / n
    return -_within(np.array((loss + penalty) / n), _LARGEST_DIGITS)


def _cut(likelihood: Floats) -> Ints:
    """The likelihood in fixed point, cut off where it is lower than that of any point that is accepted.

    One part alone that reaches the cut-off puts the sum below every accepted one, so that comparisons stay right.
    """
    return _fixed(np.maximum(likelihood, -_LARGEST_LOSS), LOSS_BITS)


def _curvature_bound(share: Ints, scaling: Scaling, bits: int) -> Bound:
    """A part of a sum of positive matrices has no larger trace than the sum, and no larger norm than its trace.

    Softmax and the directions that change no probability count up to four times, and what is rounded a step an entry.
    """
    longest = 2.0 ** (scaling.trace_bits + bits + 2) + math.sqrt(share.size)
    return (NormBound(size=share.size, norm=math.ceil(min(longest, _LARGEST_WHOLE * math.sqrt(share.size)))),)


def _block_bound(scaling: Scaling, bits: int) -> Bound:
    """The same of blocks: their norm is at most the sum of their traces."""
    n_blocks = scaling.plan.n_blocks
    size = n_blocks * BLOCK * BLOCK
    longest = n_blocks * 2.0 ** (scaling.block_bits + bits + 2) + math.sqrt(size)
    return (NormBound(size=size, norm=math.ceil(min(longest, _LARGEST_WHOLE * math.sqrt(size)))),)


def _whole_bound(addend: Ints) -> Bound:
    """No entry is larger than what may be added up."""
    return (NormBound(size=addend.size, norm=min(math.ceil(_LARGEST_WHOLE * math.sqrt(addend.size)), _MOST_NORM)),)


def _digit_bound(count: int) -> Bound:
    """So many numbers in digits."""
    return (NormBound(size=count * DIGITS, norm=math.ceil(2.0**DIGIT_BITS * math.sqrt(count * DIGITS))),)


def _flat(*arrays: Ints) -> Ints:
    return np.concatenate([array.ravel() for array in arrays])


def _scaled(table: Table, scaling: Scaling) -> RowStream:
    """The rows in public units."""
    plain = not scaling.centre.any() and bool((scaling.unit == 1).all())
    rows = table.stream()
    return rows if plain else rows.through(partial(_in_units, centre=scaling.centre, unit=scaling.unit))


def _in_units(block: Block, *, centre: Floats, unit: Floats) -> Block:
    return Block((block.X - centre) / unit, block.y)


def _fixed(values: Floats, bits: int) -> Ints:
    """round(values 2^bits), cut off at what may be added up."""
    with np.errstate(over="ignore"):
        whole: Ints = _within(np.rint(np.ldexp(values, bits)), _LARGEST_WHOLE).astype(np.int64)
    return whole


def _within(values: Floats, largest: float) -> Floats:
    """Values cut off at `largest` in size; what is no number counts as too large."""
    return np.clip(np.nan_to_num(values, nan=largest, posinf=largest, neginf=-largest), -largest, largest)
