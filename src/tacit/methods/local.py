"""Local: one party fits its own records and tells the model. The baseline that a federation has to beat.

Parties   one party; the others are not asked
Trust     whoever sees the model is trusted with it: it is the exact fit of one party's records
Travels   coordinator -> party: the regularisation. Party -> coordinator: its exact model, curvature and likelihood
Revealed  the party's exact model, to the coordinator and to everybody who gets the model
Privacy   NotPrivate: an exact fit can tell a record to whoever knows the others; refused unless the policy names
          "local"
Assumes   nothing of the rows; with l2 = 0 the classes must not be separable
Cost      one round; one local fit; 8 bytes a number of the model and its curvature
Paper     the individual classifiers that Pathak et al., Hamm et al. and Du et al. compare with
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.reply import Disclosed
from tacit.federation.step import step
from tacit.methods.exact import exact_problem, learned_from
from tacit.methods.method import Learned, Method
from tacit.methods.setting import check_l2
from tacit.models.solver import Solution, fit
from tacit.privacy.event import Event, NotPrivate
from tacit.rand import Rng
from tacit.wire import Value

_WHY = "the exact model of one party's records"


@step("local/model", version=1)
def own_model(table: Table, *, rng: Rng, l2: float, fit_intercept: bool) -> Disclosed:
    """Fit this party's records exactly."""
    solution = fit(table.blocks, problem=exact_problem(table.schema, l2, fit_intercept))
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
    return Disclosed(value=value, why=_WHY)


class Local(Method):
    """One party on its own.

    Args:
        l2: regularisation of the sum over that party's records, 1/C of scikit-learn.
        party: whose model; None takes the party with the most records.
        fit_intercept: whether to learn an intercept, which is not penalised.
    """

    name = "local"

    def __init__(self, *, l2: float = 1.0, party: str | None = None, fit_intercept: bool = True) -> None:
        self.l2 = l2
        self.party = party
        self.fit_intercept = fit_intercept

    def event(self) -> Event:
        """No epsilon bounds an exact model."""
        return NotPrivate(why=_WHY)

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)

    def _learn(self, parties: Federation) -> Learned:
        sizes = parties.sizes
        party = max(sizes, key=lambda name: sizes[name]) if self.party is None else self.party
        if party not in sizes:
            raise SettingError(f"party = {party!r} is not in the federation; it has {', '.join(sizes)}")
        value: dict[str, Any] = dict(
            parties.ask(own_model, parties=[party], l2=float(self.l2), fit_intercept=self.fit_intercept)[party]
        )
        self.party_ = party
        problem = exact_problem(parties.schema, self.l2, self.fit_intercept)
        solution = Solution(problem=problem, **value | {"theta": np.array(value["theta"])})
        return learned_from(solution, parties.schema)
