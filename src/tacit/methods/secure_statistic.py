"""What parties give to an exact fit by secure sums: statistics of their records in public units, in fixed point.

Units. The fit works on z_j = (x_j - centre_j) / unit_j and the constant 1, with parameters phi such that theta = T
phi: coef_j = phi_j / unit_j, intercept = phi_0 - sum_j phi_j centre_j / unit_j. Units are powers of two. They are
public: from the schema's bounds; for columns without any, from their opened means and variances (`moments`). With a
fixed curvature h X'X, h = 1/4 (two classes) or 1/2 (softmax; Bohning 1992), and unit_j^2 within a factor of two of the
mean square (or its bound) plus l2 / (h n), every diagonal entry of the penalised mean curvature is at most 2 h. Its
largest eigenvalue is at most its trace, of which a bound is public.

Sums are means: all are divided by the public number n of all records, so that sizes are of order 1 whatever the data.
No party's part exceeds 2^62 steps: |mean of residual times z_j| <= sqrt 2 by the bounds, or by Cauchy and Schwarz by
the moments. A party checks that before it seals. The penalty is added by the parties in proportion to their records.

The exact sums carry no noise, so that every reply says NotPrivate. Nothing is sealed for a sum over fewer than two
parties, which would be a party's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.data.feature import Numeric
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import DataError, PolicyRefusal
from tacit.federation.reply import Encrypted, Kept, Sealed
from tacit.federation.step import Step, step
from tacit.methods.digit import LARGEST, to_digits
from tacit.methods.exact import exact_problem
from tacit.models.loss import Labels, Sums
from tacit.models.problem import Problem
from tacit.privacy.event import NotPrivate
from tacit.rand import Rng
from tacit.secure.product import EncryptedInverse
from tacit.wire import Value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS_OPENED = NotPrivate(why="opened exactly: the steps and the model of a pooled fit")
SUMS_OPENED = NotPrivate(why="opened exactly: the gradients and curvatures of all parties' records together")
MOMENTS_OPENED = NotPrivate(why="opened exactly: means and variances of the columns without declared bounds")
LOSS_OPENED = NotPrivate(why="opened exactly: the likelihood of the pooled fit")

OPENED_BITS = 60  # fraction bits of a sum that is opened
LOSS_BITS = 59  # of the mean loss, which is cut off at _LARGEST_LOSS
_LARGEST_LOSS = 7.5  # above the ln C of a model that says nothing, for fewer than 1,800 classes: never accepted
_LARGEST_WHOLE = 2.0**62


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The public facts of one fit: all that a party needs, and enough to check them.

    `centre` and `unit` have one entry for each encoded column.
    """

    l2: float
    fit_intercept: bool
    n_total: int
    n_parties: int
    centre: Floats
    unit: Floats

    def arguments(self) -> dict[str, Value]:
        """The plan as arguments of a step."""
        return dict(vars(self))

    def problem(self, schema: Schema) -> Problem:
        """The fit itself."""
        return exact_problem(schema, self.l2, self.fit_intercept)

    @property
    def penalty(self) -> Floats:
        """The l2 of each of phi's columns."""
        penalty: Floats = self.l2 / self.unit**2
        return np.append(penalty, 0.0) if self.fit_intercept else penalty

    def theta(self, phi: Floats) -> Floats:
        """T phi: the parameter in encoded units."""
        return phi @ self.units().T

    def phi(self, theta: Floats) -> Floats:
        """The parameter in public units."""
        phi: Floats = np.linalg.solve(self.units(), np.atleast_2d(theta).T).T.reshape(theta.shape)
        return phi

    def units(self) -> Floats:
        """T, of shape (k, k)."""
        T = np.diag(1 / self.unit)
        if not self.fit_intercept:
            return T
        d = len(self.unit)
        whole = np.eye(d + 1)
        whole[:d, :d] = T
        whole[d, :d] = -self.centre / self.unit
        return whole

    def check(self, table: Table) -> None:
        """Refuse a plan that is not true of this party's table, or that would open its own sums."""
        if self.n_parties < 2:
            raise PolicyRefusal("an exact sum over one party is that party's own; at least two must take part")
        shaped = self.centre.shape == self.unit.shape == (table.n_columns,)
        finite = shaped and bool(np.isfinite(self.centre).all() and np.isfinite(self.unit).all())
        positive = finite and bool((self.unit > 0).all()) and self.l2 >= 0 and table.n_records <= self.n_total
        if not positive or not (self.fit_intercept or not self.centre.any()):
            raise PolicyRefusal("the plan's sizes, columns or units do not fit this party's table")


def column_bounds(schema: Schema) -> Floats:
    """The largest size that the schema allows an entry of each encoded column; infinite where it declares none."""
    position = {name: j for j, name in enumerate(schema.column_names)}
    bounds = np.ones(schema.n_columns)
    for feature in schema.features:
        if isinstance(feature, Numeric) and feature.bounds is None:
            bounds[position[feature.columns(schema.coding)[0]]] = np.inf
    return bounds if schema.norm_bound is None else np.minimum(bounds, schema.norm_bound)


# --- steps: what a party computes ------------------------------------------------------------------------------------


def _moments(table: Table, *, rng: Rng, columns: Ints, n_parties: int) -> Sealed:
    """The sums of some columns' entries and of their squares, of any size."""
    if n_parties < 2:
        raise PolicyRefusal("an exact sum over one party is that party's own; at least two must take part")
    sums = np.zeros((2, table.n_columns))
    with np.errstate(over="ignore"):
        for X, _ in table.blocks():
            sums[0] += X.sum(axis=0)
            sums[1] += np.einsum("ij,ij->j", X, X)
    chosen = sums[:, columns]
    if not np.abs(chosen).max(initial=0.0) < LARGEST:
        raise DataError("a column without declared bounds has values too large to be squared; declare its low and high")
    return Sealed(to_digits(chosen), MOMENTS_OPENED, n_parties, exact=True)


def _bound(table: Table, *, rng: Rng, bits: int, **arguments: Any) -> Kept:
    return Kept({"curvature": _bound_share(table, bits, arguments)}, STEPS_OPENED, arguments["n_parties"])


def _open_bound(table: Table, *, rng: Rng, bits: int, **arguments: Any) -> Sealed:
    return Sealed(_bound_share(table, bits, arguments), SUMS_OPENED, arguments["n_parties"], exact=True)


def _point(table: Table, *, rng: Rng, point: Floats, bits: int, **arguments: Any) -> Kept:
    gradient, mean = _point_share(table, point, bits, arguments)
    return Kept({"gradient": gradient, "likelihood": _cut(mean)}, STEPS_OPENED, arguments["n_parties"])


def _product(table: Table, *, rng: Rng, point: Floats, bits: int, inverse: Value, **arguments: Any) -> Encrypted:
    gradient, mean = _point_share(table, point, bits, arguments)
    product = EncryptedInverse.from_value(inverse).times(gradient, rng=rng)
    return Encrypted(product, {"likelihood": _cut(mean)}, STEPS_OPENED, arguments["n_parties"])


def _open_point(table: Table, *, rng: Rng, point: Floats, bits: int, **arguments: Any) -> Sealed:
    gradient, mean = _point_share(table, point, bits, arguments)
    return Sealed(_flat(gradient, to_digits(mean)), SUMS_OPENED, arguments["n_parties"], exact=True)


def _curvature(table: Table, *, rng: Rng, point: Floats, bits: int, curvature_bits: int, **arguments: Any) -> Kept:
    curvature, gradient, mean = _curvature_share(table, point, bits, curvature_bits, arguments)
    addends = {"curvature": curvature, "gradient": gradient, "likelihood": _cut(mean)}
    return Kept(addends, STEPS_OPENED, arguments["n_parties"])


def _open_curvature(
    table: Table, *, rng: Rng, point: Floats, bits: int, curvature_bits: int, **arguments: Any
) -> Sealed:
    curvature, gradient, mean = _curvature_share(table, point, bits, curvature_bits, arguments)
    flat = _flat(curvature, gradient, to_digits(mean))
    return Sealed(flat, SUMS_OPENED, arguments["n_parties"], exact=True)


def _loss(table: Table, *, rng: Rng, point: Floats, **arguments: Any) -> Sealed:
    """The loss alone, without a penalty."""
    plan = Plan(**arguments)
    plan.check(table)
    sums = plan.problem(table.schema).loss.sums(table.blocks, plan.theta(point), curvature=False)
    return Sealed(to_digits(np.array([sums.loss])), LOSS_OPENED, plan.n_parties, exact=True)


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
    """Register the steps for a method."""

    def register(name: str, function: Callable[..., Kept | Sealed | Encrypted]) -> Step:
        return step(f"{method}/{name}", version=1)(function)

    return Questions(
        moments=register("moments", _moments),
        bound=register("bound", _bound),
        open_bound=register("open-bound", _open_bound),
        point=register("point", _point),
        product=register("product", _product),
        open_point=register("open-point", _open_point),
        curvature=register("curvature", _curvature),
        open_curvature=register("open-curvature", _open_curvature),
        loss=register("loss", _loss),
    )


# --- what they are made of -------------------------------------------------------------------------------------------


def _bound_share(table: Table, bits: int, arguments: dict[str, Any]) -> Ints:
    """This party's part of h X'X + penalty, in public units, over n: of shape (k, k), whatever the classes."""
    plan = Plan(**arguments)
    plan.check(table)
    d, k = table.n_columns, len(plan.penalty)
    gram = np.zeros((k, k))
    for X, _ in _scaled(table, plan):
        gram[:d, :d] += X.T @ X
        if plan.fit_intercept:
            gram[d, :d] += X.sum(axis=0)
    if plan.fit_intercept:
        gram[:d, d], gram[d, d] = gram[d, :d], table.n_records
    curvature = ceiling(table.n_classes) * gram + np.diag(plan.penalty) * (table.n_records / plan.n_total)
    return _fixed(curvature / plan.n_total, bits)


def _point_share(table: Table, point: Floats, bits: int, arguments: dict[str, Any]) -> tuple[Ints, Floats]:
    """This party's part of the mean gradient, and of the mean log-likelihood, at a point."""
    plan = Plan(**arguments)
    plan.check(table)
    sums = plan.problem(table.schema).loss.sums(table.blocks, plan.theta(point), curvature=False)
    gradient = _gradient(sums.gradient @ plan.units(), point, table, plan)
    return _fixed(gradient, bits), _likelihood(sums, point, table, plan)


def _curvature_share(
    table: Table, point: Floats, bits: int, curvature_bits: int, arguments: dict[str, Any]
) -> tuple[Ints, Ints, Floats]:
    """Curvature, gradient and likelihood, classes first; softmax curvature is raised where it is flat."""
    plan = Plan(**arguments)
    plan.check(table)
    problem = plan.problem(table.schema)
    sums = problem.loss.sums(lambda: _scaled(table, plan), point)
    assert sums.curvature is not None
    share = table.n_records / plan.n_total
    raised = np.diag(np.tile(plan.penalty, len(np.atleast_2d(point))))
    if problem.n_classes > 2:
        raised = raised + flat_directions(problem) * plan.n_total
    return (
        _fixed((sums.curvature + share * raised) / plan.n_total, curvature_bits),
        _fixed(_gradient(sums.gradient, point, table, plan), bits).T.reshape(-1),
        _likelihood(sums, point, table, plan),
    )


def flat_directions(problem: Problem) -> Floats:
    """h on the directions that add the same to every class, which change no probability: the fit never takes them."""
    C, k = problem.loss.shape
    return np.kron(np.full((C, C), ceiling(C) / C), np.eye(k))


def ceiling(n_classes: int) -> float:
    """h: the curvature of one record is at most h x x' (softmax: h (I - 11'/C) (x) x x')."""
    return 0.25 if n_classes == 2 else 0.5


def _gradient(gradient: Floats, point: Floats, table: Table, plan: Plan) -> Floats:
    """This party's part of the mean objective's slope, uphill: of shape (k,), or (k, C)."""
    penalised = gradient + plan.penalty * point * (table.n_records / plan.n_total)
    return -penalised.T / plan.n_total


def _likelihood(sums: Sums, point: Floats, table: Table, plan: Plan) -> Floats:
    """This party's part of the mean penalised log-likelihood."""
    penalty = 0.5 * float((plan.penalty * point**2).sum()) * table.n_records / plan.n_total
    return np.array(-np.nan_to_num((sums.loss + penalty) / plan.n_total, nan=2.0**200, posinf=2.0**200))


def _cut(likelihood: Floats) -> Ints:
    """The likelihood in fixed point, cut off where it is lower than that of any point that is accepted.

    One part alone that reaches the cut-off puts the sum below every accepted one, so that comparisons stay right.
    """
    return _fixed(np.maximum(likelihood, -_LARGEST_LOSS), LOSS_BITS)


def _flat(*arrays: Ints) -> Ints:
    return np.concatenate([array.ravel() for array in arrays])


def _scaled(table: Table, plan: Plan) -> Iterator[tuple[Floats, Labels]]:
    """The rows in public units."""
    plain = not plan.centre.any() and bool((plan.unit == 1).all())
    for X, y in table.blocks():
        yield (X if plain else (X - plan.centre) / plan.unit), y


def _fixed(values: Floats, bits: int) -> Ints:
    """round(values 2^bits), if that is within what may be added up."""
    scaled = np.rint(np.ldexp(values, bits))
    if not np.abs(scaled).max(initial=0.0) <= _LARGEST_WHOLE:
        raise PolicyRefusal("the plan's scale does not fit this party's table: its part would not fit a secure sum")
    whole: Ints = scaled.astype(np.int64)
    return whole
