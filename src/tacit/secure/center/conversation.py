"""What nodes tell each other beside the engine's own messages: what they are about to do, and parts of a product.

Between organisations every such message is signed with the identity of the node that tells it. The signature binds the
sender, the recipient, the number of the message between the two, and the conversation. The conversation's name is made
from a fresh number of every node, so that nothing told in another one counts. What is agreed to is named by a digest of
the run, the question and the arguments. So nobody but the other two nodes themselves can make a node begin, open or
decrypt, whatever way a message took. On one machine all nodes are one account's, and nobody signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tacit import wire
from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.share import N_NODES
from tacit.secure.signature import Sign, is_signed

_DOMAIN = b"tacit node to node 1\0"
_SIGNATURE_BYTES = 64
_NONCE_BYTES = 32
_UNFIT = b"not with me"


class Link(Protocol):
    """What carries messages between nodes: each arrives once, in order."""

    def send(self, rank: int, message: bytes) -> None:
        """Give a message to one node."""
        ...

    def recv(self, rank: int) -> bytes:
        """The next message from one node."""
        ...


@dataclass(frozen=True, kw_only=True)
class NodeKeys:
    """How a node signs, and the public keys of all nodes' signatures, in order, as it pinned them."""

    sign: Sign
    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if len(self.keys) != N_NODES:
            raise CenterError(f"a center has {N_NODES} nodes; {len(self.keys)} keys were given")


class Conversation:
    """One node's side."""

    def __init__(self, rank: int, link: Link, signers: NodeKeys | None) -> None:
        """Begin, when all nodes do; without `signers` nothing is signed, as on one machine."""
        self._rank = rank
        self._link = link
        self._signers = signers
        self._others = [other for other in range(N_NODES) if other != rank]
        self._sent = dict.fromkeys(self._others, 0)
        self._received = dict.fromkeys(self._others, 0)
        self._name = "" if signers is None else self._begin()

    def send(self, rank: int, message: bytes) -> None:
        """Give a message to one node."""
        signature = b""
        if self._signers is not None:
            signature = self._signers.sign(self._statement(self._rank, rank, self._sent[rank], message))
            self._sent[rank] += 1
        self._link.send(rank, signature + message)

    def receive(self, rank: int) -> bytes:
        """The next message from one node; a `CenterError` if that node did not sign it as such."""
        message = bytes(self._link.recv(rank))
        if self._signers is None:
            return message
        signature, message = message[:_SIGNATURE_BYTES], message[_SIGNATURE_BYTES:]
        statement = self._statement(rank, self._rank, self._received[rank], message)
        if not is_signed(statement, signature, self._signers.keys[rank]):
            raise CenterError(f"what came in the name of node {rank} is not signed by it as its next message")
        self._received[rank] += 1
        return message

    def all_say(self, what: str | None) -> bool:
        """Whether every node says the same; None says that this one will not."""
        own = _UNFIT if what is None else what.encode()
        for other in self._others:
            self.send(other, own)
        told = [self.receive(other) for other in self._others]
        return what is not None and all(one == own for one in told)

    def _begin(self) -> str:
        """A name for this conversation that no earlier one had, whoever else draws the numbers."""
        numbers: dict[int, bytes] = {self._rank: Rng.system().bytes(_NONCE_BYTES)}
        for other in self._others:
            self._link.send(other, numbers[self._rank])
        numbers |= {other: bytes(self._link.recv(other)) for other in self._others}
        return wire.digest([numbers[rank] for rank in range(N_NODES)])

    def _statement(self, sender: int, recipient: int, number: int, message: bytes) -> bytes:
        return _DOMAIN + wire.encode([self._name, sender, recipient, number]) + message
