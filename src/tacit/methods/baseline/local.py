"""Local: one party fits its own records and tells the model. The baseline that a federation has to beat.

Parties   one party; the others are not asked
Trust     whoever sees the model is trusted with it: it is the exact fit of one party's records
Travels   party -> coordinator: its exact model, curvature and likelihood. The party derives the plan itself
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

from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.baseline.statistic import MODEL_DISCLOSED, Plan, own_model
from tacit.methods.cohort import Cohort
from tacit.methods.exact_fit import learned_from
from tacit.methods.method import Learned, Method
from tacit.methods.setting import check_l2
from tacit.models.solver import Solution
from tacit.privacy.event import Event, NotPrivate


class Local(Method):
    """One party on its own.

    Args:
        l2: regularisation of the sum over that party's records, 1/C of scikit-learn.
        party: whose model; None takes the party with the most records.
        fit_intercept: whether to learn an intercept, which is not penalised.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> open_ones = {name: hospitals[name] for name in ("north", "south")}
        >>> parties = tacit.Federation.from_tables(open_ones, policy=tacit.Policy.disclosing_everything())
        >>> model = tacit.Local(party="north").fit(parties)
        >>> model.coef_.shape
        (1, 4)
    """

    name = "local"

    def __init__(self, *, l2: float = 1.0, party: str | None = None, fit_intercept: bool = True) -> None:
        self.l2 = l2
        self.party = party
        self.fit_intercept = fit_intercept

    def event(self) -> Event:
        """No epsilon bounds an exact model."""
        return NotPrivate(why=MODEL_DISCLOSED)

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        names = cohort.group.names
        if self.party is not None and self.party not in names:
            raise SettingError(f"party = {self.party!r} is not in the federation; it has {', '.join(names)}")
        return Plan(cohort=cohort, l2=float(self.l2), fit_intercept=self.fit_intercept)

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One model."""
        return (Ask(step=own_model, event=self.event()),)

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        sizes = channel.sizes
        party = max(sizes, key=lambda name: sizes[name]) if self.party is None else self.party
        value: dict[str, Any] = dict(channel.ask(own_model, parties=[party])[party])
        self.party_ = party
        theta, curvature = np.array(value["theta"]), value.pop("curvature")
        solution = Solution(problem=plan.problem, **value | {"theta": theta, "measure": lambda: curvature})
        return learned_from(solution, channel.schema)
