"""The ballot: what parties are asked when they vote on public rows, and the three ways in which they answer.

The rows travel compressed: they go to every party, and encoded rows are mostly zeros and repetitions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import PolicyRefusal, WireError
from tacit.federation.reply import Disclosed, Sealed
from tacit.federation.step import step
from tacit.methods.label_statistic import lengthened, simplex, vote_sensitivity
from tacit.methods.local_classifier import Votes, check_local_classifiers, local_models, votes_of
from tacit.privacy.event import Event, NotPrivate
from tacit.privacy.grid import NoiseGrid, VectorSum, gaussian_grid, pure_grid
from tacit.rand import Rng
from tacit.wire import MAX_BYTES

Floats = npt.NDArray[np.float64]

NO_NOISE = "epsilon is infinite: no noise is added"
DISCLOSED = "votes or models are disclosed to a trusted entity"
_BLOCK_VALUES = 2**22  # votes turned into floats at once: 32 MB
_COINS = 32  # bytes that a party gives to the entity's noise


def packed(X: Floats) -> bytes:
    """Rows as they travel."""
    return zlib.compress(np.ascontiguousarray(X, dtype="<f8").tobytes())


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """The public arguments of a vote: the rows (compressed), and what votes on them."""

    n_rows: int
    n_features: int
    n_classes: int
    rows: bytes
    local: Sequence[str]
    l2: float

    @cached_property
    def X(self) -> Floats:  # noqa: N802
        """The public rows, of shape (N, d)."""
        size = self.n_rows * self.n_features * 8
        if not 0 < size <= MAX_BYTES:
            raise WireError(f"public rows of shape ({self.n_rows}, {self.n_features}) cannot be sent; give fewer")
        try:
            data = zlib.decompressobj().decompress(self.rows, size + 1)
        except zlib.error:
            data = b""
        if len(data) != size:
            raise WireError("the public rows of a question do not have the shape that it states")
        X = np.frombuffer(data, dtype="<f8").reshape(self.n_rows, self.n_features)
        if not np.isfinite(X).all():
            raise WireError("the public rows of a question are not finite")
        return X

    def check(self, table: Table) -> None:
        """Refuse rows that are not of this party's columns and classes, and classifiers that it does not have."""
        if (self.n_features, self.n_classes) != (table.n_columns, table.n_classes):
            raise PolicyRefusal("the plan's columns or classes do not fit this party's table")
        check_local_classifiers(self.local)


@dataclass(frozen=True, kw_only=True)
class Plan(Ballot):
    """The public arguments of a run: the ballot, and enough to check what the opened statistic will cost.

    `basis` is B, of shape (k, r). `sensitivity` is S. `constant` 0 means no intercept.
    """

    epsilon: float
    delta: float | None
    n_parties: int
    colluders: int
    basis: Floats
    sensitivity: float
    constant: float
    quorum: int | None = None

    @cached_property
    def D(self) -> Floats:  # noqa: N802
        """The public rows in the coordinates in which the statistic is opened, of shape (N, r)."""
        return lengthened(self.X, self.constant) @ self.basis

    @cached_property
    def needed(self) -> float:
        """S as these rows have it."""
        return vote_sensitivity(self.D, self.n_parties)

    @property
    def dimension(self) -> int:
        """How many numbers are opened."""
        return self.basis.shape[1] * (self.n_classes - 1)

    @cached_property
    def grid(self) -> NoiseGrid:
        """Where the statistic is rounded to, and what noise each party adds to it."""
        total = VectorSum(
            dimension=self.dimension,
            sensitivity=self.sensitivity,
            value_bound=self.sensitivity,  # |sum_i D_ik E_ic| / N is at most (1) and (2) of `label_statistic`
            n_parties=self.n_parties,
            colluders=self.colluders,
            quorum=self.quorum,
        )
        if self.delta is None:
            return pure_grid(total, epsilon=self.epsilon)
        return gaussian_grid(total, epsilon=self.epsilon, delta=self.delta)

    def event(self) -> Event:
        """What the opened statistic costs one party."""
        return NotPrivate(why=NO_NOISE) if math.isinf(self.epsilon) else self.grid.event()

    def check(self, table: Table) -> None:
        """Refuse a plan that is not true of the rows it brings, or not of this party's table."""
        super().check(table)
        facts_hold = (
            self.basis.ndim == 2
            and self.basis.shape[0] == self.n_features + (self.constant != 0)
            and np.isfinite(self.basis).all()
            and 0 <= self.colluders < self.n_parties
            and self.needed <= self.sensitivity
        )
        if not facts_hold:
            raise PolicyRefusal("the plan's sensitivity, basis or number of parties does not fit its public rows")

    def addends(self, votes: Votes) -> Floats:
        """D'A_j E / (N M) of each party, of shape (parties, r (C-1)), from votes of shape (parties, N)."""
        E = simplex(self.n_classes)
        # Each row has one vote, so the sum over class 0 is the total less the others.
        V = np.repeat((self.D.sum(axis=0)[:, None] * E[0])[None], len(votes), axis=0)
        for c in range(1, self.n_classes):
            V += ((votes == c).astype(np.float64) @ self.D)[:, :, None] * (E[c] - E[0])
        addends: Floats = V.reshape(len(votes), -1) / (self.n_rows * self.n_parties)
        return addends


@step("ensemble/statistic", version=1)
def vote_statistic(table: Table, *, rng: Rng, **arguments: Any) -> Sealed:
    """Vote on the public rows and seal the votes' statistic, noised."""
    return _sealed([table], [rng], Plan(**arguments))[0]


@vote_statistic.batched
def vote_statistics(tables: Sequence[Table], *, rngs: Sequence[Rng], **arguments: Any) -> list[Sealed]:
    """The same for many parties at once."""
    return _sealed(tables, rngs, Plan(**arguments))


def _sealed(tables: Sequence[Table], rngs: Sequence[Rng], plan: Plan) -> list[Sealed]:
    for table in tables:
        plan.check(table)
    votes = votes_of(tables, plan.X, names=plan.local, l2=plan.l2, rngs=rngs)
    several = max(1, _BLOCK_VALUES // plan.n_rows)
    replies: list[Sealed] = []
    for start in range(0, len(tables), several):
        # Parties of one process draw from one generator of it, which is many times faster than from each one's own.
        noised = plan.grid.to_grid(plan.addends(votes[start : start + several]), rng=rngs[start])
        replies += [Sealed(addend=addend, event=plan.event(), n_parties=plan.grid.total.least) for addend in noised]
    return replies


@step("ensemble/votes", version=1)
def party_votes(table: Table, *, rng: Rng, **arguments: Any) -> Disclosed:
    """Vote on the public rows, for a trusted entity's eyes; with coins for its noise."""
    return _disclosed_votes([table], [rng], Ballot(**arguments))[0]


@party_votes.batched
def many_votes(tables: Sequence[Table], *, rngs: Sequence[Rng], **arguments: Any) -> list[Disclosed]:
    """The same for many parties at once."""
    return _disclosed_votes(tables, rngs, Ballot(**arguments))


def _disclosed_votes(tables: Sequence[Table], rngs: Sequence[Rng], ballot: Ballot) -> list[Disclosed]:
    for table in tables:
        ballot.check(table)
    votes = votes_of(tables, ballot.X, names=ballot.local, l2=ballot.l2, rngs=rngs)
    return [
        Disclosed({"votes": own, "coins": rng.bytes(_COINS)}, DISCLOSED) for own, rng in zip(votes, rngs, strict=True)
    ]


@step("ensemble/model", version=1)
def party_model(table: Table, *, rng: Rng, l2: float, constant: float) -> Disclosed:
    """This party's logistic model, for a trusted entity's eyes; with coins for its noise."""
    return _disclosed_models([table], [rng], l2, constant)[0]


@party_model.batched
def many_models(tables: Sequence[Table], *, rngs: Sequence[Rng], l2: float, constant: float) -> list[Disclosed]:
    """The same for many parties at once."""
    return _disclosed_models(tables, rngs, l2, constant)


def _disclosed_models(tables: Sequence[Table], rngs: Sequence[Rng], l2: float, constant: float) -> list[Disclosed]:
    models = local_models(tables, l2=l2, constant=constant)
    return [
        Disclosed({"theta": theta, "coins": rng.bytes(_COINS)}, DISCLOSED)
        for theta, rng in zip(models, rngs, strict=True)
    ]
