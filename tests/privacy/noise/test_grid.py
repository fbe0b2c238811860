from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tacit.errors import SettingError
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Gaussian, NotPrivate, Pure
from tacit.privacy.noise.discrete import discrete_gaussian
from tacit.privacy.noise.grid import (
    ExactGrid,
    GaussianGrid,
    NoiseGrid,
    SphericalGrid,
    VectorSum,
    calibrated_event,
    calibrated_grid,
    exact_grid,
    gaussian_grid,
    mu_grid,
    pure_grid,
)
from tacit.privacy.noise.spherical import spherical_laplace_shares
from tacit.rand import Rng

TOTAL = VectorSum(dimension=12, sensitivity=2.0, value_bound=100.0, n_parties=7, colluders=2)


def spherical(total: VectorSum = TOTAL, epsilon: float = 1.0) -> SphericalGrid:
    grid = pure_grid(total, epsilon=epsilon)
    assert isinstance(grid, SphericalGrid)
    return grid


def opened(
    grid: NoiseGrid, values: np.ndarray[tuple[int, int], np.dtype[np.float64]], n: int, seed: int = 1
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """n opened sums of one vector a party, less the true sum."""
    K, d = values.shape
    rows = np.tile(values, (n, 1))
    integers = grid.to_grid(rows, rng=Rng.seeded(seed)).reshape(n, K, d).sum(axis=1)
    return grid.from_grid(integers) - values.sum(axis=0)


@pytest.fixture(params=["pure", "gaussian"])
def grid(request: pytest.FixtureRequest) -> NoiseGrid:
    return pure_grid(TOTAL, epsilon=1.0) if request.param == "pure" else gaussian_grid(TOTAL, epsilon=1.0, delta=1e-6)


def values_of(total: VectorSum) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    size = (total.n_parties, total.dimension)
    return np.random.default_rng(5).uniform(-total.value_bound, total.value_bound, size)


def test_opened_sums_have_the_spread_that_is_told(grid: NoiseGrid) -> None:
    noise = opened(grid, values_of(TOTAL), 3000)
    assert noise.std() == pytest.approx(grid.noise_std, rel=0.03)
    assert abs(noise.mean()) < 4 * grid.noise_std / math.sqrt(noise.size)


def test_the_noise_of_the_honest_parties_has_the_law_that_is_claimed() -> None:
    honest = TOTAL.honest
    shares = spherical().to_grid(np.zeros((2000 * honest, 12)), rng=Rng.seeded(2)).reshape(2000, honest, 12).sum(axis=1)
    radius = np.linalg.norm(spherical().from_grid(shares), axis=1)
    s = spherical().noise_scale
    assert s == pytest.approx(2.0 * 128 / 127)
    assert stats.kstest(radius, stats.gamma(12, scale=s).cdf).pvalue > 1e-3
    gaussian = mu_grid(TOTAL, mu=0.4)
    shares = gaussian.to_grid(np.zeros((3000 * honest, 12)), rng=Rng.seeded(2)).reshape(3000, honest, 12).sum(axis=1)
    std = 2.0 / 0.4
    assert stats.kstest(gaussian.from_grid(shares).ravel() / std, stats.norm.cdf).pvalue > 1e-3


def test_events() -> None:
    assert spherical(epsilon=0.3).event() == Pure(epsilon=0.3)
    assert mu_grid(TOTAL, mu=0.2).event() == Gaussian(noise_multiplier=5.0)
    assert isinstance(exact_grid(TOTAL).event(), NotPrivate)


@pytest.mark.parametrize("total", [TOTAL, VectorSum(dimension=1, sensitivity=1e-4, value_bound=1.0)])
def test_gaussian_grids_spend_what_was_asked(total: VectorSum) -> None:
    event = gaussian_grid(total, epsilon=0.7, delta=1e-6).event()
    assert isinstance(event, Gaussian)
    assert 0.7 * (1 - 1e-6) <= epsilon_of(event, 1e-6) <= 0.7


def test_delta_chooses_the_noise_and_the_event_is_known_beforehand() -> None:
    for delta, kind in ((0.0, SphericalGrid), (1e-6, GaussianGrid)):
        grid = calibrated_grid(TOTAL, epsilon=0.7, delta=delta)
        assert isinstance(grid, kind)
        assert grid.event() == calibrated_event(0.7, delta)
        assert 0.7 * (1 - 1e-6) <= epsilon_of(grid.event(), delta) <= 0.7 * (1 + 1e-11)
        assert isinstance(calibrated_grid(TOTAL, epsilon=math.inf, delta=delta), ExactGrid)
        assert isinstance(calibrated_event(math.inf, delta), NotPrivate)
    with pytest.raises(SettingError, match="epsilon = 0"):
        calibrated_event(0, 0.0)
    with pytest.raises(SettingError, match=r"delta = 1\.5"):
        calibrated_event(1.0, 1.5)
    with pytest.raises(SettingError, match=r"delta = -0\.1"):
        calibrated_grid(TOTAL, epsilon=1.0, delta=-0.1)


def test_rounding_is_part_of_the_sensitivity() -> None:
    """Two vectors at the declared distance, worst for rounding: on the grid no further apart than is charged."""
    grid = mu_grid(replace(TOTAL, n_parties=1, colluders=0), mu=0.4)
    charged = math.sqrt(grid.share_parameter**2 - 16) / grid.event().noise_multiplier
    rng = np.random.default_rng(1)
    for _ in range(200):
        a = rng.uniform(-50, 50, 12)
        step = rng.normal(size=12)
        b = a + 2.0 * step / np.linalg.norm(step) * (1 - 1e-12)
        moved = np.rint(a / grid.step) - np.rint(b / grid.step)
        assert np.linalg.norm(moved) <= charged
    assert charged <= (2.0 / grid.step) * (1 + 2.0**-19)


def test_dither_covers_the_rounding_of_all_parties() -> None:
    g = spherical()
    b = TOTAL.n_parties * 0.5
    assert g.dither_scale >= 2 * b * TOTAL.dimension / (1.0 / 128)
    assert g.dither_scale * g.step <= g.noise_scale / 2.0**9
    assert g.noise_std == pytest.approx(g.noise_scale * math.sqrt(13 * 7 / 5), rel=1e-3)


def test_in_a_crowd_about_seventy_honest_parties_dither() -> None:
    crowd = VectorSum(dimension=2, sensitivity=1.0, value_bound=1.0, n_parties=2000, colluders=600)
    g = spherical(crowd)
    shares = spherical_laplace_shares(g.noise_scale, 2, 1400, 2000, rng=Rng.seeded(8))
    plain = np.rint(shares / g.step).astype(np.int64)
    dithered = (g.to_grid(np.zeros((2000, 2)), rng=Rng.seeded(8)) != plain).all(axis=1)
    assert 60 <= dithered.sum() <= 140  # 100 expected of all, 70 of the honest
    assert (1 - 70 / 1400) ** 1400 < 2.0**-100
    everybody = replace(crowd, n_parties=70, colluders=0)
    plain = np.rint(
        spherical_laplace_shares(spherical(everybody).noise_scale, 2, 70, 70, rng=Rng.seeded(8))
        / spherical(everybody).step
    )
    assert (spherical(everybody).to_grid(np.zeros((70, 2)), rng=Rng.seeded(8)) != plain).any(axis=1).all()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize(("dimension", "n_parties"), [(1, 1), (123, 10), (2000, 300), (123, 20_000)])
def test_sums_fit_and_the_dither_is_small(dimension: int, n_parties: int, epsilon: float) -> None:
    total = VectorSum(
        dimension=dimension, sensitivity=1.0, value_bound=50.0, n_parties=n_parties, colluders=n_parties // 10
    )
    g = spherical(total, epsilon)
    assert math.frexp(g.step)[0] == 0.5
    reach = n_parties * (50.0 + g._share_bound + 100 * g.dither_scale * g.step) / g.step
    assert reach < 2.0**62
    # A crowd with a small pure epsilon is where rounding begins to cost.
    assert g.noise_std <= (1.04 if n_parties > 1000 else 1.001) * g._share_std
    h = gaussian_grid(total, epsilon=epsilon, delta=1e-6)
    assert isinstance(h, GaussianGrid)
    assert n_parties * (50.0 / h.step + 16 * h.share_parameter) < 2.0**62


def test_infinite_epsilon_adds_nothing() -> None:
    for g in (pure_grid(TOTAL, epsilon=math.inf), gaussian_grid(TOTAL, epsilon=math.inf, delta=1e-6)):
        assert isinstance(g, ExactGrid)
        assert g.noise_std == 0
        assert np.abs(opened(g, values_of(TOTAL), 1)).max() < 1e-11


def test_values_are_clipped_without_a_word(grid: NoiseGrid) -> None:
    wild = np.array([1e9, -1e9, math.inf, -math.inf, math.nan, *np.zeros(7)])
    tame = np.array([100.0, -100.0, 100.0, -100.0, 0.0, *np.zeros(7)])
    assert (grid.to_grid(wild, rng=Rng.seeded(3)) == grid.to_grid(tame, rng=Rng.seeded(3))).all()


def test_a_value_changes_nothing_but_its_own_place(grid: NoiseGrid) -> None:
    """With the same random bits, two values differ on the grid by the difference of the values."""
    a, b = grid.to_grid(np.zeros(12), rng=Rng.seeded(3)), grid.to_grid(np.full(12, 64.0), rng=Rng.seeded(3))
    assert np.abs((b - a) - 64.0 / grid.step).max() <= 1


def test_one_party_and_many_have_the_same_shape_of_answer(grid: NoiseGrid) -> None:
    assert grid.to_grid(np.zeros(12), rng=Rng.seeded(1)).shape == (12,)
    many = grid.to_grid(np.zeros((5, 12)), rng=Rng.seeded(1))
    assert many.shape == (5, 12)
    assert many.dtype == np.int64
    assert len(np.unique(many[:, 0])) == 5
    with pytest.raises(SettingError, match="a vector of 12 numbers was declared"):
        grid.to_grid(np.zeros(11), rng=Rng.seeded(1))


def test_gaussian_shares_are_exact_integers() -> None:
    g = mu_grid(TOTAL, mu=0.4)
    expected = discrete_gaussian(g.share_parameter, 12, rng=Rng.seeded(4))
    assert (g.to_grid(np.zeros(12), rng=Rng.seeded(4)) == expected).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension = 0"),
        ({"sensitivity": 0.0}, "sensitivity = 0.0"),
        ({"value_bound": math.inf}, "value_bound = inf"),
        ({"colluders": 7}, "colluders = 7 of the 7 parties in a sum"),
        ({"colluders": -1}, "colluders = -1"),
    ],
)
def test_facts_are_checked(change: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        replace(TOTAL, **change)  # type: ignore[arg-type]


def test_bounds_that_do_not_fit_are_refused() -> None:
    huge = replace(TOTAL, value_bound=1e18)
    with pytest.raises(SettingError, match=r"no grid is fine enough .*value_bound = 1e\+18"):
        pure_grid(huge, epsilon=1.0)
    with pytest.raises(SettingError, match=r"no grid is fine enough .*value_bound = 1e\+18"):
        gaussian_grid(huge, epsilon=1.0, delta=1e-6)
    with pytest.raises(SettingError, match="epsilon = -1"):
        pure_grid(TOTAL, epsilon=-1)
    with pytest.raises(SettingError, match="use exact_grid"):
        SphericalGrid(total=TOTAL, epsilon=math.inf)
    with pytest.raises(SettingError, match="mu = 0"):
        mu_grid(TOTAL, mu=0)


def test_noise_for_a_quorum_is_that_of_the_parties_that_must_be_there() -> None:
    few = replace(TOTAL, quorum=TOTAL.n_parties - 2)
    assert few.honest == TOTAL.honest - 2
    for of_all, of_few in (
        (pure_grid(TOTAL, epsilon=1.0), pure_grid(few, epsilon=1.0)),
        (mu_grid(TOTAL, mu=0.4), mu_grid(few, mu=0.4)),
    ):
        assert of_few.event() == of_all.event()
        assert of_few.noise_std > of_all.noise_std  # if all of them come after all
    with pytest.raises(SettingError, match="quorum = 8 must be at least 1 and at most n_parties = 7"):
        replace(TOTAL, quorum=8)
