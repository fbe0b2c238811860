"""What center nodes tell each other through the coordinator: where each listens, and its certificate, signed.

The coordinator carries cards and could drop them, but not exchange them. A node pins the keys of its peers the first
time it sees them, and the authorities that run the nodes compare fingerprints by telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit import wire
from tacit.errors import WireError
from tacit.federation.member.identity import Identity, Member
from tacit.record import decode_record, encode_record

_DOMAIN = b"tacit node card 1\0"


@dataclass(frozen=True, kw_only=True)
class NodeCard:
    """Where a node's tunnel listens (`host:port`), the certificate that it shows (PEM), and the signature of both."""

    address: str
    certificate: str
    signature: bytes

    @staticmethod
    def make(identity: Identity, address: str, certificate: str) -> NodeCard:
        """A card, signed."""
        return NodeCard(address=address, certificate=certificate, signature=identity.sign(_text(address, certificate)))

    def check(self, member: Member) -> None:
        """Refuse a card that the member did not sign."""
        if not member.signed(_text(self.address, self.certificate), self.signature):
            raise WireError(f"the card of node {member.name!r} is not signed by it")

    def encode(self, session: str) -> bytes:
        """The card as a reply, with the session in which the node's engine is, if any."""
        return encode_record(_Reply(card=self, session=session))

    @staticmethod
    def decode(body: bytes) -> tuple[NodeCard, str]:
        """What `encode` wrote; a `WireError` for anything else."""
        reply = decode_record(_Reply, body)
        return reply.card, reply.session


@dataclass(frozen=True, kw_only=True)
class _Reply:
    card: NodeCard
    session: str


@dataclass(frozen=True, kw_only=True)
class Peers:
    """All nodes of a center, in the order of their seats, at the start of a session."""

    session: str
    members: tuple[Member, ...]
    cards: tuple[NodeCard, ...]

    def __post_init__(self) -> None:
        if len(self.members) != len(self.cards):
            raise WireError(f"{len(self.cards)} cards are told of {len(self.members)} center nodes")

    def encode(self) -> bytes:
        """As a letter's body."""
        return encode_record(self)

    @staticmethod
    def decode(body: bytes) -> Peers:
        """What `encode` wrote, each card checked against its member's key; a `WireError` for anything else."""
        peers = decode_record(Peers, body)
        for member, card in zip(peers.members, peers.cards, strict=True):
            card.check(member)
        return peers


def fingerprints_of(members: Sequence[Member]) -> dict[str, str]:
    """Name -> fingerprint: what a node pins of its peers."""
    return {member.name: member.fingerprint for member in members}


def _text(address: str, certificate: str) -> bytes:
    return _DOMAIN + wire.encode([address, certificate])
