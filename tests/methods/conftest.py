"""Small federations to learn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import Federation, Policy
from tacit.methods import METHODS

EVERYTHING = Policy(not_private=list(METHODS))


def make_data(n: int = 300, d: int = 4, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d)) / np.sqrt(d)
    W = 3 * chance.normal(size=(classes, d))
    y = np.argmax(X @ W.T + chance.gumbel(size=(n, classes)), axis=1)
    return X, y


@pytest.fixture
def federation() -> Callable[..., Federation]:
    def make(n: int = 300, d: int = 4, classes: int = 2, seed: int = 0, **settings: Any) -> Federation:
        X, y = make_data(n, d, classes, seed)
        settings = {"weights": [3, 2, 1], "norm_bound": 1.0, "policy": EVERYTHING} | settings
        return Federation.split(X, y, **settings)

    return make
