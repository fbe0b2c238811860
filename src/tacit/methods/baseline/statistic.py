"""What a party of the baselines discloses: its own exact model, or exact sums over its records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Disclosed
from tacit.federation.step import step
from tacit.methods.cohort import Cohort
from tacit.methods.exact_fit import exact_problem
from tacit.models.problem import Problem
from tacit.models.solver import BlockRecords, fit
from tacit.rand import Rng
from tacit.wire import Value

MODEL_DISCLOSED = "the exact model of one party's records"
SUMS_DISCLOSED = "exact sums over one party's records"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one fit, as every party derives them."""

    cohort: Cohort
    l2: float
    fit_intercept: bool

    @cached_property
    def problem(self) -> Problem:
        """The fit itself."""
        return exact_problem(self.cohort.schema, self.l2, self.fit_intercept)

    @property
    def most_passes(self) -> int:
        """How often the solver asks for sums: as often as it may, and once more to say why there is no optimum."""
        return self.problem.max_passes + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledIterate:
    """The parameter at which sums are asked for."""

    theta: npt.NDArray[np.float64]

    def check(self, plan: Plan) -> None:
        """Refuse what is no parameter of the fit."""
        if self.theta.shape != plan.problem.loss.shape or not np.isfinite(self.theta).all():
            raise PolicyRefusal(f"an iterate of shape {self.theta.shape} is no parameter of the fit, or is not finite")


@step("local/model", version=2, plan=Plan)
def own_model(table: Table, plan: Plan, *, rng: Rng) -> Disclosed:
    """Fit this party's records exactly."""
    solution = fit(table.stream(), problem=plan.problem)
    value: dict[str, Value] = {
        "theta": solution.theta,
        "gradient_norm": solution.gradient_norm,
        "distance_bound": solution.distance_bound,
        "objective": solution.objective,
        "log_likelihood": solution.log_likelihood,
        "curvature": solution.curvature,
        "n_records": solution.n_records,
        "passes": solution.passes,
    }
    return Disclosed(value=value, why=MODEL_DISCLOSED)


@step("pooled/extent", version=2, plan=Plan)
def party_extent(table: Table, plan: Plan, *, rng: Rng) -> Disclosed:
    """The largest value of each column, in size, and the number of records of each class."""
    extent = BlockRecords(table.stream(), plan.problem).extent()
    return Disclosed({"column_bound": extent.column_bound, "class_counts": extent.class_counts}, SUMS_DISCLOSED)


@step("pooled/sums", version=2, plan=Plan, values=PooledIterate)
def party_sums(table: Table, plan: Plan, iterate: PooledIterate, *, rng: Rng) -> Disclosed:
    """Loss, gradient and curvature of this party's records at one iterate."""
    iterate.check(plan)
    return Disclosed(dict(vars(plan.problem.loss.sums(table.stream(), iterate.theta))), SUMS_DISCLOSED)
