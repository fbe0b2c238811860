"""Parties to ask, and a few steps to ask them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.reply import Disclosed, Noised, Public, Sealed
from tacit.federation.step import step
from tacit.privacy.event import Pure
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng

SCHEMA = Schema.of_arrays(2, ["0", "1"])


@step("test/count", version=1)
def count(table: Table, *, rng: Rng, epsilon: float) -> Noised:
    noise = int(discrete_laplace(1 / epsilon, 1, rng=rng)[0])
    return Noised({"count": table.n_records + noise}, Pure(epsilon=epsilon))


@step("test/sum", version=1)
def addend(table: Table, *, rng: Rng, epsilon: float, n_parties: int) -> Sealed:
    noise = discrete_laplace(1 / epsilon, 2, rng=rng)
    return Sealed(np.array([table.n_records, 1]) + noise, Pure(epsilon=epsilon), n_parties)


@step("test/public", version=1)
def public(table: Table, *, rng: Rng, value: float) -> Public:
    return Public({"twice": 2 * value})


@step("test/raw", version=1)
def raw(table: Table, *, rng: Rng) -> Disclosed:
    return Disclosed({"X": table.arrays()[0]}, "raw data, for a test")


calls: list[str] = []


@step("test/batched", version=1)
def single(table: Table, *, rng: Rng) -> Public:
    calls.append("single")
    return Public({"one": 1})


@single.batched
def many(tables: list[Table], *, rngs: list[Rng]) -> list[Public]:
    calls.append("many")
    return [Public({"one": 1}) for _ in tables]


def table(n: int) -> Table:
    return Table.from_arrays(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2, SCHEMA)


@pytest.fixture
def make_parties() -> Callable[..., Federation]:
    def make(sizes: dict[str, int] | None = None, **settings: object) -> Federation:
        sizes = {"north": 10, "south": 20, "west": 5} if sizes is None else sizes
        return Federation.from_tables({name: table(n) for name, n in sizes.items()}, **settings)  # type: ignore[arg-type]

    return make
