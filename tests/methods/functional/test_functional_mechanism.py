"""The functional mechanism: how far a record moves its sums, the noise on them, and the quadratic's minimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.optimize import minimize
from scipy.special import expit

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import NotAgreed, SettingError
from tacit.federation.group import SumGroup
from tacit.federation.step import Step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.functional.method import FunctionalMechanism, default_l2, minimum
from tacit.methods.functional.statistic import (
    SLOPE,
    Plan,
    joint_reach,
    laplace,
    noisy_sums,
    paper_model,
    paper_scales,
    statistics,
)
from tacit.privacy.accounting import mu_for
from tacit.privacy.event import Composed, NotPrivate, Pure, Repeated
from tacit.privacy.noise.grid import mu_event

from ..conftest import assert_drawn_from, derived, make_data

Make = Callable[..., Federation]
ALLOWED = Policy(not_private=["functional-mechanism"])


def plan(
    *, d: int = 2, classes: int = 2, constant: float = 1.0, epsilon: float = 1.0, delta: float = 0.0, l2: float = 1.0
) -> Plan:
    schema = Schema.of_arrays(d, list(range(classes)), norm_bound=1.0)
    group = SumGroup.of({"a": 30, "b": 20, "c": 10}, quorum=3)
    return Plan(
        cohort=Cohort.of(schema, group, colluders=None, constant=constant),
        promise=Promise(method="FunctionalMechanism", epsilon=epsilon, delta=delta),
        l2=l2,
        rounds=1,
    )


def plan_of(model: FunctionalMechanism, parties: Federation) -> Plan:
    own = parties.begin(model).plan
    assert isinstance(own, Plan)
    return own


def table(X: np.ndarray, y: np.ndarray, classes: int = 2) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=1.0))


def theta_of(model: FunctionalMechanism) -> np.ndarray:
    return np.column_stack([model.coef_, model.intercept_])


record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))


@given(
    records=st.lists(record, min_size=1, max_size=6),
    other=record,
    classes=st.sampled_from([2, 3]),
    constant=st.sampled_from([0.0, 1.0]),
    delta=st.sampled_from([0.0, 1e-6]),
)
@settings(max_examples=300, deadline=None)
def test_replacing_a_record_moves_each_released_vector_by_no_more_than_its_sensitivity(
    records: list[tuple[float, float, int]],
    other: tuple[float, float, int],
    classes: int,
    constant: float,
    delta: float,
) -> None:
    own = plan(classes=classes, constant=constant, delta=delta)
    vectors = []
    for first in (records[0], other):
        rows = [first, *records[1:]]
        X, y = np.array([row[:2] for row in rows]), np.array([row[2] % classes for row in rows])
        vectors.append(own.pack(*statistics(table(X, y, classes), constant)))
    difference = vectors[0] - vectors[1]
    start = 0
    for grid in own.grids:
        part = slice(start, start + grid.total.dimension)
        start += grid.total.dimension
        assert np.linalg.norm(difference[part]) <= grid.total.sensitivity
        assert np.abs(vectors[0][part]).max() <= grid.total.value_bound
    assert start == len(difference)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_joint_sensitivity_is_reached_by_a_turned_record(classes: int) -> None:
    own = plan(classes=classes, constant=0.0, delta=1e-6)
    rows = np.array([[1.0, 0.0], [-0.5, math.sqrt(0.75)]])
    vectors = [own.pack(*statistics(table(row[None], np.array([1]), classes), 0.0)) for row in rows]
    (grid,) = own.grids
    assert np.linalg.norm(vectors[0] - vectors[1]) == pytest.approx(grid.total.sensitivity, rel=1e-9)


def spent(own: Plan, vectors: list[np.ndarray]) -> float:
    """What a pair of packed sums costs with pure noise: the ideal sums at this distance, and the dithers."""
    grids: Any = own.grids
    ends = np.cumsum([grid.total.dimension for grid in grids])[:-1]
    parts = np.split(vectors[0] - vectors[1], ends)
    ideal = sum(np.linalg.norm(part) / grid.noise_scale for part, grid in zip(parts, grids, strict=True))
    return float(ideal + sum(grid.epsilon for grid in grids) / 128)


@given(first=record, other=record, classes=st.sampled_from([2, 3]), constant=st.sampled_from([0.0, 1.0]))
@settings(max_examples=300, deadline=None)
def test_no_record_costs_more_than_epsilon_with_both_sums_together(
    first: tuple[float, float, int], other: tuple[float, float, int], classes: int, constant: float
) -> None:
    own = plan(classes=classes, constant=constant)
    tables = [table(np.array([r[:2]]), np.array([r[2] % classes]), classes) for r in (first, other)]
    assert spent(own, [own.pack(*statistics(t, constant)) for t in tables]) <= own.promise.epsilon


@pytest.mark.parametrize("classes", [2, 3])
def test_the_worst_turn_of_a_record_costs_all_of_epsilon(classes: int) -> None:
    """Among turns by every angle the worst costs epsilon; each sum at its own worst would cost an eighth more."""
    own = plan(classes=classes, constant=0.0)
    costs = []
    for turn in np.linspace(0, math.pi, 721):
        rows = np.array([[1.0, 0.0], [math.cos(turn), math.sin(turn)]])
        costs.append(spent(own, [own.pack(*statistics(table(row[None], np.array([1]), classes), 0.0)) for row in rows]))
    assert max(costs) == pytest.approx(own.promise.epsilon, rel=1e-4)
    assert 90 < 0.25 * int(np.argmax(costs)) < 120  # degrees
    assert sum(grid.epsilon for grid in own.grids) > 1.12  # type: ignore[attr-defined]


@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.9, 0.999])
def test_the_joint_reach_is_the_largest_over_all_angles(share: float) -> None:
    x = np.linspace(0, math.pi / 2, 100_001)
    assert joint_reach(share) == pytest.approx(float((share * np.sin(x) + (1 - share) * np.sin(2 * x)).max()), rel=1e-8)


def test_each_pure_sensitivity_is_reached() -> None:
    own = plan(constant=0.0)
    flipped = [statistics(table(np.array([[1.0, 0.0]]), np.array([label])), 0.0)[0] for label in (0, 1)]
    assert np.linalg.norm(flipped[0] - flipped[1]) == pytest.approx(own.grids[0].total.sensitivity, rel=1e-9)
    turned = [own.pack(*statistics(table(np.array([x]), np.array([1])), 0.0))[2:] for x in ([1.0, 0.0], [0.0, 1.0])]
    assert np.linalg.norm(turned[0] - turned[1]) == pytest.approx(own.grids[1].total.sensitivity, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_packed_is_what_is_unpacked(delta: float, classes: int) -> None:
    own = plan(epsilon=math.inf, delta=delta, classes=classes)
    t, A = statistics(table(*make_data(50, 2, classes), classes), 1.0)
    vector, start, integers = own.pack(t, A), 0, []
    for grid in own.grids:
        integers.append(grid.to_grid(vector[start : start + grid.total.dimension], rng=Rng.seeded(0)))
        start += grid.total.dimension
    t_back, A_back = own.unpack(np.concatenate(integers))
    np.testing.assert_allclose(t_back, np.atleast_2d(t), atol=1e-12)
    np.testing.assert_allclose(A_back, A, atol=1e-12)


def test_the_slope_is_the_least_squares_fit_of_the_sigmoid() -> None:
    above = integrate.quad(lambda m: m * (expit(m) - 0.5), -4, 4)[0]
    assert pytest.approx(above / (2 * 4**3 / 3), rel=1e-4) == SLOPE


# --- without noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_the_minimiser_of_the_quadratic(
    federation: Make, classes: int, fit_intercept: bool
) -> None:
    parties = federation(classes=classes, policy=ALLOWED)
    model = FunctionalMechanism(epsilon=math.inf, l2=0.7, fit_intercept=fit_intercept).fit(parties)
    blocks = [parties.guard(name).table.arrays() for name in parties.names]
    X, y = np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
    rows = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    C = classes
    shape = (1 if C == 2 else C, rows.shape[1])

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Each record's loss expanded at equal scores, with its slope times 4 h: not by way of t and A."""
        W = flat.reshape(shape)
        S = rows @ W.T
        if C == 2:
            sign = (2 * y - 1)[:, None]
            value, slope = -sign * S / 2 + SLOPE * S**2 / 2, -sign / 2 + SLOPE * S
        else:
            centred = S - S.mean(axis=1, keepdims=True)
            truth = np.eye(C)[y]
            value = S.mean(axis=1) - (truth * S).sum(axis=1) + 4 * SLOPE / (2 * C) * (centred**2).sum(axis=1)
            slope = 1 / C - truth + 4 * SLOPE / C * centred
        return float(value.sum() + 0.35 * (W**2).sum()), (slope.T @ rows + 0.7 * W).ravel()

    best = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}
    )
    found = theta_of(model) if fit_intercept else model.coef_
    np.testing.assert_allclose(found, best.x.reshape(shape), atol=1e-7)
    assert np.linalg.norm(objective(found.ravel())[1]) < 1e-8 * len(rows)


def test_negative_eigenvalues_count_as_none_and_the_rest_is_kept() -> None:
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    H = V @ np.diag([-5.0, 1.0, 3.0]) @ V.T
    t = np.array([[1.0, -2.0, 0.5]])
    expected = t @ V @ np.diag(1 / (np.array([0.0, 1.0, 3.0]) + 0.5)) @ V.T
    np.testing.assert_allclose(minimum(t, H, 0.5), expected, atol=1e-12)
    assert np.isfinite(minimum(t, H, 0.0)).all()


# --- noise ----------------------------------------------------------------------------------------------------------


def opened_noise(model: FunctionalMechanism, parties: Federation, runs: int) -> tuple[np.ndarray, np.ndarray]:
    own = plan_of(model, parties)
    tables = [parties.guard(name).table for name in parties.names]
    sums = [statistics(party, own.cohort.constant) for party in tables]
    t, A = sum(s[0] for s in sums), sum(s[1] for s in sums)
    upper = np.triu_indices(own.width)
    noise_t, noise_A = [], []
    for _ in range(runs):
        t_open, A_open = own.unpack(parties.begin(model).sum(noisy_sums))
        noise_t.append((t_open - t).ravel())
        scaled = (A_open - A) * np.where(np.eye(own.width) > 0, 1.0, math.sqrt(2))
        noise_A.append(scaled[upper])
    return np.array(noise_t), np.array(noise_A)


def test_pure_noise_is_spherical_laplace_on_each_sum(federation: Make) -> None:
    parties = federation(d=2, rng=Rng.seeded(11))
    model = FunctionalMechanism(epsilon=0.8, delta=0, colluders=0)
    own = plan_of(model, parties)
    noises = opened_noise(model, parties, 80)
    R = math.sqrt(2)
    shares = own.linear_share, 1 - own.linear_share
    for noise, share, sensitivity in zip(noises, shares, (R, math.sqrt(2) * R**2), strict=True):
        scale = sensitivity / (own.epsilon_of_both * share * 127 / 128)
        radii = np.linalg.norm(noise, axis=1)
        assert_drawn_from(stats.gamma(noise.shape[1], scale=scale), radii)


def test_gaussian_noise_has_the_claimed_spread_on_both_sums(federation: Make) -> None:
    parties = federation(d=2, rng=Rng.seeded(12))
    model = FunctionalMechanism(epsilon=0.8, delta=1e-5, colluders=0)
    stds = plan_of(model, parties).noise_stds
    event: Any = model.event()
    assert stds[0] == pytest.approx(1.5 * math.sqrt(0.5) * math.sqrt(2) * event.noise_multiplier, rel=1e-3)
    assert stds[1] == pytest.approx(stds[0] * 2 * math.sqrt(2), rel=1e-9)  # A / (2 R) shares the noise of t
    for noise, std in zip(opened_noise(model, parties, 60), stds, strict=True):
        assert_drawn_from(stats.norm(0, std), noise)


def test_the_shares_of_epsilon_are_the_best_for_the_models_equation() -> None:
    own = plan(d=30)
    R = own.cohort.row_norm

    def variance(share: float) -> float:
        of_t = 2 * own.spread * R**2 * (own.n_linear + 1) / share**2
        of_A = 2 * R**4 * (own.n_square + 1) / (1 - share) ** 2
        together = 1 / (127 / 128 * joint_reach(share) + 1 / 128)  # E at epsilon = 1
        return (of_t + (own.curvature * 4 / R) ** 2 / 2 * of_A) / together**2

    best = own.linear_share
    assert variance(best) <= min(variance(best * 1.02), variance(best / 1.02))
    assert own.epsilon_of_both == pytest.approx(1 / (127 / 128 * joint_reach(best) + 1 / 128), rel=1e-9)


def test_colluders_raise_the_noise(federation: Make) -> None:
    parties = federation()
    quiet, loud = (plan_of(FunctionalMechanism(delta=1e-6, colluders=t), parties).noise_stds[0] for t in (0, 2))
    assert loud == pytest.approx(math.sqrt(3) * quiet, rel=1e-3)
    with pytest.raises(SettingError, match="colluders = 3 among 3 parties"):
        FunctionalMechanism(colluders=3).fit(parties)


@pytest.mark.parametrize(
    ("settings_", "event"),
    [
        ({"epsilon": 0.7, "delta": 0}, Pure(epsilon=0.7)),
        ({"epsilon": 0.7, "delta": 1e-5}, mu_event(mu_for(0.7, 1e-5))),
        ({"epsilon": 0.7}, mu_event(mu_for(0.7, 1e-6))),  # 300 records: 1 / n^2 is more than 1e-6
        ({"calibration": "paper"}, NotPrivate(why="FunctionalMechanism as the document prints it")),
        ({"epsilon": math.inf}, NotPrivate(why="epsilon is infinite: no noise is added")),
    ],
)
def test_every_party_is_charged_the_event(federation: Make, settings_: dict[str, Any], event: Any) -> None:
    parties = federation(policy=ALLOWED)
    model = FunctionalMechanism(**settings_).fit(parties)
    assert model.event() == event
    for party in parties.names:
        assert parties.guard(party).ledger.event(party) == Composed(events=(Repeated(event=event, count=1),))
    assert model.guarantee_.epsilon == (math.inf if isinstance(event, NotPrivate) else 0.7)


@pytest.mark.parametrize(
    ("settings_", "step", "other", "times"),
    [({}, noisy_sums, paper_model, 1), ({"calibration": "paper", "rounds": 2}, paper_model, noisy_sums, 2)],
)
def test_a_party_answers_the_steps_of_the_study_and_no_more(
    federation: Make, settings_: dict[str, Any], step: Step, other: Step, times: int
) -> None:
    parties = federation(policy=ALLOWED)
    run = parties.begin(FunctionalMechanism(**settings_))
    with pytest.raises(NotAgreed, match="the study's method never asks step"):
        run.ask(other)
    ask: Callable[[Step], object] = run.sum if step is noisy_sums else run.ask
    for _ in range(times):
        ask(step)
    with pytest.raises(NotAgreed, match=f"is asked {times} times in a run, each turn once"):
        ask(step)
    assert parties.guard("party1").ledger.n_releases("party1") == times


@pytest.mark.parametrize(
    "settings_", [{}, {"delta": 0}, {"delta": 1e-5, "l2": 3.0, "colluders": 0}, {"calibration": "paper", "rounds": 4}]
)
def test_a_party_derives_the_plan_and_the_course_of_the_coordinator(
    federation: Make, settings_: dict[str, Any]
) -> None:
    model = FunctionalMechanism(**settings_)
    run = federation(n=3000, policy=ALLOWED).begin(model)
    terms = derived(model, run)
    assert terms.plan == run.plan
    assert terms.course == model.course(run.plan)
    assert run.plan.promise.delta == settings_.get("delta", 1 / 3000**2)


def test_the_default_l2_is_a_rule_of_public_numbers(federation: Make) -> None:
    one, other = (plan_of(FunctionalMechanism(epsilon=0.1), federation(seed=seed)).l2 for seed in (1, 2))
    assert one == other > plan_of(FunctionalMechanism(epsilon=1.0), federation()).l2 > 1
    assert default_l2(plan(epsilon=math.inf)) == 1.0


BAD_SETTINGS = [
    {"l2": -1.0}, {"l2": math.nan}, {"delta": 1.0}, {"calibration": "loud"}, {"rounds": 0}, {"rounds": True},
    {"rounds": 2},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        FunctionalMechanism(**settings_).fit(federation())


def test_a_missing_bound_is_an_error(federation: Make) -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        FunctionalMechanism(l2=1.0).fit(federation(norm_bound=None))


@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns(federation: Make, classes: int) -> None:
    model = FunctionalMechanism(epsilon=2.0, delta=1e-6).fit(federation(n=6000, classes=classes, rng=Rng.seeded(4)))
    X, y = make_data(6000, classes=classes)
    assert model.score(X, y) > np.bincount(y).max() / len(y) + 0.05


def test_the_worst_neighbours_differ_as_far_as_is_claimed() -> None:
    turned = FunctionalMechanism.worst_neighbours()[0]
    sums = [statistics(tables["a"], 0.0) for tables in (turned.first, turned.second)]
    own = plan(constant=0.0, delta=1e-6)
    assert np.linalg.norm(own.pack(*sums[0]) - own.pack(*sums[1])) == pytest.approx(1.5 * math.sqrt(0.5), rel=1e-9)


# --- the document ---------------------------------------------------------------------------------------------------


def paper_quadratic(party: Table) -> tuple[np.ndarray, np.ndarray]:
    t, A = statistics(party, 1.0)
    return t, A / 4


def test_paper_without_noise_is_the_taylor_minimiser(federation: Make) -> None:
    parties = federation(policy=ALLOWED)
    model = FunctionalMechanism(epsilon=math.inf, calibration="paper").fit(parties)
    sizes, expected = parties.sizes, np.zeros(5)
    for name, size in sizes.items():
        t, H = paper_quadratic(parties.guard(name).table)
        expected += size / sum(sizes.values()) * np.linalg.solve(H, t)
    np.testing.assert_allclose(theta_of(model)[0], expected, atol=1e-9)


def test_paper_noise_on_degree_one_is_laplace_of_the_printed_scale(federation: Make) -> None:
    """A ridge that drowns the quadratic, and its noise, shows the linear term by itself."""
    party = federation(n=100, d=3, n_parties=1, weights=None).guard("party1").table
    t, ridge, noise = statistics(party, 1.0)[0], 1e9, []
    own = plan(d=3, epsilon=2.0, l2=ridge)
    for i in range(200):
        reply = paper_model(party, own, rng=Rng.seeded(i))
        noise.append(np.asarray(reply.value["theta"])[0] * ridge - t)  # type: ignore[union-attr]
    assert stats.kstest(np.ravel(noise), stats.laplace(0, 9 * 3 / (2 * 2.0)).cdf).pvalue > 1e-3


def test_paper_noise_on_degree_two_follows_the_same_rule() -> None:
    """One constant feature: theta = (t + noise) / (2 (n/8 + noise)); the median of its noise tells its scale."""
    party = table(np.ones((4000, 1)), np.ones(4000, dtype=int))
    epsilon, noise = 1e-3, []
    own = plan(d=1, epsilon=epsilon, l2=0.0, constant=0.0)
    for i in range(400):
        reply = paper_model(party, own, rng=Rng.seeded(i))
        theta = float(np.asarray(reply.value["theta"])[0, 0])  # type: ignore[union-attr]
        t = 2000 + float(laplace(9 / (2 * epsilon), (1,), rng=Rng.seeded(i))[0])  # what was drawn first
        noise.append(t / theta / 2 - 4000 / 8)
    assert stats.kstest(noise, stats.laplace(0, 3 / (4 * epsilon)).cdf).pvalue > 1e-3


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_papers_scale_for_degree_one_is_too_small_for_one_feature(d: int) -> None:
    """Degree 1 may take a third of epsilon; on [0, 1]^d a record moves its coefficients by d + 1 in L1 norm."""
    schema = Schema.of_arrays(d, [0, 1])
    sums = [statistics(Table.from_arrays(np.ones((1, d)), [label], schema), 1.0)[0] for label in (0, 1)]
    moved = np.abs(sums[0] - sums[1]).sum()
    assert moved == d + 1
    assert (moved / paper_scales(d, 0.6)[0] <= 0.6 / 3 * (1 + 1e-12)) == (d >= 2)


def test_an_indefinite_quadratic_of_the_paper_gives_its_stationary_point(federation: Make) -> None:
    parties = federation(n=50, policy=ALLOWED, rng=Rng.seeded(1))
    model = FunctionalMechanism(epsilon=0.01, calibration="paper", rounds=3).fit(parties)
    assert np.isfinite(theta_of(model)).all()
    assert model.n_rounds_ == 3
    assert parties.guard("party1").ledger.n_releases("party1") == 3
