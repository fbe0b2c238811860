"""Events of which only (epsilon, delta) is known."""

from __future__ import annotations

import json
import math

import pytest

from tacit.errors import SettingError
from tacit.privacy.accounting import epsilon_of, guarantee_of
from tacit.privacy.event import Approximate, Composed, Event, Gaussian, NotPrivate, Pure, Repeated, from_json, to_json

ONE = Approximate(epsilon=0.5, delta=1e-7)


def test_it_costs_what_it_says_and_nothing_less_is_promised() -> None:
    assert epsilon_of(ONE, 1e-7) == pytest.approx(0.5, rel=1e-9)
    assert epsilon_of(ONE, 1e-7) >= 0.5
    assert epsilon_of(ONE, 0.99e-7) == math.inf
    assert epsilon_of(ONE, 0.0) == math.inf


def test_epsilons_and_deltas_add_up() -> None:
    both = Composed(events=(ONE, Approximate(epsilon=0.25, delta=2e-7)))
    assert epsilon_of(both, 3.0001e-7) == pytest.approx(0.75, rel=1e-9)
    assert epsilon_of(both, 2.9e-7) == math.inf
    assert epsilon_of(Composed(events=(ONE, Pure(epsilon=1.0))), 1e-7) == pytest.approx(1.5, rel=1e-9)


def test_many_compose_as_well_as_pure_ones_but_for_their_deltas() -> None:
    """Randomised response is the worst (epsilon, delta) mechanism, with a chance of delta to tell everything."""
    many = Repeated(event=Approximate(epsilon=0.02, delta=1e-9), count=400)
    pure = Repeated(event=Pure(epsilon=0.02), count=400)
    assert epsilon_of(many, 1e-6) == pytest.approx(epsilon_of(pure, 1e-6 - 400e-9), rel=1e-9)
    assert epsilon_of(many, 1e-6) < 8.0
    assert epsilon_of(many, 3.9e-7) == math.inf


@pytest.mark.parametrize("delta", [1e-7, 1e-6, 1e-4])
def test_with_randomised_response_the_promise_is_met(delta: float) -> None:
    """The exact delta of the worst mechanism: delta + (1 - delta) (p - exp(epsilon) (1 - p))_+."""
    p = 1 / (1 + math.exp(-ONE.epsilon))
    exact = ONE.delta + (1 - ONE.delta) * max(0.0, p - math.exp(epsilon_of(ONE, delta)) * (1 - p))
    assert exact <= delta


@pytest.mark.parametrize("rest", [Gaussian(noise_multiplier=4.0), Pure(epsilon=0.1), NotPrivate(why="test")])
def test_the_rest_gets_what_is_left_of_delta(rest: Event) -> None:
    both = Composed(events=(ONE, rest))
    without = Composed(events=(Pure(epsilon=ONE.epsilon), rest))
    assert epsilon_of(both, 1e-5) == epsilon_of(without, 1e-5 - 1e-7)


def test_a_guarantee_is_made_at_the_delta_that_it_needs() -> None:
    guarantee = guarantee_of(ONE, 1e-6, "record", "replace-one")
    assert (guarantee.delta, guarantee.is_private) == (1e-6, True)


def test_it_comes_back_from_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(ONE)))) == ONE


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": 0.0, "delta": 1e-6}, "Approximate.epsilon = 0.0 must be positive"),
        ({"epsilon": math.inf, "delta": 1e-6}, "Approximate.epsilon = inf must be positive and finite"),
        ({"epsilon": 1.0, "delta": 0.0}, "Approximate.delta = 0.0 must lie in"),
        ({"epsilon": 1.0, "delta": 1.0}, "Approximate.delta = 1.0 must lie in"),
    ],
)
def test_what_promises_nothing_is_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Approximate(**fields)
