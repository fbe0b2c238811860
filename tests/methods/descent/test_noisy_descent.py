"""Noisy descent: the sensitivity it claims, the noise it adds, and what a public start does to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import NotAgreed, PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.federation.step import Step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.descent.method import NoisyDescent, paper_noise
from tacit.methods.descent.solver import default_schedule, mean_weights
from tacit.methods.descent.statistic import Iterate, Plan, gradient_sum, party_gradient, party_gradient_and_noise
from tacit.methods.public_model import linear_model, pretrain
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.accounting import epsilon_of, mu_for
from tacit.privacy.event import Composed, NotPrivate, PoissonSampled, Repeated

from ..conftest import assert_drawn_from, derived, make_data

pytestmark = pytest.mark.xdist_group("noisy-descent")  # what it calibrates is calibrated once

Make = Callable[..., Federation]
OPEN = Policy(not_private=["noisy-descent"])


def table(X: np.ndarray, y: np.ndarray, classes: int = 2) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=1.0))


def make_plan(
    sizes: tuple[int, ...] = (40, 40),
    d: int = 2,
    classes: int = 2,
    constant: float = 1.0,
    *,
    clip: float = math.inf,
    probability: float = 1.0,
) -> Plan:
    schema = Schema.of_arrays(d, list(range(classes)), norm_bound=1.0)
    group = SumGroup.of({f"party{i}": size for i, size in enumerate(sizes)}, quorum=len(sizes))
    return Plan(
        cohort=Cohort.of(schema, group, colluders=None, constant=constant),
        promise=Promise(method="NoisyDescent", epsilon=1.0, delta=1e-6),
        rounds=5,
        mu=0.14,
        probability=probability,
        clip=clip,
        paper_std=0.0,
    )


def plan_of(model: NoisyDescent, parties: Federation) -> Plan:
    plan = parties.terms(model).plan
    assert isinstance(plan, Plan)
    return plan


# --- what one record does --------------------------------------------------------------------------------------------

record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))
number = st.floats(-8, 8)


@given(
    records=st.lists(record, min_size=1, max_size=6),
    other=record,
    parameters=st.lists(number, min_size=9, max_size=9),
    classes=st.sampled_from([2, 3]),
    clip=st.sampled_from([math.inf, 0.3, 1.2]),
)
@settings(max_examples=200, deadline=None)
def test_one_record_moves_the_sum_by_no_more_than_the_sensitivity(
    records: list[tuple[float, float, int]],
    other: tuple[float, float, int],
    parameters: list[float],
    classes: int,
    clip: float,
) -> None:
    """Replaced in a full round; added in a sampled one."""
    plan = make_plan((len(records),), classes=classes, clip=clip)
    theta = np.array(parameters[: plan.dimension]).reshape(plan.loss.shape)

    def total(rows: list[tuple[float, float, int]]) -> np.ndarray:
        X, y = np.array([row[:2] for row in rows]), np.array([row[2] % classes for row in rows])
        return gradient_sum(plan.loss, table(X, y, classes).blocks(), theta, clip=clip)

    replaced = np.linalg.norm(total(records) - total([other, *records[1:]]))
    assert replaced <= plan.sensitivity(theta)
    added = np.linalg.norm(total([other, *records]) - total(records))
    assert added <= replace(plan, probability=0.5).sensitivity(theta)
    assert replace(plan, probability=0.5).sensitivity(theta) <= plan.sensitivity(theta)


def test_the_worst_neighbours_reach_the_sensitivity() -> None:
    """A bound that no pair of neighbours comes near would be noise for nothing."""
    for pair in NoisyDescent.worst_neighbours():
        (a, b), d = (pair.first["a"], pair.second["a"]), pair.first["a"].n_columns
        plan = make_plan((1, 1), d, constant=0.0)
        start = pair.settings["start"]
        theta = np.zeros(d) if start is None else np.array(start["coef"])[0]  # type: ignore[index]
        moved = gradient_sum(plan.loss, a.blocks(), theta, clip=math.inf)
        moved -= gradient_sum(plan.loss, b.blocks(), theta, clip=math.inf)
        assert 0.999 * plan.sensitivity(theta) <= np.linalg.norm(moved) <= plan.sensitivity(theta)


@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_are_those_of_the_loss_and_clipping_is_per_record(classes: int) -> None:
    X, y = make_data(5000, 3, classes=classes, seed=3)
    blocks = table(X, y, classes)
    loss = Loss(n_features=3, n_classes=classes)
    theta = np.random.default_rng(0).normal(size=loss.shape)
    exact = loss.sums(blocks.blocks, theta, curvature=False).gradient
    np.testing.assert_allclose(gradient_sum(loss, blocks.blocks(), theta, clip=math.inf), exact, rtol=1e-12)
    rows, labels = blocks.arrays()
    clipped = np.zeros(loss.shape)
    for x, label in zip(rows[:50], labels[:50], strict=True):
        one = loss.fold([(x[None], label[None])], theta, curvature=False).gradient
        clipped += one / max(1.0, np.linalg.norm(one) / 0.4)
    first = Table.from_arrays(rows[:50], labels[:50], blocks.schema)
    np.testing.assert_allclose(gradient_sum(loss, first.blocks(), theta, clip=0.4), clipped, rtol=1e-10)


# --- without noise ---------------------------------------------------------------------------------------------------


def plain_descent(X: np.ndarray, y: np.ndarray, w0: np.ndarray, rounds: int, rate: float, lam: float) -> np.ndarray:
    w, velocity, kept = w0.copy(), 0.0, []
    for _ in range(rounds):
        velocity = 0.9 * velocity + X.T @ (expit(X @ w) - y) / len(X) + lam * (w - w0)
        w = w - rate * velocity
        kept.append(w)
    return np.mean(kept[rounds // 2 :], axis=0)


def pooled(parties: Federation) -> tuple[np.ndarray, np.ndarray]:
    arrays = [parties.guard(name).table.arrays() for name in parties.names]
    return np.concatenate([X for X, _ in arrays]), np.concatenate([y for _, y in arrays])


@pytest.mark.parametrize("warm", [False, True])
def test_without_noise_it_is_plain_descent(federation: Make, warm: bool) -> None:
    parties = federation(policy=OPEN)
    start = (np.array([[0.5, -1.0, 2.0, 0.1]]), np.array([0.3])) if warm else None
    model = NoisyDescent(epsilon=math.inf, rounds=15, learning_rate=0.7, l2=6.0, start=start).fit(parties)
    X, y = pooled(parties)
    w0 = np.array([0.5, -1.0, 2.0, 0.1, 0.3]) if warm else np.zeros(5)
    expected = plain_descent(np.column_stack([X, np.ones(len(X))]), y, w0, 15, 0.7, 6.0 / len(X))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_long_descent_reaches_the_penalised_fit(federation: Make, classes: int) -> None:
    parties = federation(n=60, classes=classes, policy=OPEN, weights=[1])
    model = NoisyDescent(epsilon=math.inf, rounds=250, learning_rate=1.0, l2=30.0).fit(parties)
    X, y = pooled(parties)
    problem = Problem(n_features=4, n_classes=classes, l2=30.0, intercept="feature")
    exact = fit(lambda: [(X, y)], problem=problem)
    np.testing.assert_allclose(model.coef_, exact.coef, atol=1e-3)  # momentum forgets a start at 0.95 a round
    np.testing.assert_allclose(model.intercept_, exact.intercept, atol=1e-3)


# --- the noise -------------------------------------------------------------------------------------------------------


def noise_of(parties: Federation, model: NoisyDescent, runs: int) -> np.ndarray:
    """One round: the model is start - rate (gradient + noise) / (q n)."""
    assert model.rounds == 1
    n = sum(parties.sizes.values())
    quiet = NoisyDescent(**model.get_params() | {"epsilon": math.inf, "batch": None}).fit(parties)
    noise = []
    for _ in range(runs):
        model.fit(parties)
        noise.append(-np.append(model.coef_ - quiet.coef_, model.intercept_ - quiet.intercept_) * n)
    return np.array(noise)


@pytest.mark.parametrize("start", [None, ([[6.0, 0.0, 0.0, 0.0]], [0.0])])
def test_the_noise_is_gaussian_and_of_the_size_for_this_very_iterate(federation: Make, start: object) -> None:
    parties = federation(rng=Rng.seeded(11), policy=OPEN)
    model = NoisyDescent(epsilon=0.8, delta=1e-5, rounds=1, learning_rate=1.0, l2=1.0, start=start, colluders=0)
    noise = noise_of(parties, model, 60)
    theta = np.zeros(5) if start is None else np.array([6.0, 0, 0, 0, 0])
    plan = plan_of(model, parties)
    std = plan.sensitivity(theta) / mu_for(0.8, 1e-5)
    assert plan.sensitivity(theta) == pytest.approx(math.sqrt(2) if start is None else 2.56, rel=0.05)
    assert_drawn_from(stats.norm(0, std), noise)


@pytest.mark.slow
def test_sampled_rounds_take_each_record_with_the_probability_and_add_the_accountants_noise() -> None:
    """Records that all pull the same way: the gradient's variance is that of the sample and that of the noise."""
    n, q = 3000, 0.3
    parties = Federation.split(
        np.ones((n, 1)), np.arange(n) % 2, n_parties=2, norm_bound=1.0, rng=Rng.seeded(5), policy=OPEN
    )
    model = NoisyDescent(epsilon=1.0, rounds=5, batch=q, fit_intercept=False, colluders=0)
    plan = plan_of(model, parties)
    assert isinstance(plan.event(), PoissonSampled)
    multiplier = plan.event().event.noise_multiplier  # type: ignore[attr-defined]
    sums = []
    for _ in range(200):
        opened = parties.begin(model).sum(party_gradient, Iterate(theta=np.zeros(1)))
        sums.append(float(plan.grid(np.zeros(1)).from_grid(opened)[0]))
    noise = multiplier * plan.sensitivity(np.zeros(1))
    expected = n * q * (1 - q) * 0.5**2 + noise**2
    assert plan.sensitivity(np.zeros(1)) == pytest.approx(0.5, rel=1e-6)
    assert np.var(sums) * len(sums) / expected == pytest.approx(len(sums), abs=4 * math.sqrt(2 * len(sums)))
    assert np.var(sums) > 2 * noise**2  # or the sampling would not show


@pytest.mark.parametrize("batch", [None, pytest.param(0.3, marks=pytest.mark.slow)])
def test_the_event_is_what_the_ledgers_were_charged(federation: Make, batch: float | None) -> None:
    parties = federation()
    model = NoisyDescent(epsilon=1.0, rounds=5, batch=batch).fit(parties)
    event = model.event()
    assert isinstance(event, Repeated)
    assert event.count == 5
    assert isinstance(event.event, PoissonSampled) == (batch is not None)
    for party in parties.names:
        assert parties.guard(party).ledger.event(party) == Composed(events=(event,))
    spent = model.guarantee.epsilon
    assert spent == 1.0 if batch is None else 0.99 <= spent <= 1.0
    assert model.n_rounds_ == 5


def test_delta_follows_the_number_of_records_if_it_is_left_open(federation: Make) -> None:
    """More than 1000 records: 1 / n^2 is below 1e-6."""
    few, many = (federation(n=n) for n in (300, 3000))
    for parties, delta in ((few, 1e-6), (many, 1 / 3000**2)):
        model = NoisyDescent(rounds=4).fit(parties)
        assert model.delta_ == model.guarantee_.delta == delta
        assert plan_of(model, parties).mu == pytest.approx(mu_for(1.0, delta) / 2)
        assert parties.guard("party1").ledger.epsilon("party1", delta=delta) == pytest.approx(1.0, rel=1e-9)


def test_a_rule_chooses_the_rounds_and_the_cost_is_the_same(federation: Make) -> None:
    parties = federation()
    model = NoisyDescent(epsilon=1.0).fit(parties)
    assert model.n_rounds_ == plan_of(model, parties).rounds >= 4
    assert parties.guard("party1").ledger.epsilon("party1", delta=1e-6) == pytest.approx(1.0, rel=1e-9)
    assert epsilon_of(model.event(), 1e-6) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("batch", [None, pytest.param(0.3, marks=pytest.mark.slow)])
def test_at_noise_scales_the_noise(federation: Make, batch: float | None) -> None:
    parties = federation()
    model = NoisyDescent(epsilon=1.0, rounds=5, batch=batch)
    other = model.at_noise(0.5)
    stds = [plan_of(m, parties).grid(np.zeros(5)).noise_std for m in (model, other)]
    assert stds[1] / stds[0] == pytest.approx(0.5, rel=5e-3)


# --- what is checked -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings_", [{"rounds": 3}, {"rounds": 3, "calibration": "paper"}])
def test_a_party_answers_as_many_rounds_as_the_study_has(federation: Make, settings_: dict[str, Any]) -> None:
    parties = federation(policy=OPEN)
    model = NoisyDescent(**settings_)
    run = parties.begin(model)
    (ask,) = model.course(run.plan)
    iterates = [Iterate(theta=np.full(5, float(turn))) for turn in range(4)]
    for iterate in iterates[:3]:
        run.sum(ask.step, iterate)
    with pytest.raises(NotAgreed, match="is asked 3 times in a run, each turn once; turn 4 is not the next"):
        run.sum(ask.step, iterates[3])
    assert parties.guard("party1").ledger.n_releases("party1") == 3


@pytest.mark.parametrize(("calibration", "other"), [("sound", party_gradient_and_noise), ("paper", party_gradient)])
def test_neither_step_can_be_asked_in_a_run_of_the_other_calibration(
    federation: Make, calibration: Literal["sound", "paper"], other: Step
) -> None:
    parties = federation(policy=OPEN)
    with pytest.raises(NotAgreed, match="the study's method never asks step"):
        parties.begin(NoisyDescent(calibration=calibration)).sum(other, Iterate(theta=np.zeros(5)))
    assert parties.guard("party1").ledger.n_releases("party1") == 0


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"rounds": 3, "clip": 0.5, "delta": 1e-5, "start": ([[0.0] * 4], [0.0])},
        {"calibration": "paper", "clip": 2.0},
        pytest.param({"rounds": 5, "batch": 0.3}, marks=pytest.mark.slow),
    ],
)
def test_a_party_derives_the_plan_and_the_course_of_the_coordinator(
    federation: Make, settings_: dict[str, Any]
) -> None:
    model = NoisyDescent(**settings_)
    run = federation(n=3000, policy=OPEN).begin(model)
    terms = derived(model, run)
    assert terms.plan == run.plan
    assert terms.course == model.course(run.plan)


def test_the_steps_lengths_are_the_coordinators_own_business(federation: Make) -> None:
    parties = federation()
    plans = [
        plan_of(NoisyDescent(rounds=5, learning_rate=rate, l2=l2), parties) for rate, l2 in ((0.1, 1.0), (2.0, 9.0))
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("theta", [np.full(5, 1e9), np.full(5, math.nan), np.full(5, math.inf)])
def test_an_iterate_that_cannot_be_computed_with_is_refused(federation: Make, theta: np.ndarray) -> None:
    parties = federation()
    with pytest.raises(PolicyRefusal, match="smaller learning_rate"):
        parties.begin(NoisyDescent()).sum(party_gradient, Iterate(theta=theta))
    assert parties.guard("party1").ledger.n_releases("party1") == 0


@pytest.mark.parametrize("theta", [np.zeros(4), np.zeros((1, 5)), np.zeros(0)])
def test_an_iterate_of_another_shape_is_refused(federation: Make, theta: np.ndarray) -> None:
    parties = federation()
    with pytest.raises(PolicyRefusal, match=r"the iterate has shape .*; the run's model has \(5,\)"):
        parties.begin(NoisyDescent()).sum(party_gradient, Iterate(theta=theta))
    assert parties.guard("party1").ledger.n_releases("party1") == 0


BAD_SETTINGS = [
    {"rounds": 0}, {"rounds": 2.5}, {"rounds": True}, {"learning_rate": 0.0}, {"learning_rate": math.inf},
    {"l2": -1.0}, {"batch": 0.0}, {"batch": 1.0}, {"batch": 3}, {"clip": 0.0}, {"delta": 0}, {"delta": 1.0},
    {"calibration": "loud"}, {"colluders": 3}, {"epsilon": -1.0},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, bad: dict[str, object]) -> None:
    (name,) = bad
    with pytest.raises(SettingError, match=f"{name} = "):
        NoisyDescent(**bad).fit(federation())  # type: ignore[arg-type]


def test_a_missing_bound_is_an_error_and_batches_are_not_the_documents(federation: Make) -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        NoisyDescent().fit(federation(norm_bound=None))
    with pytest.raises(SettingError, match="the document has no batches"):
        NoisyDescent(batch=0.5, calibration="paper").fit(federation())


@pytest.mark.parametrize("epsilon", [1e-3, 1e-9])
def test_a_tiny_epsilon_leaves_the_model_near_its_start(federation: Make, epsilon: float) -> None:
    """The rule takes shorter steps for more noise: a start is not thrown away for nothing."""
    start = np.array([[2.0, -1.0, 0.5, 0.0]])
    model = NoisyDescent(epsilon=epsilon, start=(start, np.zeros(1))).fit(federation())
    assert np.linalg.norm(model.coef_ - start) < 3
    assert "too large to tell" in model.facts_.notices[0]


def test_the_rule_knows_public_numbers_only(federation: Make) -> None:
    one, other = (NoisyDescent().schedule(plan_of(NoisyDescent(), federation(seed=seed)).cohort) for seed in (1, 2))
    assert one == other
    loss = Loss(n_features=3)
    strict, usual = (default_schedule(loss, 1.4, 10_000, mu, rounds=None, is_warm=False) for mu in (0.0045, 0.14))
    assert strict.rounds < usual.rounds
    assert strict.l2_mean > usual.l2_mean


# --- the start -------------------------------------------------------------------------------------------------------


def test_pretraining_is_a_fit_of_public_records() -> None:
    X, y = make_data(200, 3)
    plain = LogisticRegression(C=1 / 0.5, tol=1e-12, max_iter=10_000).fit(X, y)
    model = pretrain(X, y, l2=0.5)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-6)
    unclipped = Table.from_arrays(X, y, Schema.of_arrays(3, [0, 1]))
    np.testing.assert_allclose(pretrain(unclipped, l2=0.5).coef_, plain.coef_, atol=1e-6)
    with pytest.raises(SettingError, match="y is missing"):
        pretrain(X)
    with pytest.raises(SettingError, match="y is given beside a Table"):
        pretrain(unclipped, y)
    with pytest.raises(SettingError, match="do not fit"):
        pretrain(X, y[:5])
    with pytest.raises(SettingError, match="at least 2"):
        pretrain(X, np.zeros(200))


def test_a_start_may_come_in_many_forms(federation: Make, tmp_path: Path) -> None:
    parties = federation(policy=OPEN)
    X, y = pooled(parties)
    plain = LogisticRegression().fit(X, y)
    saved = NoisyDescent(epsilon=math.inf, rounds=4, start=plain).fit(parties)
    forms = [
        plain, (plain.coef_, plain.intercept_), {"coef": plain.coef_.tolist(), "intercept": plain.intercept_.tolist()},
    ]  # fmt: skip
    for form in forms:
        np.testing.assert_array_equal(linear_model(form, parties.schema, "start").coef_, plain.coef_)
        np.testing.assert_array_equal(
            NoisyDescent(epsilon=math.inf, rounds=4, start=form).fit(parties).coef_, saved.coef_
        )
    assert saved.facts_.settings["start"] == forms[2]  # what a file can hold
    assert clone(saved).start is plain  # a clone of the start would have forgotten it
    assert set(saved.get_params()) == set(NoisyDescent().get_params())


def test_a_start_of_another_shape_or_other_columns_is_refused(federation: Make) -> None:
    def refused(start: object, match: str, **settings: object) -> None:
        with pytest.raises(SettingError, match=match):
            NoisyDescent(start=start, **settings).fit(federation())  # type: ignore[arg-type]

    X, y = make_data(200, 4)
    refused((np.zeros((1, 3)), np.zeros(1)), r"start has coefficients of shape \(1, 3\).*need \(1, 4\)")
    refused((np.zeros((3, 4)), np.zeros(3)), r"start has coefficients of shape \(3, 4\)")
    refused((np.full((1, 4), math.nan), np.zeros(1)), "not finite")
    refused(LogisticRegression(), "LogisticRegression and no linear model that was fitted")
    refused({"weights": 1}, "no linear model")
    refused((["a"], ["b"]), "not arrays of numbers")
    refused((np.zeros((1, 4)), np.ones(1)), "fit_intercept = False", fit_intercept=False)
    names = ["x0", "x1", "x2", "age"]
    other = Table.from_arrays(X, y, Schema.of_arrays(4, [0, 1], feature_names=names))
    refused(pretrain(other), "other columns than the study's: 'age'")
    refused(
        pretrain(Table.from_arrays(X, y, Schema.of_arrays(4, [0, 1], feature_names=["x1", "x0", "x2", "x3"]))), "order"
    )
    classes = Table.from_arrays(X, np.where(y, "sick", "well"), Schema.of_arrays(4, ["well", "sick"]))
    refused(pretrain(classes), "knows the classes well, sick")


def like_and_unlike(flip: bool, n: int = 4000, epsilon: float = 2.0, classes: int = 2) -> NoisyDescent:
    X, y = make_data(2 * n, 4, classes=classes, seed=9)
    parties = Federation.split(X[:n], y[:n], n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    labels = (classes - 1 - y if flip else y)[n:]
    public = pretrain(Table.from_arrays(X[n:], labels, parties.schema))
    return NoisyDescent(epsilon=epsilon, start=public).fit(parties)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_report_says_when_the_start_is_unlike_the_private_data(classes: int) -> None:
    assert like_and_unlike(False, classes=classes).facts_.notices == ()
    (notice,) = like_and_unlike(True, classes=classes).facts_.notices
    assert "The public start seems unlike the private data" in notice
    assert "too confident, or point the wrong way" in notice
    assert "seems unlike" in like_and_unlike(True, classes=classes).report.text()


def test_the_report_says_when_cases_are_more_frequent_than_the_start_expects() -> None:
    chance = np.random.default_rng(2)
    X, y = chance.normal(size=(6000, 2)) / 2, chance.random(6000) < 0.2
    parties = Federation.split(X, y.astype(int), n_parties=2, norm_bound=1.0, rng=Rng.seeded(1))
    (notice,) = NoisyDescent(epsilon=2.0, start=([[0.0, 0.0]], [0.0])).fit(parties).facts_.notices
    assert "expects the last class too often" in notice


def test_the_way_averages_the_noise_of_all_rounds() -> None:
    """Where every gradient is noise alone, the way's noise is of the size that the evidence claims."""
    weights = mean_weights(12)
    chance = np.random.default_rng(4)
    ways = []
    for _ in range(4000):
        theta = velocity = mean = 0.0
        for turn, noise in enumerate(chance.normal(size=12)):
            velocity = 0.9 * velocity + noise
            theta -= velocity
            mean += theta / 6 if turn >= 6 else 0.0
        ways.append(-mean / weights.sum())
    assert np.std(ways) == pytest.approx(np.linalg.norm(weights) / weights.sum(), rel=0.05)
    assert np.std(ways) < 0.5


def test_false_alarms_are_rare() -> None:
    """Starts that were learned from as many records of the same law, over 60 runs of fresh data and noise."""
    alarms = 0
    for seed in range(60):
        X, y = make_data(1200, 3, seed=100 + seed)
        parties = Federation.split(X[:600], y[:600], n_parties=2, norm_bound=1.0, rng=Rng.seeded(seed))
        model = NoisyDescent(epsilon=8.0, rounds=1, start=pretrain(X[600:], y[600:])).fit(parties)
        alarms += any("seems unlike" in notice for notice in model.facts_.notices)
    assert alarms <= 2


def test_a_start_from_like_data_beats_none_where_noise_is_large() -> None:
    gains = []
    for seed in range(12):
        X, y = make_data(1500, 4, seed=seed)
        parties = Federation.split(X[:300], y[:300], n_parties=2, norm_bound=1.0, rng=Rng.seeded(seed))
        start = pretrain(X[300:600], y[300:600])
        warm, cold = (
            NoisyDescent(epsilon=0.3, start=start_).fit(parties).score(X[600:], y[600:]) for start_ in (start, None)
        )
        gains.append(warm - cold)
    assert np.mean(gains) > 3 * np.std(gains) / math.sqrt(len(gains))


def test_a_warm_model_comes_back_from_its_facts(federation: Make) -> None:
    parties = federation()
    X, y = make_data(100, 4)
    model = NoisyDescent(epsilon=1.0, start=pretrain(X, y)).fit(parties)
    again = NoisyDescent(**model.facts_.settings)
    assert again.guarantee == model.guarantee
    np.testing.assert_array_equal(
        linear_model(again.start, parties.schema, "start").coef_,
        model.start.coef_,  # type: ignore[attr-defined]
    )


# --- as printed ------------------------------------------------------------------------------------------------------


def test_paper_noise_is_gaussian_of_the_printed_size(federation: Make) -> None:
    parties = federation(rng=Rng.seeded(13), policy=OPEN)
    n = sum(parties.sizes.values())
    model = NoisyDescent(epsilon=0.5, delta=1e-5, rounds=1, clip=2.0, learning_rate=1.0, calibration="paper")
    assert isinstance(model.event(), NotPrivate)
    noise = noise_of(parties, model, 60) / n
    sigma = 2 * 2.0 / (n * 0.5) * math.sqrt(2 * math.log(1.25 / 1e-5))
    assert paper_noise(2.0, n, model.promise) == pytest.approx(sigma)
    assert_drawn_from(stats.norm(0, sigma), noise)


def test_paper_clips_the_whole_gradient(federation: Make) -> None:
    parties = federation(policy=OPEN)
    model = NoisyDescent(epsilon=math.inf, rounds=1, clip=0.7, learning_rate=1.0, calibration="paper").fit(parties)
    assert np.linalg.norm(np.append(model.coef_, model.intercept_)) == pytest.approx(0.7)


@pytest.mark.parametrize("n", [11, 101, 1001])
def test_the_documents_noise_does_not_hide_a_record_however_many_there_are(n: int) -> None:
    """Whole-gradient clipping bounds a record's effect by 2 C, not by 2 C / n: neighbours that differ by 2 C.

    Pairs of equal rows with opposite labels cancel, so the last record turns the whole gradient about.
    """
    clip, outcomes = 0.5, []
    for label in (0, 1):
        X, y = np.ones((n, 1)), np.append(np.arange(n - 1) % 2, label)
        parties = Federation.from_tables({"a": table(X, y)}, rng=Rng.seeded(label), policy=OPEN)
        model = NoisyDescent(
            epsilon=1.0, delta=1e-5, rounds=1, clip=clip, learning_rate=1.0, fit_intercept=False, calibration="paper"
        )
        outcomes.append([float(model.fit(parties).coef_[0, 0]) for _ in range(20)])
    difference = np.mean(outcomes[1]) - np.mean(outcomes[0])
    sigma = paper_noise(clip, n, model.promise)
    assert difference == pytest.approx(2 * clip, abs=6 * sigma / math.sqrt(10))
    # The noise is n times too small: with 101 records one run tells the two apart for certain.
    assert difference / sigma == pytest.approx(n / math.sqrt(2 * math.log(1.25 / 1e-5)), rel=0.6)
    if n > 100:
        assert max(outcomes[0]) < min(outcomes[1])


def test_sound_noise_hides_the_same_record() -> None:
    n, deviations = 1001, []
    for label in (0, 1):
        X, y = np.ones((n, 1)), np.append(np.arange(n - 1) % 2, label)
        parties = Federation.from_tables({"a": table(X, y)}, rng=Rng.seeded(label))
        model = NoisyDescent(epsilon=1.0, delta=1e-5, rounds=1, learning_rate=1.0, l2=0.0, fit_intercept=False)
        deviations.append([float(model.fit(parties).coef_[0, 0]) * n for _ in range(60)])
    difference = abs(np.mean(deviations[1]) - np.mean(deviations[0]))
    assert difference < np.std(deviations[0])  # the means are 1 apart, the noise is 3 to 4
    assert np.std(deviations[0]) > 2.5
