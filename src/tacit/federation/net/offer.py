"""A study as it travels: its text, its digest, and what the engine must know of it without reading the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tacit import wire
from tacit.data.schema import Schema
from tacit.errors import SchemaError, WireError


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What is offered to the parties.

    Attributes:
        name: the study's name, under which ledgers count.
        digest: what a party consents to.
        text: the study file.
        schema: the columns, as the schema's own plain form.
        quorum: how few parties suffice; None: all that are asked.
        deadline_seconds: how long a question is waited for.
        parties: who is asked; None: every party of the federation.
        dropouts: how many of those that began may be missing in a round.
    """

    name: str
    digest: str
    text: str
    schema: Mapping[str, object]
    quorum: int | None
    deadline_seconds: float
    parties: tuple[str, ...] | None
    dropouts: int = 0

    def read_schema(self) -> Schema:
        """The schema."""
        try:
            return Schema.from_dict(self.schema)
        except SchemaError as error:
            raise WireError(f"the schema of study {self.name!r} cannot be read: {error}") from error

    def encode(self) -> bytes:
        """The offer as a letter's body."""
        return wire.encode(
            {
                "name": self.name,
                "digest": self.digest,
                "text": self.text,
                "schema": json.dumps(dict(self.schema), sort_keys=True),
                "quorum": self.quorum,
                "deadline_seconds": float(self.deadline_seconds),
                "parties": None if self.parties is None else list(self.parties),
                "dropouts": self.dropouts,
            }
        )

    @staticmethod
    def decode(body: bytes) -> Offer:
        """The offer in a letter's body; a `WireError` if it is none."""
        match wire.decode(body):
            case {
                "name": str(name),
                "digest": str(digest),
                "text": str(text),
                "schema": str(schema),
                "quorum": int() | None as quorum,
                "deadline_seconds": float(deadline),
                "parties": list() | None as parties,
                "dropouts": int(dropouts),
                **rest,
            } if not rest and (parties is None or all(isinstance(party, str) for party in parties)):
                try:
                    form = json.loads(schema)
                except ValueError:
                    form = None
                if isinstance(form, dict):
                    asked = None if parties is None else tuple(str(party) for party in parties)
                    return Offer(
                        name=name, digest=digest, text=text, schema=form, quorum=quorum, deadline_seconds=deadline,
                        parties=asked, dropouts=dropouts,
                    )  # fmt: skip
        raise WireError("a message is not a study")
