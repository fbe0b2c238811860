"""The center, reached over the message server: the same requests to the same nodes, as letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from tacit import wire
from tacit.errors import CenterError
from tacit.federation.member.identity import Member
from tacit.federation.member.node_card import NodeCard, Peers
from tacit.federation.nats.exchange import Request
from tacit.federation.nats.kind import CARD, NODE, PEERS, PING, REFUSAL
from tacit.federation.nats.letter import Letter
from tacit.rand import Rng
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.share import N_NODES

Send = Callable[[Request], Mapping[str, Letter]]

_LOOK_SECONDS = 10.0  # how long a silent node is waited for before it is asked whether it is there
_PING_SECONDS = 10.0
_QUESTIONS_KEPT = 16


class RemoteCenter(MessageCenter):
    """Three nodes on other machines. A node may compute for as long as it needs, but it must be there."""

    def __init__(
        self, send: Send, nodes: Sequence[Member], turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`turn` is held while the nodes are asked: they must get the requests of several runs in one order."""
        self._send = send
        self._nodes = tuple(nodes)
        self._turn = turn
        self._introduced = False
        self._asked: dict[str, tuple[str, ...]] = {}

    def note_asked(self, context: str, parties: Sequence[str]) -> None:
        """Remember to whom a question was put: the nodes are told with its sum."""
        self._asked = {**dict(list(self._asked.items())[-_QUESTIONS_KEPT:]), context: tuple(parties)}

    def asked(self, context: str) -> Sequence[str] | None:
        """All parties to whom the question was put."""
        return self._asked.get(context)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""
        return tuple(node.seal_key for node in self._nodes)

    def computing(self) -> Center:
        """Itself, once the nodes' engines know each other."""
        if not self._introduced:
            with self._turn():
                self._introduce()
            self._introduced = True
        return self

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        """Give one message to each node, and return their answers.

        Raises:
            CenterError: if a node is gone, or fewer nodes than a center has were ever there.
        """
        self._check_complete()
        with self._turn():
            bodies = {node.name: request for node, request in zip(self._nodes, requests, strict=True)}
            replies = self._all(NODE, bodies)
        return [replies[name] for name in bodies]

    def _introduce(self) -> None:
        """See that all nodes are in one session of the engine; if not, begin one."""
        self._check_complete()
        replies = self._all(CARD, {node.name: b"" for node in self._nodes})
        cards = [NodeCard.decode(replies[node.name]) for node in self._nodes]
        sessions = {session for _, session in cards}
        if len(sessions) == 1 and "" not in sessions:
            return
        peers = Peers(session=Rng.system().bytes(8).hex(), members=self._nodes, cards=tuple(card for card, _ in cards))
        self._all(PEERS, {node.name: peers.encode() for node in self._nodes})

    def _all(self, kind: str, bodies: Mapping[str, bytes]) -> dict[str, bytes]:
        # A node that gets a request again, because its answer was lost, gives the same answer again.
        reference = Rng.system().bytes(16).hex()
        replies: dict[str, bytes] = {}
        while missing := [name for name in bodies if name not in replies]:
            request = Request(
                kind=kind,
                bodies={name: bodies[name] for name in missing},
                reference=reference,
                seconds=_LOOK_SECONDS,
            )
            for name, letter in self._send(request).items():
                if letter.kind == REFUSAL:
                    raise CenterError(f"center node {name!r} refused: {_why(letter.body)}")
                replies[name] = letter.body
            self._check_alive([name for name in bodies if name not in replies])
        return replies

    def _check_complete(self) -> None:
        if len(self._nodes) != N_NODES:
            raise CenterError(
                f"{len(self._nodes)} of {N_NODES} center nodes have joined; invite the others (`tacit coordinator "
                f"invite NODE --center`), or choose a method that seals nothing"
            )

    def _check_alive(self, names: Sequence[str]) -> None:
        if not names:
            return
        there = self._send(Request(kind=PING, bodies=dict.fromkeys(names, b""), seconds=_PING_SECONDS))
        gone = [name for name in names if name not in there]
        if gone:
            raise CenterError(
                f"center node {gone[0]!r} does not answer; start it (`tacit center serve`), then resume the study"
            )


def _why(body: bytes) -> str:
    match wire.decode(body):
        case {"why": str(why)}:
            return why
    return "it does not say why"
