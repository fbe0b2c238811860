"""Averaging: the sensitivity it claims, the noise it adds, and what is left when the noise is taken away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression

from tacit import Averaging, Federation, Policy, Rng, Schema, Table
from tacit.errors import NotAgreed, PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import Plan, local_model, local_models
from tacit.methods.cohort import Promise
from tacit.models.solver import fit

from ..conftest import EVERYTHING, assert_drawn_from, cohort_of, derived, make_data

Make = Callable[..., Federation]


def plan(*sizes: int, l2_mean: float = 0.05, weights: str = "size", classes: int = 2, delta: float = 0) -> Plan:
    return Plan(
        cohort=cohort_of(*sizes, classes=classes),
        promise=Promise(method="Averaging", epsilon=1.0, delta=delta),
        l2_mean=l2_mean,
        weights=weights,
    )


def table(X: np.ndarray, y: np.ndarray, classes: int = 2) -> Table:
    return Table.from_arrays(X, y, Schema.of_arrays(X.shape[1], list(range(classes)), norm_bound=1.0))


record = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2))


@given(
    records=st.lists(record, min_size=2, max_size=8),
    other=record,
    l2_mean=st.floats(1e-3, 2.0),
    classes=st.sampled_from([2, 3]),
    weights=st.sampled_from(["size", "equal"]),
)
@settings(max_examples=150, deadline=None)
def test_replacing_a_record_moves_the_addend_by_no_more_than_the_sensitivity(
    records: list[tuple[float, float, int]], other: tuple[float, float, int], l2_mean: float, classes: int, weights: str
) -> None:
    n = len(records)
    own = plan(n, 10, 10, l2_mean=l2_mean, classes=classes, weights=weights)
    addends = []
    for first in (records[0], other):
        rows = [first, *records[1:]]
        X = np.array([row[:2] for row in rows])
        y = np.array([row[2] % classes for row in rows])
        solution = fit(table(X, y, classes).blocks, problem=own.problem(n))
        addends.append(own.weight(n) * solution.theta)
    assert np.linalg.norm(addends[0] - addends[1]) <= own.sensitivity


@pytest.mark.parametrize("l2_mean", [0.3, 1.0, 3.0])
def test_the_sensitivity_is_nearly_reached_by_the_worst_neighbours(l2_mean: float) -> None:
    """A bound that no pair of neighbours comes near would be noise for nothing."""
    own = plan(1, l2_mean=l2_mean)
    X = np.array([[1.0, 0.0]])
    thetas = [fit(table(X, np.array([label])).blocks, problem=own.problem(1)).theta for label in (0, 1)]
    assert np.linalg.norm(thetas[0] - thetas[1]) >= 0.4 * own.sensitivity


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", ["size", "equal"])
def test_without_noise_it_is_the_average_of_the_plain_fits(federation: Make, classes: int, weights: str) -> None:
    parties = federation(classes=classes)
    model = Averaging(epsilon=math.inf, l2=3.0, weights=weights).fit(parties)
    sizes = parties.sizes
    n = sum(sizes.values())
    expected = np.zeros(())
    for name, size in sizes.items():
        own = parties.terms(model).plan
        solution = fit(parties.guard(name).table.blocks, problem=own.problem(size))
        share = size / n if weights == "size" else 1 / len(sizes)
        expected = expected + share * np.atleast_2d(solution.theta)
    np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), expected, atol=1e-8)


def test_one_party_without_noise_is_the_plain_fit() -> None:
    X, y = make_data(200, 3)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    parties = Federation.split(X, y, n_parties=1, norm_bound=1.0, policy=EVERYTHING)
    model = Averaging(epsilon=math.inf, l2=0.7).fit(parties)
    with_constant = np.column_stack([X, np.ones(len(X))])
    plain = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-14, max_iter=10_000).fit(with_constant, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), plain.coef_[0], atol=1e-6)
    exact = fit(lambda: [(X, y.astype(np.int64))], problem=parties.terms(model).plan.problem(200))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), exact.theta, atol=1e-8)


def noise_of(parties: Federation, model: Averaging, runs: int) -> np.ndarray:
    quiet = Averaging(**model.get_params() | {"epsilon": math.inf, "l2": model.l2}).fit(parties)
    centre = np.append(quiet.coef_, quiet.intercept_)
    noise = []
    for _ in range(runs):
        model.fit(parties)
        noise.append(np.append(model.coef_, model.intercept_) - centre)
    return np.array(noise)


def test_pure_noise_is_spherical_laplace_of_the_claimed_scale(federation: Make) -> None:
    """With all parties honest and none colluding, the radius is Gamma(d, S/epsilon) and the direction uniform."""
    parties = federation(rng=Rng.seeded(11))
    model = Averaging(epsilon=0.8, delta=0, l2=5.0, colluders=0)
    noise = noise_of(parties, model, 120)
    radii = np.linalg.norm(noise, axis=1)
    scale = parties.terms(model).plan.grid.noise_scale  # type: ignore[attr-defined]
    assert scale == pytest.approx(parties.terms(model).plan.sensitivity / 0.8, rel=0.01)
    assert_drawn_from(stats.gamma(5, scale=scale), radii)
    assert_drawn_from(stats.beta(2, 2, loc=-1, scale=2), noise[:, 0] / radii)


def test_gaussian_noise_has_the_claimed_spread(federation: Make) -> None:
    parties = federation(rng=Rng.seeded(12))
    model = Averaging(epsilon=0.8, delta=1e-5, l2=5.0, colluders=0)
    noise = noise_of(parties, model, 60)
    std = parties.terms(model).plan.grid.noise_std
    assert_drawn_from(stats.norm(0, std), noise)


def test_colluders_raise_the_noise_so_that_the_rest_suffices(federation: Make) -> None:
    parties = federation()
    quiet, loud = (parties.terms(Averaging(epsilon=1.0, l2=5.0, colluders=t)).plan.grid.noise_std for t in (0, 2))
    assert loud == pytest.approx(quiet * math.sqrt(3), rel=0.01)
    assert parties.terms(Averaging(epsilon=1.0)).plan.cohort.colluders == 1
    assert federation(weights=[1]).terms(Averaging(epsilon=1.0)).plan.cohort.colluders == 0
    with pytest.raises(SettingError, match="colluders = 3 among 3 parties leaves nobody honest"):
        Averaging(epsilon=1.0, colluders=3).fit(parties)


@pytest.mark.parametrize("weights", [[1, 2, 3], [1, 1, 1]], ids=["one smallest party", "three of equal size"])
def test_paper_noise_is_iid_laplace_of_the_printed_scale(federation: Make, weights: list[int]) -> None:
    """The document has one smallest party; where several are, their noise together is that of one."""
    parties = federation(rng=Rng.seeded(13), weights=weights)
    n, smallest = sum(parties.sizes.values()), min(parties.sizes.values())
    model = Averaging(epsilon=0.5, l2=6.0, calibration="paper")
    noise = noise_of(parties, model, 80)
    scale = 2 / (smallest * 0.5 * (6.0 / n / 2))  # 2 / (n_min epsilon lambda), lambda = l2 / (2 n)
    assert_drawn_from(stats.laplace(0, scale), noise)
    assert parties.terms(model).plan.weights == "equal"


def test_a_crowd_is_served_as_each_party_by_itself() -> None:
    X, y = make_data(90, 3, seed=5)
    parties = Federation.split(X, y, weights=[1, 2, 3, 4, 5], norm_bound=1.0, policy=EVERYTHING)
    own = parties.terms(Averaging(epsilon=math.inf, l2=2.0)).plan
    tables = [parties.guard(name).table for name in parties.names]
    rngs = [Rng.seeded(i) for i in range(5)]
    together = local_models(tables, own, rngs=rngs)
    for one_table, rng, many in zip(tables, rngs, together, strict=True):
        single = local_model(one_table, own, rng=rng)
        np.testing.assert_allclose(many.addend * own.grid.step, single.addend * own.grid.step, atol=1e-9)  # type: ignore[union-attr]
        assert many.event == single.event


def test_a_cohort_that_is_not_true_of_the_table_is_refused(federation: Make) -> None:
    """Noise that is sized for other sizes or bounds would not suffice."""
    parties = federation()
    honest, party = parties.terms(Averaging()).plan.cohort, parties.guard("party1").table
    honest.check(party)
    wider = Schema.of_arrays(4, [0, 1], norm_bound=0.5)
    for lie in (
        replace(honest, least_records=200),
        replace(honest, group=SumGroup.of({"a": 20}, quorum=1)),
        replace(honest, schema=wider),
        replace(honest, schema=Schema.of_arrays(3, [0, 1], norm_bound=1.0)),
        replace(honest, schema=Schema.of_arrays(4, [0, 1, 2], norm_bound=1.0)),
    ):
        with pytest.raises(PolicyRefusal, match="do not fit this party's table"):
            lie.check(party)


def test_a_run_asks_for_one_model_and_the_party_derives_the_same_plan(federation: Make) -> None:
    parties, model = federation(), Averaging(epsilon=0.3)
    channel = parties.begin(model)
    assert derived(model, channel).plan == channel.plan
    assert derived(model, channel).digest == channel._terms.digest
    channel.sum(local_model)
    with pytest.raises(NotAgreed, match="turn 2 is not the next"):
        channel.sum(local_model)


def test_a_missing_bound_is_an_error_and_never_read_from_the_data(federation: Make) -> None:
    with pytest.raises(SettingError, match="needs a bound on the norm of a row: pass norm_bound="):
        Averaging(epsilon=1.0).fit(federation(norm_bound=None))


def test_the_default_regularisation_is_a_rule_of_public_numbers(federation: Make) -> None:
    one, other = (federation(seed=seed).terms(Averaging(epsilon=1.0)).plan.l2_mean for seed in (1, 2))
    assert one == other
    stricter = federation().terms(Averaging(epsilon=0.1)).plan.l2_mean
    assert stricter > one


BAD_SETTINGS = [
    {"l2": 0.0}, {"l2": -1.0}, {"l2": math.nan}, {"weights": "none"}, {"delta": -0.1}, {"delta": 1.0},
    {"calibration": "loud"},
]  # fmt: skip


@pytest.mark.parametrize("settings_", BAD_SETTINGS)
def test_settings_that_cannot_be_honoured_are_named(federation: Make, settings_: dict[str, object]) -> None:
    (name,) = settings_
    with pytest.raises(SettingError, match=f"{name} = "):
        Averaging(**settings_).fit(federation())  # type: ignore[arg-type]


def audit(model: Averaging, runs: int) -> float:
    """A lower bound, with confidence 99.9 %, on the epsilon of a run on worst-case neighbours (Clopper-Pearson)."""
    outcomes = []
    for label in (0, 1):
        X, y = np.array([[1.0]] * 4), np.array([0, 1, 1, label])
        tables = {name: table(X[i : i + 2], y[i : i + 2]) for name, i in (("a", 0), ("b", 2))}
        parties = Federation.from_tables(tables, rng=Rng.seeded(label), policy=Policy(not_private=["averaging"]))
        outcomes.append([float(model.fit(parties).coef_[0, 0]) for _ in range(runs)])
    zeros, ones = (np.array(o) for o in outcomes)
    half = runs // 2
    threshold = np.median(np.concatenate([zeros[:half], ones[:half]]))  # chosen on one half, tested on the other
    hits, misses = int(np.sum(ones[half:] > threshold)), int(np.sum(zeros[half:] > threshold))
    n = runs - half
    low = stats.beta.ppf(0.0005, hits, n - hits + 1)
    high = stats.beta.ppf(0.9995, misses + 1, n - misses)
    return float(math.log(low / high))


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-5])
def test_an_audit_of_the_worst_neighbours_finds_no_more_than_epsilon(delta: float) -> None:
    found = audit(Averaging(epsilon=1.0, delta=delta, l2=2.0, colluders=0), 150)
    assert found <= 1.0


@pytest.mark.slow
def test_the_audit_would_notice_a_broken_mechanism() -> None:
    """The same audit against noise for epsilon = 20 that claims epsilon = 1."""
    assert audit(Averaging(epsilon=20.0, delta=0, l2=2.0, colluders=0), 100) > 1.0
