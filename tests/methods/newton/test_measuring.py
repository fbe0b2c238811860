"""An AUC on records that are kept out of the fit: how far one record moves what is opened, and what it costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit import Federation, Rng, Schema, Table
from tacit.data.feature import Numeric, Target
from tacit.errors import PolicyRefusal, SettingError
from tacit.methods.evaluation.statistic import LinearModel
from tacit.methods.newton.measuring import BINS, measuring_grid, party_measuring
from tacit.methods.newton.method import PrivateNewton
from tacit.methods.newton.statistic import Plan, moments_sum, response_sum, squares_sum
from tacit.methods.newton.triangle import symmetric, triangle
from tacit.privacy.gaussian import gaussian_mu
from tacit.unit import Unit

from ..conftest import assert_drawn_from, cohort_of

SCHEMA = Schema((Numeric("a", missing="drop"), Numeric("b", missing="drop")), Target("y", ("0", "1")), norm_bound=1.0)
record = st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 1.0, math.pi, math.nan]), st.integers(0, 1))
Record = tuple[float, float, int]


def plan() -> Plan:
    return Plan(
        cohort=cohort_of(60, 30, 20, constant=0.3),
        mu_squares=0.3,
        mu_moments=0.5,
        mu_response=0.2,
        rounds=2,
        relation="replace-one",
        mu_measuring=0.2,
    )


def table_of(records: list[Record]) -> Table:
    rows = np.array([[length * math.cos(way), length * math.sin(way)] for length, way, _ in records])
    return Table.from_arrays(rows, np.array([str(label) for _, _, label in records]), SCHEMA)


def counts_of(table: Table, model: LinearModel) -> np.ndarray:  # type: ignore[type-arg]
    """What a party counts, without noise."""
    loud = replace(plan(), mu_measuring=1e9)  # so little noise that counts are told to the last record
    return np.rint(measuring_grid(loud).from_grid(party_measuring(table, loud, model, rng=Rng.seeded(0)).addend))


@given(
    records=st.lists(record, min_size=2, max_size=12),
    other=record,
    packed=st.lists(st.floats(-3, 3), min_size=6, max_size=6),
    model=st.lists(st.floats(-40, 40), min_size=3, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_a_record_moves_every_sum_by_no_more_than_without_the_parts(
    records: list[Record], other: Record, packed: list[float], model: list[float]
) -> None:
    own, B, w = plan(), symmetric(np.array(packed)), np.array([model])
    tables = [table_of([(0.5, 0.1, 1), *one]) for one in (records, [other, *records[1:]])]
    first, second = (triangle(squares_sum(one, own)) / own.reach for one in tables)
    assert np.linalg.norm(first - second) <= own.squares_sensitivity
    first, second = (own.pack(*moments_sum(one, own, B)) for one in tables)
    assert np.linalg.norm(first - second) <= own.moments_sensitivity(B)
    first, second = (response_sum(one, own, B, w) for one in tables)
    assert np.linalg.norm(first - second) <= own.response_sensitivity(B, w)
    sent = LinearModel(coef=w[:, :2], intercept=w[:, 2])
    first, second = (counts_of(one, sent) for one in tables)
    assert np.linalg.norm(first - second) <= math.sqrt(2)


def test_each_complete_record_is_in_one_part_and_in_no_other() -> None:
    records = [(k / 40, k / 7, k % 2) for k in range(40)]
    table, own = table_of(records), plan()
    sent = LinearModel(coef=np.ones((1, 2)), intercept=np.zeros(1))
    n_measured = counts_of(table, sent).sum()
    assert n_measured == table.measured.sum()
    fitted = squares_sum(table, own)[-1, -1] / own.cohort.constant**2
    assert fitted == pytest.approx(40 - n_measured)
    everything = squares_sum(table, replace(own, mu_measuring=0.0))[-1, -1] / own.cohort.constant**2
    assert everything == pytest.approx(40)


def drawn(seed: int, n: int = 3000) -> dict[str, Table]:
    chance = np.random.default_rng(seed)
    X = chance.uniform(-0.7, 0.7, size=(n, 2))
    y = (chance.uniform(size=n) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int).astype(str)
    return {str(k): Table.from_arrays(X[k::3], y[k::3], SCHEMA) for k in range(3)}


def measuring(**settings: object) -> PrivateNewton:
    method = PrivateNewton(**settings)  # type: ignore[arg-type]
    method.measures = True
    return method


def test_all_releases_cost_what_was_asked() -> None:
    parties = Federation.from_tables(drawn(1))
    method = measuring(epsilon=0.7, delta=1e-5, robust=True).fit(parties)
    own = parties.terms(method).plan
    spent_on = [own.mu_squares, own.mu_moments, *[own.mu_response] * own.rounds, own.mu_middle, own.mu_measuring]
    assert math.hypot(*spent_on) == pytest.approx(gaussian_mu(0.7, 1e-5), rel=1e-9)
    for party in parties.names:
        assert 0.7 * (1 - 1e-9) <= parties.guard(party).ledger.epsilon(party, delta=1e-5) <= 0.7


def test_its_noise_is_gaussian_of_the_stated_size() -> None:
    tables = drawn(2, 300)
    own = measuring(epsilon=0.5).terms(SCHEMA, Federation.from_tables(tables).group(PrivateNewton())).plan
    sent, grid, rng = LinearModel(coef=np.ones((1, 2)), intercept=np.zeros(1)), measuring_grid(own), Rng.seeded(1)
    exact = sum(counts_of(one, sent) for one in tables.values())
    deviations = []
    for _ in range(300):
        opened = sum(party_measuring(one, own, sent, rng=rng).addend for one in tables.values())
        deviations.append((grid.from_grid(opened) - exact) / grid.noise_std)
    assert_drawn_from(stats.norm(), np.array(deviations).ravel())
    least = math.sqrt(2) / own.mu_measuring * math.sqrt(3 / 2)
    assert least < grid.noise_std < 1.001 * least


@pytest.mark.parametrize("epsilon", [3.0, 100.0])
def test_the_auc_is_that_of_the_model_on_records_it_has_not_seen(epsilon: float) -> None:
    held = []
    for seed in range(12):
        method = measuring(epsilon=epsilon).fit(Federation.from_tables(drawn(seed), rng=Rng.seeded(seed)))
        assert method.auc_ is not None
        pairs = Table.concatenate(list(drawn(100 + seed, 12_000).values()))
        X, y = pairs.arrays()
        ranks = stats.rankdata(X @ method.coef_[0])
        n1 = int(y.sum())
        truth = (ranks[y == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))
        held.append(method.auc_.low - 0.01 <= truth <= method.auc_.high + 0.01)  # the truth is measured, too
    assert sum(held) >= 10
    assert method.auc_.confidence == 0.95


@pytest.mark.parametrize(
    ("coef", "intercept"),
    [(np.ones((2, 2)), np.zeros(2)), (np.ones((1, 3)), np.zeros(1)), (np.full((1, 2), math.nan), np.zeros(1)),
     (np.ones((1, 2)), np.full(1, math.inf))],
)  # fmt: skip
def test_a_model_that_fits_no_table_is_refused(coef: np.ndarray, intercept: np.ndarray) -> None:  # type: ignore[type-arg]
    table = table_of([(0.5, 0.1, 1), (0.3, 0.2, 0)])
    with pytest.raises(PolicyRefusal, match="does not fit the study's columns and classes, or is not finite"):
        party_measuring(table, plan(), LinearModel(coef=coef, intercept=intercept), rng=Rng.seeded(0))


def test_a_model_that_is_nowhere_finite_still_puts_each_record_into_one_cell() -> None:
    table = table_of([(0.5, 0.1 * k, k % 2) for k in range(30)])
    sent = LinearModel(coef=np.array([[1e308, -1e308]]), intercept=np.array([1e308]))
    counts = counts_of(table, sent)
    assert counts.size == 2 * BINS
    assert counts.sum() == table.measured.sum()


@pytest.mark.parametrize("unit", ["person", "party"])
def test_other_units_than_records_are_refused(unit: Unit) -> None:
    tables = {name: table.each_a_person() for name, table in drawn(1, 300).items()}
    why = "replace-one; choose those" if unit == "party" else "could be in both parts"
    with pytest.raises(SettingError, match=why):
        measuring(epsilon=1.0, unit=unit, relation="add-remove" if unit == "party" else "replace-one").fit(
            Federation.from_tables(tables)
        )


def test_three_classes_and_no_noise_are_refused() -> None:
    three = Federation.split(
        np.random.default_rng(1).normal(size=(90, 2)), np.arange(90) % 3, n_parties=3, norm_bound=1.0
    )
    with pytest.raises(SettingError, match="an AUC is of two classes, and the study has 3; aim at a coefficient"):
        measuring(epsilon=1.0).fit(three)
    with pytest.raises(SettingError, match="where a finite epsilon is promised under replace-one"):
        measuring(epsilon=math.inf).fit(Federation.from_tables(drawn(1, 300)))


def test_an_offer_of_less_is_refused_before_anything_is_spent() -> None:
    parties = Federation.from_tables(drawn(1, 300))
    cohort = parties.terms(PrivateNewton(epsilon=1.0)).plan.cohort
    with pytest.raises(SettingError, match="an AUC is measured where all offer what is asked; let them"):
        measuring(epsilon=1.0).plan(replace(cohort, shares={parties.names[0]: 0.5}))
