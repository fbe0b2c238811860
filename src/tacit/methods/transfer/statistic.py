"""What a source of a hypothesis transfer is asked: a private model, and a private description of its rows.

The proof that the reply costs what its event says stands in `method`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.transfer import importance
from tacit.models.assured import FitBounds, assured_fit
from tacit.models.loss import Array, Blocks, Labels, Loss
from tacit.models.problem import Problem
from tacit.models.sensitivity import minimiser_norm_bound, minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.accounting import noise_multiplier_for
from tacit.privacy.noise.grid import NoiseGrid, VectorSum, pure_grid
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

_SLACK = 1e-3  # the solver's distance from an optimum, as a share of the optimum's sensitivity
_MOST_PUBLIC = 2**24  # rows that a question may bring
_ORTHONORMAL = 1e-9  # how far public directions may be from orthonormal


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What sources are told of the public rows that they describe their own against.

    `rows` are principal directions ("tilt"), the public rows ("discriminator") or none. `nonnegative` says that no
    public entry is negative: a source then counts its own negative entries as 0, and needs less noise.
    """

    rows: Floats | None = None
    nonnegative: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every source derives them.

    `l2_mean` is Lam, `weights_l2` that of the discriminator, both of the mean form and the same for all sources.
    `weights` is "tilt", "discriminator" or "none".
    """

    cohort: Cohort
    promise: Promise
    l2_mean: float
    weights: str
    weights_l2: float
    labelled_fraction: float

    def halves(self, n_records: int) -> tuple[int, int]:
        """How many records make the model, and how many describe the rows."""
        most = n_records if self.weights == "none" else n_records - 1
        n_labelled = min(max(1, round(self.labelled_fraction * n_records)), most)
        return n_labelled, n_records - n_labelled

    # --- the model -----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """The loss of the models."""
        return self.cohort.loss

    def problem(self, n_labelled: int) -> Problem:
        """The fit of a source with so many labelled records; its l2 is of the sum form."""
        return Problem(
            n_features=self.cohort.n_features,
            n_classes=self.cohort.n_classes,
            l2=n_labelled * self.l2_mean,
            intercept="feature" if self.cohort.constant else "none",
            constant=self.cohort.constant or 1.0,
            tolerance=min(1e-9, 0.1 * _SLACK * self.model_moves(n_labelled) / max(1.0, self.norm_bound)),
        )

    def bounds(self, n_labelled: int) -> FitBounds:
        """What is public about that fit."""
        return FitBounds(
            loss=self.loss,
            l2=n_labelled * self.l2_mean,
            weight=n_labelled,
            n_rows=2 * self.cohort.n_largest,
            radius=self.cohort.row_norm,
            norm_bound=self.norm_bound,
        )

    def check(self) -> None:
        """Refuse penalties with which a fit could fail on some records: a `SettingError` from public numbers alone."""
        if self.promise.not_private is not None:
            return
        n_labelled, n_rows = self.halves(self.cohort.n_largest)
        self.bounds(n_labelled).check(_SLACK * self.model_moves(n_labelled))
        if self.weights == "discriminator":
            moves = self.weights_move(n_rows, nonnegative=True)
            bounds = importance.discriminator_bounds(
                n_rows, _MOST_PUBLIC, self.weights_l2, self.cohort.n_features, self.cohort.radius
            )
            bounds.check(_SLACK * moves)

    @property
    def norm_bound(self) -> float:
        """No exact model is longer."""
        return minimiser_norm_bound(self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)

    def model_moves(self, n_labelled: int) -> float:
        """D / (n_l Lam): how far one record moves the exact model."""
        return minimiser_sensitivity(n_labelled, self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)

    def model_grid(self, n_labelled: int) -> NoiseGrid:
        """The noise and the rounding of the model."""
        printed = 2 / (n_labelled * self.l2_mean)  # output perturbation of Chaudhuri et al. 2011, for rows of norm 1
        moves = printed if self.promise.is_paper else (1 + 2 * _SLACK) * self.model_moves(n_labelled)
        return self._grid(math.prod(self.loss.shape), moves, 2 * self.norm_bound)

    # --- the description of the rows -----------------------------------------------------------------------------

    def weights_move(self, n_rows: int, *, nonnegative: bool) -> float:
        """How far one record moves the exact description: kappa / n_u, or min(kappa, D) / (n_u Lam')."""
        radius, n_features = self.cohort.radius, self.cohort.n_features
        if self.weights == "tilt":
            return importance.row_diameter(radius, n_features, nonnegative=nonnegative) / n_rows
        return importance.discriminator_move(n_rows, self.weights_l2, radius, n_features, nonnegative=nonnegative)

    def weights_grid(self, n_records: int, reference: Reference) -> NoiseGrid:
        """The noise and the rounding of the description of a source with so many records in all."""
        n_rows = self.halves(n_records)[1]
        moves = self.weights_move(n_rows, nonnegative=reference.nonnegative)
        if self.weights == "tilt":
            directions = known_rows(reference)
            error = importance.mean_error(directions, n_records, self.cohort.radius)
            return self._grid(len(directions), (1 + _ORTHONORMAL) * moves + 2 * error, 2 * self.cohort.radius)
        printed = math.sqrt(self.cohort.n_features) / (n_rows * self.weights_l2)  # Wang, algorithm 5, step 3
        bound = 2 * importance.discriminator_norm_bound(self.weights_l2, self.cohort.radius)
        return self._grid(self.cohort.n_features, printed if self.promise.is_paper else (1 + 2 * _SLACK) * moves, bound)

    # --- what both share -----------------------------------------------------------------------------------------

    def check_reference(self, reference: Reference) -> None:
        """Refuse public rows or directions that do not fit the study."""
        if self.weights == "none":
            if reference.rows is not None or reference.nonnegative:
                raise PolicyRefusal("the question brings public rows, and the study's strategy needs none")
            return
        rows = reference.rows
        if rows is None or rows.ndim != 2 or rows.shape[1] != self.cohort.n_features or not len(rows):
            raise PolicyRefusal("the public rows or directions of the question do not fit the study's columns")
        if not (np.abs(rows) <= self._longest_public).all():  # before they are squared
            raise PolicyRefusal("the public rows or directions of the question are not finite, or too long")
        if len(rows) > _MOST_PUBLIC or float(np.linalg.norm(rows, axis=1).max()) > self._longest_public:
            raise PolicyRefusal("the public rows or directions of the question are too many, or too long")
        if self.weights == "tilt" and not _are_orthonormal(rows):
            raise PolicyRefusal("the directions of the question are not orthonormal: a mean could move further")
        if reference.nonnegative and (self.promise.is_paper or (self.weights != "tilt" and (rows < 0).any())):
            raise PolicyRefusal("the question calls public rows not negative, and they are, or the study does not ask")

    @property
    def _longest_public(self) -> float:
        return 2.0 if self.weights == "tilt" else self.cohort.radius * (1 + 1e-12)

    def _grid(self, dimension: int, sensitivity: float, value_bound: float) -> NoiseGrid:
        total = VectorSum(dimension=dimension, sensitivity=sensitivity, value_bound=value_bound)
        # The document's noise is spherical Laplace noise, too, for the sensitivities that it prints.
        return pure_grid(total, epsilon=self.promise.epsilon) if self.promise.is_paper else self.promise.grid(total)


def known_rows(reference: Reference) -> Floats:
    """The reference's rows, where the plan needs some."""
    if reference.rows is None:
        raise PolicyRefusal("the question brings no public rows, and the study's strategy needs some")
    return reference.rows


def balanced_l2(promise: Promise, n_records: int, radius: float, dimension: int) -> float:
    """A regularisation, in the mean form, that balances bias against noise: a rule of public numbers.

    Lam^3 = R^6 E / (8 n^2), as `averaging.method.default_l2` derives it, E being the noise's variance in one coordinate
    at sensitivity 1. Never below 1 / n, scikit-learn's default.
    """
    if promise.is_exact:
        return 1 / n_records
    if promise.is_pure:
        expected_square = (dimension + 1) / promise.epsilon**2
    else:
        expected_square = noise_multiplier_for(promise.epsilon, promise.settled_delta) ** 2
    balanced: float = (radius**6 * expected_square / (8 * n_records**2)) ** (1 / 3)
    return max(1 / n_records, balanced)


def _are_orthonormal(directions: Floats) -> bool:
    r, d = directions.shape
    if not (1 <= r <= d and float(np.abs(directions).max()) <= 2.0):  # so that no product overflows
        return False
    return float(np.abs(directions @ directions.T - np.eye(r)).sum()) <= _ORTHONORMAL


@step("hypothesis-transfer/release", version=3, plan=Plan, values=Reference)
def release(table: Table, plan: Plan, reference: Reference, *, rng: Rng) -> Noised:
    """Split the records in two, make a model of one half and a description of the other, and noise both."""
    plan.check_reference(reference)
    # 1. A random split that nobody is told.
    n_labelled, n_rows = plan.halves(table.n_records)
    labelled = np.zeros(table.n_records, dtype=bool)
    labelled[rng.permutation(table.n_records)[:n_labelled]] = True
    # 2. The hypothesis (Wang, algorithm 4, step 1).
    model = private_model(plan, part(table, labelled), n_labelled)
    value = {"model": plan.model_grid(n_labelled).to_grid(model.ravel(), rng=rng)}
    # 3. What the importance weights are made from (step 2).
    if plan.weights != "none":
        rows = part(table, ~labelled, nonnegative=reference.nonnegative)
        description = describe(plan, rows, n_rows, reference)
        value["weights"] = plan.weights_grid(table.n_records, reference).to_grid(description, rng=rng)
    return Noised(value=value, event=plan.promise.event())


def private_model(plan: Plan, blocks: Blocks, n_labelled: int) -> Floats:
    """The model of a source's labelled half: exact to within the slack, not noised yet."""
    problem = plan.problem(n_labelled)
    if plan.promise.not_private is not None:
        return fit(blocks, problem=problem).theta
    return assured_fit(
        blocks, problem=problem, bounds=plan.bounds(n_labelled), distance=_SLACK * plan.model_moves(n_labelled)
    )


def describe(plan: Plan, blocks: Blocks, n_rows: int, reference: Reference) -> Floats:
    """The description of a source's unlabelled half: exact to within the slack, not noised yet."""
    public = known_rows(reference)
    if plan.weights == "tilt":
        return importance.mean_along(blocks, public, n_rows)
    if plan.promise.not_private is not None:
        return importance.discriminate(blocks, n_rows, public, plan.weights_l2).theta
    moves = plan.weights_move(n_rows, nonnegative=reference.nonnegative)
    radius = plan.cohort.radius
    return importance.assured_discriminator(
        blocks, n_rows, public, plan.weights_l2, radius=radius, distance=_SLACK * moves
    )


def described_rows(plan: Plan, rows: Floats, reference: Reference) -> Floats:
    """The description of rows that are at hand, such as the target's own: as a source describes its half."""
    rows = np.maximum(rows, 0.0) if reference.nonnegative else rows
    labels = np.zeros(len(rows), dtype=np.int64)
    return describe(plan, lambda: [(rows, labels)], len(rows), reference)


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
