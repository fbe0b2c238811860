"""Made-up rows: of the kinds that the schema names, with the moments that were opened."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.schema import Binary, Categorical, Numeric, Schema, Target
from tacit.methods.newton.row_population import RowPopulation
from tacit.methods.newton.shape import shape_of
from tacit.methods.newton.stand_in import made_up_rows
from tacit.methods.newton.statistic import shaped

Floats = npt.NDArray[np.float64]

SCHEMA = Schema(
    (Numeric("narrow", 0, 100), Numeric("wide", -1, 1), Binary("odd"), Categorical("colour", ("red", "green", "blue"))),
    Target("y", ("0", "1")),
)
CONSTANT = 0.6


def records(n: int) -> Floats:
    """Encoded rows: an exponential column, a uniform one, one of twenty, and colours that go with it."""
    rng = np.random.default_rng(0)
    odd = rng.random(n) < 0.05
    colour = np.where(rng.random(n) < 0.8, odd * 2, rng.integers(0, 3, size=n))
    narrow = np.minimum(rng.exponential(3, size=n), 100) / 50 - 1
    columns = [narrow, rng.uniform(-1, 1, size=n), odd, colour == 1, colour == 2, np.full(n, CONSTANT)]
    return np.column_stack(columns).astype(np.float64)


def made(Z: Floats) -> tuple[Floats, Floats, Floats]:
    """The shape of these rows, their moments in it, and the rows that are made up of both."""
    n = len(Z)
    B = shape_of(Z.T @ Z, 1e-3 * n / 100, float(n), room=1.0)
    u = shaped(Z, B).u
    return B, u.T @ u, made_up_rows(u.T @ u, 1e-3, B, CONSTANT, SCHEMA)


def test_made_up_columns_are_of_their_kinds_and_have_the_moments() -> None:
    Z = records(20_000)
    _, _, rows = made(Z)
    assert ((rows[:, 2:5] == 0) | (rows[:, 2:5] == 1)).all()
    assert (rows[:, 3:5].sum(axis=1) <= 1).all()
    assert (np.abs(rows[:, :2]) <= 1).all()
    assert (rows[:, -1] == CONSTANT).all()
    np.testing.assert_allclose(rows.mean(axis=0), Z.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(rows[:, :2].std(axis=0), Z[:, :2].std(axis=0), rtol=0.1)
    apart = np.corrcoef(rows[:, :5].T) - np.corrcoef(Z[:, :5].T)
    assert np.abs(apart).max() < 0.15


def test_made_up_rows_bend_as_the_records_do_where_a_normal_population_would_not() -> None:
    Z = records(20_000)
    B, M, rows = made(Z)
    theta = np.array([8.0, 0.5, -2.5, 0.3, 0.2, 0.0])
    theta[-1] = -float(Z[:, :-1].mean(axis=0) @ theta[:-1]) / CONSTANT
    model = np.linalg.solve(B, theta)[None]
    population = RowPopulation.of(rows, B=B, rho=1.0, M=M, M_noise=1e-3, n_records=float(len(Z)), model=model)
    true = shaped(Z, B)
    p = expit(true.g @ model[0])
    response = (p - 0.5) @ true.u
    curvature = (true.u * (p * (1 - p))[:, None]).T @ true.g
    scale = np.linalg.norm(curvature)
    np.testing.assert_allclose(population.curvature(model), (curvature + curvature.T) / 2, atol=0.05 * scale)
    assert np.linalg.norm(population.response(model)[0] - response) < 0.05 * np.linalg.norm(response)
    rare = np.linalg.solve(B, np.eye(6)[2])  # the model of the odd column alone
    assert abs(rare @ population.curvature(model) @ rare / (rare @ curvature @ rare) - 1) < 0.15


def test_a_populations_curvature_is_the_slope_of_its_responses_for_several_classes() -> None:
    Z = records(4_000)
    B, M, rows = made(Z)
    model = np.random.default_rng(1).normal(size=(3, 6)) * 0.5
    population = RowPopulation.of(rows, B=B, rho=1.0, M=M, M_noise=1e-3, n_records=4_000.0, model=model)
    way = np.random.default_rng(2).normal(size=(3, 6))
    slope = (population.response(model + 1e-5 * way) - population.response(model - 1e-5 * way)) / 2e-5
    np.testing.assert_allclose(
        population.curvature(model) @ way.ravel(), slope.ravel(), atol=1e-3 * np.abs(slope).max()
    )
