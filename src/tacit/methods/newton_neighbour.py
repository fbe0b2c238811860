"""The worst neighbours of private Newton: one record replaced so that everything that is opened moves as far as it can.

Two parties with a record each, so that the rule's constant is c = r = 1. Responses to a start of length 4 are furthest
apart on either side of it, at about 45 degrees. With the other label the rows (x, c) and -(x', c) are then 120 degrees
apart, which is where t and A together move most. So one pair comes within 0.1 % of the claimed sensitivity in every
release. There is one round, which asks about the start; more would ask about iterates, which no pair can foresee.
Without colluders the opened sums hold no more noise than is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation, Opened
from tacit.methods.neighbour import Neighbours
from tacit.methods.newton_sum import Plan, response_sum
from tacit.methods.quadratic_sum import statistics

Floats = npt.NDArray[np.float64]

_ANGLE = 0.775
_START = (4.0, 0.0)
_ROUNDS = 1  # after the moments


class Planned(Protocol):
    """What the score needs of the method."""

    epsilon: float

    def plan(self, parties: Federation) -> Plan:
        """The public plan."""


def worst_pair() -> Neighbours:
    """A record replaced by its mirror image, with the other label, on either side of a confident start."""
    two = Schema.of_arrays(len(_START), ["0", "1"], norm_bound=1.0)

    def party(angle: float, label: int, length: float = 1.0) -> Table:
        row = [[length * math.cos(angle), length * math.sin(angle)]]
        return Table.from_arrays(np.array(row), np.array([label]), two)

    one, other, quiet = party(_ANGLE, 1), party(math.pi - _ANGLE, 0), party(0.0, 1, 0.0)
    return Neighbours(
        label="either side of a confident start",
        first={"a": one, "b": quiet},
        second={"a": other, "b": quiet},
        settings={
            "rounds": _ROUNDS,
            "start": {"coef": [list(_START)], "intercept": [0.0]},
            "fit_intercept": False,
            "colluders": 0,
            "relation": "replace-one",
        },
        score=_likelihood_ratio(one, other, quiet),
    )


def _likelihood_ratio(first: Table, second: Table, quiet: Table) -> Callable[[Planned, list[Opened]], float]:
    """How much likelier all that was opened is with the first table, in logarithm and up to a constant.

    The noise is Gaussian and the same for both, so that is linear in each sum: along the line from one table's to the
    other's, over the variance.
    """
    parties = Federation.from_tables({"a": first, "b": quiet})
    theta = np.array([*_START, 0.0])
    lines: dict[float, list[Floats]] = {}  # by epsilon: of the method, and of the same with half its noise

    def towards_first(plan: Plan) -> list[Floats]:
        moments, answers = plan.moments_grid, plan.response_grid(theta)
        ends = [plan.pack(*statistics(table, plan.constant)) for table in (first, second)]
        response_ends = [response_sum(table, theta, plan.loss).ravel() for table in (first, second)]
        of_moments = (ends[0] - ends[1]) * moments.step / moments.noise_std**2
        of_responses = (response_ends[0] - response_ends[1]) * answers.step / answers.noise_std**2
        return [of_moments, *[of_responses] * plan.rounds]

    def score(method: Planned, opened: list[Opened]) -> float:
        if method.epsilon not in lines:
            lines[method.epsilon] = towards_first(method.plan(parties))
        sums = [np.asarray(one, dtype=np.float64) for one in opened]
        return float(sum(line @ one for line, one in zip(lines[method.epsilon], sums, strict=True)))

    return score
