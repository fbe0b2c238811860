"""Nobody on the line decides what an answer costs: change any one field of a true question, and the party refuses it or
charges for exactly what it then releases.

Every question of a fit is kept with the party's ledger as it was just before. Each is then put again, changed in one
place, to a guard with that ledger. The plan is the party's own. So an answer to a changed question, if there is one,
has the noise and the event of the true one, and only what the coordinator may choose can change without a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tacit import Federation
from tacit.errors import TacitError
from tacit.federation.engine import InProcess, RunStart
from tacit.federation.guard import Guard
from tacit.federation.message import Answer, Question
from tacit.methods import make
from tacit.privacy.event import Event
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.process_key import SealKeys
from tacit.wire import Value

from .test_contract import CASES

Make = Callable[..., Federation]
KEYS = EmbeddedCenter().keys


@dataclass(frozen=True)
class Asked:
    """A true question to one party, and what the party's ledger held before."""

    start: RunStart
    question: Question
    party: str
    ledger: bytes
    event: Event


class Recorder(InProcess):
    """Keeps the first and the last question about each step, with the state of a party's ledger before it."""

    def __init__(self, engine: InProcess) -> None:
        self._guards = engine._guards
        self.asked: dict[tuple[str, bool], Asked] = {}

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        question, party = Question.decode(message), parties[0]
        before = self._guards[party].ledger.database.serialize()
        answers = super().ask(start, message, parties, keys)
        event = answers[party].event
        asked = Asked(start, question, party, before, event)
        self.asked.setdefault((question.step, False), asked)
        self.asked[question.step, True] = asked
        return answers


def recorded(parties: Federation) -> Recorder:
    assert isinstance(parties.engine, InProcess)
    parties.engine = recorder = Recorder(parties.engine)
    return recorder


def guard_then(recorder: Recorder, asked: Asked) -> Guard:
    """The party's guard as it was before the question."""
    now = recorder.guard(asked.party)
    ledger = Ledger()
    ledger.database.deserialize(asked.ledger)
    return Guard(now.name, now.table, policy=now.policy, ledger=ledger, rng=Rng.seeded(1), offer=now.offer)


def changed_fields(question: Question) -> Iterator[Question]:
    """The question with one field changed that a party can check by itself."""
    yield replace(question, study=question.study + "x")
    yield replace(question, run=question.run + "x")
    yield replace(question, method="pooled" if question.method != "pooled" else "local")
    yield replace(question, step=question.step + "x")
    yield replace(question, step="pooled/sums" if question.step != "pooled/sums" else "local/model")
    yield replace(question, version=question.version + 1)
    yield replace(question, group="0" * 64)
    yield replace(question, plan="0" * 64)
    yield replace(question, turn=-1)
    yield replace(question, turn=10**9)


def changed_form(value: Value) -> Iterator[Value]:
    """Values of another form: no step takes them."""
    if not isinstance(value, Mapping):
        yield {"epsilon": 9.0}
        return
    yield None
    yield {**value, "epsilon": 9.0}
    for key in value:
        yield {other: item for other, item in value.items() if other != key}
        yield {**value, key: STRANGE_VALUES[type(value[key]) is bytes]}


STRANGE_VALUES: tuple[Value, Value] = (b"strange", "strange")


def changed_values(value: Value) -> Iterator[Value]:
    """Values of the same form that the coordinator could have chosen."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield from ({**value, key: other} for other in changed_values(item))
        case bool():
            yield not value
        case int():
            yield value + 1
        case float():
            yield from (value + 1.0, -value - 3.0, 1e300, float("nan"), float("inf"))
        case str():
            yield value + "x"
        case bytes():
            yield from (value + b"x", value[:-1], bytes([value[0] ^ 1]) + value[1:] if value else b"y")
        case list():
            yield value[:-1]
        case np.ndarray() if value.dtype == np.float64:
            yield from (value + 0.5, value * 1e3, np.full_like(value, np.nan), value * 1e300, value[:-1], value[None])
        case np.ndarray():
            yield from (value[:-1], value[None], np.zeros_like(value))


def outcome(recorder: Recorder, asked: Asked, question: Question) -> Event | None:
    """What the party charges for its answer to a changed question; None if it refuses."""
    guard = guard_then(recorder, asked)
    before = guard.ledger.n_releases(guard.name)
    try:
        answer = Answer.decode(guard.answer(question.encode(), asked.start.agreement, KEYS))
    except TacitError:
        assert guard.ledger.n_releases(guard.name) == before
        return None
    assert guard.ledger.n_releases(guard.name) == before + 1
    return answer.event


OFFERS = [  # the party that is asked offers less than the others
    pytest.param(name, {**settings, "offers": {"party1": 0.4}}, id=f"{name}-offers")
    for name, settings in {"private-newton": {"rounds": 1}, "noisy-descent": {"rounds": 2}}.items()
]


@pytest.mark.parametrize(("name", "settings"), [*CASES, *OFFERS])
def test_nobody_on_the_line_decides_what_an_answer_costs(federation: Make, name: str, settings: dict[str, Any]) -> None:
    settings = dict(settings)
    parties = federation(offers=settings.pop("offers", None))
    recorder = recorded(parties)
    make(name, settings).fit(parties)
    assert recorder.asked
    for asked in {id(asked): asked for asked in recorder.asked.values()}.values():  # the last may be the first
        for question in changed_fields(asked.question):
            assert outcome(recorder, asked, question) is None, question
        for values in changed_form(asked.question.values):
            assert outcome(recorder, asked, replace(asked.question, values=values)) is None, values
        for values in changed_values(asked.question.values):
            charged = outcome(recorder, asked, replace(asked.question, values=values))
            assert charged in (None, asked.event), (asked.question.step, values)
