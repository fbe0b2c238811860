"""The engine of a center node as a program of its own: it can be stopped in the middle of a computation.

    python -m tacit.daemon.center.process DESCRIPTOR SEAT HOME

It reads from its pipe who its peers are, opens its end of the tunnel to them, and answers requests until the pipe
closes. The engine itself listens only within the node's folder.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tacit import wire
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.known_members import KnownMembers
from tacit.record import decode_record, encode_record
from tacit.secure.center.child import ChildProcess, end_with
from tacit.secure.center.conversation import NodeKeys
from tacit.secure.center.engine import EngineLink, SecureEngine, enter_folder
from tacit.secure.center.node import NodeServer
from tacit.secure.center.tunnel import Tunnel, TunnelEnd

ENGINE = "engine"  # its certificate, its key and the folder of its sockets, in the node's folder

_PROGRAM = "tacit.daemon.center.process"
_CONNECT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class EnginePeer:
    """One node of a session: its end of the tunnel, and the public key of its signatures."""

    end: TunnelEnd
    letter_key: bytes


@dataclass(frozen=True, kw_only=True)
class _Peers:
    """All nodes of a session, in the order of their seats: what the program is told first."""

    peers: tuple[EnginePeer, ...]


class EngineProcess:
    """This end of the pipe."""

    def __init__(self, seat: int, home: Path, peers: Sequence[EnginePeer]) -> None:
        """Start the program, in the folder that has its identity, its certificate and its key."""
        self._child = ChildProcess(["-m", _PROGRAM], [str(seat), str(home)], home / "engine.log")
        self._child.pipe.send_bytes(encode_record(_Peers(peers=tuple(peers))))

    @property
    def is_alive(self) -> bool:
        """Whether the program runs."""
        return self._child.is_alive

    def handle(self, request: bytes) -> bytes:
        """The node's answer; `broken` if the program ended before it gave one."""
        try:
            self._child.pipe.send_bytes(request)
            return self._child.pipe.recv_bytes()
        except (EOFError, OSError):
            return wire.encode({"broken": "a center node's engine was stopped; resume the study"})

    def kill(self) -> None:
        """End the program at once, whatever it is doing; whoever waits for its answer gets `broken`."""
        self._child.kill()

    def close(self) -> None:
        """End the program and wait for it."""
        self._child.kill()
        self._child.join()
        self._child.pipe.close()


def main() -> None:
    """The program."""
    descriptor, seat, home = sys.argv[1:]
    pipe = Connection(int(descriptor))
    end_with(pipe)
    with contextlib.suppress(EOFError, OSError):
        serve(pipe, int(seat), Path(home).resolve())


def serve(pipe: Connection, seat: int, home: Path) -> None:
    """Meet the peers that the first message names, and answer until the pipe closes."""
    peers = decode_record(_Peers, pipe.recv_bytes()).peers
    own = MemberFolder.load(home, "center").identity
    link = EngineLink(
        rank=seat,
        patience_seconds=_CONNECT_SECONDS,
        signers=NodeKeys(sign=own.sign, keys=tuple(peer.letter_key for peer in peers)),
    )
    enter_folder(home / ENGINE)

    @functools.cache
    def tunnel() -> Tunnel:
        ends = [peer.end for peer in peers]
        return Tunnel(seat, ends, certificate=home / f"{ENGINE}.pem", key=home / f"{ENGINE}.key")

    @functools.cache
    def engine() -> SecureEngine:
        tunnel()
        return SecureEngine(link)  # waits for the peers

    known = KnownMembers(home)
    node = NodeServer(seat, home=home, engine=engine, members=known.keys, peers=known.node_keys, sign=own.sign)
    while True:
        pipe.send_bytes(node.handle(pipe.recv_bytes()))


if __name__ == "__main__":
    main()
