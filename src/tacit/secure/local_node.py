"""A node's life as a process of this machine: what `ProcessCenter` starts three of.

It makes its keys, says who it is, is told where the others are, and then answers until its pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tacit import wire
from tacit.errors import SettingError, TacitError
from tacit.rand import Rng
from tacit.secure.engine import Engine, Link
from tacit.secure.node import EngineFailed, NodeServer
from tacit.secure.tls import request_certificate

_PORTS = range(20_000, 32_768)  # below those that the system gives to outgoing connections


class LateEngine:
    """An engine that connects in the background, while its node already adds."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._failure = "it was not told where the others are"
        self._deadline = 0.0
        self._thread: threading.Thread | None = None

    def start(self, link: Link) -> None:
        """Begin to connect."""
        self._failure = f"the other nodes could not be reached within {link.patience_seconds:g} s"
        self._deadline = time.monotonic() + link.patience_seconds
        self._thread = threading.Thread(target=self._connect, args=(link,), daemon=True)
        self._thread.start()

    def get(self) -> Engine:
        """The engine, once it is connected; `EngineFailed` if it will not be."""
        if self._thread is not None:
            self._thread.join(max(self._deadline - time.monotonic(), 0.0))
        if self._engine is None:
            raise EngineFailed(f"it is not connected: {self._failure}")
        return self._engine

    def _connect(self, link: Link) -> None:
        try:
            self._engine = Engine(link)
        except TacitError as error:
            self._failure = str(error)
        except Exception as error:
            self._failure = f"the other nodes refuse it, or cannot be reached ({type(error).__name__})"


def serve(pipe: Connection, index: int, n_nodes: int, home: Path) -> None:
    """Introduce the node, then answer until the pipe closes."""
    threading.Thread(target=_end_with, args=(pipe.fileno(),), daemon=True).start()
    engine = LateEngine()
    node = NodeServer(index, n_nodes=n_nodes, home=home, engine=engine.get)
    request = request_certificate(f"node{index}", home / "tls.key")
    pipe.send_bytes(wire.encode({"key": node.public_key, "request": request, "port": _free_port()}))
    engine.start(_read_link(pipe.recv_bytes(), index, home))
    pipe.send_bytes(wire.encode({"done": {}}))
    while True:
        pipe.send_bytes(node.handle(pipe.recv_bytes()))


def main(descriptor: str, index: str, n_nodes: str, home: str) -> None:
    """Run one node: the pipe's descriptor, the node's place, how many there are, and its folder."""
    with contextlib.suppress(EOFError, OSError):
        serve(Connection(int(descriptor)), int(index), int(n_nodes), Path(home))


def _read_link(message: bytes, index: int, home: Path) -> Link:
    match wire.decode(message):
        case {
            "certificate": bytes(certificate),
            "authority": bytes(authority),
            "addresses": list(addresses),
            "patience_seconds": float(patience),
        }:
            (home / "tls.crt").write_bytes(certificate)
            (home / "authority.crt").write_bytes(authority)
            return Link(
                rank=index,
                addresses=tuple(str(address) for address in addresses),
                certificate=home / "tls.crt",
                key=home / "tls.key",
                authority=home / "authority.crt",
                patience_seconds=patience,
            )
    raise SettingError("the first message to a node must say where the others are")


def _free_port() -> int:
    while True:
        port = _PORTS[int(Rng.system().below(len(_PORTS), 1)[0])]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _end_with(descriptor: int) -> None:
    """End this process at once when the other end of its pipe closes, even in the middle of a computation."""
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP)
    poll.poll()
    os._exit(0)
