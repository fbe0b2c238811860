"""What a run keeps at a node: its shares of a value, and what the value is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.errors import CenterError
from tacit.secure.share import Shared
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class KeptValue:
    """A value that a run keeps at this node.

    Attributes:
        shared: this node's shares.
        origin: a name for all that it is a function of.
        contexts: the questions that were answered with what it is made of.
        parties: who are in the sums that it is made of.
        contrasts: whose variances may be opened, as the parties declared them; empty: nobody's.
    """

    shared: Shared = field(repr=False)
    origin: str
    contexts: frozenset[str]
    parties: frozenset[str]
    contrasts: str

    @staticmethod
    def made_of(read: Sequence[KeptValue], shared: Shared, origin: str) -> KeptValue:
        """What a program keeps that read these."""
        return KeptValue(
            shared=shared,
            origin=origin,
            contexts=frozenset[str]().union(*(one.contexts for one in read)),
            parties=read[0].parties,
            contrasts=declared_by(read),
        )

    def answers(self) -> Value:
        """The questions behind it, as a node remembers them."""
        return [*sorted(self.contexts)]


def check_parties(program: str, read: Sequence[KeptValue]) -> None:
    """Refuse to mix sums over different parties: one party's own value would stand for everybody's."""
    if len({one.parties for one in read}) != 1:
        raise CenterError(f"program {program!r} reads sums over different parties; it runs on those of one group")


def declared_by(read: Sequence[KeptValue]) -> str:
    """The contrasts that all declared who declared any; none if they differ."""
    declared = {one.contrasts for one in read} - {""}
    return declared.pop() if len(declared) == 1 else ""
