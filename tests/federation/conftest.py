"""Parties to ask, a few steps to ask them, and a method that asks whatever a test wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Agreement, Ask, Terms
from tacit.federation.federation import Federation
from tacit.federation.group import SizesTold, SumGroup
from tacit.federation.guard import Guard
from tacit.federation.message import Question
from tacit.federation.reply import Disclosed, Noised, Sealed
from tacit.federation.step import Step, step
from tacit.methods.cohort import Cohort
from tacit.privacy.event import Event, NotPrivate, Pure
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.unit import Unit

SCHEMA = Schema.of_arrays(2, ["0", "1"])


@dataclass(frozen=True, kw_only=True)
class Plan:
    cohort: Cohort
    epsilon: float
    n_parties: int


@dataclass(frozen=True, kw_only=True)
class Shift:
    by: float


@step("test/count", version=1, plan=Plan)
def count(table: Table, plan: Plan, *, rng: Rng) -> Noised:
    noise = int(discrete_laplace(1 / plan.epsilon, 1, rng=rng)[0])
    return Noised({"count": table.n_records + noise}, Pure(epsilon=plan.epsilon))


@step("test/shifted", version=3, plan=Plan, values=Shift)
def shifted(table: Table, plan: Plan, shift: Shift, *, rng: Rng) -> Noised:
    noise = int(discrete_laplace(1 / plan.epsilon, 1, rng=rng)[0])
    return Noised({"count": table.n_records + noise + shift.by}, Pure(epsilon=plan.epsilon))


@step("test/sum", version=1, plan=Plan)
def addend(table: Table, plan: Plan, *, rng: Rng) -> Sealed:
    noise = discrete_laplace(1 / plan.epsilon, 2, rng=rng)
    bound = (NormBound(size=2, norm=10**6),)
    return Sealed(np.array([table.n_records, 1]) + noise, Pure(epsilon=plan.epsilon), plan.n_parties, bound)


@step("test/raw", version=1, plan=Plan)
def raw(table: Table, plan: Plan, *, rng: Rng) -> Disclosed:
    return Disclosed({"X": table.arrays()[0]}, "raw data, for a test")


calls: list[str] = []


@step("test/batched", version=1, plan=Plan)
def single(table: Table, plan: Plan, *, rng: Rng) -> Noised:
    calls.append("single")
    return Noised({"one": 1}, Pure(epsilon=plan.epsilon))


@single.batched
def many(tables: list[Table], plan: Plan, *, rngs: list[Rng]) -> list[Noised]:
    calls.append("many")
    return [Noised({"one": 1}, Pure(epsilon=plan.epsilon)) for _ in tables]


def event_of(one: Step, plan: Plan) -> Event:
    """What an answer to a step of this file costs."""
    return NotPrivate(why="raw data, for a test") if one is raw else Pure(epsilon=plan.epsilon)


@dataclass(frozen=True)
class Probe:
    """A method that asks these steps, in this order, each up to `times`."""

    steps: tuple[Step, ...]
    epsilon: float = 0.1
    n_parties: int | None = None
    times: int = 100
    name: str = "m"
    sizes_told: SizesTold = "each"
    weighted_unit: Unit = "record"
    needs_everybody: bool = True

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        plan = Plan(
            cohort=Cohort.of(schema, group, colluders=None),
            epsilon=self.epsilon,
            n_parties=group.n_parties if self.n_parties is None else self.n_parties,
        )
        return Terms(
            plan=plan, course=tuple(Ask(step=one, times=self.times, event=event_of(one, plan)) for one in self.steps)
        )


def agreement(*steps: Step, runs: int | None = None, **settings: object) -> Agreement:
    """What a test's party agreed to."""
    return Agreement(study="s", method=Probe(steps, **settings), digest="d", runs=runs)  # type: ignore[arg-type]


def group_of(*guards: Guard) -> SumGroup:
    return SumGroup.of({guard.name: guard.table.n_records for guard in guards}, quorum=len(guards))


def question(
    guard: Guard, agreed: Agreement, step: Step, *, run: str = "r", turn: int = 0, values: object = None
) -> bytes:
    terms = agreed.terms(guard.table.schema, group_of(guard))
    return Question(
        study="s", run=run, method="m", step=step.name, version=step.version, group=group_of(guard).digest,
        plan=terms.digest, turn=turn,
        values=step.encode_values(values),
    ).encode()  # fmt: skip


def table(n: int) -> Table:
    return Table.from_arrays(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2, SCHEMA)


@pytest.fixture
def make_parties() -> Callable[..., Federation]:
    def make(sizes: dict[str, int] | None = None, **settings: object) -> Federation:
        sizes = {"north": 10, "south": 20, "west": 5} if sizes is None else sizes
        return Federation.from_tables({name: table(n) for name, n in sizes.items()}, **settings)  # type: ignore[arg-type]

    return make
