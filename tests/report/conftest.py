from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tacit.privacy.guarantee import Guarantee
from tacit.report import INTERCEPT, CoefficientRow, FitFacts, Metrics, PartyFacts, RunFacts, TrafficFacts, evaluate

HEADINGS = {
    "Parties": "four hospitals, each with its own records; a coordinator that sees sums only",
    "Trust": "honest but curious; at most one party colludes with the coordinator",
    "Travels": "1. the coordinator sends the iterate; 2. each party sends shares of its noised gradient",
    "Revealed": "to all: every noised sum. The number of records of each party is public",
    "Privacy": "(epsilon, delta) per record, replace-one; exact Gaussian composition over the rounds",
    "Assumes": "rows of norm at most 1; each party clips its own",
    "Cost": "T rounds, d numbers each way per party and round",
    "Paper": "Design A of the project's methods page",
}


def coefficient(name: str, value: float, error: float | None = None, class_name: str | None = None) -> CoefficientRow:
    if error is None:
        return CoefficientRow(name=name, estimate=value, class_name=class_name)
    z = value / error
    return CoefficientRow(
        name=name,
        estimate=value,
        standard_error=error,
        z=z,
        p=math.erfc(abs(z) / math.sqrt(2)),
        low=value - 1.96 * error,
        high=value + 1.96 * error,
        class_name=class_name,
    )


@pytest.fixture
def exact_facts() -> RunFacts:
    """An exact fit: standard errors, and nothing promised."""
    parties = (
        PartyFacts(name="cleveland", n_records=303, epsilon=math.inf, delta=0.0, bytes_sent=18_432, releases=9),
        PartyFacts(name="hungarian", n_records=294, epsilon=math.inf, delta=0.0, bytes_sent=18_432, releases=9),
    )
    return RunFacts(
        method="PrivLogit",
        method_name="privlogit",
        calibration=None,
        settings={"l2": 0.001, "protocol": "hessian", "tolerance": 1e-6},
        headings=HEADINGS,
        classes=("no", "yes"),
        target="disease",
        parties=parties,
        guarantee=None,
        traffic=TrafficFacts(rounds=9, messages=36, bytes_up=36_864, bytes_down=9_216),
        seconds=1.53,
        coefficients=(
            coefficient(INTERCEPT, -1.234, 0.301),
            coefficient("age", 0.0312, 0.0121),
            coefficient("chest_pain=none", 1.872, 0.244),
            coefficient("max_heart_rate", -0.0213, 0.0118),
        ),
        fit=FitFacts(log_likelihood=-271.3456, aic=550.6912, n_records=597),
        notices=("12 values in column age were outside its bounds and were clipped",),
    )


@pytest.fixture
def private_facts(exact_facts: RunFacts) -> RunFacts:
    """A private fit: no standard errors, a finite epsilon."""
    return replace(
        exact_facts,
        method="PrivateNewton",
        method_name="private-newton",
        calibration="sound",
        settings={"epsilon": 1.0, "delta": 1e-6, "l2": 0.001, "n_rounds": 8},
        guarantee=Guarantee(epsilon=1.0, delta=1e-6),
        parties=tuple(replace(party, epsilon=1.0, delta=1e-6) for party in exact_facts.parties),
        coefficients=tuple(coefficient(row.name, row.estimate or 0.0) for row in exact_facts.coefficients),
        fit=None,
        notices=(),
    )


@pytest.fixture
def metrics() -> Metrics:
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 400)
    p = np.clip(0.25 + 0.5 * y + rng.normal(0, 0.2, 400), 0.01, 0.99)
    return evaluate(y, np.column_stack([1 - p, p]), ("no", "yes"))


@pytest.fixture
def row() -> Callable[..., CoefficientRow]:
    return coefficient
