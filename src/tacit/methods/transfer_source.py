"""The sources' side of hypothesis transfer: what a source is asked, and its one reply.

The proof that the reply costs what its event says stands in `hypothesis_transfer`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import NotConverged, PolicyRefusal
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.methods import importance
from tacit.models.loss import Array, Blocks, Labels, Loss
from tacit.models.problem import Problem
from tacit.models.sensitivity import minimiser_norm_bound, minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.accounting import noise_multiplier_for
from tacit.privacy.event import Event, NotPrivate
from tacit.privacy.grid import NoiseGrid, VectorSum, gaussian_grid, pure_grid
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

NO_NOISE = "epsilon is infinite: no noise is added"
AS_PRINTED = "HypothesisTransfer as the dissertation prints it"

_SLACK = 1e-3  # the solver's distance from an optimum, as a share of the optimum's sensitivity
_ORTHONORMAL = 1e-9  # how far public directions may be from orthonormal


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public arguments of one run: all that a source needs, and enough to check what its answer will cost.

    `l2_mean` is Lam, `weights_l2` that of the discriminator, both of the mean form and the same for all sources.
    `weights` is "tilt", "discriminator" or "none". `radius` bounds a row without its constant feature.
    """

    epsilon: float
    delta: float | None
    l2_mean: float
    weights: str
    weights_l2: float
    labelled_fraction: float
    paper: bool
    nonnegative: bool
    n_features: int
    n_classes: int
    radius: float
    constant: float

    def halves(self, n_records: int) -> tuple[int, int]:
        """How many records make the model, and how many describe the rows."""
        most = n_records if self.weights == "none" else n_records - 1
        n_labelled = min(max(1, round(self.labelled_fraction * n_records)), most)
        return n_labelled, n_records - n_labelled

    # --- the model -----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """The loss of the models."""
        return Loss(n_features=self.n_features, n_classes=self.n_classes, constant=self.constant)

    @property
    def long_radius(self) -> float:
        """R: the norm bound of a row with its constant feature."""
        return math.hypot(self.radius, self.constant)

    def problem(self, n_labelled: int) -> Problem:
        """The fit of a source with so many labelled records; its l2 is of the sum form."""
        longest = max(1.0, minimiser_norm_bound(self.l2_mean, self.long_radius, self.n_classes))
        return Problem(
            n_features=self.n_features,
            n_classes=self.n_classes,
            l2=n_labelled * self.l2_mean,
            intercept="feature" if self.constant else "none",
            constant=self.constant or 1.0,
            tolerance=min(1e-9, 0.1 * _SLACK * self.model_moves(n_labelled) / longest),
        )

    def model_moves(self, n_labelled: int) -> float:
        """D / (n_l Lam): how far one record moves the exact model."""
        return minimiser_sensitivity(n_labelled, self.l2_mean, self.long_radius, self.n_classes)

    def model_grid(self, n_labelled: int) -> NoiseGrid:
        """The noise and the rounding of the model."""
        printed = 2 / (n_labelled * self.l2_mean)  # output perturbation of Chaudhuri et al. 2011, for rows of norm 1
        moves = printed if self.paper else (1 + 2 * _SLACK) * self.model_moves(n_labelled)
        bound = 2 * minimiser_norm_bound(self.l2_mean, self.long_radius, self.n_classes)
        return self._grid(math.prod(self.loss.shape), moves, bound)

    # --- the description of the rows -----------------------------------------------------------------------------

    @property
    def row_diameter(self) -> float:
        """kappa."""
        return importance.row_diameter(self.radius, self.n_features, nonnegative=self.nonnegative)

    def weights_move(self, n_rows: int) -> float:
        """How far one record moves the exact description: kappa / n_u, or kappa / (n_u Lam')."""
        moves = self.row_diameter / n_rows
        return moves if self.weights == "tilt" else moves / self.weights_l2

    def weights_grid(self, n_records: int, public: Floats) -> NoiseGrid:
        """The noise and the rounding of the description of a source with so many records in all."""
        n_rows = self.halves(n_records)[1]
        moves = self.weights_move(n_rows)
        if self.weights == "tilt":
            error = importance.mean_error(public, n_records, self.radius)
            return self._grid(len(public), (1 + _ORTHONORMAL) * moves + 2 * error, 2 * self.radius)
        printed = math.sqrt(self.n_features) / (n_rows * self.weights_l2)  # Wang, algorithm 5, step 3
        bound = 2 * importance.discriminator_norm_bound(self.weights_l2)
        return self._grid(self.n_features, printed if self.paper else (1 + 2 * _SLACK) * moves, bound)

    # --- what both share -----------------------------------------------------------------------------------------

    def event(self) -> Event:
        """What the reply costs one record: the model's event, or the description's, for no record is in both."""
        if self.paper:
            return NotPrivate(why=AS_PRINTED)
        if math.isinf(self.epsilon):
            return NotPrivate(why=NO_NOISE)
        return self._grid(1, 1.0, 1.0).event()

    def check(self, table: Table, public: Floats) -> None:
        """Refuse a plan that is not true of this source's table: the noise would be sized for another one."""
        radius, n = table.schema.radius, table.n_records
        facts_hold = (
            radius is not None
            and radius <= self.radius * (1 + 1e-12)
            and math.isfinite(self.radius)
            and self.constant >= 0
            and (self.n_features, self.n_classes) == (table.n_columns, table.n_classes)
            and 0 < self.labelled_fraction <= 1
            and self.weights in ("tilt", "discriminator", "none")
            and (self.weights == "none" or n >= 2)
        )
        if not facts_hold:
            raise PolicyRefusal("the plan's columns, bounds or halves do not fit this party's table")
        shapes_hold = public.ndim == 2 and public.shape[1] == self.n_features and bool(np.isfinite(public).all())
        if not shapes_hold or (self.weights == "discriminator" and not len(public)):
            raise PolicyRefusal("the plan's public rows or directions do not fit this party's columns")
        if self.weights == "tilt" and not _are_orthonormal(public):
            raise PolicyRefusal("the plan's directions are not orthonormal: a mean along them could move further")

    def _grid(self, dimension: int, sensitivity: float, value_bound: float) -> NoiseGrid:
        total = VectorSum(dimension=dimension, sensitivity=sensitivity, value_bound=value_bound)
        if self.delta is None:
            return pure_grid(total, epsilon=self.epsilon)
        return gaussian_grid(total, epsilon=self.epsilon, delta=self.delta)


def balanced_l2(epsilon: float, delta: float | None, n_records: int, radius: float, dimension: int) -> float:
    """A regularisation, in the mean form, that balances bias against noise: a rule of public numbers.

    Lam^3 = R^6 E / (8 n^2), as `averaging.default_l2` derives it, E being the noise's variance in one coordinate at
    sensitivity 1. Never below 1 / n, scikit-learn's default.
    """
    if math.isinf(epsilon):
        return 1 / n_records
    if delta is None:
        expected_square = (dimension + 1) / epsilon**2
    else:
        expected_square = noise_multiplier_for(epsilon, delta, kind="discrete-gaussian") ** 2
    balanced: float = (radius**6 * expected_square / (8 * n_records**2)) ** (1 / 3)
    return max(1 / n_records, balanced)


def _are_orthonormal(directions: Floats) -> bool:
    r, d = directions.shape
    return 1 <= r <= d and float(np.abs(directions @ directions.T - np.eye(r)).sum()) <= _ORTHONORMAL


@step("hypothesis-transfer/release", version=1)
def release(table: Table, *, rng: Rng, public: Floats, **arguments: Any) -> Noised:
    """Split the records in two, make a model of one half and a description of the other, and noise both."""
    plan = Plan(**arguments)
    plan.check(table, public)
    # 1. A random split that nobody is told.
    n_labelled, n_rows = plan.halves(table.n_records)
    labelled = np.zeros(table.n_records, dtype=bool)
    labelled[rng.permutation(table.n_records)[:n_labelled]] = True
    # 2. The hypothesis (Wang, algorithm 4, step 1).
    model = private_model(plan, part(table, labelled), n_labelled)
    value = {"model": plan.model_grid(n_labelled).to_grid(model.ravel(), rng=rng)}
    # 3. What the importance weights are made from (step 2).
    if plan.weights != "none":
        rows = part(table, ~labelled, nonnegative=plan.nonnegative)
        description = describe(plan, rows, n_rows, public)
        value["weights"] = plan.weights_grid(table.n_records, public).to_grid(description, rng=rng)
    return Noised(value=value, event=plan.event())


def private_model(plan: Plan, blocks: Blocks, n_labelled: int) -> Floats:
    """The model of a source's labelled half: exact to within the slack, not noised yet."""
    solution = fit(blocks, problem=plan.problem(n_labelled))
    _check_certified(solution.distance_bound, plan.model_moves(n_labelled), "l2")
    return solution.theta


def describe(plan: Plan, blocks: Blocks, n_rows: int, public: Floats) -> Floats:
    """The description of a source's unlabelled half: exact to within the slack, not noised yet."""
    if plan.weights == "tilt":
        return importance.mean_along(blocks, public, n_rows)
    moves = plan.weights_move(n_rows)
    longest = max(1.0, importance.discriminator_norm_bound(plan.weights_l2))
    tolerance = min(1e-9, 0.1 * _SLACK * moves / longest)
    solution = importance.discriminate(blocks, n_rows, public, plan.weights_l2, tolerance)
    _check_certified(solution.distance_bound, moves, "weights_l2")
    return solution.theta


def part(table: Table, member: npt.NDArray[np.bool_], *, nonnegative: bool = False) -> Blocks:
    """The rows of a table at which `member` holds; with `nonnegative`, their negative entries count as 0."""

    def blocks() -> Iterator[tuple[Array, Labels]]:
        at = 0
        for X, y in table.blocks():
            chosen = member[at : at + len(y)]
            at += len(y)
            rows = X[chosen]
            yield (np.maximum(rows, 0.0) if nonnegative else rows), y[chosen]

    return blocks


def _check_certified(distance_bound: float, moves: float, setting: str) -> None:
    if not distance_bound <= _SLACK * moves:
        raise NotConverged(f"a local fit is not certified to within {_SLACK * moves:.3g}; choose a larger {setting}")
