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

from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.reply import Disclosed
from tacit.federation.step import step
from tacit.methods.exact import exact_problem, learned_from
from tacit.methods.method import Learned, Method
from tacit.methods.setting import check_l2
from tacit.models.loss import Sums
from tacit.models.problem import Problem
from tacit.models.solver import BlockRecords, Extent, minimise
from tacit.privacy.event import Event, NotPrivate
from tacit.rand import Rng

_WHY = "exact sums over one party's records"


@step("pooled/extent", version=1)
def party_extent(table: Table, *, rng: Rng) -> Disclosed:
    """The largest value of each column, in size, and the number of records of each class."""
    extent = BlockRecords(table.blocks, exact_problem(table.schema, 0.0, True)).extent()
    return Disclosed({"column_bound": extent.column_bound, "class_counts": extent.class_counts}, _WHY)


@step("pooled/sums", version=1)
def party_sums(table: Table, *, rng: Rng, theta: npt.NDArray[np.float64], l2: float, fit_intercept: bool) -> Disclosed:
    """Loss, gradient and curvature of this party's records at one iterate."""
    sums = exact_problem(table.schema, l2, fit_intercept).loss.sums(table.blocks, theta)
    return Disclosed(dict(vars(sums)), _WHY)


class Pooled(Method):
    """The exact fit of all parties' records.

    Args:
        l2: regularisation of the sum over all records, 1/C of scikit-learn; 0 is the maximum-likelihood fit.
        fit_intercept: whether to learn an intercept, which is not penalised.
    """

    name = "pooled"

    def __init__(self, *, l2: float = 0.0, fit_intercept: bool = True) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept

    def event(self) -> Event:
        """No epsilon bounds exact statistics."""
        return NotPrivate(why=_WHY)

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)

    def _learn(self, parties: Federation) -> Learned:
        problem = exact_problem(parties.schema, self.l2, self.fit_intercept)
        solution = minimise(_Parties(parties, problem, self.fit_intercept), problem=problem)
        return learned_from(solution, parties.schema)


class _Parties:
    """The parties as one table: what the solver asks of it, they answer together."""

    def __init__(self, parties: Federation, problem: Problem, fit_intercept: bool) -> None:
        self._parties = parties
        self._problem = problem
        self._fit_intercept = fit_intercept

    def extent(self) -> Extent:
        replies: list[Any] = list(self._parties.ask(party_extent).values())
        return Extent(
            column_bound=np.max([reply["column_bound"] for reply in replies], axis=0),
            class_counts=np.sum([reply["class_counts"] for reply in replies], axis=0),
        )

    def sums(self, theta: npt.NDArray[np.float64]) -> Sums:
        replies: Any = self._parties.ask(
            party_sums, theta=theta, l2=self._problem.l2, fit_intercept=self._fit_intercept
        ).values()
        total = self._problem.loss.zero()
        for reply in replies:
            total = total + Sums(**reply)
        return total
