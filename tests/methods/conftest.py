"""Small federations to learn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from tacit import Federation, Policy, Schema
from tacit.federation.agreement import Terms
from tacit.federation.channel import Channel
from tacit.federation.group import SumGroup
from tacit.methods import METHODS, Method
from tacit.methods.cohort import Cohort

EVERYTHING = Policy(not_private=list(METHODS))


def make_data(n: int = 300, d: int = 4, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d)) / np.sqrt(d)
    W = 3 * chance.normal(size=(classes, d))
    y = np.argmax(X @ W.T + chance.gumbel(size=(n, classes)), axis=1)
    return X, y


@pytest.fixture(scope="session")
def federation() -> Callable[..., Federation]:
    def make(n: int = 300, d: int = 4, classes: int = 2, seed: int = 0, **settings: Any) -> Federation:
        X, y = make_data(n, d, classes, seed)
        defaults = {"weights": [3, 2, 1], "norm_bound": 1.0, "policy": EVERYTHING, "persons": np.arange(n) // 2}
        settings = defaults | settings
        return Federation.split(X, y, **settings)

    return make


def cohort_of(*sizes: int, d: int = 2, classes: int = 2, colluders: int | None = None, constant: float = 1.0) -> Cohort:
    """A cohort of parties with so many records each, with rows of norm at most 1."""
    schema = Schema.of_arrays(d, list(range(classes)), norm_bound=1.0)
    group = SumGroup.of({f"p{i}": size for i, size in enumerate(sizes)}, quorum=len(sizes))
    return Cohort.of(schema, group, colluders=colluders, constant=constant)


def assert_drawn_from(law: Any, draws: np.ndarray) -> None:
    """The draws follow the law: in shape (Kolmogorov and Smirnov) and, which few draws tell best, in size."""
    draws = np.ravel(draws)
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3
    second, fourth = law.moment(2), law.moment(4)
    assert abs(np.mean(draws**2) - second) < 4 * np.sqrt((fourth - second**2) / len(draws))


def derived(model: Method, channel: Channel) -> Terms:
    """What a party works out from the study's settings and from the sum group, as it travels."""
    group = SumGroup.decode(channel._start.group.encode())
    terms: Terms = clone(model).terms(channel.schema, group)
    return terms
