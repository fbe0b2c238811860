"""The plan of an exact fit by secure sums, and the public units in which it works.

The fit works on z_j = (x_j - centre_j) / unit_j and the constant 1, with parameters phi such that theta = T phi:
coef_j = phi_j / unit_j, intercept = phi_0 - sum_j phi_j centre_j / unit_j. Units are powers of two. For columns with
declared bounds a party derives them. For the others they follow from means and variances that were opened (`moments`),
so that a question carries them; a party keeps to those that it is told first in a run.

With a fixed curvature h X'X, h = 1/4 (two classes) or 1/2 (softmax; Bohning 1992), and unit_j^2 within a factor of two
of the mean square (or its bound) plus l2 / (h n), every diagonal entry of the penalised mean curvature is at most 2 h.
Its largest eigenvalue is at most its trace, of which a bound is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.data.feature import Numeric
from tacit.data.schema import Schema
from tacit.errors import PolicyRefusal, SettingError
from tacit.methods.cohort import Cohort
from tacit.methods.exact_fit import exact_problem
from tacit.methods.privlogit.block import is_wide, spans
from tacit.models.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LARGEST_EXPONENT = 256  # of a unit: its square and that of an entry in it stay ordinary numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """What only the coordinator can know: centres and units of the columns without declared bounds, in their order.

    The unit is 2^exponent.
    """

    centre: Floats
    exponent: Ints


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one fit, as every party derives them."""

    cohort: Cohort
    l2: float
    fit_intercept: bool

    def __post_init__(self) -> None:
        """Refuse to open one party's own sums."""
        if self.cohort.n_parties < 2:
            raise SettingError(
                f"{self.cohort.n_parties} party: an exact sum over one party is that party's own; at least two must "
                f"take part"
            )

    @cached_property
    def problem(self) -> Problem:
        """The fit itself."""
        return exact_problem(self.cohort.schema, self.l2, self.fit_intercept)

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return math.prod(self.problem.loss.shape)

    @property
    def is_wide(self) -> bool:
        """Whether the curvature's bound is cut into blocks (`block`)."""
        return is_wide(self.problem.loss.width)

    @property
    def n_blocks(self) -> int:
        """How many of them there are."""
        return len(spans(self.problem.loss.width))

    @property
    def n_records(self) -> int:
        """By which sums are divided, so that they are means."""
        return self.cohort.n_records

    @cached_property
    def bounds(self) -> Floats:
        """The largest size that the schema allows an entry of each column; infinite where it declares none."""
        return column_bounds(self.cohort.schema)

    @cached_property
    def unbounded(self) -> Ints:
        """The columns without declared bounds."""
        return np.flatnonzero(np.isinf(self.bounds))

    @property
    def opened(self) -> tuple[str, ...]:
        """Their names: their moments are opened."""
        return tuple(self.cohort.schema.column_names[j] for j in self.unbounded)

    @property
    def ceiling(self) -> float:
        """h of this fit."""
        return ceiling(self.cohort.n_classes)

    def exponents(self, square: Floats) -> Ints:
        """The exponents of units that fit columns of such mean squares, or bounds on these."""
        room = square + self.l2 / (self.ceiling * self.n_records)
        exponents: Ints = np.rint(np.log2(np.where(room > 0, room, 1.0)) / 2).astype(np.int64)
        return exponents

    def check_units(self, units: Units | None) -> None:
        """Refuse units that are not of the columns without declared bounds, or that are none."""
        n_told = 0 if units is None else units.centre.size
        if n_told != len(self.unbounded) or (units is not None and not n_told):
            raise PolicyRefusal(
                f"units of {n_told} columns were told; {len(self.unbounded)} columns have no declared bounds"
            )
        if units is None:
            return
        is_sound = (
            units.centre.shape == units.exponent.shape == (n_told,)
            and bool(np.isfinite(units.centre).all())
            and bool((np.abs(units.exponent) <= _LARGEST_EXPONENT).all())
            and (self.fit_intercept or not units.centre.any())
        )
        if not is_sound:
            raise PolicyRefusal("the units that were told are not finite, or move rows of a fit without intercept")

    def scaling(self, units: Units | None) -> Scaling:
        """The units of all columns; a `PolicyRefusal` if those that were told do not fit the plan."""
        self.check_units(units)
        d = self.cohort.n_features
        square = np.square(np.where(np.isfinite(self.bounds), self.bounds, 0.0), dtype=np.float64)
        centre, exponent = np.zeros(d), self.exponents(square)
        if units is not None:
            centre[self.unbounded], exponent[self.unbounded] = units.centre, units.exponent
        return Scaling(plan=self, centre=centre, unit=np.exp2(exponent.astype(np.float64)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaling:
    """The units of a fit; `centre` and `unit` have one entry for each encoded column."""

    plan: Plan
    centre: Floats
    unit: Floats

    @cached_property
    def penalty(self) -> Floats:
        """The l2 of each of phi's columns."""
        penalty: Floats = self.plan.l2 / self.unit**2
        return np.append(penalty, 0.0) if self.plan.fit_intercept else penalty

    def theta(self, phi: Floats) -> Floats:
        """T phi: the parameter in encoded units."""
        return phi @ self.matrix.T

    def phi(self, theta: Floats) -> Floats:
        """The parameter in public units."""
        phi: Floats = np.linalg.solve(self.matrix, np.atleast_2d(theta).T).T.reshape(theta.shape)
        return phi

    @cached_property
    def matrix(self) -> Floats:
        """T, of shape (k, k)."""
        T = np.diag(1 / self.unit)
        if not self.plan.fit_intercept:
            return T
        d = len(self.unit)
        whole = np.eye(d + 1)
        whole[:d, :d] = T
        whole[d, :d] = -self.centre / self.unit
        return whole

    @cached_property
    def contrast(self) -> Floats:
        """The matrix that turns parameters into coefficients in original units, class by class."""
        original = self.plan.cohort.schema.original_units()
        one = (original if self.plan.fit_intercept else original[:, :-1]) @ self.matrix
        C = self.plan.cohort.n_classes
        # Only differences between classes are determined: the table tells the parameters that sum to zero over them.
        return one if C == 2 else np.kron(np.eye(C) - 1 / C, one)

    @cached_property
    def row_lengths(self) -> Floats:
        """Powers of two, no smaller than the lengths of the contrast's rows; 0 for a row of zeros."""
        mantissa, exponent = np.frexp(np.sqrt(np.square(self.contrast).sum(axis=1)))
        return np.where(mantissa > 0, np.ldexp(1.0, exponent - (mantissa == 0.5)), 0.0)

    @cached_property
    def declared_contrast(self) -> Floats:
        """The contrast with rows of a length of at most 1, since what is opened must fit the fixed point.

        Coordinator and parties work out the same bytes. An entry is at most a sum of two numbers that are exact in any
        order, since units are powers of two, times one that is rounded once; and 0 is added, since -0 is written so.
        """
        lengths = np.where(self.row_lengths > 0, self.row_lengths, 1.0)
        declared: Floats = self.contrast / lengths[:, None] + 0.0
        return declared

    @cached_property
    def trace_bits(self) -> int:
        """The mean curvature's trace, hence its largest eigenvalue 1/c, is at most 2**trace_bits."""
        trace = self._trace(slice(0, len(self.penalty)))
        # The ceiling is that of directions that change no probability.
        least = self.plan.ceiling if self.plan.cohort.n_classes > 2 else 2.0**-20
        return math.ceil(math.log2(max(trace, least)))

    @cached_property
    def block_bits(self) -> int:
        """The same of its blocks on the diagonal (`block`), of which one may hold columns of no record."""
        trace = max(self._trace(span) for span in spans(len(self.penalty)))
        return math.ceil(math.log2(max(trace, self.plan.ceiling)))

    def _trace(self, span: slice) -> float:
        """A bound on the trace of the mean curvature of these columns, the constant being the last of all."""
        plan, h, d = self.plan, self.plan.ceiling, len(self.unit)
        columns = np.arange(span.start, min(span.stop, d))
        bounded = columns[np.isfinite(plan.bounds[columns])]
        spread = float((plan.bounds[bounded] ** 2 / self.unit[bounded] ** 2).sum())
        if plan.cohort.schema.radius is not None and len(columns):
            spread = min(spread, plan.cohort.schema.radius**2 / float(self.unit[columns].min()) ** 2)
        penalty = plan.l2 / plan.n_records * float((1 / self.unit[bounded] ** 2).sum())
        has_constant = plan.fit_intercept and span.stop > d
        return h * (spread + has_constant) + penalty + 2 * h * (len(columns) - len(bounded))

    @property
    def opened_bits(self) -> int:
        """Fraction bits of a curvature that is opened: fewer for many columns, so that nodes can check its size."""
        return 52 - self.trace_bits - max(0, 3 * self.plan.size.bit_length() - 27)


def ceiling(n_classes: int) -> float:
    """h: the curvature of one record is at most h x x' (softmax: h (I - 11'/C) (x) x x')."""
    return 0.25 if n_classes == 2 else 0.5


def column_bounds(schema: Schema) -> Floats:
    """The largest size that the schema allows an entry of each encoded column; infinite where it declares none."""
    position = {name: j for j, name in enumerate(schema.column_names)}
    bounds = np.ones(schema.n_columns)
    for feature in schema.features:
        if isinstance(feature, Numeric) and feature.bounds is None:
            bounds[position[feature.columns(schema.coding)[0]]] = np.inf
    return bounds if schema.norm_bound is None else np.minimum(bounds, schema.norm_bound)
