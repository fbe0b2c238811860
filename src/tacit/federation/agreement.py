"""What a party agreed to: a study's method, from which it works out itself what may be asked.

The coordinator and each party derive the same terms from the same study, by the same code: the plan (noise, bounds,
regularisation, numbers of rounds) and the course (which steps a run asks, in which order, how often). Neither travels.
A question that does not follow from the terms is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tacit import wire
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotAgreed, PolicyRefusal
from tacit.federation.group import SizesTold, SumGroup
from tacit.federation.look import PlannedLooks
from tacit.federation.message import Question
from tacit.federation.step import Step
from tacit.privacy.event import Event
from tacit.privacy.ledger import Reservation, Stage
from tacit.unit import Unit

_MOST_TERMS = 8  # of runs under way at once; what falls out is derived again


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One stage of a run: a step that is asked up to so many times in the run, and up to `each` times of one party.

    `each` None means as often as the run asks it. `event` is what one answer costs; the party releases nothing else.
    `own` has the cost of the parties for which it is another: those that offer less.
    """

    step: Step
    event: Event
    times: int = 1
    each: int | None = None
    own: Mapping[str, Event] = field(default_factory=dict)

    def cost(self, party: str) -> Event:
        """What one answer costs this party."""
        return self.own.get(party, self.event)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """How often a party answered a step in a run, and the last turn of these."""

    count: int
    last_turn: int


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What follows from a study and a sum group.

    Attributes:
        plan: all that the steps need to know. Its class is the method's affair; every plan has a `cohort` whose
            `check(table)` refuses a table that the plan is not true of.
        course: the stages of a run, in order.
        delta: the run's own, at which its epsilon is stated.
    """

    plan: Any
    course: tuple[Ask, ...]
    delta: float = 0.0

    def reservation(self, party: str) -> Reservation:
        """What a run may cost a party: every answer that its course allows."""
        if any(party in ask.own for ask in self.course):
            return self._reservation([ask.cost(party) for ask in self.course])
        return self._common

    @cached_property
    def _common(self) -> Reservation:
        """That of every party without a cost of its own; worked out once for all parties of a simulation."""
        return self._reservation([ask.event for ask in self.course])

    def _reservation(self, costs: Sequence[Event]) -> Reservation:
        stages = tuple(
            Stage(step=ask.step.name, event=cost, times=ask.each or ask.times)
            for ask, cost in zip(self.course, costs, strict=True)
        )
        return Reservation(stages=stages, delta=self.delta)

    @cached_property
    def digest(self) -> str:
        """A name for the plan, by which a party notices that the coordinator works from other settings."""
        return hashlib.sha256(_plain(self.plan).encode()).hexdigest()

    def check(self, question: Question, answered: Mapping[str, Answered]) -> Step:
        """The question's step, if the course asks it at this point of the run."""
        if question.plan != self.digest:
            raise NotAgreed(
                f"the coordinator's plan is not the one that study {question.study!r} entails; run the study's own "
                f"method and settings, with the same release"
            )
        stages = {ask.step.name: (place, ask) for place, ask in enumerate(self.course)}
        if question.step not in stages:
            raise NotAgreed(f"the study's method never asks step {question.step!r}")
        place, ask = stages[question.step]
        if question.version != ask.step.version:
            raise NotAgreed(
                f"step {question.step!r} has version {ask.step.version} here, not {question.version}; "
                f"use the same release"
            )
        later = [name for name in answered if stages.get(name, (0, ask))[0] > place]
        if later:
            raise NotAgreed(f"step {question.step!r} comes before {later[0]!r}, which was answered already")
        before = answered.get(question.step, Answered(count=0, last_turn=-1))
        if not before.last_turn < question.turn < ask.times or before.count >= (ask.each or ask.times):
            raise NotAgreed(
                f"step {question.step!r} is asked {ask.times} times in a run, each turn once; turn "
                f"{question.turn + 1} is not the next"
            )
        return ask.step


class Planned(Protocol):
    """A method as a guard knows it: it says from its settings alone what a run is."""

    @property
    def name(self) -> str:
        """As policies name it."""
        ...

    @property
    def sizes_told(self) -> SizesTold:
        """What the parties of a run are told of their numbers of records."""
        ...

    @property
    def weighted_unit(self) -> Unit:
        """Whose records weigh 1 together in a sum: sizes are numbers of these."""
        ...

    @property
    def needs_everybody(self) -> bool:
        """Whether a round cannot go on without a few parties."""
        ...

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        """The plan and the course of a run with this group; a `SettingError` if there can be none."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """A party's consent to one study.

    Attributes:
        study: its name, as the ledger knows it.
        digest: of the very study that was agreed to; empty in a simulation.
        method: the study's method, with its settings.
        runs: how many runs were agreed to; None sets no limit (a simulation).
        least: the fewest parties of a run, and of each of its rounds.
        everybody: the parties of every run, no more and no fewer; None where `least` of the accepted suffice.
        dropouts: how many of those that began a round may go on without, down to `least`; None sets no limit (a
            simulation).
        looks: the looks that the study plans; None if a run is a run. `runs` is then how many of each look.
        content: digests of what the study's files hold, by name; a question brings nothing else in their place.
    """

    study: str
    method: Planned
    digest: str = ""
    runs: int | None = None
    least: int = 1
    everybody: frozenset[str] | None = None
    dropouts: int | None = None
    looks: PlannedLooks | None = None
    content: Mapping[str, str] = field(default_factory=dict)
    _terms: dict[str, tuple[Schema, Terms]] = field(default_factory=dict, repr=False)  # by the group's digest

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        """What follows for a run with this group; worked out once for all parties of a simulation."""
        found = self._terms.get(group.digest)
        if found is not None and (found[0] is schema or found[0] == schema):
            return found[1]
        while len(self._terms) >= _MOST_TERMS:
            del self._terms[next(iter(self._terms))]
        terms = self.method.terms(schema, group)
        self._terms[group.digest] = schema, terms
        return terms

    def check_content(self, question: Question, step: Step) -> None:
        """Refuse values in place of a file's content that are not what the owner consented to."""
        for name, key in step.content.items():
            if key in self.content:
                assert isinstance(question.values, Mapping)  # it was decoded
                if wire.digest(question.values[name]) != self.content[key]:
                    raise NotAgreed(
                        f"the question of step {step.name!r} brings other {name} than study {self.study!r} states; "
                        f"run it with the file that its parties consented to"
                    )

    def name_of(self, look: int) -> str:
        """The name under which a ledger counts runs: the digest, with the look where there are some."""
        return f"{self.digest} look {look}" if look else self.digest

    def later_looks(self, look: int) -> list[str]:
        """The names of the looks that are planned after this one."""
        n_looks = 0 if self.looks is None else len(self.looks.n_records)
        return [self.name_of(later) for later in range(look + 1, n_looks + 1)]

    def check_table(self, party: str, table: Table) -> None:
        """Refuse a table that does not tell the units that the promise is for."""
        if self.method.weighted_unit == "person" and table.n_persons is None:
            raise PolicyRefusal(
                f"party {party!r} does not tell whose a record is, and the promise is for persons; name the column "
                f"that does (person=...), or give persons"
            )

    def check_group(self, group: SumGroup) -> None:
        """Refuse a group that the study does not allow."""
        if self.looks is not None:
            self.looks.check(group)
        elif group.look:
            raise NotAgreed(f"the study plans no looks, and the run is of look {group.look}")
        if self.everybody is not None and self.everybody != set(group.names):
            raise NotAgreed(
                f"the study names no quorum, so a run is with {', '.join(sorted(self.everybody))} and nobody else; "
                f"this one is with {', '.join(sorted(group.names))}"
            )
        if group.n_parties < self.least:
            raise NotAgreed(f"the study asks for {self.least} parties or more, and the run has {group.n_parties}")
        fewest = 1 if self.dropouts is None else max(self.least, group.n_parties - self.dropouts)
        if group.quorum < fewest:
            raise NotAgreed(
                f"the run would go on with {group.quorum} of {group.n_parties} parties, and the study with no fewer "
                f"than {fewest}"
            )
        if self.method.needs_everybody and group.quorum < group.n_parties:
            raise NotAgreed(f"method {self.method.name!r} needs every party in every round")
        if group.offers and self.looks is not None:
            raise NotAgreed(
                "the study plans looks, each with its share of the promise; no party can offer less than that"
            )
        if group.told != self.method.sizes_told:
            raise NotAgreed(
                f"method {self.method.name!r} tells of sizes: {self.method.sizes_told}; the run tells: {group.told}"
            )


def _plain(value: object) -> str:
    """A plan as text that is the same on every machine: floats to nine digits, since the last ones may differ."""
    match value:
        case Schema():
            return value.digest()
        case SumGroup():
            return value.digest
        case None | bool() | int() | str() | bytes():
            return repr(value)
        case float():
            return f"{value:.9g}"
        case list() | tuple():
            return f"[{','.join(map(_plain, value))}]"
        case Mapping():
            return f"{{{','.join(f'{key!r}:{_plain(value[key])}' for key in sorted(value))}}}"
        case np.ndarray():
            return f"{value.shape}{_plain(value.ravel().tolist())}"
        case _ if is_dataclass(value) and not isinstance(value, type):
            inner = ",".join(f"{one.name}={_plain(getattr(value, one.name))}" for one in fields(value))
            return f"{type(value).__name__}({inner})"
    raise TypeError(f"a plan holds a {type(value).__name__}, which has no plain form")
