"""A party may offer less epsilon than is asked: its records weigh less, and cost it exactly what it offers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Averaging, Federation, FunctionalMechanism, NoisyDescent, PrivateNewton
from tacit.errors import NotAgreed, SettingError
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.functional.method import minimum
from tacit.methods.functional.statistic import statistics
from tacit.methods.method import Method
from tacit.methods.newton.statistic import Plan, moments_sum, response_sum, squares_sum
from tacit.methods.newton.triangle import triangle
from tacit.privacy.accounting import epsilon_of, mu_for
from tacit.privacy.event import Composed
from tacit.privacy.noise.grid import GaussianGrid

from .conftest import make_data
from .test_unit import SCHEMAS, neighbours

TAKE: list[Method] = [
    PrivateNewton(),
    PrivateNewton(relation="add-remove"),
    PrivateNewton(unit="person"),
    NoisyDescent(rounds=3),
    NoisyDescent(rounds=3, unit="party"),
    FunctionalMechanism(),
]


def parties(**more: Any) -> Federation:
    X, y = make_data(300, 3, 2)
    offers = more.pop("offers", {"b": 0.3})
    groups = np.array(["a", "b", "c"])[np.arange(300) % 3]
    return Federation.split(X, y, groups=groups, norm_bound=1.0, persons=np.arange(300) // 2, offers=offers, **more)


@pytest.mark.parametrize("method", TAKE, ids=repr)
def test_a_party_is_charged_for_exactly_what_it_offers(method: Method) -> None:
    federation = parties()
    model = method.fit(federation)
    spent = {party.name: party.epsilon for party in model.facts_.parties}
    assert spent == {"a": 1.0, "b": pytest.approx(0.3, rel=1e-6), "c": 1.0}
    assert spent["b"] <= 0.3
    for name, epsilon in {"a": 1.0, "b": 0.3}.items():
        asked = type(method)(**method.get_params() | {"epsilon": epsilon}).event()
        charged = federation.guard(name).ledger.epsilon(name, delta=1e-6)
        assert charged == pytest.approx(epsilon_of(Composed(events=(asked,)), 1e-6), rel=1e-6)
    told = " ".join(model.report.text().split())
    assert "Less than was asked was offered by b epsilon 0.3 (weight" in told
    assert model.guarantee_.epsilon == 1.0


@given(pair=neighbours(), offer=st.sampled_from([0.05, 0.3, 0.9, 0.999]), length=st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=120, deadline=None)
def test_a_unit_moves_the_sums_by_no_more_than_its_party_pays_for(pair: Any, offer: float, length: float) -> None:
    """On the grid, rounding included: the difference over the noise is at most b mu."""
    unit, first, second, plain = pair
    group = SumGroup.of(
        dict(zip(("a", "b"), plain.group.sizes or (1, 1), strict=True)),
        quorum=2,
        told=plain.group.told,
        offers={"a": offer},
    )
    classes = plain.schema.n_classes
    method = PrivateNewton(epsilon=1.0, delta=1e-6, unit=unit, colluders=0)
    plan: Plan = method.plan(method.cohort(SCHEMAS[classes], group))
    b, share = plan.cohort.budgets["a"], plan.cohort.share("a")
    assert 0 < share < b < 1
    assert b * mu_for(1.0, 1e-6) <= mu_for(offer, 1e-6)
    B = length * np.eye(3)
    model = np.full((plan.n_scores, 3), 0.4)

    def paid(grid: Any, one: np.ndarray, two: np.ndarray, mu: float) -> bool:
        assert isinstance(grid, GaussianGrid)
        rounded = [np.rint(np.ravel(sums) / grid.step) for sums in (one, two)]
        noise = (grid.total.sensitivity / grid.step + math.sqrt(grid.total.dimension)) / grid.mu
        return float(np.linalg.norm(rounded[0] - rounded[1])) / noise <= b * mu

    squares = [triangle(squares_sum(table, plan, share)) / plan.reach for table in (first, second)]
    assert paid(plan.squares_grid, squares[0], squares[1], plan.mu_squares)
    moments = [plan.pack(*moments_sum(table, plan, B, share)) for table in (first, second)]
    assert paid(plan.moments_grid(B), moments[0], moments[1], plan.mu_moments)
    responses = [response_sum(table, plan, B, model, share) for table in (first, second)]
    assert paid(plan.response_grid(B, model), responses[0], responses[1], plan.mu_response)


def test_the_weights_count_in_what_the_solver_counts() -> None:
    group = SumGroup.of({"a": 100, "b": 40}, quorum=2, offers={"b": 0.5})
    method = PrivateNewton(epsilon=1.0, delta=1e-6)
    cohort = method.cohort(SCHEMAS[2], group)
    assert cohort.n_units == 140
    assert cohort.n_weighted == pytest.approx(100 + 40 * cohort.shares["b"])
    assert cohort.shares["b"] == pytest.approx(mu_for(0.5, 1e-6) / mu_for(1.0, 1e-6), abs=2e-3)
    assert method.plan(cohort).cohort.n_weighted == pytest.approx(cohort.n_weighted)
    party = Cohort.of(SCHEMAS[2], SumGroup.of({"a": 1, "b": 1}, quorum=2, told="none", offers={"b": 0.5}), colluders=0,
                      unit="party")  # fmt: skip
    assert party.with_offers(method.promise.settled(2), taken=True).n_weighted < 2


def test_with_little_noise_the_model_is_that_of_the_weighted_fit() -> None:
    X, y = make_data(3000, 3, 2)
    groups = np.array(["a", "b"])[np.arange(3000) % 2]
    offered = Federation.split(X, y, groups=groups, norm_bound=1.0, offers={"b": 300.0})
    model = FunctionalMechanism(epsilon=1000.0, delta=1e-6, l2=1.0).fit(offered)
    plan = offered.terms(model).plan
    share = plan.cohort.shares["b"]
    assert 0.3 < share < 0.7
    (t, A), (t_b, A_b) = (statistics(offered.guard(name).table, 1.0) for name in ("a", "b"))
    weighted, plain = (minimum(np.atleast_2d(t + c * t_b), plan.curvature * (A + c * A_b), 1.0) for c in (share, 1.0))
    learned = np.append(model.coef_, model.intercept_)
    assert np.abs(learned - weighted).max() < 0.2 * np.abs(plain - weighted).max()


@pytest.mark.parametrize(
    "method",
    [
        Averaging(),
        PrivateNewton(epsilon=math.inf),
        FunctionalMechanism(delta=0),
        NoisyDescent(rounds=3, batch=0.2),
        NoisyDescent(rounds=3, calibration="paper"),
    ],
    ids=repr,
)
def test_methods_that_cannot_weigh_a_party_say_so(method: Method) -> None:
    with pytest.raises(SettingError, match=r"'b' offers less epsilon than is asked, and .* cannot take that"):
        method.fit(parties())


def test_offers_that_are_none_are_refused() -> None:
    with pytest.raises(SettingError, match="party 'b' offers epsilon 1, and 1 is asked; it may offer less"):
        PrivateNewton().fit(parties(offers={"b": 1.0}))
    with pytest.raises(SettingError, match="its records would hardly count"):
        PrivateNewton().fit(parties(offers={"b": 1e-4}))
    with pytest.raises(SettingError, match="offers names 'z', which is no party; known are a, b, c"):
        parties(offers={"z": 0.5})


def test_a_run_that_counts_on_another_offer_does_not_begin() -> None:
    federation = parties()
    method = PrivateNewton()
    group = federation.group(method)
    assert SumGroup.decode(group.encode()) == group
    agreement, sizes = Agreement(study="s", method=method), dict(zip(group.names, group.sizes, strict=True))
    for offers, whose in (({}, "b"), ({"b": 0.31}, "b"), ({"b": 0.3, "a": 0.3}, "a")):
        false = SumGroup.of(sizes, quorum=3, offers=offers)
        with pytest.raises(NotAgreed, match=f"the run counts on another epsilon than party '{whose}' offers"):
            federation.guard(whose).begin("r", agreement, false)
        federation.guard("c").begin(str(offers), agreement, false)  # it is nothing to the others


def test_a_group_without_offers_is_written_as_before_there_were_any() -> None:
    group = SumGroup.of({"a": 3, "b": 4}, quorum=2)
    assert b"offers" not in group.encode()
    assert SumGroup.decode(group.encode()) == group
