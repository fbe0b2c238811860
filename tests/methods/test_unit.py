"""Persons and parties as the unit: all of one's records may be replaced by any others, as many as one likes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from tacit import Averaging, Federation, FunctionalMechanism, NoisyDescent, Policy, PrivateNewton, Schema
from tacit.data import Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.averaging.statistic import Plan as AveragingPlan
from tacit.methods.cohort import Cohort
from tacit.methods.descent.statistic import gradient_sum
from tacit.methods.functional.statistic import statistics
from tacit.methods.method import Method
from tacit.methods.newton.middle import middle_sum
from tacit.methods.newton.statistic import Plan as NewtonPlan
from tacit.methods.newton.statistic import moments_sum, response_sum, squares_sum
from tacit.methods.newton.triangle import triangle
from tacit.privacy.guarantee import Relation, Unit

from .conftest import make_data

SCHEMAS = {classes: Schema.of_arrays(2, list(range(classes)), norm_bound=1.0) for classes in (2, 3)}
UNITS: tuple[Unit, Unit] = ("person", "party")
MAKE: dict[str, Callable[..., Method]] = {
    "newton": PrivateNewton, "functional": FunctionalMechanism, "descent": NoisyDescent, "averaging": Averaging
}  # fmt: skip


@st.composite
def a_persons_records(draw: Any, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Some records of one person: extreme rows, in the length that is allowed or beyond it."""
    m = draw(st.integers(1, 6))
    angles = draw(st.lists(st.sampled_from([0.0, 0.5, 1.2, 2.1, math.pi, 4.4]), min_size=m, max_size=m))
    lengths = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 9.0]), min_size=m, max_size=m))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=m, max_size=m))
    rows = np.array([[r * math.cos(a), r * math.sin(a)] for a, r in zip(angles, lengths, strict=True)])
    return rows, np.array(labels)


@st.composite
def neighbours(draw: Any) -> tuple[Unit, Table, Table, Cohort]:
    """Two tables that differ in all records of one person, or in all of a party's; and the cohort of both."""
    classes, unit = draw(st.sampled_from([2, 3])), draw(st.sampled_from(UNITS))
    others_X, others_y = make_data(9, 2, classes, seed=draw(st.integers(0, 5)))
    others = np.arange(9) // 3

    def table(own: tuple[np.ndarray, np.ndarray]) -> Table:
        if unit == "party":
            return Table.from_arrays(*own, SCHEMAS[classes])
        X, y = np.vstack([own[0], others_X]), np.concatenate([own[1], others_y])
        persons = np.concatenate([np.full(len(own[1]), 99), others])
        return Table.from_arrays(X, y, SCHEMAS[classes], persons=persons)

    first, second = table(draw(a_persons_records(classes))), table(draw(a_persons_records(classes)))
    sizes = {"a": first.n_units(unit), "b": 2}
    group = SumGroup.of(sizes, quorum=2, told="none" if unit == "party" else "each")
    return unit, first, second, Cohort.of(SCHEMAS[classes], group, colluders=0, constant=1.0, unit=unit)


@given(pair=neighbours(), stretch=st.sampled_from([0.3, 1.0, 40.0]), relation=st.sampled_from(["replace-one"]))
@settings(max_examples=150, deadline=None)
def test_a_person_moves_the_sums_of_newton_no_further_than_a_record_may(
    pair: tuple[Unit, Table, Table, Cohort], stretch: float, relation: Relation
) -> None:
    _, first, second, cohort = pair
    plan = NewtonPlan(
        cohort=cohort, mu_squares=1, mu_moments=1, mu_response=1, rounds=1, relation=relation, mu_middle=1
    )
    for table in (first, second):
        plan.cohort.check(table)
    chance = np.random.default_rng(int(stretch))
    root = chance.normal(size=(3, 3))
    B = stretch * (root @ root.T + 0.1 * np.eye(3))
    model = chance.normal(size=(plan.n_scores, 3)) / stretch

    def moved(of: Callable[[Table], np.ndarray]) -> float:
        return float(np.linalg.norm(of(first) - of(second)))

    assert moved(lambda t: triangle(squares_sum(t, plan)) / plan.reach) <= plan.squares_sensitivity
    assert moved(lambda t: plan.pack(*moments_sum(t, plan, B))) <= plan.moments_sensitivity(B)
    assert moved(lambda t: response_sum(t, plan, B, model)) <= plan.response_sensitivity(B, model)
    assert moved(lambda t: triangle(middle_sum(t, plan, B, model))) <= plan.middle_sensitivity(B, model)


@given(pair=neighbours())
@settings(max_examples=100, deadline=None)
def test_a_persons_part_of_a_sum_is_no_longer_than_a_records(pair: tuple[Unit, Table, Table, Cohort]) -> None:
    """Added or removed: the others' part is taken away, or there is none."""
    unit, first, _, cohort = pair
    plan = NewtonPlan(cohort=cohort, mu_squares=1, mu_moments=1, mu_response=1, rounds=1, relation="add-remove")
    X, y = first.arrays()
    own = len(X) if unit == "party" else len(X) - 9
    alone = Table.from_arrays(X[:own], y[:own], first.schema, persons=np.zeros(own))
    B = np.diag([0.5, 3.0, 1.0])
    model = np.full((plan.n_scores, 3), 0.7)
    assert np.linalg.norm(triangle(squares_sum(alone, plan)) / plan.reach) <= plan.squares_sensitivity
    assert np.linalg.norm(plan.pack(*moments_sum(alone, plan, B))) <= plan.moments_sensitivity(B)
    assert np.linalg.norm(response_sum(alone, plan, B, model)) <= plan.response_sensitivity(B, model)


@given(pair=neighbours(), pure=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_person_moves_the_quadratic_no_further_than_a_record_may(
    pair: tuple[Unit, Table, Table, Cohort], pure: bool
) -> None:
    unit, first, second, cohort = pair
    plan = FunctionalMechanism(delta=0 if pure else 1e-6, unit=unit).plan(cohort)
    sums = [plan.pack(*statistics(table, 1.0, unit)) for table in (first, second)]
    n = plan.n_linear
    if not pure:
        assert np.linalg.norm(sums[0] - sums[1]) <= plan.grids[0].total.sensitivity
        return
    # Step 2 of the proof: what the logarithm of a ratio of densities can be, before dithers take their share.
    shares = plan.linear_share * plan.epsilon_of_both, (1 - plan.linear_share) * plan.epsilon_of_both
    moved = np.linalg.norm((sums[0] - sums[1])[:n]), np.linalg.norm((sums[0] - sums[1])[n:])
    spent = sum(e * m / g.total.sensitivity for e, m, g in zip(shares, moved, plan.grids, strict=True))
    assert (127 / 128) * spent + plan.epsilon_of_both / 128 <= plan.promise.epsilon * (1 + 1e-9)


@given(pair=neighbours(), length=st.sampled_from([0.0, 1.0, 5.0]), clip=st.sampled_from([None, 0.3]))
@settings(max_examples=150, deadline=None)
def test_a_person_moves_a_gradient_no_further_than_a_record_may(
    pair: tuple[Unit, Table, Table, Cohort], length: float, clip: float | None
) -> None:
    unit, first, second, cohort = pair
    plan = NoisyDescent(rounds=2, unit=unit, clip=clip).plan(cohort)
    theta = length * np.ones(plan.loss.shape)
    one, two = (gradient_sum(plan.loss, cohort.stream(table)(), theta, clip=plan.clip) for table in (first, second))
    assert np.linalg.norm(one - two) <= plan.sensitivity(theta)


@given(pair=neighbours(), l2=st.sampled_from([1.0, 30.0]))
@settings(max_examples=60, deadline=None)
def test_a_person_moves_a_local_model_no_further_than_a_record_may(
    pair: tuple[Unit, Table, Table, Cohort], l2: float
) -> None:
    unit, first, second, cohort = pair
    plan: AveragingPlan = Averaging(l2=l2, unit=unit).plan(cohort)
    n = first.n_units(unit)
    moved = plan.weight(n) * np.linalg.norm(plan.local_fit(first) - plan.local_fit(second))
    assert moved <= plan.sensitivity


def test_as_records_the_same_neighbours_are_too_far_apart() -> None:
    """The tests above could fail: with the weights of records, a person with several moves a sum too far."""
    rows = np.tile([[1.0, 0.0]], (5, 1))
    one, two = (Table.from_arrays(rows, [label] * 5, SCHEMAS[2], persons=[7] * 5) for label in (0, 1))
    cohort = Cohort.of(SCHEMAS[2], SumGroup.of({"a": 1, "b": 2}, quorum=2), colluders=0, unit="person")
    plan = NoisyDescent(rounds=2, unit="person").plan(cohort)
    theta = np.zeros(plan.loss.shape)
    moved = [
        np.linalg.norm(
            gradient_sum(plan.loss, one.weighted_blocks(unit), theta, clip=math.inf)
            - gradient_sum(plan.loss, two.weighted_blocks(unit), theta, clip=math.inf)
        )
        for unit in ("person", "record")
    ]
    assert moved[0] <= plan.sensitivity(theta) < moved[1]


# --- without noise ---------------------------------------------------------------------------------------------------

EXACT = {
    "newton": {"l2": 2.0},
    "functional": {"l2": 2.0},
    "descent": {"rounds": 40, "l2": 2.0},
    "averaging": {"l2": 2.0},
}


def several(n: int = 90, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records of n persons: the first has 1, the second 2, ... up to 5."""
    X, y = make_data(n, 3, 2, seed)
    times = 1 + np.arange(n) % 5
    return np.repeat(X, times, axis=0), np.repeat(y, times), np.repeat(np.arange(n), times)


@pytest.mark.parametrize("name", MAKE)
def test_copies_of_a_record_count_as_one_where_the_person_is_the_unit(name: str) -> None:
    X, y, persons = several()
    once = np.unique(persons, return_index=True)[1]
    model = MAKE[name](epsilon=math.inf, unit="person", **EXACT[name])
    plain = MAKE[name](epsilon=math.inf, **EXACT[name])
    model.fit(Federation.split(X, y, groups=persons % 3, norm_bound=1.0, persons=persons))
    plain.fit(Federation.split(X[once], y[once], groups=persons[once] % 3, norm_bound=1.0))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("unit", UNITS)
def test_without_noise_the_model_is_the_plain_weighted_fit(unit: Unit) -> None:
    X, y = make_data(120, 3, 2, seed=4)
    persons = np.random.default_rng(0).integers(30, size=120) if unit == "person" else np.arange(120) // 8
    X /= max(1.0, float(np.linalg.norm(X, axis=1).max()))
    weights = 1 / np.bincount(persons)[persons]
    parties = Federation.split(X, y, groups=persons % 3 if unit == "person" else persons, persons=persons, norm_bound=1)
    model = PrivateNewton(epsilon=math.inf, l2=1.0, unit=unit).fit(parties)
    plain = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-4, atol=1e-5)
    alone = Federation.split(X, y, n_parties=1, persons=persons, norm_bound=1)
    mean = Averaging(epsilon=math.inf, l2=1.0, unit="person", fit_intercept=False).fit(alone)
    plain = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000, fit_intercept=False).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(mean.coef_, plain.coef_, rtol=1e-4, atol=1e-5)


# --- what is told ----------------------------------------------------------------------------------------------------


def test_sizes_are_numbers_of_persons_and_a_partys_is_told_to_nobody() -> None:
    X, y, persons = several()
    parties = Federation.split(X, y, groups=persons % 3, norm_bound=1.0, persons=persons)
    model = PrivateNewton(epsilon=2.0, unit="person").fit(parties)
    assert [party.n_records for party in model.facts_.parties] == [30, 30, 30]
    assert model.delta_ == pytest.approx(1e-6)
    assert model.guarantee_.unit == "person"
    told = " ".join(model.report.text().split())
    assert "everything but all records of one person can raise" in told
    assert "These records may be replaced by any others" in told
    assert "Persons: 90" in told
    assert "of m records of one person each weighs 1/m" in told
    assert "Intervals take persons for the sample" in told
    party = PrivateNewton(epsilon=2.0, unit="party").fit(parties)
    assert [one.n_records for one in party.facts_.parties] == [None] * 3
    assert parties.terms(party).plan.cohort.group.sizes == ()
    assert parties.terms(party).plan.cohort.n_units == 3


def test_delta_follows_the_number_of_units() -> None:
    X, y = make_data(4000, 2, 2)
    by_record, by_person = (
        Averaging(unit=unit).fit(Federation.split(X, y, n_parties=2, norm_bound=1, persons=np.arange(4000) // 2))
        for unit in ("record", "person")
    )
    assert by_record.delta_ == 4000.0**-2
    assert by_person.delta_ > by_record.delta_  # some persons are in both parties, and are two there


@pytest.mark.parametrize("name", MAKE)
def test_a_phone_with_one_record_takes_part(name: str) -> None:
    X, y = make_data(40, 2, 2)
    parties = Federation.split(X, y, groups=np.arange(40), norm_bound=1.0, policy=Policy())
    model = MAKE[name](epsilon=5.0, unit="party").fit(parties)
    assert model.facts_.is_private
    assert model.guarantee_.unit == "party"


def test_a_table_that_does_not_tell_whose_a_record_is_is_refused() -> None:
    X, y = make_data(40, 2, 2)
    with pytest.raises(PolicyRefusal, match="does not tell whose a record is, and the promise is for persons"):
        Averaging(unit="person").fit(Federation.split(X, y, n_parties=2, norm_bound=1.0))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Averaging(unit="patient"), "unit = 'patient' is unknown; choose one of record, person, party"),  # type: ignore[arg-type]
        (Averaging(unit="person", calibration="paper"), "unit = 'person': the document protects records"),
        (NoisyDescent(unit="person", batch=0.1), "batch = 0.1 samples records one by one, which hides no person"),
        (PrivateNewton(unit="house"), "unit = 'house' is unknown"),  # type: ignore[arg-type]
    ],
)
def test_units_that_cannot_be_protected_are_refused(method: Method, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        _ = method.guarantee
