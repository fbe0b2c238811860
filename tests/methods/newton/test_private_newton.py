"""Private Newton: how far a record moves each sum, its noise, the solution without noise, intervals, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

from tacit import Federation, Policy, Pooled, Rng, Schema, Table
from tacit.data.feature import Numeric, Target
from tacit.errors import NotAgreed, PolicyRefusal, SettingError
from tacit.methods.cohort import LARGEST_DELTA
from tacit.methods.newton.measuring import SHARE as MEASURING
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.moments import as_curvature, constant_row, denoised, steeper, with_constant
from tacit.methods.newton.neighbour import releases
from tacit.methods.newton.rule import MIDDLE, default_rules, outlook
from tacit.methods.newton.shape import room_for, shape_of
from tacit.methods.newton.solver import answer_directions
from tacit.methods.newton.statistic import (
    COUNTED,
    Plan,
    Shape,
    Trial,
    moments_sum,
    party_moments,
    party_responses,
    party_squares,
    response_sum,
    shaped,
    squares_sum,
)
from tacit.methods.newton.triangle import mirrored, symmetric, triangle, upper
from tacit.methods.public_model import pretrain
from tacit.models.response import response_norm
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed, Gaussian, NotPrivate
from tacit.privacy.gaussian import gaussian_mu
from tacit.studies.audit import _outcomes

from ..conftest import assert_drawn_from, cohort_of, derived, make_data

Make = Callable[..., Federation]
ALLOWED = Policy(not_private=["private-newton", "pooled"])


def plan(classes: int = 2, constant: float = 0.3, **changes: Any) -> Plan:
    start = Plan(
        cohort=cohort_of(60, 30, 20, classes=classes, constant=constant),
        mu_squares=0.3,
        mu_moments=0.5,
        mu_response=0.2,
        rounds=3,
        relation="replace-one",
    )
    return replace(start, **changes)


def table(X: np.ndarray, y: np.ndarray, classes: int = 2, bound: float = 1.0) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=bound))


def table_of(rows: list[tuple[float, float, int]], classes: int) -> Table:
    X, y = np.array([row[:2] for row in rows]).reshape(-1, 2), np.array([row[2] % classes for row in rows])
    return table(X, y.astype(int), classes)


# --- how far one record moves a sum ----------------------------------------------------------------------------------

record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))
weights = st.lists(st.floats(-20, 20), min_size=9, max_size=9)
stretch = st.lists(st.floats(-30, 30), min_size=6, max_size=6)


@given(
    records=st.lists(record, min_size=2, max_size=5),
    other=record,
    packed=stretch,
    model=weights,
    classes=st.sampled_from([2, 3]),
    constant=st.sampled_from([0.3, 1.0]),
)
@settings(max_examples=300, deadline=None)
def test_a_record_moves_no_sum_by_more_than_its_sensitivity_whatever_the_shape(
    records: list[tuple[float, float, int]],
    other: tuple[float, float, int],
    packed: list[float],
    model: list[float],
    classes: int,
    constant: float,
) -> None:
    own, B = plan(classes, constant), symmetric(np.array(packed))
    W = np.array(model[: own.n_scores * own.width]).reshape(own.n_scores, own.width)
    tables = [table_of(rows, classes) for rows in (records, [other, *records[1:]], records[1:])]
    squares = [triangle(squares_sum(one, own)) / own.reach for one in tables]
    moments = [own.pack(*moments_sum(one, own, B)) for one in tables]
    responses = [response_sum(one, own, B, W).ravel() for one in tables]
    for relation, neighbour in (("replace-one", 1), ("add-remove", 2)):
        claimed = replace(own, relation=relation)
        assert np.linalg.norm(squares[0] - squares[neighbour]) <= claimed.squares_sensitivity
        assert np.linalg.norm(moments[0] - moments[neighbour]) <= claimed.moments_sensitivity(B)
        assert np.linalg.norm(responses[0] - responses[neighbour]) <= claimed.response_sensitivity(B, W)
    assert np.abs(squares[0]).max() <= own.squares_grid.total.value_bound
    assert np.abs(moments[0]).max() <= own.moments_grid(B).total.value_bound
    assert np.abs(responses[0]).max() <= own.response_grid(B, W).total.value_bound


@given(packed=stretch, seed=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_no_shaped_row_is_longer_than_one_and_short_ones_are_as_they_were(packed: list[float], seed: int) -> None:
    Z = np.random.default_rng(seed).uniform(-1, 1, size=(50, 3))
    rows = shaped(Z, symmetric(np.array(packed)))
    lengths = np.linalg.norm(rows.g, axis=1)
    assert np.linalg.norm(rows.u, axis=1).max() <= 1 + 1e-12
    np.testing.assert_array_equal(rows.u[lengths < 1], rows.g[lengths < 1])
    np.testing.assert_allclose(rows.u, rows.g * rows.weights[:, None])


@settings(max_examples=40, deadline=None)
@given(length=st.floats(0, 30), classes=st.integers(2, 6), seed=st.integers(0, 999))
def test_no_response_is_longer_and_the_bound_is_reached(length: float, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if classes == 2:
        assert response_norm(length, 2) == pytest.approx(expit(length) - 0.5, abs=1e-9)
        return
    scores = rng.normal(size=(2000, classes))
    scores *= length / np.linalg.norm(scores, axis=1, keepdims=True)
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    longest = float(np.linalg.norm(P - 1 / classes, axis=1).max())
    assert longest <= response_norm(length, classes) <= math.sqrt(1 - 1 / classes) + 1e-9


def test_responses_to_a_model_that_says_nothing_are_nothing() -> None:
    own = plan(mu_moments=math.inf, mu_response=math.inf)
    assert own.response_sensitivity(np.eye(3), np.zeros((1, 3))) < 1e-2
    np.testing.assert_array_equal(response_sum(table(*make_data(50, 2)), own, np.eye(3), np.zeros((1, 3))), 0.0)


def test_the_joint_sensitivity_is_reached_by_a_turned_record() -> None:
    own, B = plan(), 100 * np.diag([1.0, 1.0, 1e-9])  # rows become (x / ||x||, 0)
    turn = 2 * math.pi / 3
    rows = np.array([[1.0, 0.0], [math.cos(turn), math.sin(turn)]])
    vectors = [own.pack(*moments_sum(table(row[None], np.array([1])), own, B)) for row in rows]
    assert np.linalg.norm(vectors[0] - vectors[1]) == pytest.approx(1.5 * math.sqrt(0.5), rel=1e-6)
    assert own.moments_sensitivity(B) == pytest.approx(math.hypot(1.5 * math.sqrt(0.5), COUNTED), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_packed_is_what_is_unpacked(classes: int) -> None:
    own, B = plan(classes, mu_squares=math.inf, mu_moments=math.inf), np.diag([3.0, 2.0, 1.0])
    one = table(*make_data(50, 2, classes), classes)
    sums = moments_sum(one, own, B)
    back = own.unpack(own.moments_grid(B).to_grid(own.pack(*sums), rng=Rng.seeded(0)), B)
    for told, was in zip(back, sums, strict=True):
        np.testing.assert_allclose(told, was, atol=1e-11)
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    shape = turned @ B @ turned.T
    shape = (shape + shape.T) / 2
    np.testing.assert_array_equal(mirrored(upper(shape)), shape)  # to the last digit
    A = squares_sum(one, own)
    opened = own.squares_grid.to_grid(triangle(A) / own.reach, rng=Rng.seeded(0))
    np.testing.assert_allclose(own.unpack_squares(opened), A, atol=1e-11)


# --- noise and what it costs -----------------------------------------------------------------------------------------


def test_the_noise_is_gaussian_of_the_stated_size(federation: Make) -> None:
    parties = federation(d=2, rng=Rng.seeded(5))
    method = PrivateNewton(epsilon=0.5, rounds=1)
    own, B, model = parties.terms(method).plan, np.diag([2.0, 3.0, 1.0]), np.array([[1.0, -2.0, 0.5]])
    tables = [parties.guard(name).table for name in parties.names]
    asked = [
        (party_squares, None, own.squares_grid, lambda one: triangle(squares_sum(one, own)) / own.reach),
        (party_moments, Shape(shape=upper(B)), own.moments_grid(B), lambda one: own.pack(*moments_sum(one, own, B))),
        (
            party_responses,
            Trial(shape=upper(B), model=model),
            own.response_grid(B, model),
            lambda one: response_sum(one, own, B, model).ravel(),
        ),
    ]
    noise: dict[str, list[np.ndarray]] = {step.name: [] for step, *_ in asked}
    for _ in range(50):
        channel = parties.begin(method)
        for step, values, grid, sum_of in asked:
            exact = sum(sum_of(one) for one in tables)
            noise[step.name].append((grid.from_grid(channel.sum(step, values)) - exact) / grid.noise_std)
    for drawn in noise.values():
        assert_drawn_from(stats.norm(), np.array(drawn))
    n_parties = own.cohort.n_parties
    least = own.moments_sensitivity(B) / own.mu_moments * math.sqrt(n_parties / (n_parties - own.cohort.colluders))
    assert own.moments_grid(B).noise_std == pytest.approx(least, rel=1e-3)
    assert own.moments_grid(B).noise_std > least


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rounds", [None, 0, 2])
def test_all_releases_together_cost_what_was_asked(federation: Make, relation: str, rounds: int | None) -> None:
    parties = federation()
    model = PrivateNewton(epsilon=0.7, delta=1e-5, rounds=rounds, relation=relation).fit(parties)  # type: ignore[arg-type]
    for party in parties.names:
        spent = parties.guard(party).ledger.epsilon(party, delta=1e-5, relation=relation)  # type: ignore[arg-type]
        assert 0.7 * (1 - 1e-9) <= spent <= 0.7
    own = parties.terms(model).plan
    spent_on = [own.mu_squares, own.mu_moments, *[own.mu_response] * own.rounds]
    assert math.hypot(*spent_on) == pytest.approx(gaussian_mu(0.7, 1e-5), rel=1e-9)
    assert (model.guarantee_.epsilon, model.guarantee_.relation) == (0.7, relation)


def test_delta_follows_from_the_number_of_records_and_is_never_more_than_a_millionth(federation: Make) -> None:
    model = PrivateNewton()
    assert model.guarantee.delta == LARGEST_DELTA  # the most that any run spends
    before = model.event()
    assert model.fit(federation(n=300)).guarantee_.delta == LARGEST_DELTA
    assert model.fit(federation(n=3000)).guarantee_.delta == pytest.approx(1 / 3000**2)
    assert model.event() == before
    assert isinstance(before, Gaussian)
    spent = federation(n=3000).terms(model).plan
    assert math.hypot(spent.mu_squares, spent.mu_moments, *[spent.mu_response] * spent.rounds) < (
        1 / before.noise_multiplier
    )
    assert PrivateNewton(relation="add-remove").fit(federation(n=3000)).guarantee_.delta == LARGEST_DELTA


def test_nothing_that_is_sent_depends_on_the_number_of_records_if_that_is_not_public(federation: Make) -> None:
    method = PrivateNewton(relation="add-remove")
    digests = [federation(n=n).terms(method).digest for n in (300, 301)]
    assert digests[0] == digests[1]


def test_half_the_noise_claims_more() -> None:
    model = PrivateNewton(epsilon=1.0, delta=1e-6)
    half = model.at_noise(0.5)
    one, other = model.event(), half.event()
    assert isinstance(one, Gaussian)
    assert isinstance(other, Gaussian)
    assert other.noise_multiplier == pytest.approx(one.noise_multiplier / 2, rel=1e-9)
    assert epsilon_of(Composed(events=(half.event(),)), 1e-6) == pytest.approx(half.epsilon, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_its_worst_neighbours_are_as_far_apart_as_is_claimed_and_no_further(noise: float) -> None:
    runs = 80
    seen = [_outcomes((PrivateNewton, {"epsilon": 1.0, "delta": 0.1}, None), 0, noise, side, runs) for side in (0, 1)]
    assert not any(failure for outcomes in seen for failure, _ in outcomes)
    first, second = (np.array([score for _, score in outcomes]) for outcomes in seen)
    apart = (first.mean() - second.mean()) / math.sqrt((first.var() + second.var()) / 2)
    claimed = gaussian_mu(1.0, 0.1) / noise
    error = math.sqrt((2 + claimed**2 / 4) / runs)
    assert 0.93 * claimed - 4 * error < apart < claimed + 4 * error


@pytest.mark.parametrize("delta", [1e-6, 0.1])
def test_every_release_of_the_worst_neighbours_is_nearly_as_far_apart_as_is_claimed(delta: float) -> None:
    (pair,) = PrivateNewton.worst_neighbours()
    method = PrivateNewton(epsilon=1.0, delta=delta, **pair.settings)  # type: ignore[arg-type]
    own = Federation.from_tables(pair.first).terms(method).plan
    tables = (pair.first["a"], pair.second["a"], pair.first["b"])
    claimed = np.array([own.mu_squares, own.mu_moments, own.mu_response])
    for seed in range(20):
        shares = [triangle(squares_sum(one, own)) / own.reach for one in (tables[0], tables[2])]
        opened = sum(own.squares_grid.to_grid(one, rng=Rng.seeded(100 * seed + i)) for i, one in enumerate(shares))
        apart = np.array([one.apart for one in releases(own, opened, tables)])  # type: ignore[arg-type]
        assert (apart <= claimed).all()
        assert np.linalg.norm(apart) >= 0.88 * np.linalg.norm(claimed)


def test_a_shape_or_a_model_that_is_none_is_refused_by_the_parties(federation: Make) -> None:
    parties, method, right = federation(), PrivateNewton(rounds=3), upper(np.eye(5))
    for shape in (right[:-1], 1e7 * right, math.nan * right):
        with pytest.raises(PolicyRefusal, match="the shape that was sent"):
            parties.begin(method).sum(party_moments, Shape(shape=shape))
    for model in (np.zeros((1, 4)), np.full((1, 5), 1e7), np.full((1, 5), math.nan)):
        with pytest.raises(PolicyRefusal, match="the model that was sent"):
            parties.begin(method).sum(party_responses, Trial(shape=right, model=model))


def test_a_run_asks_for_squares_moments_and_rounds_and_the_party_derives_the_same_plan(federation: Make) -> None:
    parties, method, right = federation(), PrivateNewton(rounds=1), upper(np.eye(5))
    channel = parties.begin(method)
    assert derived(method, channel).plan == channel.plan
    trial = Trial(shape=right, model=np.zeros((1, 5)))
    channel.sum(party_squares)
    channel.sum(party_responses, trial)
    with pytest.raises(NotAgreed, match="'private-newton/moments' comes before 'private-newton/responses'"):
        channel.sum(party_moments, Shape(shape=right))
    with pytest.raises(NotAgreed, match="turn 2 is not the next"):
        channel.sum(party_responses, trial)


# --- what is learned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_the_pooled_fit(federation: Make, classes: int, fit_intercept: bool) -> None:
    parties = federation(classes=classes, policy=ALLOWED)
    model = PrivateNewton(epsilon=math.inf, l2=0.7, fit_intercept=fit_intercept).fit(parties)
    pooled = Pooled(l2=0.7, fit_intercept=fit_intercept).fit(parties)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, pooled.intercept_, atol=1e-8)
    assert isinstance(model.event(), NotPrivate)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_with_little_noise_it_is_near_the_pooled_fit(federation: Make, classes: int, relation: str) -> None:
    parties = federation(n=20_000, classes=classes, policy=ALLOWED, rng=Rng.seeded(1))
    model = PrivateNewton(epsilon=10.0, relation=relation).fit(parties)  # type: ignore[arg-type]
    pooled = Pooled(l2=1.0).fit(parties)
    centre = 0 if classes == 2 else pooled.coef_.mean(axis=0)
    np.testing.assert_allclose(model.coef_, pooled.coef_ - centre, atol=0.05, rtol=0.05)
    assert model.n_rounds_ <= 12


def test_a_public_start_helps_and_one_that_is_turned_about_is_noticed(federation: Make) -> None:
    X, y = make_data(4000, 4)
    start = pretrain(X[:2000], y[:2000])
    parties = Federation.split(X[2000:], y[2000:], n_parties=3, norm_bound=1.0, rng=Rng.seeded(2))
    scores = {}
    for label, public in (("none", None), ("like", start), ("unlike", (-start.coef_, -start.intercept_))):
        models = [PrivateNewton(epsilon=0.3, start=public).fit(parties) for _ in range(5)]
        scores[label] = np.mean([np.linalg.norm(model.coef_ - start.coef_) for model in models])
        told = sum("unlike the private data" in " ".join(model.facts_.notices) for model in models)
        assert told == (5 if label == "unlike" else 0)
    assert scores["like"] < scores["none"]
    assert PrivateNewton(start=start).fit(parties).facts_.settings["start"] is not None


def test_intervals_are_in_the_summary_and_hold_the_noise(federation: Make) -> None:
    parties = federation(n=5000, policy=ALLOWED, rng=Rng.seeded(4))
    rows = {eps: PrivateNewton(epsilon=eps, delta=1e-6).fit(parties).facts_.coefficients for eps in (0.3, 50.0)}
    pooled = Pooled(l2=0.0).fit(parties).facts_.coefficients
    for noisy, hardly, exact in zip(rows[0.3], rows[50.0], pooled, strict=True):
        assert noisy.standard_error is not None
        assert hardly.standard_error is not None
        assert exact.standard_error is not None
        assert noisy.standard_error > 2 * hardly.standard_error
        # effects are so strong here that a normal population bends more than these rows do: wider, never shorter
        assert 0.95 * exact.standard_error < hardly.standard_error < 1.6 * exact.standard_error
    text = PrivateNewton(epsilon=1.0).fit(parties).summary()
    assert "std err" in text
    assert "noise that was added for privacy" in " ".join(text.split())


# --- pieces ----------------------------------------------------------------------------------------------------------


def test_a_shape_makes_all_directions_count_alike_unless_noise_drowns_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) * [1.0, 0.3, 0.1, 0.001]
    B = shape_of(X.T @ X, 1.0, len(X), room=0.8)
    squares = np.diag(B @ (X.T @ X) @ B) / len(X)
    np.testing.assert_allclose(squares[:3], squares[0], rtol=0.05)
    assert squares[3] < 0.1 * squares[0]
    assert np.sum(squares) == pytest.approx(1 / 0.8**2, rel=1e-6)
    np.testing.assert_array_equal(B, B.T)
    assert room_for(1.0) == 0.8 < room_for(1e-4) < room_for(1e-5) < room_for(1e-12) == 3.0


def test_a_rare_category_counts_though_the_noise_of_all_squares_is_larger_than_it() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((20_000, 60)) < 0.02, np.ones(20_000)]).astype(np.float64)
    A, noise_std = X.T @ X, 60.0  # 400 in each column; the noise of all squares has a norm of 660
    G = np.triu(rng.normal(size=A.shape), 1) * noise_std * math.sqrt(0.5)
    A = A + G + G.T + np.diag(rng.normal(size=len(A)) * noise_std)
    B = shape_of(A, noise_std, len(X), room=0.8)
    squares = np.einsum("ij,jk,ki->i", B, X.T @ X, B) / len(X)
    assert np.min(squares[:-1]) > 0.15 * squares[-1]


def test_where_few_directions_can_be_learned_the_others_are_left() -> None:
    A = np.diag([1e4, 1e3, 1e2, 1e1])
    parts = []
    for most in (math.inf, 2.0, 1.2, 0.1):
        B = shape_of(A, 1e-6, 1e4, room=1.0, most=most)
        parts.append(np.diag(B @ A @ B) / 1e4)
    learned = [1 / np.max(part / part.sum()) for part in parts]
    np.testing.assert_allclose(parts[0], 0.25, rtol=1e-3)
    assert learned[0] > learned[1] > learned[2] >= learned[3] >= 1
    assert parts[3][0] > 0.7 > 0.1 > parts[3][2]  # mostly the largest


def test_the_constant_is_found_again_in_shaped_rows() -> None:
    B = symmetric(np.array([3.0, 0.5, -0.2, 2.0, 0.4, 1.0]))
    q = constant_row(B)
    Z = np.column_stack([np.random.default_rng(0).normal(size=(10, 2)), np.full(10, 0.3)])
    np.testing.assert_allclose(Z @ B @ q, 0.3, atol=1e-12)
    M = with_constant(np.eye(3), q, 7.0)
    assert q @ M @ q == pytest.approx(7.0)


def test_denoised_moments_are_nearer_the_truth_and_positive_definite() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 40)) + 1
    A, noise_std = X.T @ X, 300.0
    G = rng.normal(size=A.shape) * noise_std
    noisy = A + np.triu(G) * np.where(np.eye(40) > 0, 1, math.sqrt(0.5))
    noisy = np.triu(noisy) + np.triu(noisy, 1).T
    clean = denoised(noisy, noise_std)
    assert np.linalg.norm(clean - A) < 0.7 * np.linalg.norm(noisy - A)
    assert np.linalg.eigvalsh(clean)[0] > 0
    np.testing.assert_allclose(denoised(A, 0.0), A, atol=1e-9)


def drowned_moments(seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """Moments of rows that vary in a few directions, the same with noise, and its standard deviation."""
    rng = np.random.default_rng(seed)
    truth = np.diag(2000.0 / np.arange(1, 31) ** 1.5)
    G = np.triu(rng.normal(size=truth.shape)) * np.where(np.eye(30) > 0, 200.0, 200.0 * math.sqrt(0.5))
    return truth, truth + np.triu(G) + np.triu(G, 1).T, 200.0


def test_curvature_is_nearer_the_truth_the_more_the_squares_say_and_positive() -> None:
    for seed in range(3):
        truth, noisy, noise_std = drowned_moments(seed)
        flat, helped = (as_curvature(noisy, noise_std, T, 30_000.0) for T in (np.eye(30), truth))
        errors = [float(np.linalg.norm(one - truth)) for one in (noisy, flat, helped)]
        assert errors[0] > 1.5 * errors[1] > 1.5 * errors[2]
        assert min(np.linalg.eigvalsh(flat)[0], np.linalg.eigvalsh(helped)[0]) > 0
        np.testing.assert_array_equal(as_curvature(truth, 0.0, np.eye(30), 30_000.0), truth)
        np.testing.assert_allclose(as_curvature(truth, 1e-6, np.eye(30), 30_000.0), truth, atol=1e-3)


def test_curvature_is_as_steep_as_was_opened_along_the_answer_and_nowhere_else() -> None:
    truth, noisy, noise_std = drowned_moments(0)
    flat, v = 100.0 * np.eye(30), np.eye(30)[:1]
    found = steeper(flat, noisy, v, noise_std)
    assert abs(found[0, 0] - truth[0, 0]) < 3 * noise_std
    found[0, 0] = 100.0
    np.testing.assert_array_equal(found, flat)
    np.testing.assert_array_equal(steeper(3e4 * np.eye(30), noisy, v, noise_std), 3e4 * np.eye(30))  # never less steep


@pytest.mark.parametrize("n_scores", [1, 3])
def test_answers_point_where_labels_do_beyond_the_intercept(n_scores: int) -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(400, 4)) + 1, np.ones(400)])
    M, q = X.T @ X, np.eye(5)[-1]
    t = rng.normal(size=(n_scores, 5)) * 100
    directions = answer_directions(t, M, q)
    assert directions.shape == (max(1, n_scores - 1), 5)
    np.testing.assert_allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-12)
    np.testing.assert_allclose(answer_directions(t + 9 * (M @ q), M, q) @ q, 0, atol=1e-9)
    assert len(answer_directions(0 * t, M, q)) == 0


def test_the_rules_go_with_the_noise() -> None:
    little, usual, more, much = (default_rules(s, 40_000) for s in (2.0, 60.0, 300.0, 6000.0))
    assert 10 >= little.rounds > usual.rounds > more.rounds >= 3
    assert (little.constant, much.constant) == (0.3, 2.0)
    assert more.squares + more.moments < 1
    assert much.rounds == 0
    assert much.squares + much.moments == pytest.approx(1)  # what no round is worth goes to the moments
    assert default_rules(60.0, None) == default_rules(60.0, 30_000)  # a number that is not public is taken to be usual


def test_too_few_records_are_told_before_and_after(federation: Make) -> None:
    few = federation(n=60)
    model = PrivateNewton(epsilon=0.1).fit(few)
    hope = model.outlook(few.schema, 60, 3)
    assert hope.is_hopeless
    assert hope.least_records > 60
    assert "class frequencies" in " ".join(model.facts_.notices)
    enough = model.outlook(few.schema, 2 * hope.least_records, 3)
    assert not enough.is_hopeless
    assert not outlook(10, 5, 0.0).is_hopeless


BAD = [
    ({"rounds": -1}, "rounds = -1 must be a whole number"),
    ({"rounds": 1.5}, "rounds = 1.5 must be a whole number"),
    ({"delta": 2.0}, "delta = 2.0 must lie"),
    ({"l2": -1.0}, "l2 = -1.0 must be"),
    ({"relation": "both"}, "relation = 'both' is unknown"),
    ({"colluders": 2}, "colluders = 2 among 3 parties leaves fewer than two honest ones; 4 parties are needed"),
    ({"colluders": -1}, "colluders = -1 among 3 parties"),
    ({"start": ([[1.0]], [0.0])}, r"start has coefficients of shape \(1, 1\)"),
    ({"start": ([[0.0] * 4], [1.0]), "fit_intercept": False}, "start has an intercept and fit_intercept = False"),
]


@pytest.mark.parametrize(("setting", "message"), BAD)
def test_bad_settings_are_named(federation: Make, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        PrivateNewton(**setting).fit(federation())


def test_rows_without_a_bound_are_refused(federation: Make) -> None:
    with pytest.raises(SettingError, match="PrivateNewton needs a bound on the norm of a row"):
        PrivateNewton().fit(federation(norm_bound=None))


def test_two_parties_each_add_all_the_noise(federation: Make) -> None:
    model = PrivateNewton(epsilon=1.0).fit(federation(weights=[1, 1]))
    assert "each adds all the noise itself" in " ".join(model.facts_.notices)


def test_without_noise_and_regularisation_nothing_is_asked(federation: Make) -> None:
    """Separable records have no best model then, and what the search ends with would look like one."""
    parties = federation(policy=ALLOWED)
    with pytest.raises(SettingError, match="l2 = 0 with epsilon = inf: no model may be best"):
        PrivateNewton(epsilon=math.inf, l2=0.0).fit(parties)
    assert not any(parties.guard(name).ledger.n_releases(name) for name in parties.names)


def test_the_outlook_counts_what_the_middle_and_the_auc_take() -> None:
    schema = Schema((Numeric("a", 0, 1),), Target("y", ("0", "1")))
    plain, robust = (PrivateNewton(robust=one).outlook(schema, 1000, 3).noise for one in (False, True))
    assert robust == pytest.approx(plain / math.sqrt(1 - MIDDLE))
    measured = PrivateNewton()
    measured.measures = True
    assert measured.outlook(schema, 1000, 3).noise == pytest.approx(plain / math.sqrt(1 - MEASURING))


def test_a_regularisation_that_was_set_is_told_of(federation: Make) -> None:
    told = PrivateNewton(l2=1.0).fit(federation()).facts_.notices[0]
    assert "has the regularisation that was set" in told
    assert "drawn" not in told


def test_more_budget_makes_no_worse_model_of_steep_rows() -> None:
    """The example of the README: with noise in M a steep model bent its own curvature down, and was lost."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, [20, 27]] / [40, 0.3] * 2 - 1
    for epsilon, least in ((1.0, 0.85), (4.0, 0.9), (10.0, 0.9)):
        for seed in range(8):
            parties = Federation.split(X, y, weights=[5, 3, 2], norm_bound=1.0, rng=Rng.seeded(seed))
            model = PrivateNewton(epsilon=epsilon).fit(parties)
            assert model.score(X, y) > least, (epsilon, seed)
            assert model.facts_.verdict is None, (epsilon, seed)
