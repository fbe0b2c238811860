"""What a party of averaging is asked: its own classifier, weighted and noised.

Party j minimises J(w) = mean loss + (Lam/2) ||w||^2. Where a person or a party is the unit, n_j is the number of units,
and the mean is that over units of the mean over a unit's records. The proof that the noise suffices is in `method`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.federation.reply import Sealed
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise, bound_of
from tacit.models.assured import FitBounds, assured_fit
from tacit.models.batch import fit_many
from tacit.models.problem import Problem
from tacit.models.sensitivity import minimiser_norm_bound, minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.noise.grid import NoiseGrid
from tacit.privacy.noise.norm import laplace_norm
from tacit.privacy.noise.spherical import spherical_laplace_shares
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

SLACK = 1e-3  # the solver's distance from the minimiser, as a share of the minimiser's sensitivity


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    `l2_mean` is Lam; `weights` is "size" or "equal".
    """

    cohort: Cohort
    promise: Promise
    l2_mean: float
    weights: str

    @property
    def dimension(self) -> int:
        """How many numbers are averaged."""
        return math.prod(self.problem(1).loss.shape)

    def problem(self, n_records: int) -> Problem:
        """The fit of a party with so many records; its l2 is of the sum form, n_j Lam."""
        sensitivity = minimiser_sensitivity(n_records, self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)
        return Problem(
            n_features=self.cohort.n_features,
            n_classes=self.cohort.n_classes,
            l2=n_records * self.l2_mean,
            intercept="feature" if self.cohort.constant else "none",
            constant=self.cohort.constant or 1.0,
            tolerance=min(1e-9, 0.1 * SLACK * sensitivity / max(1.0, self.norm_bound)),
        )

    def bounds(self, n_records: int) -> FitBounds:
        """What is public about that fit."""
        return FitBounds(
            loss=self.cohort.loss,
            l2=n_records * self.l2_mean,
            weight=n_records,
            n_rows=n_records if self.cohort.unit == "record" else self.cohort.most_rows,
            radius=self.cohort.row_norm,
            norm_bound=self.norm_bound,
        )

    def slack(self, n_records: int) -> float:
        """How far the model of a party with so many records may be from its minimiser."""
        return SLACK * minimiser_sensitivity(n_records, self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)

    def check(self) -> None:
        """Refuse a penalty with which a fit could fail on some records: a `SettingError` from public numbers alone."""
        if self.promise.not_private is None:
            self.bounds(self.cohort.n_largest).check(self.slack(self.cohort.n_largest))

    def local_fit(self, table: Table) -> Floats:
        """A party's model, within the slack of its minimiser whatever its records are."""
        n = table.n_units(self.cohort.unit)
        blocks = table.stream() if self.cohort.unit == "record" else self.cohort.stream(table)
        if self.promise.not_private is not None:
            return fit(blocks, problem=self.problem(n)).theta
        return assured_fit(blocks, problem=self.problem(n), bounds=self.bounds(n), distance=self.slack(n))

    @property
    def norm_bound(self) -> float:
        """B(Lam): no minimiser is longer."""
        return minimiser_norm_bound(self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)

    def weight(self, n_records: int) -> float:
        """a_j, the weight of a party with so many records."""
        return n_records / self.cohort.n_units if self.weights == "size" else 1 / self.cohort.n_parties

    @property
    def sensitivity(self) -> float:
        """S: how far one record can move the average, the solver's slack included."""
        n_worst = self.cohort.n_units if self.weights == "size" else self.cohort.least_records
        share = 1.0 if self.weights == "size" else 1 / self.cohort.n_parties
        # For weights by size a_j / n_j = 1/n for every j; for equal ones the smallest party counts.
        moved = share * minimiser_sensitivity(n_worst, self.l2_mean, self.cohort.row_norm, self.cohort.n_classes)
        return (1 + 2 * SLACK) * moved

    @property
    def paper_scale(self) -> float:
        """Pathak et al., stage 2: eta_i iid Laplace(2 / (n_min epsilon lambda)), lambda = Lam / 2."""
        return 4 / (self.cohort.least_records * self.promise.epsilon * self.l2_mean)

    @property
    def _addend_norm(self) -> float:
        """No weighted model is longer; with the document's noise, but for a chance below 2^-44."""
        noise = laplace_norm(self.paper_scale, self.dimension)
        longest = 1.01 * min(1.0, self.weight(self.cohort.n_largest)) * self.norm_bound
        return longest + (noise if self.promise.is_paper else 0.0)

    @cached_property
    def grid(self) -> NoiseGrid:
        """Where the average is rounded to, and what noise each party adds to it."""
        return self.promise.grid(
            self.cohort.total(
                dimension=self.dimension,
                sensitivity=self.sensitivity,
                value_bound=2 * self.norm_bound + (100 * self.paper_scale if self.promise.is_paper else 0.0),
                norm_bound=self._addend_norm,
            )
        )

    def seal(self, theta: Floats, n_records: int, *, rng: Rng) -> Sealed:
        """A party's reply: its weighted model with its noise, on the grid."""
        addend = self.grid.to_grid(self.weight(n_records) * theta.ravel(), rng=rng)
        if self.promise.is_paper and n_records == self.cohort.least_records and math.isfinite(self.promise.epsilon):
            # The document has one smallest party; several of equal size add a share each, which sum up to its noise.
            smallest = max(1, self.cohort.group.sizes.count(n_records))
            noise = spherical_laplace_shares(self.paper_scale, 1, smallest, addend.size, rng=rng)  # one number each
            addend = addend + np.rint(noise.ravel() / self.grid.step).astype(np.int64)
        return Sealed(
            addend=addend, event=self.promise.event(), n_parties=self.grid.total.least, bound=bound_of(self.grid)
        )


@step("averaging/model", version=3, plan=Plan)
def local_model(table: Table, plan: Plan, *, rng: Rng) -> Sealed:
    """Fit this party's classifier and seal it, weighted and noised."""
    return plan.seal(plan.local_fit(table), table.n_units(plan.cohort.unit), rng=rng)


@local_model.batched
def local_models(tables: Sequence[Table], plan: Plan, *, rngs: Sequence[Rng]) -> list[Sealed]:
    """The same for many parties at once, where every record weighs 1."""
    if plan.cohort.unit != "record":
        models = [plan.local_fit(table) for table in tables]
        own = [table.n_units(plan.cohort.unit) for table in tables]
        return [plan.seal(theta, n, rng=rng) for theta, n, rng in zip(models, own, rngs, strict=True)]
    sizes = np.array([table.n_records for table in tables])
    rows = [table.arrays() for table in tables]
    solutions = fit_many(
        np.concatenate([X for X, _ in rows]),
        np.concatenate([y for _, y in rows]),
        np.concatenate([[0], np.cumsum([len(y) for _, y in rows])]),
        problem=plan.problem(int(sizes.max())),  # the largest party's sensitivity is the least: the strictest tolerance
        l2=plan.l2_mean * sizes,
        finish=False,
    )
    models = [
        theta if bound <= plan.slack(table.n_records) else plan.local_fit(table)
        for table, theta, bound in zip(tables, solutions.theta, solutions.distance_bound, strict=True)
    ]
    return [plan.seal(theta, table.n_records, rng=rng) for table, theta, rng in zip(tables, models, rngs, strict=True)]
