"""The worst neighbours of hypothesis transfer: where one record moves a source's model, or its description, most.

As printed there are two bounds on rows in one method. The model's noise is made for rows of norm 1, the discriminator's
for entries between 0 and 1. Rows of norm 1 keep the first promise. Texts with a 0 or 1 for each of d words meet the
second bound and may have norm sqrt(d): then the model moves sqrt(d) / 2 times further than its noise allows for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.neighbour import Neighbours
from tacit.methods.transfer.statistic import Plan, private_model

_ALONE = {"strategy": "average", "labelled_fraction": 1.0, "l2": 20.0, "fit_intercept": False}
_WORDS = 100
_PENALTY = 1e4  # so strong that a model of such rows is nearly linear in them


def worst_pairs() -> list[Neighbours]:
    """For the model a lone record turned about; for the mean, one of nine, which most often is in its half."""
    schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)

    def party(records: list[tuple[float, int]]) -> Table:
        return Table.from_arrays(np.array([[x] for x, _ in records]), np.array([y for _, y in records]), schema)

    quiet = party([(0.0, 1)] * 2)
    tilted = {"strategy": "transfer", "labelled_fraction": 0.1, "l2": 20.0, "public": [[-1.0], [1.0]]}
    rest = [(0.0, 1)] * 8
    pairs = {
        "an extreme label": (party([(1.0, 0)]), party([(1.0, 1)]), _ALONE),
        "opposed features": (party([(1.0, 1)]), party([(-1.0, 1)]), _ALONE),
        "an opposed row in the mean": (party([(1.0, 1), *rest]), party([(-1.0, 1), *rest]), tilted),
    }
    return [
        Neighbours(label=label, first={"a": a, "b": quiet}, second={"a": b, "b": quiet}, settings=settings)
        for label, (a, b, settings) in pairs.items()
    ]


def printed_pair(entry: float = 1.0) -> Neighbours:
    """A text of a hundred words, each counted as `entry`, whose label is turned about; its loss is known exactly."""
    schema = Schema.of_arrays(_WORDS, ["0", "1"], norm_bound=float(_WORDS))
    row = np.full((1, _WORDS), entry)
    first, second = (Table.from_arrays(row, [label], schema) for label in (0, 1))
    quiet = Table.from_arrays(0 * row, [1], schema)
    return Neighbours(
        label=f"a text with a 1 for each of {_WORDS} words: norm {_WORDS**0.5:g}, where noise is for norm 1",
        first={"a": first, "b": quiet},
        second={"a": second, "b": quiet},
        settings=_ALONE | {"l2": _PENALTY},
        loss=lambda method: _spherical_loss(method.plan, float(method.epsilon), first, second),
    )


def _spherical_loss(make: Callable[[Cohort], Any], epsilon: float, first: Table, second: Table) -> float:
    """The largest logarithm of a ratio of densities under spherical Laplace noise: ||difference||_2 over its scale."""
    group = SumGroup.of({"a": 1, "b": 1}, quorum=2)
    plan: Plan = make(Cohort.of(first.schema, group, colluders=0))
    models = [private_model(plan, table.blocks, 1) for table in (first, second)]
    noise_scale = plan.model_grid(1).total.sensitivity / epsilon
    return float(np.linalg.norm(models[0] - models[1])) / noise_scale
