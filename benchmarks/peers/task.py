"""What a peer is given: all records in one place, and the promise that it has to keep.

Every peer is one function of a `Task` that returns log odds on the test rows. Rows have norm at most 1. With a constant
for the intercept, and divided by the root of 2, they still have: `rows`. So a record adds a vector no longer than 1 to
a sum of gradients. Under add-remove such a sum moves by at most 1, under replace-one by at most 2: `steps`.

How many records there are sets nothing but penalties and lengths of steps in peers under add-remove, and is taken to be
known, as delta = 1/n^2 takes it to be. That is to the peers' advantage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from peers.attribute import Attributes
from tacit.privacy.accounting import mu_for
from tacit.privacy.guarantee import Relation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """Records with labels 0 and 1, test rows, and what is promised about a record."""

    X: Floats
    y: Ints
    X_test: Floats
    epsilon: float
    delta: float
    relation: Relation
    seed: int
    attributes: Attributes | None = None  # the same records as codes, for those that count
    y_test: Ints | None = None  # for an oracle alone

    @property
    def mu(self) -> float:
        """What all releases may cost together: mu**2 of Gaussian releases add up exactly."""
        return mu_for(self.epsilon, self.delta)

    @property
    def steps(self) -> int:
        """How far a sum of vectors of norm at most 1 moves between neighbours."""
        return 2 if self.relation == "replace-one" else 1

    @cached_property
    def rng(self) -> np.random.Generator:
        """Chance of a simulation: a peer's noise is no release."""
        return np.random.default_rng(self.seed)

    @property
    def rows(self) -> Floats:
        """Rows with a constant, of norm at most 1."""
        return with_constant(self.X)

    def scores(self, theta: Floats) -> Floats:
        """Log odds on the test rows of a model over `rows`."""
        found: Floats = (self.X_test @ theta[:-1] + theta[-1]) / math.sqrt(2)
        return found

    def noise(self, mu: float, size: int) -> Floats:
        """Gaussian noise for a sum of vectors of norm at most 1 that may cost mu; none if mu is infinite."""
        return self.rng.normal(scale=self.steps / mu, size=size)


_last: list[tuple[Floats, Floats]] = []


def with_constant(X: Floats) -> Floats:
    """Rows of norm at most 1 with a constant, again of norm at most 1; kept for the last rows asked for."""
    if not _last or _last[0][0] is not X:
        rows = np.empty((len(X), X.shape[1] + 1))
        np.multiply(X, math.sqrt(0.5), out=rows[:, :-1])
        rows[:, -1] = math.sqrt(0.5)
        _last[:] = [(X, rows)]
    return _last[0][1]
