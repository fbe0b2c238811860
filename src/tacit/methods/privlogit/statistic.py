"""What parties give to an exact fit by secure sums: statistics of their records in public units, in fixed point.

Sums are means: all are divided by the public number n of all records, so that sizes are of order 1 whatever the data.
No party's part exceeds 2^62 steps: |mean of residual times z_j| <= sqrt 2 by the bounds, or by Cauchy and Schwarz by
the moments. What exceeds that, because a coordinator told other units, is cut off: a refusal would tell of records. The
penalty is added by the parties in proportion to their records. The sums themselves are in `part`; units, plan and their
proofs are in `unit`.

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

from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.message import question_digest
from tacit.federation.reply import Encrypted, Kept, Sealed
from tacit.federation.seat import Seat
from tacit.federation.step import Step, step
from tacit.methods.privlogit.part import (
    LARGEST_DIGITS,
    block_part,
    bound_part,
    curvature_part,
    known_moments,
    point_part,
    within,
)
from tacit.methods.privlogit.unit import Plan, Scaling, Units
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
_LARGEST_WHOLE = 2.0**62
_LARGEST_SLOPE = 4.0  # of an entry of a mean gradient, which is at most sqrt 2
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
    known = known_moments(table, plan)
    sums = np.stack([known.total, known.squares])
    chosen = within(sums[:, plan.unbounded], LARGEST_MOMENT)
    return Sealed(to_digits(chosen), MOMENTS_OPENED, plan.cohort.n_parties, _digit_bound(chosen.size), exact=True)


def _bound(table: Table, plan: Plan, measure: Measure, *, rng: Rng) -> Kept:
    scaling = plan.scaling(measure.units)
    if plan.is_wide:
        bits = KEPT_BITS - scaling.block_bits
        blocks = _fixed(block_part(table, scaling), bits)
        return Kept({"blocks": blocks}, STEPS_OPENED, plan.cohort.n_parties, {"blocks": _block_bound(scaling, bits)})
    bits = KEPT_BITS - scaling.trace_bits
    share = _fixed(bound_part(table, scaling), bits)
    bounds = {"curvature": _curvature_bound(share, scaling, bits)}
    return Kept({"curvature": share}, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _open_bound(table: Table, plan: Plan, measure: Measure, *, rng: Rng) -> Sealed:
    scaling = plan.scaling(measure.units)
    if plan.is_wide:
        share = _fixed(block_part(table, scaling), scaling.opened_bits)
        bound = _block_bound(scaling, scaling.opened_bits)
    else:
        share = _fixed(bound_part(table, scaling), scaling.opened_bits)
        bound = _curvature_bound(share, scaling, scaling.opened_bits)
    return Sealed(share, SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _point(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Kept:
    gradient, mean = point_part(table, at.point, at.scaling(plan))
    addends = {"gradient": _fixed(gradient, OPENED_BITS), "likelihood": _cut(mean)}
    bounds = {name: _whole_bound(addend) for name, addend in addends.items()}
    return Kept(addends, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _product(table: Table, plan: Plan, at: Multiplied, *, rng: Rng, seat: Seat, bound: Step) -> Encrypted:
    """The gradient times the encrypted inverse, if the center's nodes signed that for the bound of this very run."""
    if seat.bond is not None:
        at.inverse.check(_bound_asked(seat, bound, at.units), seat.bond.nodes)
    gradient, mean = point_part(table, at.point, at.scaling(plan))
    product = at.inverse.times(_fixed(gradient, OPENED_BITS), rng=rng)
    likelihood = _cut(mean)
    bounds = {"likelihood": _whole_bound(likelihood)}
    return Encrypted(product, {"likelihood": likelihood}, STEPS_OPENED, plan.cohort.n_parties, bounds)


def _open_point(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Sealed:
    gradient, mean = point_part(table, at.point, at.scaling(plan))
    slope = _fixed(gradient, OPENED_BITS)
    bound = _whole_bound(slope) + _digit_bound(1)
    return Sealed(_flat(slope, to_digits(mean)), SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _curvature(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Kept:
    scaling = at.scaling(plan)
    curvature, gradient, mean = curvature_part(table, at.point, scaling)
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
    curvature, gradient, mean = curvature_part(table, at.point, scaling)
    square, slope = _fixed(curvature, scaling.opened_bits), _fixed(within(gradient, _LARGEST_SLOPE), PEAK_BITS)
    longest = math.ceil(_LARGEST_SLOPE * 2.0**PEAK_BITS * math.sqrt(slope.size))
    of_slope = (NormBound(size=slope.size, norm=longest),)
    bound = _curvature_bound(square, scaling, scaling.opened_bits) + of_slope + _digit_bound(1)
    return Sealed(_flat(square, slope, to_digits(mean)), SUMS_OPENED, plan.cohort.n_parties, bound, exact=True)


def _loss(table: Table, plan: Plan, at: Point, *, rng: Rng) -> Sealed:
    """The loss alone, without a penalty."""
    with np.errstate(over="ignore", invalid="ignore"):
        theta = at.scaling(plan).theta(at.point)
        loss = plan.problem.loss.sums(table.stream(), theta, curvature=False).loss
    digits = to_digits(within(np.array([loss]), LARGEST_DIGITS))
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


# --- in fixed point, and within bounds -------------------------------------------------------------------------------


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


def _fixed(values: Floats, bits: int) -> Ints:
    """round(values 2^bits), cut off at what may be added up."""
    with np.errstate(over="ignore"):
        whole: Ints = within(np.rint(np.ldexp(values, bits)), _LARGEST_WHOLE).astype(np.int64)
    return whole
