"""Hypothesis transfer: what one record moves, the noise, the weights, the prior, and what is left without noise."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import tacit
from tacit import Federation, Policy, Rng, Schema, Table
from tacit.errors import DataError, NotAgreed, PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import local_model
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.method import NotFittedError
from tacit.methods.transfer import importance
from tacit.methods.transfer import target as transfer_target
from tacit.methods.transfer.method import HypothesisTransfer
from tacit.methods.transfer.statistic import Plan, Reference, describe, part, private_model, release
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed, Free, NotPrivate, Pure
from tacit.privacy.noise.grid import SphericalGrid

from ..conftest import assert_drawn_from, derived, make_data

ALLOWED = Policy(not_private=["hypothesis-transfer"])
PRIVATE = [
    {"epsilon": 1.0, "delta": 0},
    {"epsilon": 1.0},
    {"epsilon": 1.0, "delta": 0, "weights": "discriminator"},
]
OPEN = [{"epsilon": math.inf}, {"calibration": "paper"}]


def table(X: np.ndarray, y: np.ndarray, classes: int = 2, bound: float = 1.0) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=bound))


def sources(n: int = 300, classes: int = 2, d: int = 4, **settings_: Any) -> Federation:
    X, y = make_data(n, d, classes)
    return Federation.split(X, y, **{"weights": [3, 2, 1], "norm_bound": 1.0, "policy": ALLOWED} | settings_)


def own(classes: int = 2, d: int = 4, seed: int = 0) -> dict[str, Any]:
    X, y = make_data(300, d, classes, seed)
    return {"target": (X[:30], y[:30]), "unlabelled": (X[30:100], y[30:100]), "public": X[100:]}


def plan(
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    paper: bool = False,
    n_features: int = 2,
    n_classes: int = 2,
    radius: float = 1.0,
    constant: float = 1.0,
    **changes: Any,
) -> Plan:
    schema = Schema.of_arrays(n_features, list(range(n_classes)), norm_bound=radius)
    cohort = Cohort.of(schema, SumGroup.of({"a": 10}, quorum=1), colluders=None, constant=constant)
    promise = Promise(
        method="HypothesisTransfer", epsilon=epsilon, delta=delta, calibration="paper" if paper else "sound"
    )
    start = Plan(cohort=cohort, promise=promise, l2_mean=0.05, weights="tilt", weights_l2=0.05, labelled_fraction=0.5)
    return replace(start, **changes)


def printed(own_plan: Plan) -> Plan:
    return replace(own_plan, promise=replace(own_plan.promise, calibration="paper"))


def plan_of(model: HypothesisTransfer, parties: Federation) -> Plan:
    made: Plan = parties.begin(model).plan
    return made


# --- what one record moves -------------------------------------------------------------------------------------------

record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))
records = st.lists(record, min_size=2, max_size=8)
PUBLIC = Reference(rows=np.array([[0.9, 0.1], [0.2, 0.7], [0.1, 0.3]]))
AXES = Reference(rows=np.eye(2))


def neighbours(rows: list[Any], other: Any, classes: int = 2) -> list[Table]:
    """A table, and the same with the first record replaced."""
    both = ([rows[0], *rows[1:]], [other, *rows[1:]])
    return [table(np.array([r[:2] for r in some]), np.array([r[2] % classes for r in some]), classes) for some in both]


@given(rows=records, other=record, l2_mean=st.floats(1e-2, 2.0), classes=st.sampled_from([2, 3]))
@settings(max_examples=80, deadline=None)
def test_a_record_moves_the_model_by_no_more_than_the_noise_is_for(
    rows: list[Any], other: Any, l2_mean: float, classes: int
) -> None:
    own_plan, n = plan(l2_mean=l2_mean, n_classes=classes), len(rows)
    everyone = np.ones(n, dtype=bool)
    first, second = (private_model(own_plan, part(t, everyone), n) for t in neighbours(rows, other, classes))
    assert np.linalg.norm(first - second) <= own_plan.model_grid(n).total.sensitivity


@given(
    rows=records, other=record, weights=st.sampled_from(["tilt", "discriminator"]), nonnegative=st.booleans(),
    l2=st.floats(1e-2, 2.0), angle=st.floats(0, 7),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_a_record_moves_the_description_by_no_more_than_the_noise_is_for(
    rows: list[Any], other: Any, weights: str, nonnegative: bool, l2: float, angle: float
) -> None:
    own_plan, n = plan(weights=weights, weights_l2=l2, labelled_fraction=1e-9), len(rows)
    direction = Reference(rows=np.array([[math.cos(angle), math.sin(angle)]]))
    public = replace(PUBLIC if weights == "discriminator" else direction, nonnegative=nonnegative)
    everyone = np.ones(n, dtype=bool)
    first, second = (
        describe(own_plan, part(t, everyone, nonnegative=nonnegative), n, public) for t in neighbours(rows, other)
    )
    grid = own_plan.weights_grid(n + 1, public)  # one record more makes the model
    assert np.linalg.norm(first - second) <= grid.total.sensitivity


def test_the_mean_comes_as_far_as_claimed() -> None:
    """A bound that no pair of neighbours comes near would be noise for nothing."""
    for nonnegative, ends in ((False, ([1.0, 0.0], [-1.0, 0.0])), (True, ([1.0, 0.0], [0.0, 1.0]))):
        own_plan, public = plan(), replace(AXES, nonnegative=nonnegative)
        means = [
            describe(own_plan, part(table(np.array([x]), np.array([0])), np.array([True])), 1, public) for x in ends
        ]
        moved = np.linalg.norm(means[0] - means[1])
        assert moved == pytest.approx(own_plan.weights_grid(2, public).total.sensitivity, rel=1e-6)


@pytest.mark.parametrize("weights", ["tilt", "discriminator"])
@pytest.mark.parametrize("position", range(6))
def test_a_record_changes_one_of_the_two_halves(weights: str, position: int) -> None:
    """With the same split and the same noise, exactly one of the two releases differs."""
    X, y = make_data(6, 2, seed=3)
    changed = X.copy()
    changed[position] = [-0.8, 0.3]
    public = PUBLIC if weights == "discriminator" else AXES
    first, second = (
        release(table(rows, y), plan(weights=weights), public, rng=Rng.seeded(5)).value for rows in (X, changed)
    )
    same = {name: np.array_equal(first[name], second[name]) for name in ("model", "weights")}
    assert sorted(same.values()) == [False, True]


def test_halves_are_disjoint_and_complete() -> None:
    own_plan = plan(labelled_fraction=0.3)
    assert own_plan.halves(10) == (3, 7)
    assert own_plan.halves(2) == (1, 1)
    assert plan(labelled_fraction=0.999).halves(5) == (4, 1)
    assert plan(labelled_fraction=1.0, weights="none").halves(5) == (5, 0)
    seen = table(np.arange(12.0).reshape(6, 2) / 20, np.array([0, 1] * 3))
    member = np.array([True, False, True, True, False, False])
    one = np.concatenate([X for X, _ in part(seen, member)()])
    other = np.concatenate([X for X, _ in part(seen, ~member)()])
    assert len(one) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([one, other]).ravel()), np.arange(12.0) / 20)


def test_the_split_does_not_follow_the_order_of_the_table() -> None:
    """Each record makes the model about as often as any other, wherever it stands."""
    n, runs = 8, 400
    y = np.arange(n) % 2
    counts = np.zeros(n)
    quiet, axes = plan(epsilon=math.inf, n_features=n), Reference(rows=np.eye(n))
    for seed in range(runs):
        reply = release(table(np.eye(n), y), quiet, axes, rng=Rng.seeded(seed))
        grid = quiet.weights_grid(n, axes)
        counts += grid.from_grid(reply.value["weights"]) > 0.1  # type: ignore[arg-type]
    assert np.abs(counts / runs - 0.5).max() < 0.12
    assert counts.sum() == n / 2 * runs


# --- the noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["model", "weights"])
@pytest.mark.parametrize("weights", ["tilt", "discriminator"])
def test_pure_noise_is_spherical_laplace_of_the_claimed_scale(key: str, weights: str) -> None:
    X, y = np.array([[0.5, 0.2]] * 4), np.array([1] * 4)  # all alike: the split does not matter
    public = PUBLIC if weights == "discriminator" else AXES
    loud, quiet = plan(epsilon=0.8, weights=weights), plan(epsilon=math.inf, weights=weights)
    grids = [p.model_grid(2) if key == "model" else p.weights_grid(4, public) for p in (loud, quiet)]
    centre = grids[1].from_grid(release(table(X, y), quiet, public, rng=Rng.seeded(0)).value[key])  # type: ignore[union-attr, arg-type]
    rng = Rng.seeded(1)
    noise = np.array(
        [
            grids[0].from_grid(release(table(X, y), loud, public, rng=rng).value[key]) - centre  # type: ignore[union-attr, arg-type]
            for _ in range(120)
        ]
    )
    scale = grids[0].total.sensitivity / 0.8
    assert_drawn_from(stats.gamma(noise.shape[1], scale=scale), np.linalg.norm(noise, axis=1))


def test_gaussian_noise_has_the_claimed_spread() -> None:
    X, y = np.array([[0.5, 0.2]] * 4), np.array([1] * 4)
    loud, quiet = plan(epsilon=0.8, delta=1e-5), plan(epsilon=math.inf)
    rng = Rng.seeded(2)

    def model(own_plan: Plan) -> np.ndarray:
        reply = release(table(X, y), own_plan, AXES, rng=rng)
        return own_plan.model_grid(2).from_grid(reply.value["model"])  # type: ignore[union-attr, arg-type]

    centre = model(quiet)
    noise = [model(loud) - centre for _ in range(75)]
    assert_drawn_from(stats.norm(0, loud.model_grid(2).noise_std), np.array(noise))


def test_paper_scales_are_the_printed_ones() -> None:
    """Chaudhuri et al.: 2 / (n lambda); Wang, algorithm 5: sqrt d / (n lambda). Both whatever the norm of a row."""
    paper = plan(paper=True, weights="discriminator", l2_mean=0.005, weights_l2=0.001, radius=3.0)
    assert paper.model_grid(10).total.sensitivity == pytest.approx(2 / (10 * 0.005))
    assert paper.weights_grid(20, PUBLIC).total.sensitivity == pytest.approx(math.sqrt(2) / (10 * 0.001))
    made = plan_of(HypothesisTransfer(calibration="paper", **own()), sources())
    assert (made.weights, made.l2_mean, made.weights_l2) == ("discriminator", 0.005, 0.001)
    assert isinstance(made.model_grid(5), SphericalGrid)


def test_paper_noise_is_too_small_for_rows_that_are_longer_than_it_assumes() -> None:
    """A record of norm 3, which the schema allows, moves the model by more than the printed sensitivity."""
    long = plan(radius=3.0, constant=0.0, l2_mean=20.0, n_features=1)
    everyone = np.array([True])
    models = [
        private_model(long, part(table(np.array([[3.0]]), np.array([label]), bound=3.0), everyone), 1)
        for label in (0, 1)
    ]
    moved = np.linalg.norm(models[0] - models[1])
    assert moved > printed(long).model_grid(1).total.sensitivity
    assert moved <= long.model_grid(1).total.sensitivity


def test_paper_noise_is_too_small_for_rows_with_negative_entries() -> None:
    """DPIW's sqrt d holds in [0, 1]^d. Two rows of norm 1, both against the rest of the table, move it further."""
    own_plan, n = plan(weights="discriminator", weights_l2=0.001), 1000
    public = Reference(rows=np.array([[1.0, 0.0]]))
    rest = [[-1.0, 0.0]] * (n - 1)
    a, b = 0.4, math.sqrt(1 - 0.4**2) - 1e-9
    betas = [
        describe(own_plan, part(table(np.array([x, *rest]), np.zeros(n, int)), np.ones(n, bool)), n, public)
        for x in ([a, b], [a, -b])
    ]
    moved = np.linalg.norm(betas[0] - betas[1])
    assert moved > printed(own_plan).weights_grid(2 * n, public).total.sensitivity
    assert moved <= own_plan.weights_grid(2 * n, public).total.sensitivity


# --- importance weights ----------------------------------------------------------------------------------------------


def test_tilted_public_rows_have_the_mean_that_was_asked_for() -> None:
    chance = np.random.default_rng(0)
    Z = chance.normal(size=(200, 3))
    mean = np.array([0.4, -0.2, 0.1])
    logs = importance.tilt(Z, mean, 1e-12)
    assert np.exp(logs).sum() == pytest.approx(1)
    np.testing.assert_allclose(np.exp(logs) @ Z, mean, atol=1e-8)


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0])
def test_a_mean_that_no_weights_have_is_met_as_far_as_the_ridge_allows(ridge: float) -> None:
    chance = np.random.default_rng(1)
    Z = chance.uniform(-1, 1, size=(50, 2))
    far = np.array([3.0, -2.0])
    logs = importance.tilt(Z, far, ridge)
    beta, *_ = np.linalg.lstsq(np.column_stack([Z, np.ones(50)]), logs, rcond=None)
    np.testing.assert_allclose(np.exp(logs) @ Z, far - ridge * beta[:2], atol=1e-6)


def test_the_discriminator_is_the_penalised_fit_with_weights() -> None:
    chance = np.random.default_rng(2)
    X, P = chance.normal(size=(20, 3)) + 0.3, chance.normal(size=(50, 3))
    found = importance.discriminate(lambda: [(X, np.zeros(20, np.int64))], 20, P, 0.1).theta
    plain = LogisticRegression(C=1 / 0.1, fit_intercept=False, tol=1e-12, max_iter=10_000)
    plain.fit(np.concatenate([X, P]), [1] * 20 + [0] * 50, sample_weight=[1 / 20] * 20 + [1 / 50] * 50)
    np.testing.assert_allclose(found, plain.coef_[0], atol=1e-6)


@given(st.integers(1, 5), st.integers(2, 40), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_hypothesis_weights_are_a_distribution_and_the_nearest_mixture(K: int, n: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    logs = chance.normal(size=(K + 1, n)) * 2
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    weights = importance.mixture_weights(logs[0], logs[1:])
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)

    def divergence(w: np.ndarray) -> float:
        return float(np.exp(logs[0]) @ (logs[0] - np.log(w @ np.exp(logs[1:]))))

    for _ in range(20):
        assert divergence(weights) <= divergence(chance.dirichlet(np.ones(K))) + 1e-5


def test_an_obvious_source_and_an_obvious_mixture_are_recovered() -> None:
    chance = np.random.default_rng(3)
    logs = np.log(chance.dirichlet(np.ones(40) * 0.3, size=3) + 1e-12)
    np.testing.assert_allclose(importance.mixture_weights(logs[1], logs), [0, 1, 0], atol=1e-2)
    mixed = np.log(np.array([0.2, 0.0, 0.8]) @ np.exp(logs))
    np.testing.assert_allclose(importance.mixture_weights(mixed, logs), [0.2, 0, 0.8], atol=1e-2)


@pytest.mark.parametrize("weights", ["tilt", "discriminator"])
def test_the_source_that_is_like_the_target_gets_the_weight(weights: str) -> None:
    chance = np.random.default_rng(4)
    centres = {"a": [0.6, 0, 0], "b": [0, 0.6, 0], "c": [0, 0, 0.6]}

    def rows(centre: list[float], n: int) -> np.ndarray:
        return np.array(centre) + 0.1 * chance.normal(size=(n, 3))

    tables = {name: table(rows(c, 400), np.arange(400) % 2) for name, c in centres.items()}
    parties = Federation.from_tables(tables, policy=ALLOWED)
    public = np.concatenate([rows(c, 100) for c in centres.values()])
    settings_ = {"target": (rows(centres["b"], 20), np.arange(20) % 2), "public": public, "weights": weights}
    for epsilon in (math.inf, 20.0):
        found = HypothesisTransfer(epsilon=epsilon, **settings_).fit(parties).source_weights_
        assert found["b"] > 0.8
        assert sum(found.values()) == pytest.approx(1)


# --- prior and fits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_the_posterior_mode_is_the_penalised_fit_with_a_shifted_prior(classes: int, constant: float) -> None:
    X, y = make_data(40, 3, classes, seed=5)
    loss = Loss(n_features=3, n_classes=classes, constant=constant)
    chance = np.random.default_rng(6)
    prior = transfer_target.Prior(mean=chance.normal(size=loss.shape), std=np.exp(chance.normal(size=loss.width)))
    found = transfer_target.posterior_mode(X, y.astype(np.int64), prior, loss)

    def objective(flat: np.ndarray) -> float:
        theta = flat.reshape(loss.shape)
        data = loss.sums(lambda: [(X, y.astype(np.int64))], theta, curvature=False).loss
        return data + 0.5 * float((((theta - prior.mean) / prior.std) ** 2).sum())

    direct = optimize.minimize(objective, prior.mean.ravel(), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.ravel(), direct.x, atol=1e-5)
    assert objective(found.ravel()) <= direct.fun + 1e-10


def test_a_prior_centred_at_nothing_is_the_plain_penalty() -> None:
    X, y = make_data(60, 3, seed=7)
    loss = Loss(n_features=3)
    prior = transfer_target.Prior(mean=np.zeros(4), std=np.full(4, 1 / math.sqrt(0.7)))
    found = transfer_target.posterior_mode(X, y.astype(np.int64), prior, loss)
    problem = Problem(n_features=3, l2=0.7, intercept="feature")
    np.testing.assert_allclose(found, fit(lambda: [(X, y.astype(np.int64))], problem=problem).theta, atol=1e-8)


def test_the_prior_is_the_printed_one_with_a_floor() -> None:
    models = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    w = np.array([0.5, 0.25, 0.25])
    prior = transfer_target.informative_prior(models, w, None, 0.1)
    np.testing.assert_allclose(prior.mean, [1.75, 0.0])
    variance = 3 / 2 * (0.5 * 0.75**2 + 0.25 * 1.25**2 + 0.25 * 0.25**2)
    np.testing.assert_allclose(prior.std, [math.sqrt(variance), 0.1])
    noisy = transfer_target.informative_prior(models, w, np.array([2.0, 4.0, 4.0]), 0.1)
    np.testing.assert_allclose(noisy.std**2, 0.01 + 0.25 * 4 + 0.0625 * 16 * 2)
    one = transfer_target.informative_prior(models[:1], np.ones(1), np.array([0.2]), 0.1)  # (4.2) would be 0/0
    np.testing.assert_allclose(one.std, math.hypot(0.1, 0.2))
    many = transfer_target.informative_prior(models.reshape(3, 2, 1), w, None, 0.1)
    assert many.std.shape == (1,)


def test_sources_drowned_in_noise_leave_the_weak_fit() -> None:
    data = own()
    weak = HypothesisTransfer(strategy="weak", **data).fit(sources())
    drowned = HypothesisTransfer(epsilon=1e-5, l2=1.0, strategy="average", **data).fit(sources())
    np.testing.assert_allclose(drowned.coef_, weak.coef_, atol=1e-2)


@pytest.mark.parametrize("classes", [2, 3])
def test_soft_labels_are_the_fit_with_fractional_records(classes: int) -> None:
    X, y = make_data(30, 3, classes, seed=8)
    loss = Loss(n_features=3, n_classes=classes)
    chance = np.random.default_rng(9)
    rows, shares = chance.normal(size=(20, 3)), chance.dirichlet(np.ones(classes), size=20)
    found = transfer_target.soft_label_fit((X, y.astype(np.int64)), rows, shares, 0.8, loss)
    everything = np.column_stack([np.concatenate([X, *[rows] * classes]), np.ones(30 + 20 * classes)])
    labels = np.concatenate([y, np.repeat(np.arange(classes), 20)])
    parts = np.concatenate([np.ones(30), shares.T.ravel()])
    plain = LogisticRegression(C=1 / 0.8, fit_intercept=False, tol=1e-12, max_iter=10_000)
    plain.fit(everything, labels, sample_weight=parts)
    np.testing.assert_allclose(np.atleast_2d(found), plain.coef_, atol=1e-5)


# --- without noise ---------------------------------------------------------------------------------------------------


def plain_models(parties: Federation, own_plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """The sources' models, fitted outside, on the split that the seeded generator makes."""
    models = {}
    for name, n in parties.sizes.items():
        n_labelled = own_plan.halves(n)[0]
        chosen = Rng.seeded(seed).child(f"party {name}").permutation(n)[:n_labelled]
        X, y = parties.guard(name).table.arrays()
        problem = Problem(
            n_features=4, n_classes=own_plan.cohort.n_classes, l2=n_labelled * own_plan.l2_mean, intercept="feature"
        )
        models[name] = fit(lambda X=X[chosen], y=y[chosen]: [(X, y)], problem=problem).theta  # type: ignore[misc]
    return models


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strategy", ["transfer", "average", "source"])
def test_without_noise_it_is_made_of_plain_fits(classes: int, strategy: str) -> None:
    data = own(classes)
    parties = sources(classes=classes, rng=Rng.seeded(4))
    model = HypothesisTransfer(epsilon=math.inf, strategy=strategy, l2=2.0, **data)  # type: ignore[arg-type]
    own_plan = plan_of(model, parties)
    model.fit(parties)
    expected = plain_models(parties, own_plan, seed=4)
    for name, theta in expected.items():
        np.testing.assert_allclose(model.source_models_[name], theta, atol=1e-8)
    learned = np.column_stack([model.coef_, model.intercept_])
    stacked = np.array(list(expected.values()))
    X, y = (np.asarray(part_) for part_ in data["target"])
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    if strategy == "source":
        best = transfer_target.best_model(stacked, X, y, own_plan.loss)
        np.testing.assert_allclose(learned, np.atleast_2d(stacked[best]), atol=1e-8)
        return
    w = np.array(list(model.source_weights_.values()))
    prior = transfer_target.informative_prior(stacked, w, None, model.prior_floor).with_ridge(1.0)
    mode = transfer_target.posterior_mode(X, y.astype(np.int64), prior, own_plan.loss)
    np.testing.assert_allclose(learned, np.atleast_2d(mode), atol=1e-8)


def test_without_noise_the_descriptions_are_plain_means() -> None:
    parties = sources(rng=Rng.seeded(6))
    data = own()
    model = HypothesisTransfer(epsilon=math.inf, **data)
    run = parties.begin(model)
    own_plan, B = run.plan, importance.principal_directions(data["public"], 3)
    reference = Reference(rows=B)
    replies = run.ask(release, reference)
    for name, n in parties.sizes.items():
        rest = Rng.seeded(6).child(f"party {name}").permutation(n)[own_plan.halves(n)[0] :]
        X = parties.guard(name).table.arrays()[0]
        found = own_plan.weights_grid(n, reference).from_grid(replies[name]["weights"])  # type: ignore[arg-type]
        np.testing.assert_allclose(found, (X[rest] @ B.T).mean(axis=0), atol=1e-12)


def test_weak_and_target_are_plain_fits_and_cost_nothing() -> None:
    data = own()
    parties = sources()
    X, y = (
        np.concatenate([data["target"][0], data["unlabelled"][0]]),
        np.concatenate([data["target"][1], data["unlabelled"][1]]),
    )
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    for strategy, n in (("weak", 30), ("target", 100)):
        model = HypothesisTransfer(strategy=strategy, target_l2=0.5, **data).fit(parties)  # type: ignore[arg-type]
        with_constant = np.column_stack([X[:n], np.ones(n)])
        plain = LogisticRegression(C=2, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(with_constant, y[:n])
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), plain.coef_[0], atol=1e-6)
        assert model.event() == Free()
        assert model.n_rounds_ == 0
        assert model.guarantee_.epsilon < 1e-9
    assert parties.guard("party1").ledger.n_releases("party1") == 0


# --- the contract ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings_", [*PRIVATE, *OPEN])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strategy", ["transfer", "average", "source", "soft"])
def test_it_learns_and_the_ledgers_were_charged_its_event(
    settings_: dict[str, Any], classes: int, strategy: str
) -> None:
    parties = sources(classes=classes)
    model = HypothesisTransfer(**{"strategy": strategy} | settings_ | own(classes)).fit(parties)
    assert model.coef_.shape == (1 if classes == 2 else classes, 4)
    assert np.isfinite(model.coef_).all()
    assert model.n_rounds_ == 1
    for party in parties.names:
        charged = parties.guard(party).ledger.epsilon(party, delta=1e-6)
        expected = epsilon_of(Composed(events=(model.event(),)), 1e-6)
        assert charged == expected or charged == pytest.approx(expected, rel=1e-9)
        assert parties.guard(party).ledger.n_releases(party) == 1


def test_events_are_those_of_one_release_not_of_two() -> None:
    for delta, expected in ((0.0, Pure(epsilon=0.7)), (1e-6, None), (None, None)):
        model = HypothesisTransfer(epsilon=0.7, delta=delta, **own())
        parties = sources()
        (reply,) = {str(given_.event) for given_ in model_releases(model, parties)}
        assert reply == str(model.event())
        assert expected is None or model.event() == expected
        assert model.guarantee.epsilon == 0.7
    assert isinstance(HypothesisTransfer(calibration="paper").event(), NotPrivate)
    assert isinstance(HypothesisTransfer(epsilon=math.inf).event(), NotPrivate)


def model_releases(model: HypothesisTransfer, parties: Federation) -> list[Any]:
    run, reference = parties.begin(model), Reference(rows=np.eye(4))
    return [release(parties.guard(name).table, run.plan, reference, rng=Rng.seeded(1)) for name in parties.names]


@pytest.mark.parametrize("settings_", OPEN)
def test_what_is_not_private_is_refused_by_the_default_policy(settings_: dict[str, Any]) -> None:
    with pytest.raises(PolicyRefusal, match="no epsilon bounds"):
        HypothesisTransfer(**settings_ | own()).fit(sources(policy=Policy()))
    assert HypothesisTransfer(**own()).fit(sources(policy=Policy())).facts_.is_private


def test_one_source_is_enough() -> None:
    for strategy in ("transfer", "average", "soft", "source"):
        for calibration in ("sound", "paper"):
            settings_ = {"strategy": strategy, "calibration": calibration} | own()
            model = HypothesisTransfer(**settings_).fit(sources(weights=[1]))
            assert np.isfinite(model.coef_).all()


def test_no_intercept_is_asked_for() -> None:
    model = HypothesisTransfer(fit_intercept=False, **own()).fit(sources())
    assert model.intercept_.tolist() == [0.0]


def test_without_labels_the_prior_itself_is_the_model() -> None:
    parties = sources(rng=Rng.seeded(1))
    model = HypothesisTransfer(epsilon=math.inf, strategy="average").fit(parties)
    assert len(model.source_weights_) == 3
    mean = np.mean(list(model.source_models_.values()), axis=0)
    assert np.all(np.abs(np.append(model.coef_, model.intercept_)) < np.abs(mean))
    assert all("NOT protected" not in notice for notice in model.facts_.notices)
    only_rows = HypothesisTransfer(public=own()["public"], unlabelled=own()["unlabelled"][0]).fit(parties)
    assert np.isfinite(only_rows.coef_).all()


def test_it_comes_back_from_its_file_without_the_rows(tmp_path: Path) -> None:
    data = own()
    model = HypothesisTransfer(**data).fit(sources())
    model.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    loaded = tacit.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.get_params() == model.get_params() | {"target": None, "unlabelled": None, "public": None}
    assert loaded.report.html() == model.report.html()
    shown = (text, model.report.text(), repr(model), model._repr_html_(), str(clone(model)))
    values = [repr(float(v))[:8] for v in data["target"][0].ravel()[:20]]
    assert not any(value in seen for value in values for seen in shown)
    assert "ndarray of shape (30, 4)" in repr(model)
    assert any("100 rows (30 labelled) are NOT protected" in notice for notice in model.facts_.notices)
    with pytest.raises(NotFittedError, match="call fit"):
        clone(model).predict(data["public"])


def test_rows_may_come_as_tables_frames_and_files(tmp_path: Path) -> None:
    data = own()
    parties = sources()
    X, y = data["target"]
    frame = pd.DataFrame(X, columns=list(parties.schema.feature_names))
    labelled = frame.assign(y=y)
    frame.to_csv(tmp_path / "public.csv", index=False)
    labelled.to_csv(tmp_path / "target.csv", index=False)
    ways = [
        (data["target"], X),
        (labelled, frame),
        (Table.from_frame(labelled, parties.schema), Table.from_frame(labelled, parties.schema)),
        (str(tmp_path / "target.csv"), tmp_path / "public.csv"),
    ]
    found = []
    for target, public in ways:
        quiet = sources(rng=Rng.seeded(2))
        found.append(HypothesisTransfer(epsilon=math.inf, target=target, public=public).fit(quiet).coef_)
    for coef in found[1:]:
        np.testing.assert_allclose(coef, found[0], atol=1e-9)


LIES: list[tuple[dict[str, Any], Reference, str]] = [
    ({}, Reference(rows=2 * np.eye(4)), "not orthonormal"),
    ({}, Reference(rows=np.eye(3)), "do not fit the study's columns"),
    ({}, Reference(rows=np.full((1, 4), np.nan)), "not finite"),
    ({}, Reference(rows=np.zeros((0, 4))), "do not fit the study's columns"),
    ({}, Reference(), "do not fit the study's columns"),
    ({"weights": "discriminator"}, Reference(rows=np.zeros((0, 4))), "do not fit the study's columns"),
    ({"weights": "discriminator"}, Reference(rows=-np.eye(4), nonnegative=True), "calls public rows not negative"),
    ({"calibration": "paper"}, Reference(rows=np.eye(4), nonnegative=True), "calls public rows not negative"),
    ({"strategy": "average"}, Reference(rows=np.eye(4)), "needs none"),
    ({"strategy": "soft"}, Reference(nonnegative=True), "needs none"),
]


@pytest.mark.parametrize(("settings_", "lie", "message"), LIES)
def test_a_reference_that_does_not_fit_the_study_is_refused(
    settings_: dict[str, Any], lie: Reference, message: str
) -> None:
    parties = sources()
    with pytest.raises(PolicyRefusal, match=message):
        parties.begin(HypothesisTransfer(**own() | settings_)).ask(release, lie)
    assert parties.guard("party1").ledger.n_releases("party1") == 0


@pytest.mark.parametrize("settings_", [*PRIVATE, *OPEN, {"strategy": "average"}, {"strategy": "weak"}])
def test_a_source_derives_the_plan_and_answers_once(settings_: dict[str, Any]) -> None:
    """It has no rows of the analyst's: only what the study says."""
    parties = sources()
    model = HypothesisTransfer(**own() | settings_)
    run = parties.begin(model)
    terms = derived(HypothesisTransfer(**settings_), run)
    assert terms.plan == run.plan
    alone = settings_.get("strategy") == "weak"
    assert [(ask.step, ask.times) for ask in terms.course] == ([] if alone else [(release, 1)])
    reference = Reference() if run.plan.weights == "none" else Reference(rows=np.eye(4))
    if alone:
        with pytest.raises(NotAgreed, match="never asks step 'hypothesis-transfer/release'"):
            run.ask(release, reference)
        return
    run.ask(release, reference)
    with pytest.raises(NotAgreed, match="asked 1 times in a run"):
        run.ask(release, reference)
    with pytest.raises(NotAgreed, match="never asks step 'averaging/model'"):
        run.ask(local_model)
    assert parties.guard("party1").ledger.n_releases("party1") == 1


def test_the_default_regularisation_is_a_rule_of_public_numbers() -> None:
    X, y = make_data(300, 4, seed=9)
    other = Federation.split(X, y, weights=[3, 2, 1], norm_bound=1.0)
    rules = [plan_of(HypothesisTransfer(**own()), parties) for parties in (sources(), other)]
    assert rules[0] == rules[1]
    stricter = plan_of(HypothesisTransfer(epsilon=0.1, **own()), sources())
    assert stricter.l2_mean > rules[0].l2_mean
    assert stricter.weights_l2 > rules[0].weights_l2


@pytest.mark.parametrize("weights", ["tilt", "discriminator"])
def test_rows_count_as_not_negative_only_if_the_public_ones_are(weights: str) -> None:
    public = own()["public"]
    seen = []
    for settings_ in ({}, {"public": np.abs(public)}, {"public": np.abs(public), "calibration": "paper"}):
        model = HypothesisTransfer(**own() | {"weights": weights} | settings_)
        channel = sources().begin(model)
        seen.append(model._reference(channel.plan, model._own_data(channel.schema)).nonnegative)
    assert seen == [False, True, False]


X0, Y0 = make_data(20, 4)
BAD_DATA = [
    ({"public": np.zeros((0, 4))}, r"public has shape \(0, 4\); give at least one row"),
    ({"public": np.zeros((5, 3))}, r"public has shape \(5, 3\).*the federation's 4 columns"),
    ({"public": np.full((5, 4), np.nan)}, "public has 20 values that are missing or infinite"),
    ({"public": [["a", "b", "c", "d"]]}, "public is no matrix of numbers"),
    ({"public": pd.DataFrame(columns=["x0", "x1", "x2", "x3"])}, "public has no rows"),
    ({"public": table(np.zeros((3, 3)), np.array([0, 1, 1]))}, "public is a table of another schema"),
    ({"public": None}, "public = None: strategy 'transfer' needs public rows"),
    ({"target": (X0, np.zeros(20, int))}, "target has 20 labelled records of one class only"),
    ({"target": (X0, Y0[:5])}, r"target has 20 rows and labels of shape \(5,\)"),
    ({"target": X0}, "target has no labels"),
    ({"target": (X0[:, :2], Y0)}, r"target has shape \(20, 2\)"),
    ({"target": None, "strategy": "weak"}, "target = None: strategy 'weak' needs"),
    ({"target": None, "strategy": "source"}, "target = None: strategy 'source' needs"),
    ({"unlabelled": None, "strategy": "target"}, "strategy 'target' needs target, and unlabelled"),
    ({"unlabelled": X0, "strategy": "target"}, "unlabelled has no labels"),
    ({"unlabelled": None, "public": None, "strategy": "soft"}, "unlabelled = None: strategy 'soft' needs"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DATA)
def test_data_that_do_not_fit_are_named_before_a_source_is_asked(data: dict[str, Any], message: str) -> None:
    parties = sources()
    with pytest.raises(SettingError, match=message):
        HypothesisTransfer(**own() | data).fit(parties)
    assert parties.guard("party1").ledger.n_releases("party1") == 0


def test_other_columns_in_frames_and_files_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x0": [0.1], "x1": [0.2], "other": [0.3]})
    frame.to_csv(tmp_path / "public.csv", index=False)
    for public in (frame, str(tmp_path / "public.csv")):
        with pytest.raises(DataError, match=r"columns \['x2', 'x3'\] are missing"):
            HypothesisTransfer(**own() | {"public": public}).fit(sources())
    with pytest.raises(DataError, match=r"labels|classes|class"):
        HypothesisTransfer(**own() | {"target": (X0, np.arange(20))}).fit(sources())


def test_a_source_with_one_record_cannot_be_split() -> None:
    lonely = sources(n=40, weights=[38, 1, 1])
    assert min(lonely.sizes.values()) == 1
    with pytest.raises(SettingError, match="has one record, and strategy 'transfer' needs two"):
        HypothesisTransfer(**own()).fit(lonely)
    assert HypothesisTransfer(strategy="average", labelled_fraction=1.0, **own()).fit(lonely).n_rounds_ == 1


def test_a_missing_bound_is_an_error_and_never_read_from_the_data() -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row"):
        HypothesisTransfer(**own()).fit(sources(norm_bound=None))


BAD_SETTINGS = [
    {"l2": 0.0}, {"weights_l2": 0.0}, {"weights_l2": math.inf}, {"target_l2": 0}, {"target_l2": None},
    {"prior_floor": 0.0}, {"prior_floor": True}, {"labelled_fraction": 0.0}, {"labelled_fraction": 1.0},
    {"labelled_fraction": "half"}, {"n_directions": 0}, {"n_directions": 2.5}, {"strategy": "best"},
    {"weights": "none"}, {"calibration": "loud"}, {"delta": 1.0}, {"epsilon": 0.0},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(settings_: dict[str, Any]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        HypothesisTransfer(**own() | settings_).fit(sources())


def test_worst_neighbours_differ_in_one_record_and_can_be_run() -> None:
    for pair in HypothesisTransfer.worst_neighbours():
        changed = 0
        for name in pair.first:
            (X, y), (X2, y2) = pair.first[name].arrays(), pair.second[name].arrays()
            changed += int(np.sum(np.any(X != X2, axis=1) | (y != y2)))
        assert changed == 1
        model = HypothesisTransfer(**{"epsilon": 1.0, "delta": 0} | dict(pair.settings))
        assert model.fit(Federation.from_tables(pair.first)).n_rounds_ == 1
        assert model.at_noise(0.5).epsilon == 2.0
