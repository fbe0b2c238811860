"""What a center node does with the coordinator's letters: it gives requests to the node, which decides what it may do.

Sums are added here. What programs read is kept and computed by the node's engine, a program of its own. Engines speak
with each other directly, through a tunnel that lets in exactly the pinned nodes (`secure/center/tunnel.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from tacit import wire
from tacit.daemon.center.process import ENGINE, EnginePeer, EngineProcess
from tacit.daemon.membership import note_changes
from tacit.errors import CenterError, SettingError, TacitError, WireError
from tacit.federation.member.folder import MemberFolder, read_json
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.node_card import NodeCard, Peers, fingerprints_of
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import CARD, MEMBERS, NODE, PEERS, LetterReply, refusal
from tacit.federation.nats.letter import Letter
from tacit.secure.center.node import NodeServer
from tacit.secure.center.tunnel import TunnelEnd
from tacit.secure.certificate import make_own
from tacit.secure.envelope import OPEN
from tacit.secure.share import N_NODES
from tacit.storage import OWNER_ONLY, make_private_folder, write_json

_LISTEN = "listen.json"
_PEERS = "peers.json"
_ENGINES = ("check", "keep", "compute", "encrypt", "product", "forget")  # the requests that the node's engine serves


def prepare_engine(folder: Path, listen: str | None) -> str:
    """Write where the node's engine listens, and its own certificate; returns the address."""
    address = listen or f"127.0.0.1:{free_port()}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise SettingError(f"--listen {address!r} is not of the form HOST:PORT")
    make_own(folder, ENGINE, host)
    write_json(folder / _LISTEN, {"address": address}, mode=OWNER_ONLY)
    return address


class NodeHandler:
    """What a center node does with letters that are believed."""

    streams = (MEMBERS,)

    def __init__(self, folder: MemberFolder, journal: Journal) -> None:
        if folder.seat is None:
            raise SettingError(f"{folder.path} does not say which seat this node has; join again")
        make_private_folder(folder.path)
        self._folder = folder
        self._seat = folder.seat
        self._journal = journal
        self._known_members = KnownMembers(folder.path)
        known = self._known_members
        self._node = NodeServer(folder.seat, home=folder.path, members=known.keys, peers=known.node_keys)
        self._card = _own_card(folder)
        self._engine: EngineProcess | None = None
        self._session = ""

    def close(self) -> None:
        """Stop the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def arrives(self, letter: Letter) -> None:
        """A new session ends whatever the engine is doing: its peers are no longer there to do it with."""
        if letter.kind == PEERS and self._engine is not None:
            self._engine.kill()

    def news(self) -> Mapping[str, bytes]:
        """A node has nothing to tell of its own accord."""
        return {}

    def handle(self, letter: Letter) -> LetterReply | None:
        """The node's reply to a request."""
        try:
            match letter.kind:
                case "card":
                    alive = self._engine is not None and self._engine.is_alive
                    return LetterReply(kind=CARD, body=self._card.encode(self._session if alive else ""))
                case "peers":
                    self._meet(Peers.decode(letter.body))
                    return LetterReply(kind=PEERS, body=b"N")
                case "node":
                    return LetterReply(kind=NODE, body=self._request(letter.body))
                case "members":
                    self._learn(letter.body)
        except TacitError as error:
            self._journal.note("refused", kind=letter.kind, why=str(error))
            return refusal(type(error).__name__, str(error))
        return None

    def _learn(self, body: bytes) -> None:
        """Pin who is new; where the operator insists, they are told of until they are accepted."""
        note_changes(self._known_members.follow(MemberList.decode(body)), self._journal)
        waiting = sorted(set(self._known_members.parties()) - set(self._known_members.keys()))
        if waiting:
            self._journal.note("not-accepted-yet", members=", ".join(waiting))

    def _request(self, body: bytes) -> bytes:
        match wire.decode(body):
            case {"ask": str(ask), "use": str(use)} if ask == "check" and use == OPEN:
                reply = self._node.handle(body)
            case {"ask": str(ask)} if ask in _ENGINES:
                if self._engine is None:
                    raise CenterError("this node's engine was not started; resume the study")
                reply = self._engine.handle(body)
            case {"ask": str(ask)}:
                reply = self._node.handle(body)
            case _:
                raise WireError("a request that is none of a node's")
        outcome = next(iter(told)) if isinstance(told := wire.decode(reply), dict) else ""
        self._journal.note("request", ask=ask, bytes=len(body), outcome=outcome)
        if outcome == "broken" and self._engine is not None:
            self._engine.kill()  # the next run begins a new session
        return reply

    def _meet(self, peers: Peers) -> None:
        """Begin a session with these peers, who must be the ones that were pinned."""
        own = peers.members[self._seat] if len(peers.members) == N_NODES else None
        if own != self._folder.member or peers.cards[self._seat] != self._card:
            raise CenterError(f"the coordinator describes node {self._folder.identity.name!r} as another than it is")
        if gone := self._known_members.gone() & {member.name for member in peers.members}:
            raise CenterError(f"center node {min(gone)!r} was revoked; it computes nothing any more")
        self._pin(fingerprints_of(peers.members))
        self.close()
        nodes = [
            EnginePeer(end=TunnelEnd(address=card.address, certificate=card.certificate), letter_key=member.letter_key)
            for member, card in zip(peers.members, peers.cards, strict=True)
        ]
        self._engine = EngineProcess(self._seat, self._folder.path, nodes)
        self._session = peers.session
        self._journal.note("session", session=peers.session)

    def _pin(self, found: dict[str, str]) -> None:
        path = self._folder.path / _PEERS
        if not path.exists():
            write_json(path, found, mode=OWNER_ONLY)
            for name, fingerprint in found.items():
                self._journal.note("pinned", node=name, fingerprint=fingerprint)
        elif not self._are_the_same(read_json(path), found):
            raise CenterError(
                f"the other nodes have other keys than those pinned in {path.name}; if that is right, remove the file"
            )

    def _are_the_same(self, pinned: object, found: dict[str, str]) -> bool:
        """Whether all have the keys that were pinned, or keys that these have signed, which are then pinned instead."""
        steps = {step.old.fingerprint: step.new.fingerprint for step in self._known_members.rotations()}
        current = {str(name): str(mark) for name, mark in pinned.items()} if isinstance(pinned, dict) else {}
        for _ in range(len(steps)):
            current = {name: steps.get(mark, mark) for name, mark in current.items()}
        if current == found and current != pinned:
            write_json(self._folder.path / _PEERS, found, mode=OWNER_ONLY)
        return current == found


def _own_card(folder: MemberFolder) -> NodeCard:
    match read_json(folder.path / _LISTEN):
        case {"address": str(address)}:
            certificate = (folder.path / f"{ENGINE}.pem").read_text(encoding="ascii")
            return NodeCard.make(folder.identity, address, certificate)
    raise SettingError(f"{folder.path / _LISTEN} is damaged; join again with a new invitation")


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
