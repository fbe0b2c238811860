"""The Gaussian noise of a release is for its worst neighbours, exactly: they lie mu apart, and no further."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit import Federation, Policy
from tacit.methods import METHODS, make
from tacit.privacy.accounting import mu_for
from tacit.privacy.noise.grid import NoiseGrid

# Of all pairs on which a method is audited, the worst must come so near to mu.
NEAR = {"averaging": 0.97, "functional-mechanism": 0.999, "noisy-descent": 0.999}


def grid_of(plan: Any, start: Any) -> NoiseGrid:
    """The grid of a run's first release."""
    if hasattr(plan, "grids"):
        return plan.grids[0]  # type: ignore[no-any-return]
    if not callable(plan.grid):
        return plan.grid  # type: ignore[no-any-return]
    theta = np.zeros(plan.loss.shape) if start is None else np.ravel(start["coef"]).reshape(plan.loss.shape)
    return plan.grid(theta)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NEAR)
def test_worst_neighbours_lie_as_far_apart_as_is_charged_and_no_further(name: str) -> None:
    apart = []
    for pair in METHODS[name].worst_neighbours():
        settings, start, exact = dict(pair.settings), pair.settings.get("start"), []
        for tables in (pair.first, pair.second):
            parties = Federation.from_tables(tables, policy=Policy(not_private=[name]))
            parties.witness = seen = []
            quiet = make(name, {"epsilon": math.inf, **settings}).fit(parties)
            exact.append(grid_of(parties.terms(quiet).plan, start).from_grid(np.ravel(np.asarray(seen[0]))))
        model = make(name, {"epsilon": 1.0, "delta": 1e-6, **settings})
        noise_std = grid_of(parties.terms(model).plan, start).noise_std  # no colluders: all of it counts
        apart.append(float(np.linalg.norm(exact[0] - exact[1])) / noise_std / mu_for(1.0, 1e-6))
    assert NEAR[name] <= max(apart) <= 1
