"""The engine of a center node as a program of its own: it can be stopped in the middle of a computation.

    python -m tacit.daemon.center.process DESCRIPTOR SEAT HOME

It reads where its peers are from its pipe, says that it is there, and then answers requests until the pipe closes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from tacit import wire
from tacit.errors import WireError
from tacit.federation.member.known_members import KnownMembers
from tacit.secure.center.child import ChildProcess, end_with
from tacit.secure.center.engine import EngineLink, SecureEngine
from tacit.secure.center.node import NodeServer

ENGINE = "engine"  # its certificate and key, in the node's folder
PEER_CERTIFICATES = "peers.pem"

_PROGRAM = "tacit.daemon.center.process"
_CONNECT_SECONDS = 60.0


class EngineProcess:
    """This end of the pipe."""

    def __init__(self, seat: int, home: Path, addresses: Sequence[str]) -> None:
        """Start the program, in the folder that has its certificate, its key and its peers' certificates."""
        self._child = ChildProcess(["-m", _PROGRAM], [str(seat), str(home)], home / "engine.log")
        self._child.pipe.send_bytes(wire.encode({"addresses": list(addresses)}))

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
        link = _read_link(pipe.recv_bytes(), int(seat), Path(home))
        engines: list[SecureEngine] = []

        def engine() -> SecureEngine:
            if not engines:
                engines.append(SecureEngine(link))  # waits for the peers
            return engines[0]

        node = NodeServer(int(seat), home=Path(home), engine=engine, members=KnownMembers(Path(home)).keys)
        while True:
            pipe.send_bytes(node.handle(pipe.recv_bytes()))


def _read_link(message: bytes, seat: int, home: Path) -> EngineLink:
    match wire.decode(message):
        case {"addresses": list(addresses)}:
            return EngineLink(
                rank=seat,
                addresses=tuple(str(address) for address in addresses),
                certificate=home / f"{ENGINE}.pem",
                key=home / f"{ENGINE}.key",
                authority=home / PEER_CERTIFICATES,
                patience_seconds=_CONNECT_SECONDS,
            )
    raise WireError("the first message to an engine must say where its peers are")


if __name__ == "__main__":
    main()
