"""Private Newton's intervals: they hold where columns are ordinary, and say so where nothing can be said."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from tacit import Federation, Rng, Schema, Table
from tacit.data.feature import Numeric, Target
from tacit.methods.newton import interval, shrinkage
from tacit.methods.newton.chance import likely_chance
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.moments import noise_left, unspread
from tacit.methods.newton.population import Population
from tacit.methods.newton.shrinkage import SEEN, known_laws, shrunken, shrunken_by
from tacit.report.row import INTERCEPT, CoefficientRow

Floats = npt.NDArray[np.float64]


def uniform(rng: np.random.Generator, n: int) -> Floats:
    return rng.uniform(0, 100, size=(n, 5))


def narrow(rng: np.random.Generator, n: int) -> Floats:
    """The first column uses a few hundredths of its bounds."""
    rows = uniform(rng, n)
    rows[:, 0] = np.minimum(rng.exponential(3, size=n), 100)
    return rows


def fitted(law: object, n: int, epsilon: float, seed: int, *, b: float = -0.5) -> tuple[PrivateNewton, Floats]:
    """A model of records with a known truth, intercept first; columns have bounds 0..100."""
    rng = np.random.default_rng([seed, n])
    X = law(rng, n)  # type: ignore[operator]
    beta = rng.normal(size=5) * 0.5 / X.std(axis=0)
    shift = b - float(X.mean(axis=0) @ beta)
    y = np.where(rng.random(n) < expit(X @ beta + shift), "yes", "no")
    schema = Schema(tuple(Numeric(f"x{i}", 0, 100) for i in range(5)), Target("y", ("no", "yes")))
    tables = {str(i): Table.from_arrays(X[i::3], y[i::3], schema) for i in range(3)}
    parties = Federation.from_tables(tables, rng=Rng.seeded(seed))
    return PrivateNewton(epsilon=epsilon).fit(parties), np.append(shift, beta)


def holds(row: CoefficientRow, truth: float) -> bool:
    """Whether nothing false is said: not identified, or inside."""
    if not row.identified:
        return True
    assert row.low is not None
    assert row.high is not None
    return row.low <= truth <= row.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n", "epsilon", "b"),
    [(uniform, 3000, 1.0, -0.5), (narrow, 3000, 1.0, -0.5), (narrow, 20_000, 1.0, -0.5), (uniform, 20_000, 1.0, -4.0)],
    ids=["uniform", "narrow, few", "narrow, many", "rare"],
)
def test_intervals_hold_or_say_that_nothing_is_known(law: object, n: int, epsilon: float, b: float) -> None:
    right, told = [], []
    for seed in range(25):
        model, truth = fitted(law, n, epsilon, seed, b=b)
        right.append([holds(row, true) for row, true in zip(model.facts_.coefficients, truth, strict=True)])
        told.append([row.identified for row in model.facts_.coefficients])
    assert np.mean(told) > 0.5  # to say nothing at all would be right, and of no use
    assert np.mean(right) > 0.90  # 150 intervals that hold in 95 % do so but for a chance below 0.01
    assert np.mean(right, axis=0).min() > 0.7  # none of them is wrong for its own sake


def test_intervals_do_not_depend_on_how_long_they_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of records that all have one label the steps went to and fro between two tables for ever."""
    X = np.random.default_rng(0).uniform(0, 100, size=(3000, 3))
    schema = Schema(tuple(Numeric(f"x{i}", 0, 100) for i in range(3)), Target("y", ("no", "yes")))
    tables = {str(i): Table.from_arrays(X[i::3], np.full(1000, "no"), schema) for i in range(3)}
    found = []
    for most in (60, 61):
        monkeypatch.setattr(interval, "_STEPS", most)
        parties = Federation.from_tables(tables, rng=Rng.seeded(1))
        found.append(PrivateNewton(epsilon=1).fit(parties).table()[["estimate", "std_err"]].to_numpy())
    np.testing.assert_allclose(*found, rtol=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_noise_of_moments_varies_as_it_is_said_to(n_classes: int) -> None:
    rng, k, n = np.random.default_rng(0), 4, 100_000
    across = np.eye(1) if n_classes == 2 else np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    basis = np.kron(across, np.eye(k))
    K = np.array([[0.25]]) if n_classes == 2 else 0.5 * (np.eye(n_classes) - 1 / n_classes)
    told: Any = SimpleNamespace(population=SimpleNamespace(K=K), basis=basis, M_noise=1.0)
    p, one, other = rng.normal(size=(3, basis.shape[1]))
    E = rng.normal(size=(n, k, k))
    E = (E + E.transpose(0, 2, 1)) / 2  # as of M: variance 1 on the diagonal, half beside it
    rows = (basis @ p).reshape(len(K), k)
    moved = [np.einsum("ck,cj,njk->n", rows, K @ (basis @ way).reshape(len(K), k), E) for way in (one, other)]
    for j, way in ((0, one), (1, other)):
        said = interval._Told.of_moments(told, p[None], one[None], way[None])[0]
        spread = np.std(moved[0] * moved[j]) / math.sqrt(n)
        assert said == pytest.approx(np.mean(moved[0] * moved[j]), abs=5 * spread)


def test_a_column_that_noise_drowns_is_not_identified_and_the_others_are() -> None:
    model, _ = fitted(narrow, 3000, 0.5, 1)
    rows = {row.name: row for row in model.facts_.coefficients}
    assert not rows["x0"].identified
    assert rows["x1"].identified
    assert "not identified" in model.summary()
    assert "Narrower public bounds" in " ".join(model.facts_.notices)


def test_an_intercept_that_rests_on_what_was_assumed_of_a_drowned_column_is_not_identified() -> None:
    """It belongs to a row of zeros, which is far from the mean row along x0: what x0 does there, nobody sees."""
    narrow_rows, uniform_rows = (
        {row.name: row for row in fitted(law, 3000, 0.5, 1)[0].facts_.coefficients} for law in (narrow, uniform)
    )
    assert not narrow_rows[INTERCEPT].identified
    assert uniform_rows[INTERCEPT].identified


def test_less_epsilon_never_makes_an_interval_shorter_by_much() -> None:
    widths = {}
    for epsilon in (0.1, 1.0, 10.0):
        model, _ = fitted(uniform, 20_000, epsilon, 2)
        widths[epsilon] = np.array(
            [math.inf if r.standard_error is None else r.standard_error for r in model.facts_.coefficients]
        )
    assert (widths[0.1] > 2 * widths[1.0]).all()
    assert (widths[1.0] > widths[10.0]).all()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3])
def test_where_noise_is_all_there_is_nothing_is_said(epsilon: float) -> None:
    model, _ = fitted(uniform, 500, epsilon, 3)
    assert not any(row.identified for row in model.facts_.coefficients if row.name != "(intercept)")
    assert all(row.z is None or abs(row.z) < 5 for row in model.facts_.coefficients)
    assert model.facts_.verdict is not None
    assert "cannot be told from the class frequencies" in model.summary()


@pytest.mark.parametrize(("n", "epsilon", "seed"), [(20_000, 1.0, 4), (3000, 0.5, 1), (3000, 0.5, 2), (3000, 0.3, 3)])
def test_an_interval_holds_its_estimate_and_tells_what_its_p_value_tells(n: int, epsilon: float, seed: int) -> None:
    model, _ = fitted(narrow, n, epsilon, seed)
    for row in model.facts_.coefficients:
        if row.identified:
            assert None not in (row.low, row.high, row.estimate, row.p)
            low, middle, high, p = (float(x or 0) for x in (row.low, row.estimate, row.high, row.p))
            assert low <= middle <= high
            assert (p < 0.05) == (low > 0 or high < 0)


def test_eigenvalues_that_noise_spread_are_brought_together_and_an_outlier_stays() -> None:
    rng = np.random.default_rng(0)
    truth = np.diag([5.0, 400.0, 400.0, 400.0, 400.0, 400.0, 400.0])
    errors = []
    for _ in range(50):
        E = rng.normal(size=truth.shape) * 30
        E = np.triu(E) * np.where(np.eye(7) > 0, 1, math.sqrt(0.5))
        M = truth + E + np.triu(E, 1).T
        spread, told = np.linalg.eigvalsh(M), np.linalg.eigvalsh(unspread(M, 30.0))
        assert np.ptp(told[1:]) < 0.8 * np.ptp(spread[1:])
        errors.append(told[0] - 5.0)
    assert abs(np.mean(errors)) < 15
    np.testing.assert_allclose(unspread(truth, 0.0), truth, atol=1e-9)


@pytest.mark.parametrize(
    ("truth", "is_less"),
    [
        (np.full(12, 400.0), True),  # averaging takes most of the noise away
        (np.linspace(0.0, 100.0, 12), True),
        (np.geomspace(1.0, 1e5, 12), False),
        (1e4 * np.arange(1.0, 4), False),
    ],
    ids=["alike", "even", "uneven", "apart"],
)
def test_the_noise_that_is_said_to_be_left_is_what_is_left(truth: Floats, is_less: bool) -> None:
    rng = np.random.default_rng(5)
    k, noise_std = len(truth), 30.0
    left, told = [], []
    for _ in range(200):
        E = rng.normal(size=(k, k)) * noise_std
        E = np.triu(E, 1) * math.sqrt(0.5)
        M = np.diag(truth + rng.normal(size=k) * noise_std) + E + E.T
        left.append(float(np.sum((unspread(M, noise_std) - np.diag(truth)) ** 2)))
        told.append(noise_left(M, noise_std))
    entries = k * (k + 1) / 2
    measured = math.sqrt(float(np.mean(left)) / entries)
    assert measured < math.sqrt(float(np.mean(np.square(told))))  # never less than there is, on average
    assert max(told) <= noise_std
    assert (np.mean(told) < 0.9 * noise_std) == is_less


def test_without_noise_none_is_left() -> None:
    assert noise_left(np.diag([1.0, 2.0]), 0.0) == 0.0


def test_a_populations_steepness_is_the_slope_of_its_responses() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3)) @ rng.normal(size=(3, 3)) + 0.5
    population = Population(X.T @ X, X.mean(axis=0), 4000.0, 2)
    model = np.array([[0.3, -0.2, -0.4]])
    at = population.steepness(model)
    for way in np.eye(3):
        step = 1e-5 * way[None]
        slope = (population.response(model + step)[0] - population.response(model - step)[0]) / 2e-5
        np.testing.assert_allclose(at.along(way[None], population.M), slope, rtol=1e-3, atol=0.1)
    exact = (expit(X @ model[0]) - 0.5) @ X  # normal rows, so the population is theirs
    np.testing.assert_allclose(population.response(model)[0][0], exact, rtol=0.1, atol=60)


def test_shrinkage_keeps_a_clear_signal_and_drops_noise() -> None:
    rng = np.random.default_rng(2)
    k, H = 20, 500.0 * np.eye(20)
    spread, free = np.eye(20), np.eye(20)[0]
    spread[0, 0] = 0.0
    truth = np.append(-1.0, rng.normal(size=k - 1) * 0.2)
    for variance, is_seen in ((1.0, True), (1e7, False)):
        evidences, models = [], []
        for _ in range(20):
            right = H @ truth + rng.normal(size=k) * math.sqrt(500 + variance)
            found = shrunken([H], right[None], np.zeros((1, k)), variance=variance, spread=spread, free=free)
            evidences.append(found.evidence)
            models.append(found.models[0])
        lengths = [np.linalg.norm(model[1:]) for model in models]
        assert (np.mean(evidences) > SEEN) == is_seen
        if is_seen:
            assert np.mean(np.abs(np.array(models) - truth)) < 0.05
        else:
            assert np.mean(lengths) < 0.5 * np.linalg.norm(truth[1:])  # the noise alone is over ten times as long


def test_shrinkage_without_noise_is_the_solution_and_starts_are_where_it_ends_without_a_signal() -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 6))
    H, truth, start = 1e9 * (A @ A.T + np.eye(6)), rng.normal(size=6) * 0.3, rng.normal(size=6)
    spread = np.eye(6)
    found = shrunken([H], (H @ truth)[None], np.zeros((1, 6)), variance=0.0, spread=spread, free=None)
    np.testing.assert_allclose(found.models[0], truth, rtol=1e-4)
    kept = shrunken([H], (H @ start)[None], start[None], variance=1e30, spread=spread, free=None)
    np.testing.assert_allclose(kept.models[0], start, atol=1e-6)


def test_of_two_laws_the_likelier_one_counts_and_nothing_is_seen_more_often_where_there_is_nothing() -> None:
    rng = np.random.default_rng(4)
    k = 30
    H, spread = 40.0 * np.eye(k), np.eye(k)
    uneven = np.diag(np.r_[np.ones(3), np.full(k - 3, 0.03)])  # says that three directions matter
    truth = np.r_[0.6 * np.ones(3), np.zeros(k - 3)]
    errors, seen = [], 0
    for _ in range(200):
        noise = rng.normal(size=k) * math.sqrt(40 + 100)
        both = [
            shrunken(
                [H], (H @ truth + noise)[None], np.zeros((1, k)), variance=100.0, spread=spread, free=None, uneven=law
            )
            for law in (None, uneven)
        ]
        errors.append([float(np.sum((one.models[0] - truth) ** 2)) for one in both])
        nothing = shrunken([H], noise[None], np.zeros((1, k)), variance=100.0, spread=spread, free=None, uneven=uneven)
        seen += nothing.evidence > SEEN
    even_alone, with_uneven = np.mean(errors, axis=0)
    assert with_uneven < 0.8 * even_alone
    assert seen <= 20  # 10 expected, and 20 with a chance of 0.2 %


@pytest.mark.parametrize("seen", [-50.0, -1.0, -1e-3, 0.0, 0.01, 0.5, 0.99, 1.0, 2.0, 60.0])
@pytest.mark.parametrize("noise", [1e-4, 0.1, 3.0])
def test_a_chance_is_one_whatever_the_noise_says(seen: float, noise: float) -> None:
    chance = likely_chance(seen, noise)
    assert 0 <= chance <= 1
    assert likely_chance(1 - seen, noise) == pytest.approx(1 - chance, abs=1e-6)
    if 5 * noise < min(seen, 1 - seen):
        assert chance == pytest.approx(seen, rel=1e-3)
    if seen >= 0.01 and noise == 3.0:
        assert 0.3 < chance < 0.9 or seen > 2  # nothing is known: near one half


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"classes": 3}, {"robust": True}])
def test_cholesky_s_roots_and_eigenvectors_tell_the_same(
    federation: Callable[..., Federation], monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    classes = settings.pop("classes", 2)
    fits = []
    for is_slow in (False, True):
        if is_slow:
            monkeypatch.setattr(shrinkage, "_root", lambda H, variance: None)
            monkeypatch.setattr(interval, "_positive", _lifted)
        parties = federation(n=3000, d=8, classes=classes, rng=Rng.seeded(3))
        fits.append(PrivateNewton(epsilon=1.0, **settings).fit(parties))
    fast, slow = fits
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=1e-8, atol=1e-8)
    columns = ["estimate", "std_err"]
    np.testing.assert_allclose(fast.table()[columns], slow.table()[columns], rtol=1e-7, atol=1e-8)


def _lifted(A: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    values, vectors = np.linalg.eigh(A)
    lifted: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return lifted


def test_where_curvature_is_off_a_longer_model_may_be_seen_and_nothing_is_seen_no_more_often() -> None:
    """Curvature that is much too flat says that no likely model explains so clear a signal."""
    rng = np.random.default_rng(6)
    k = 30
    laws = known_laws(np.eye(k), None, None)

    def evidences(right: Floats) -> tuple[float, float]:
        flat, off = (
            shrunken_by(laws, [np.eye(k)], right[None], np.zeros((1, k)), variance=1.0, free=None, is_off=is_off)
            for is_off in (False, True)
        )
        np.testing.assert_array_equal(flat.models, off.models)
        return flat.evidence, off.evidence

    before, after = np.mean(
        [evidences(rng.normal(size=k) * math.sqrt(2) + 12 * np.eye(k)[0]) for _ in range(20)], axis=0
    )
    assert before < 0.7 * after
    nothing = np.array([evidences(rng.normal(size=k) * math.sqrt(2)) for _ in range(400)])
    assert np.mean(nothing[:, 1] > SEEN) < 0.08  # 0.05; three standard errors are 0.033


def test_a_curvature_that_is_not_positive_counts_as_flat_there() -> None:
    H = np.diag([4.0, 1.0, -0.5])
    given: dict[str, Any] = {"variance": 0.1, "spread": np.eye(3), "free": None}
    found = shrunken([H], np.array([[4.0, 1.0, 3.0]]), np.zeros((1, 3)), **given)
    flat = shrunken([np.maximum(H, 0.0)], np.array([[4.0, 1.0, 3.0]]), np.zeros((1, 3)), **given)
    np.testing.assert_allclose(found.models, flat.models, atol=1e-12)
    assert found.models[0, 2] == pytest.approx(0, abs=1e-6)
