"""What intervals, steps and levels count, one part at a time: each test fails if its part is left out."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit import Federation, Rng
from tacit.methods.newton import interval
from tacit.methods.newton.drowned import Directions
from tacit.methods.newton.level import Level
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.population import Population, Steepness
from tacit.methods.newton.row_population import RowPopulation
from tacit.methods.newton.solver import CURVED, Equation, Observation
from tacit.methods.newton.tangent import Tangent

Floats = npt.NDArray[np.float64]
K = 4


def positive(seed: int, k: int = K) -> Floats:
    root = np.random.default_rng(seed).normal(size=(k, k))
    return root @ root.T + np.eye(k)


def test_a_curvature_that_is_off_varies_as_it_is_said_to() -> None:
    rng, n = np.random.default_rng(0), 50_000
    sampling = positive(1)
    p, one, other = rng.normal(size=(3, K))
    told: Any = SimpleNamespace()
    root = np.linalg.cholesky(sampling)
    off = rng.normal(size=(n, K, K)) * CURVED / math.sqrt(2 * K)
    off = (off + off.transpose(0, 2, 1)) / 2  # c^2 / (4 k) off the diagonal, twice that on it
    moved = [np.einsum("i,nij,j->n", root.T @ p, off, root.T @ way) for way in (one, other)]
    for j, way in ((0, one), (1, other)):
        said = interval._Told.of_bend(told, p[None], one[None], way[None], sampling)[0]
        product = moved[0] * moved[j]
        assert said == pytest.approx(product.mean(), abs=5 * product.std() / math.sqrt(n))


def test_a_likely_model_spreads_scores_as_far_as_the_estimate_without_its_noise() -> None:
    scores = positive(2)
    told: Any = SimpleNamespace(
        population=SimpleNamespace(K=np.array([[0.25]]), scores=scores), _over_basis=lambda A: A
    )
    predicted, w = np.array([0.1, 0.0, 0.2, 0.0]), np.array([3.0, -1.0, 2.0, 1.0])
    D = 0.1 * positive(3)
    between = interval._Told.between(told, predicted, w, D)
    noise = float(np.sum(scores * D))
    assert float(between @ scores @ between) == pytest.approx(float(w @ scores @ w) - noise)
    assert float(w @ scores @ w) > 1.1 * float(between @ scores @ between)
    np.testing.assert_array_equal(interval._Told.between(told, predicted, w, 1e6 * D), predicted)  # all of it is noise


@pytest.mark.parametrize(("residual", "is_more"), [(0.0, False), (200.0, True)])
def test_what_drowned_directions_spread_unseen_makes_coefficients_too_small(residual: float, is_more: bool) -> None:
    axes = np.eye(K)
    told: Any = SimpleNamespace(
        directions=Directions(seen=axes[:, :2], ratios=np.array([9.0, 9.0]), drowned=axes[:, 2:]),
        residual=lambda _: np.array([0.0, 0.0, residual, 0.0]),
        sampling=lambda _: np.eye(K),
        noise_variance=1.0,
        law=0.2 * np.eye(K),
        population=SimpleNamespace(K=np.array([[0.25]]), n_records=1000.0),
    )
    share = interval._Told.steeper(told, np.zeros(K))
    if not is_more:
        assert share == 0.0
        return
    spread = min(5 * math.sqrt(2) * math.sqrt(residual**2 - 2.0) / (0.25 * 1000), interval._UNSEEN)
    assert share == pytest.approx(math.sqrt(1 + 0.346 * spread) - 1)


def test_made_up_rows_respond_as_steeply_as_they_are_said_to_with_what_moments_say_beyond_them() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(50, K)) / 2
    population = RowPopulation(
        u=rows, v=rows, weights=rng.uniform(1, 3, 50), K=np.array([[0.2]]), beyond=10 * positive(5)
    )
    model, way = rng.normal(size=(2, 1, K))
    h = 1e-5
    moved = (population.response(model + h * way) - population.response(model - h * way)) / (2 * h)
    np.testing.assert_allclose(population.curvature(model) @ way[0], moved[0], rtol=1e-6)
    without = RowPopulation(**{**vars(population), "beyond": np.zeros((K, K))})
    np.testing.assert_allclose(population.response(model) - without.response(model), 0.2 * model @ population.beyond)


@pytest.mark.parametrize(("evidence", "furthest"), [(0.0, 4.0), (2.71, 4.0), (5.42, 8.0), (1e4, 10.0)])
def test_no_score_is_far_off_unless_much_speaks_for_it(evidence: float, furthest: float) -> None:
    equation: Any = SimpleNamespace(
        start=np.zeros((1, 3)), B=np.eye(3), rho=0.5, plan=SimpleNamespace(cohort=SimpleNamespace(radius=1.0))
    )
    model = np.array([[3.0, 4.0, 7.0]])  # 10 for the longest row, beside the intercept
    found = Equation._within(equation, model, evidence)
    assert float(np.linalg.norm(found[0, :2])) / 0.5 == pytest.approx(furthest)
    np.testing.assert_array_equal(Equation._within(equation, model, None), model)  # with an l2 that was set


def test_rounds_that_rise_more_than_expected_make_the_curvature_steeper_along_their_way() -> None:
    M = 100 * np.eye(3)
    H = Steepness(K=np.array([[0.25]]), G=np.zeros((3, 3)))
    way = np.array([[1.0, 0.0, 0.0]])
    rounds = [
        Observation(
            model=at * way, response=at * 60.0 * way, noise_std=1e-3, steepness=H,
            surprise=at * 35.0 * way, surprise_variance=0.0,
        )
        for at in (0.0, 1.0)
    ]  # fmt: skip
    equation: Any = SimpleNamespace(plan=SimpleNamespace(cohort=SimpleNamespace(n_classes=2)), observations=rounds, M=M)
    equation._changes = lambda: Equation._changes(equation)
    shown = Equation._bend(equation, H) + 0.25 * M
    assert shown[0, 0] == pytest.approx(60.0)
    assert shown[1, 1] == pytest.approx(25.0)
    equation.observations = rounds[:1]
    assert not Equation._bend(equation, H).any()


def test_noise_of_the_mean_row_that_the_equation_shows_is_taken_out_of_it() -> None:
    """t less what the level explains holds n (1/2 - p) times that noise: what is left unexplained points along it."""
    rng, n, k = np.random.default_rng(6), 2000.0, 30
    q = np.eye(k)[-1]
    M = n * (0.05 * np.eye(k) + np.outer(q, q))
    mean = M @ q / n
    left, before = [], []
    for _ in range(40):
        noise = np.append(rng.normal(size=k - 1) * 0.05, 0.0)
        population = Population(M, mean + noise, n, 2)
        level = Level(
            population=population, q=q, counted=n, weight_error=0.0, mean_variance=(0.05 * n) ** 2, t_noise=1.0,
            lowest=-10.0,
        )  # fmt: skip
        model = -4.0 * q[None]  # a rare class, and nothing else to see
        above = float(population.response(model)[1][0])
        tangent = Tangent(
            steepness=Steepness(K=np.array([[0.02]]), G=np.zeros((k, k))),
            right=-n * above * noise[None], variance=(n * above * 0.05) ** 2, unasked=1.0,
        )  # fmt: skip
        misread = level._misread_mean(tangent, np.zeros((1, k)), above)
        left.append(float(np.sum((noise - misread) ** 2)))
        before.append(float(np.sum(noise**2)))
        assert misread[-1] == pytest.approx(0.0, abs=1e-12)
    assert sum(left) < 0.2 * sum(before)


def test_of_the_noise_of_moments_only_what_averaging_left_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(3000, 3)) / 4
    y = (rng.random(3000) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    widths = []
    for share in (1.0, 10.0):
        monkeypatch.setattr(interval, "noise_left", lambda _, noise, share=share: share * noise)
        parties = Federation.split(X, y, n_parties=3, norm_bound=1.0, rng=Rng.seeded(1))
        widths.append(PrivateNewton(epsilon=1.0).fit(parties).table()["std_err"].to_numpy())
    assert np.all(widths[1] > 1.02 * widths[0])
