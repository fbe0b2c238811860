"""The worst neighbours of private Newton: one record replaced so that everything that is opened moves as far as it can.

One party has the record that is replaced, another has records without features. Their rows lie along the constant, so
that the shape which follows from noisy squares shortens that direction and stretches the others: the record and its
replacement, which differ in features alone, become rows u that are nearly opposite, and have the same label, which is
where t and M together move nearly most. A start that is an intercept alone answers both with the same confidence, so
that responses are as far apart as they can be. The squares are opened first, so the score knows the shape and with it
how far apart all else is. There is one round, which asks about the start; more would ask about iterates, which no pair
can foresee. Without colluders the opened sums hold no more noise than is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.channel import Opened
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.neighbour import Neighbours
from tacit.methods.newton.shape import opened_shape
from tacit.methods.newton.statistic import Plan, moments_sum, response_sum, squares_sum
from tacit.methods.newton.triangle import triangle
from tacit.privacy.noise.grid import NoiseGrid
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

_ANGLE = 1.2  # either way of the first feature
_START = (0.0, 0.0, 8.0)  # coefficients and intercept
_QUIET = 400
_ROUNDS = 1  # of responses


class ScoredMethod(Protocol):
    """What the score needs of the method."""

    epsilon: float

    @property
    def weighted_unit(self) -> Unit:
        """Whose records weigh 1 together."""

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan."""


def worst_pair() -> Neighbours:
    """A record replaced by its mirror image, with the same label, in the answers to a confident start."""
    two = Schema.of_arrays(2, ["0", "1"], norm_bound=1.0)

    def party(angle: float) -> Table:
        return Table.from_arrays(np.array([[math.cos(angle), math.sin(angle)]]), np.array([1]), two)

    quiet = Table.from_arrays(np.zeros((_QUIET, 2)), np.arange(_QUIET) % 2, two)
    one, other = party(_ANGLE), party(-_ANGLE)
    return Neighbours(
        label="mirror images before a confident start",
        first={"a": one, "b": quiet},
        second={"a": other, "b": quiet},
        settings={
            "rounds": _ROUNDS,
            "start": {"coef": [list(_START[:2])], "intercept": [_START[2]]},
            "colluders": 0,
            "relation": "replace-one",
            "robust": False,
        },
        score=_likelihood_ratio(one, other, quiet),
        score_of=_likelihood_ratio,
    )


@dataclass(frozen=True)
class Release:
    """One release: its grid, and the sum without noise with either table."""

    grid: NoiseGrid
    first: Floats
    second: Floats

    def log_ratio(self, opened: Opened) -> float:
        """How much likelier what was opened is with the first table, in logarithm: the noise is Gaussian."""
        beyond = self.grid.from_grid(np.asarray(opened)) - (self.first + self.second) / 2
        return float((self.first - self.second) @ beyond) / self.grid.noise_std**2

    @property
    def apart(self) -> float:
        """How far apart the two are, in standard deviations of the noise."""
        return float(np.linalg.norm(self.first - self.second)) / self.grid.noise_std


def releases(plan: Plan, squares: Opened, tables: tuple[Table, Table, Table]) -> list[Release]:
    """What is opened of (first, quiet) and of (second, quiet), given the noisy squares; `tables` are these three."""
    *ends, quiet = tables
    B = opened_shape(plan, np.asarray(squares), plan.cohort.n_units).B
    start = np.linalg.solve(B, [*_START[:2], _START[2] / plan.cohort.constant])[None]

    def release(grid: NoiseGrid, sum_of: Callable[[Table], Floats]) -> Release:
        return Release(grid, *(sum_of(table) + sum_of(quiet) for table in ends))

    return [
        release(plan.squares_grid, lambda table: triangle(squares_sum(table, plan)) / plan.reach),
        release(plan.moments_grid(B), lambda table: plan.pack(*moments_sum(table, plan, B))),
        release(plan.response_grid(B, start), lambda table: response_sum(table, plan, B, start).ravel()),
    ]


def _likelihood_ratio(first: Table, second: Table, quiet: Table) -> Callable[[ScoredMethod, list[Opened]], float]:
    """How much likelier all that was opened is with the first table, in logarithm."""
    plans: dict[float, Plan] = {}  # by epsilon: of the method, and of the same with half its noise

    def score(method: ScoredMethod, opened: list[Opened]) -> float:
        if method.epsilon not in plans:
            unit = method.weighted_unit
            group = SumGroup.of({"a": first.n_units(unit), "b": quiet.n_units(unit)}, quorum=2)
            plans[method.epsilon] = method.plan(Cohort.of(first.schema, group, colluders=0, unit=unit))
        made = releases(plans[method.epsilon], opened[0], (first, second, quiet))
        return sum(one.log_ratio(sum_) for one, sum_ in zip(made, opened, strict=True))

    return score
