"""The normal population that stands for the rows: how steeply it responds to a model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from tacit.methods.newton.population import Population

Floats = npt.NDArray[np.float64]
K, N = 4, 1000.0


def of_normal_rows(seed: int) -> Population:
    chance = np.random.default_rng(seed)
    root, mean = chance.normal(size=(K, K)) / 2, chance.normal(size=K)
    return Population(N * (root @ root.T + np.outer(mean, mean)), mean, N, 2)


@given(seed=st.integers(0, 2**32), spread=st.floats(0.1, 12.0))
def test_its_steepness_is_the_derivative_of_its_response_and_nowhere_downwards(seed: int, spread: float) -> None:
    """At steep models, too: there a coarse grid made it point down along the model, which was then lost."""
    population = of_normal_rows(seed)
    chance = np.random.default_rng(seed + 1)
    model, way = chance.normal(size=(2, 1, K))
    model *= spread / max(float(population.scores(model)[2][0, 0]) ** 0.5, 1e-3)
    h = 1e-4 / float(np.abs(way).max())
    moved = (population.response(model + h * way)[0] - population.response(model - h * way)[0]) / (2 * h)
    found = population.steepness(model)
    np.testing.assert_allclose(
        found.along(way, population.M),
        moved,
        atol=1e-4 * float(np.linalg.norm(population.M)) * float(np.abs(way).max()),
    )
    H = found.K[0, 0] * population.M + found.G
    assert np.linalg.eigvalsh(H)[0] >= -1e-6 * float(np.trace(H))
