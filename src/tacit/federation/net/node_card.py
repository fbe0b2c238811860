"""What center nodes tell each other through the coordinator: where each listens, and its certificate, signed.

The coordinator carries cards and could drop them, but not exchange them: a node pins the keys of its peers the first
time it sees them, and the authorities that run the nodes compare fingerprints by telephone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tacit import wire
from tacit.errors import SettingError, WireError
from tacit.federation.net.identity import Identity, Member

_DOMAIN = b"tacit node card 1\0"


@dataclass(frozen=True, kw_only=True)
class NodeCard:
    """Where a node's engine listens (`host:port`), whose certificate it shows (PEM), and the signature of both."""

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
        return wire.encode({**vars(self), "session": session})

    @staticmethod
    def decode(body: bytes) -> tuple[NodeCard, str]:
        """What `encode` wrote."""
        match wire.decode(body):
            case {
                "address": str(address),
                "certificate": str(certificate),
                "signature": bytes(signature),
                "session": str(session),
            }:
                return NodeCard(address=address, certificate=certificate, signature=signature), session
        raise WireError("a center node's card cannot be read; use the same release")


@dataclass(frozen=True, kw_only=True)
class Peers:
    """All nodes of a center, in the order of their seats, at the start of a session."""

    session: str
    members: tuple[Member, ...]
    cards: tuple[NodeCard, ...]

    def encode(self) -> bytes:
        """As a letter's body."""
        nodes = [
            {"member": json.dumps(member.as_dict()), **vars(card)}
            for member, card in zip(self.members, self.cards, strict=True)
        ]
        return wire.encode({"session": self.session, "nodes": list(nodes)})

    @staticmethod
    def decode(body: bytes) -> Peers:
        """What `encode` wrote, each card checked against its member's key."""
        match wire.decode(body):
            case {"session": str(session), "nodes": list(nodes)}:
                pairs = [_pair(node) for node in nodes]
                for member, card in pairs:
                    card.check(member)
                return Peers(
                    session=session,
                    members=tuple(member for member, _ in pairs),
                    cards=tuple(card for _, card in pairs),
                )
        raise WireError("a message does not say who the center's nodes are")


def fingerprints_of(members: Sequence[Member]) -> dict[str, str]:
    """Name -> fingerprint: what a node pins of its peers."""
    return {member.name: member.fingerprint for member in members}


def _pair(node: object) -> tuple[Member, NodeCard]:
    match node:
        case {
            "member": str(form),
            "address": str(address),
            "certificate": str(certificate),
            "signature": bytes(signature),
        }:
            try:
                parsed = json.loads(form)
                member = Member.from_dict(parsed if isinstance(parsed, dict) else {})
            except (ValueError, SettingError) as error:
                raise WireError("a center node is not described as one") from error
            return member, NodeCard(address=address, certificate=certificate, signature=signature)
    raise WireError("a center node's card cannot be read; use the same release")


def _text(address: str, certificate: str) -> bytes:
    return _DOMAIN + wire.encode([address, certificate])
