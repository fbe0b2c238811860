"""A study as it travels: its text, its digest, and what the engine must know of it without reading the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit import wire
from tacit.data.schema import Schema
from tacit.errors import SchemaError, WireError
from tacit.federation.member.approval import Approval
from tacit.record import encode_record, from_value
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What is offered to the parties.

    Attributes:
        name: the study's name, under which ledgers count.
        digest: what a party consents to.
        text: the study file.
        schema: the columns, as the schema's own plain form.
        quorum: how few parties suffice; None: everybody who was accepted, and nobody else.
        deadline_seconds: how long a question is waited for.
        parties: who is asked; None: every party of the federation.
        dropouts: how many of those that began may be missing in a round.
        approvals: who signed that the study is good; a party verifies them itself.
        ended: why the study is over, so that nobody joins any more; empty while it is open.
    """

    name: str
    digest: str
    text: str
    schema: Mapping[str, Value]
    quorum: int | None
    deadline_seconds: float
    parties: tuple[str, ...] | None
    dropouts: int = 0
    approvals: tuple[Approval, ...] = ()
    ended: str = ""

    def read_schema(self) -> Schema:
        """The schema."""
        try:
            return Schema.from_dict(self.schema)
        except SchemaError as error:
            raise WireError(f"the schema of study {self.name!r} cannot be read: {error}") from error

    def encode(self) -> bytes:
        """The offer as a letter's body."""
        return encode_record(self)

    @staticmethod
    def decode(body: bytes) -> Offer:
        """The offer in a letter's body; a `WireError` if it is none."""
        value = wire.decode(body)
        older: dict[str, Value] = {"ended": "", "approvals": []}  # older ones are open, and nobody signed them
        return from_value(Offer, {**older, **value} if isinstance(value, Mapping) else value)
