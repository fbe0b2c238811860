"""Who carries questions to parties. The in-process engine is first class: same guards, same ledgers, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Protocol

from tacit.data.schema import Schema
from tacit.errors import Refused, SettingError
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup
from tacit.federation.guard import (
    Admitted,
    Guard,
    admit_all,
    begin_all,
    keep_costs,
    recall_all,
    release_all,
)
from tacit.federation.message import Answer
from tacit.federation.reply import Reply
from tacit.secure.process_key import SealKeys
from tacit.unit import Unit

_SEVERAL = 4096  # parties whose decisions are one transaction


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a party tells when it joins: facts that the study's neighbouring relation leaves unchanged.

    Attributes:
        name: its name.
        n_records: how many records it has, or persons where a study's promise is for persons; 0 where it hides that.
        n_persons: in a simulation, which is of no study: how many persons its records are of; None if nothing tells.
        signature: the party's own, of its size and offer in this study; empty in a simulation.
        offer: the epsilon that it offers, where that is less than the study asks.
    """

    name: str
    n_records: int
    signature: bytes = b""
    n_persons: int | None = None
    offer: float | None = None

    def size(self, unit: Unit) -> int:
        """How many units it has, as far as it tells."""
        if unit == "party":
            return 1
        return self.n_records if unit == "record" or self.n_persons is None else self.n_persons


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """How a run begins: its name, what it is a run of, and with whom."""

    run: str
    agreement: Agreement
    group: SumGroup


class Engine(Protocol):
    """Carries one question to the parties and their answers back."""

    @property
    def cards(self) -> Mapping[str, Card]:
        """The parties that joined, in a fixed order."""
        ...

    @property
    def schema(self) -> Schema:
        """The public facts that all tables share."""
        ...

    def begin(self, start: RunStart) -> None:
        """Let every party reserve what a run costs; if one says no, the others get theirs back, and it is raised."""
        ...

    def abandon(self, start: RunStart, parties: Sequence[str]) -> None:
        """Tell these parties that a run is over for them; who has answered nothing in it gets its cost back."""
        ...

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        """The answers of those parties that gave one in time."""
        ...

    def exclude(self, parties: Mapping[str, str]) -> None:
        """Note the parties whose addends the center refused, and why."""
        ...

    def spent(self, study: str, delta: float) -> dict[str, float]:
        """The epsilon that each party has spent in `study`, as far as it tells."""
        ...

    def close(self) -> None:
        """Let go of the connection, if there is one."""
        ...


class InProcess:
    """All parties in this process, each behind its own guard; they are served together where a step allows it."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        if not guards:
            raise SettingError("a federation needs at least one party")
        schemas = list({id(guard.table.schema): guard.table.schema for guard in guards}.values())
        if any(schema.digest() != schemas[0].digest() for schema in schemas[1:]):
            raise SettingError("the parties' tables have different schemas; build them all from one Schema")
        self._guards = {guard.name: guard for guard in guards}
        if len(self._guards) < len(guards):
            raise SettingError("two parties have the same name; every party needs a name of its own")

    @property
    def cards(self) -> Mapping[str, Card]:
        """The parties, in the order in which they were given."""
        return {
            name: Card(name=name, n_records=guard.table.n_records, n_persons=guard.table.n_persons, offer=guard.offer)
            for name, guard in self._guards.items()
        }

    @property
    def schema(self) -> Schema:
        """The public facts that all tables share."""
        return next(iter(self._guards.values())).table.schema

    def guard(self, party: str) -> Guard:
        """The guard of one party."""
        return self._guards[party]

    def begin(self, start: RunStart) -> None:
        """Let every guard agree to the run, and pay for it beforehand; if one does not, nobody has paid."""
        begun: list[Guard] = []
        for guards in _batches([self._guards[name] for name in start.group.names]):
            try:
                begin_all(guards, start.run, start.agreement, start.group)
            except Refused:
                self.abandon(start, [guard.name for guard in begun])
                raise
            begun += guards

    def abandon(self, start: RunStart, parties: Sequence[str]) -> None:
        """Let these guards give back what the run reserved, if they answered nothing in it."""
        for name in parties:
            self._guards[name].abandon(start.run)

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        """Ask each party's guard; parties that have a stored answer are not asked to compute again."""
        answers: dict[str, Answer] = {}
        for some in _batches([self._guards[name] for name in parties]):
            answers |= {name: Answer.decode(stored) for name, stored in recall_all(some, message).items()}
        guards = [self._guards[name] for name in parties if name not in answers]
        if not guards:
            return answers
        admitted, *_ = [admit_all(some, message, start.agreement) for some in _batches(guards)]
        for some in _batches(guards):
            keep_costs(some, admitted.question)
        replies = dict(zip((guard.name for guard in guards), self._replies(guards, admitted), strict=True))
        for guard in guards:
            guard.inspect(message, replies[guard.name])  # all of them before the first is charged
        for some in _batches(guards):
            released = release_all(some, message, [replies[guard.name] for guard in some], keys)
            for one in released:
                answers[one.answer.party] = replace(one.answer, n_bytes=len(one.message))
        return {name: answers[name] for name in parties}

    def _replies(self, guards: Sequence[Guard], admitted: Admitted) -> Sequence[Reply]:
        """What the step gives at each of these parties."""
        tables, rngs = [guard.table for guard in guards], [guard.rng for guard in guards]
        seats = [guard.seat(admitted.question) if admitted.step.seated else None for guard in guards]
        try:
            return admitted.step.run_many(tables, admitted.plan, admitted.values, rngs=rngs, seats=seats)
        except Refused:  # values that no plan allows
            raise
        except Exception:
            for guard in guards:
                guard.note_failure(admitted.question)
            raise

    def exclude(self, parties: Mapping[str, str]) -> None:
        """Nobody is refused in a simulation: its nodes take every addend."""

    def spent(self, study: str, delta: float) -> dict[str, float]:
        """The epsilon that each party has spent in `study`."""
        return {name: g.ledger.epsilon(g.account, delta=delta, study=study) for name, g in self._guards.items()}

    def close(self) -> None:
        """Nothing is open."""


def _batches(guards: Sequence[Guard]) -> Iterator[list[Guard]]:
    """Guards one after another that share a ledger, some thousands at a time."""
    for _, sharing in groupby(guards, key=lambda guard: id(guard.ledger)):
        while some := list(islice(sharing, _SEVERAL)):
            yield some
