"""Organisations with keys, and guards that get them as a party's daemon does; a test plays the coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Agreement, Terms
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.message import Answer, Question
from tacit.federation.policy import Policy
from tacit.federation.seat import Bond
from tacit.federation.step import Step
from tacit.methods.method import Method
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.center.node import NodeServer
from tacit.secure.signature import Sign

SCHEMA = Schema.of_arrays(2, ["0", "1"], norm_bound=1.0)
SIGNERS = {name: SigningKey(Rng.seeded(i).bytes(32)) for i, name in enumerate(("north", "south", "stranger"))}
NODE_SIGNERS = tuple(SigningKey(Rng.seeded(100 + i).bytes(32)) for i in range(3))
NODE_SEALS = tuple(PrivateKey(Rng.seeded(200 + i).bytes(32)) for i in range(3))
SEAL_KEYS = tuple(bytes(key.public_key) for key in NODE_SEALS)


def signer(key: SigningKey) -> Sign:
    return lambda message: bytes(key.sign(message).signature)


def table_of(n: int, seed: int) -> Table:
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, 2)) / 2
    y = (X[:, 0] + chance.normal(size=n) / 2 > 0).astype(np.int64)
    return Table.from_arrays(X, y, SCHEMA)


@dataclass(frozen=True)
class Organisation:
    """One party: its guard, and the names and keys that its owner accepted."""

    guard: Guard
    agreement: Agreement
    group: SumGroup

    @property
    def bond(self) -> Bond:
        return Bond(
            sum_group={name: bytes(SIGNERS[name].verify_key) for name in self.group.names},
            sign=signer(SIGNERS[self.guard.name]),
            nodes=tuple(bytes(key.verify_key) for key in NODE_SIGNERS),
        )

    @cached_property
    def terms(self) -> Terms:
        return self.agreement.terms(SCHEMA, self.group)

    @property
    def plan(self) -> Any:
        return self.terms.plan

    def begin(self, run: str = "r") -> None:
        self.guard.begin(run, self.agreement, self.group)

    def question(self, step: Step, values: Any = None, *, run: str = "r", turn: int = 0) -> Question:
        return Question(
            study="s", run=run, method=self.agreement.method.name, step=step.name, version=step.version,
            group=self.group.digest, plan=self.terms.digest, turn=turn, values=step.encode_values(values),
        )  # fmt: skip

    def ask(self, step: Step, values: Any = None, *, run: str = "r", turn: int = 0) -> Answer:
        message = self.question(step, values, run=run, turn=turn).encode()
        return Answer.decode(self.guard.answer(message, self.agreement, SEAL_KEYS, self.bond))


def organisation(name: str, method: Method, group: SumGroup, *, policy: Policy, n: int = 60) -> Organisation:
    guard = Guard(name, table_of(n, len(name)), policy=policy, ledger=Ledger(), rng=Rng.system())
    return Organisation(guard, Agreement(study="s", method=method, digest="d", runs=9), group)


def node_of(index: int, engine: Any, sign: Sign | None = None) -> NodeServer:
    """A center node that these organisations and the other nodes know."""
    keys = {name: bytes(key.verify_key) for name, key in SIGNERS.items() if name != "stranger"}
    node = NodeServer(index, engine=lambda: engine, members=lambda: keys, peers=lambda: SEAL_KEYS, sign=sign)
    node._key = node._check._key = NODE_SEALS[index]
    return node
