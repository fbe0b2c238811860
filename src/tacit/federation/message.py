"""What travels between coordinator and party: a question down, an answer up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from tacit import wire
from tacit.errors import WireError
from tacit.privacy.event import Event, from_json, to_json
from tacit.record import decode_record, encode_record
from tacit.wire import Value

Kind = Literal["noised", "sealed", "kept", "encrypted", "relayed", "disclosed"]
_KINDS = frozenset(get_args(Kind))
_ANSWER = {"party": str, "question": str, "kind": str, "value": dict, "event": dict}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A step to run, and what only the coordinator can know.

    Attributes:
        study: the study that the party consented to.
        run: which run of that study; a new run is a new question and costs anew.
        method: the method that asks, as policies name it.
        step: the step's registered name.
        version: the step's version.
        group: the digest of the run's sum group.
        plan: the digest of the coordinator's plan; the party's own must be the same.
        turn: how often the run has asked this step before.
        values: the step's values, as its dataclass says; None if it has none.
    """

    study: str
    run: str
    method: str
    step: str
    version: int
    group: str
    plan: str
    turn: int
    values: Value

    def encode(self) -> bytes:
        """The question as it travels; also what its digest is taken of, so a retry is the same question."""
        return encode_record(self)

    @staticmethod
    @lru_cache(maxsize=4)  # thousands of simulated parties get the very same bytes; arrays in them are read-only
    def decode(message: bytes) -> Question:
        """The question in `message`; a `WireError` if it is none."""
        return decode_record(Question, message)


@lru_cache(maxsize=4)
def question_digest(message: bytes) -> str:
    """The name of a question: the SHA-256 of its bytes."""
    return hashlib.sha256(message).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a guard let go.

    Attributes:
        party: who answers.
        question: the digest of the question.
        kind: which of the ways it left.
        value: what was noised, relayed or disclosed; for the others, envelopes.
        event: what it cost.
        n_bytes: how many bytes it was when it was read; not part of it.
    """

    party: str
    question: str
    kind: Kind
    value: Mapping[str, Value]
    event: Event
    n_bytes: int = field(default=0, compare=False)

    def encode(self) -> bytes:
        """The answer as it travels and as the ledger stores it."""
        return wire.encode(
            {
                "party": self.party,
                "question": self.question,
                "kind": self.kind,
                "value": self.value,
                "event": _plain(to_json(self.event)),
            }
        )

    @staticmethod
    def decode(message: bytes) -> Answer:
        """The answer in `message`; a `WireError` if it is none."""
        form = wire.decode(message)
        if not isinstance(form, dict) or form.keys() != _ANSWER.keys():
            raise WireError("a message is not an answer")
        if any(type(form[name]) is not kind for name, kind in _ANSWER.items()) or form["kind"] not in _KINDS:
            raise WireError("a message is not an answer")
        said: dict[str, Any] = form
        return Answer(
            party=said["party"], question=said["question"], kind=said["kind"], value=said["value"],
            event=from_json(said["event"]), n_bytes=len(message),
        )  # fmt: skip


def _plain(value: object) -> Value:
    """An event's JSON as a value of the wire."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
    raise WireError(f"an event cannot hold a {type(value).__name__}")
