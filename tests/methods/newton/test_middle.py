"""The middle of the sandwich: how far a record moves it, what it costs, and intervals where the model is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit

from tacit import Federation, Policy, Rng, Schema, Table
from tacit.data.feature import Numeric, Target
from tacit.errors import SettingError
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.middle import middle_sum, party_middle
from tacit.methods.newton.statistic import Plan, Trial
from tacit.methods.newton.triangle import symmetric, triangle, upper
from tacit.privacy.gaussian import gaussian_mu

from ..conftest import assert_drawn_from, cohort_of

Make = Callable[..., Federation]


def plan(classes: int = 2) -> Plan:
    return Plan(
        cohort=cohort_of(60, 30, 20, constant=0.3, classes=classes),
        mu_squares=0.3,
        mu_moments=0.5,
        mu_response=0.2,
        rounds=2,
        relation="replace-one",
        mu_middle=0.2,
    )


angle = st.floats(0, 2 * math.pi)
record = st.tuples(st.floats(0, 1), angle, st.integers(0, 1))


def table_of(records: list[tuple[float, float, int]], classes: int = 2) -> Table:
    schema = Schema.of_arrays(2, list(range(classes)), norm_bound=1.0)
    rows = np.array([[length * math.cos(way), length * math.sin(way)] for length, way, _ in records]).reshape(-1, 2)
    return Table.from_arrays(rows, np.array([label for _, _, label in records]), schema)


@given(
    records=st.lists(record, min_size=2, max_size=6),
    other=record,
    packed=st.lists(st.floats(-30, 30), min_size=6, max_size=6),
    model=st.lists(st.floats(-40, 40), min_size=9, max_size=9),
    classes=st.sampled_from([2, 3]),
)
@settings(max_examples=300, deadline=None)
def test_a_record_moves_the_middle_by_no_more_than_its_sensitivity(
    records: list[tuple[float, float, int]],
    other: tuple[float, float, int],
    packed: list[float],
    model: list[float],
    classes: int,
) -> None:
    own, B = plan(classes), symmetric(np.array(packed))
    w = np.array(model[: own.n_scores * 3]).reshape(own.n_scores, 3)
    tables = [table_of(one, classes) for one in (records, [other, *records[1:]], records[1:])]
    sums = [triangle(middle_sum(one, own, B, w)) for one in tables]
    assert np.linalg.norm(sums[0] - sums[1]) <= own.middle_sensitivity(B, w)
    assert np.linalg.norm(sums[0] - sums[2]) <= replace(own, relation="add-remove").middle_sensitivity(B, w)
    assert np.abs(sums[0]).max() <= own.middle_grid(B, w).total.value_bound


@pytest.mark.parametrize(("classes", "q"), [(2, 1.0), (3, 2.0)])
def test_its_sensitivity_is_reached_by_rows_at_right_angles_that_are_predicted_wrongly(classes: int, q: float) -> None:
    own, B = plan(classes), 100 * np.diag([1.0, 1.0, 1e-9])
    w = np.zeros((own.n_scores, 3))
    w[own.n_scores - 1, :2] = -40.0 if classes == 2 else 40.0
    sums = [triangle(middle_sum(table_of([(1.0, way, 1)], classes), own, B, w)) for way in (0.0, math.pi / 2)]
    assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(q * math.sqrt(2), rel=1e-6)
    assert own.middle_sensitivity(B, w) == pytest.approx(q * math.sqrt(2), rel=1e-6)
    assert np.linalg.norm(sums[0]) == pytest.approx(q, rel=1e-6)
    assert replace(own, relation="add-remove").middle_sensitivity(B, w) == pytest.approx(q, rel=1e-6)


def test_the_noise_of_the_middle_is_gaussian_of_the_stated_size(federation: Make) -> None:
    parties = federation(d=2, rng=Rng.seeded(5))
    own = parties.terms(PrivateNewton(epsilon=0.5, rounds=1, robust=True)).plan
    B, w = np.diag([2.0, 3.0, 1.0]), np.array([[1.0, -2.0, 0.5]])
    tables = [parties.guard(name).table for name in parties.names]
    grid, rng = own.middle_grid(B, w), Rng.seeded(1)
    exact = sum(triangle(middle_sum(one, own, B, w)) for one in tables)
    drawn = []
    for _ in range(300):
        opened = sum(party_middle(one, own, Trial(shape=upper(B), model=w), rng=rng).addend for one in tables)
        drawn.append((grid.from_grid(opened) - exact) / grid.noise_std)
    assert_drawn_from(stats.norm(), np.array(drawn).ravel())
    n_parties = own.cohort.n_parties
    least = own.middle_sensitivity(B, w) / own.mu_middle * math.sqrt(n_parties / (n_parties - own.cohort.colluders))
    assert least < grid.noise_std < 1.001 * least


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_with_the_middle_all_releases_cost_what_was_asked(federation: Make, relation: str) -> None:
    parties = federation()
    model = PrivateNewton(epsilon=0.7, delta=1e-5, relation=relation, robust=True).fit(parties)  # type: ignore[arg-type]
    own = parties.terms(model).plan
    spent_on = [own.mu_squares, own.mu_moments, *[own.mu_response] * own.rounds, own.mu_middle]
    assert own.mu_middle > 0
    assert math.hypot(*spent_on) == pytest.approx(gaussian_mu(0.7, 1e-5), rel=1e-9)
    for party in parties.names:
        spent = parties.guard(party).ledger.epsilon(party, delta=1e-5, relation=relation)  # type: ignore[arg-type]
        assert 0.7 * (1 - 1e-9) <= spent <= 0.7
    assert "intervals are for the one that is best for the weighted records" in " ".join(model.facts_.notices)


def test_without_noise_nothing_is_asked_and_a_setting_that_is_none_is_named(federation: Make) -> None:
    allowed = Policy(not_private=["private-newton"])
    exact = PrivateNewton(epsilon=math.inf, robust=True)
    plain = PrivateNewton(epsilon=math.inf).fit(federation(policy=allowed))
    np.testing.assert_allclose(exact.fit(federation(policy=allowed)).coef_, plain.coef_)
    with pytest.raises(SettingError, match="robust = 'yes' must be True or False"):
        PrivateNewton(robust="yes").fit(federation())  # type: ignore[arg-type]


def test_where_the_model_is_wrong_the_middle_gives_the_sandwichs_standard_errors() -> None:
    """Labels follow a square that the model lacks: gradients vary twice as much as its curvature says."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(6000, 2))
    y = (rng.random(6000) < 0.01 + 0.6 * X[:, 0] ** 4).astype(np.int64)
    bounds = Schema((Numeric("a", -1, 1), Numeric("b", -1, 1)), Target("y", ("0", "1")))
    tables = {str(i): Table.from_arrays(X[i::3], y[i::3], bounds) for i in range(3)}
    errors = {}
    for robust in (False, True):
        model = PrivateNewton(epsilon=30.0, robust=robust).fit(Federation.from_tables(tables, rng=Rng.seeded(1)))
        rows = {row.name: row.standard_error for row in model.facts_.coefficients}
        errors[robust] = float(rows["a"] or math.nan)
    Z, w = np.column_stack([X, np.ones(6000)]), np.zeros(3)
    for _ in range(20):
        p = expit(Z @ w)
        H = (Z * (p * (1 - p))[:, None]).T @ Z
        w = w + np.linalg.solve(H, Z.T @ (y - p))
    C = (Z * ((y - p) ** 2)[:, None]).T @ Z
    plain, sandwich = (math.sqrt(np.linalg.inv(H)[0, 0]), math.sqrt((np.linalg.inv(H) @ C @ np.linalg.inv(H))[0, 0]))
    assert sandwich > 1.25 * plain, (plain, sandwich, errors)
    assert errors[False] == pytest.approx(plain, rel=0.12)
    assert errors[True] == pytest.approx(sandwich, rel=0.12)
