"""The engine of a center node as a program of its own: it can be stopped in the middle of a computation.

    python -m tacit.daemon.node_process DESCRIPTOR SEAT HOME

It reads where its peers are from its pipe, says that it is there, and then answers requests until the pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from tacit import wire
from tacit.errors import WireError
from tacit.federation.net.acquaintance import Acquaintances
from tacit.secure.engine import Engine, Link
from tacit.secure.node import NodeServer

ENGINE = "engine"  # its certificate and key, in the node's folder
PEER_CERTIFICATES = "peers.pem"

_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
_STOP_SECONDS = 5.0
_CONNECT_SECONDS = 60.0


class EngineProcess:
    """This end of the pipe."""

    def __init__(self, seat: int, home: Path, addresses: Sequence[str]) -> None:
        """Start the program, in the folder that has its certificate, its key and its peers' certificates."""
        self._pipe, theirs = Pipe()
        command = [sys.executable, "-m", "tacit.daemon.node_process", str(theirs.fileno()), str(seat), str(home)]
        with (home / "engine.log").open("ab") as log, theirs:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno()],
                env={**os.environ, **_ONE_THREAD}, start_new_session=True,
            )  # fmt: skip
        self._pipe.send_bytes(wire.encode({"addresses": list(addresses)}))

    @property
    def is_alive(self) -> bool:
        """Whether the program runs."""
        return self._child.poll() is None

    def handle(self, request: bytes) -> bytes:
        """The node's answer; `broken` if the program ended before it gave one."""
        try:
            self._pipe.send_bytes(request)
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return wire.encode({"broken": "a center node's engine was stopped; resume the study"})

    def kill(self) -> None:
        """End the program at once, whatever it is doing; whoever waits for its answer gets `broken`."""
        self._child.kill()

    def close(self) -> None:
        """End the program and wait for it."""
        self._child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_STOP_SECONDS)
        self._pipe.close()


def main() -> None:
    """The program."""
    descriptor, seat, home = sys.argv[1:]
    pipe = Connection(int(descriptor))
    threading.Thread(target=_end_with, args=(pipe.fileno(),), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        link = _read_link(pipe.recv_bytes(), int(seat), Path(home))
        engines: list[Engine] = []

        def engine() -> Engine:
            if not engines:
                engines.append(Engine(link))  # waits for the peers
            return engines[0]

        node = NodeServer(int(seat), home=Path(home), engine=engine, members=Acquaintances(Path(home)).keys)
        while True:
            pipe.send_bytes(node.handle(pipe.recv_bytes()))


def _read_link(message: bytes, seat: int, home: Path) -> Link:
    match wire.decode(message):
        case {"addresses": list(addresses)}:
            return Link(
                rank=seat,
                addresses=tuple(str(address) for address in addresses),
                certificate=home / f"{ENGINE}.pem",
                key=home / f"{ENGINE}.key",
                authority=home / PEER_CERTIFICATES,
                patience_seconds=_CONNECT_SECONDS,
            )
    raise WireError("the first message to an engine must say where its peers are")


def _end_with(descriptor: int) -> None:
    """End at once when the other end of the pipe closes, even in the middle of a computation."""
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP)
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
