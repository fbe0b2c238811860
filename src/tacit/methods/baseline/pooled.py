"""Pooled: the exact fit of all records together, from statistics that every party discloses. The mark to reach.

Parties   all parties; the coordinator adds up
Trust     the coordinator is trusted with every party's exact statistics
Travels   in each round, coordinator -> party: the iterate. Party -> coordinator: its exact loss, gradient and
          curvature there
Revealed  every party's exact sums at every iterate, to the coordinator; with few records they give records away
Privacy   NotPrivate: refused unless the party's policy names "pooled"
Assumes   nothing of the rows; with l2 = 0 the pooled classes must not be separable
Cost      one round for each Newton step, about eight; a party sends 8 (d + 1)(d + 2) bytes a round; one pass over its
          records
Paper     the "batch" or "non-private all data" line of every document; the fit is what a single owner of all records
          would have, to rounding
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.baseline.statistic import SUMS_DISCLOSED, Plan, PooledIterate, party_extent, party_sums
from tacit.methods.cohort import Cohort
from tacit.methods.exact_fit import learned_from
from tacit.methods.method import Learned, Method
from tacit.methods.setting import check_l2
from tacit.models.loss import Sums
from tacit.models.solver import Extent, minimise
from tacit.privacy.event import Event, NotPrivate


class Pooled(Method):
    """The exact fit of all parties' records.

    Args:
        l2: regularisation of the sum over all records, 1/C of scikit-learn; 0 is the maximum-likelihood fit.
        fit_intercept: whether to learn an intercept, which is not penalised.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> open_ones = {name: hospitals[name] for name in ("north", "south")}
        >>> parties = tacit.Federation.from_tables(open_ones, policy=tacit.Policy.disclosing_everything())
        >>> model = tacit.Pooled().fit(parties)
        >>> model.coef_.shape
        (1, 4)
    """

    name = "pooled"

    def __init__(self, *, l2: float = 0.0, fit_intercept: bool = True) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept

    def event(self) -> Event:
        """No epsilon bounds exact statistics."""
        return NotPrivate(why=SUMS_DISCLOSED)

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        return Plan(cohort=cohort, l2=float(self.l2), fit_intercept=self.fit_intercept)

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """The extent of the records, then sums at each iterate of the solver."""
        event = self.event()
        return (Ask(step=party_extent, event=event), Ask(step=party_sums, times=plan.most_passes, event=event))

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        parties = _Parties(channel, plan)
        counts = parties.extent().class_counts
        return learned_from(minimise(parties, problem=plan.problem), channel.schema, counts)


class _Parties:
    """The parties as one table: what the solver asks of it, they answer together."""

    def __init__(self, channel: Channel, plan: Plan) -> None:
        self._channel = channel
        self._problem = plan.problem
        replies: list[Any] = list(channel.ask(party_extent).values())
        self._extent = Extent(
            column_bound=np.max([reply["column_bound"] for reply in replies], axis=0),
            class_counts=np.sum([reply["class_counts"] for reply in replies], axis=0),
        )

    def extent(self) -> Extent:
        """The size of the columns' entries and of the classes."""
        return self._extent

    def sums(self, theta: npt.NDArray[np.float64], *, curvature: bool = True) -> Sums:
        """Value, gradient and curvature at `theta`; a pass tells all three."""
        replies: Any = self._channel.ask(party_sums, PooledIterate(theta=theta)).values()
        total = self._problem.loss.zero()
        for reply in replies:
            total = total + Sums(**reply)
        return total
