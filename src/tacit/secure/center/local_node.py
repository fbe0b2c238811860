"""A node's life as a process of this machine: what `ProcessCenter` starts three of.

It makes its key, says who it is, is told where the engines meet, and then answers until its pipe closes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tacit import wire
from tacit.errors import TacitError
from tacit.record import decode_record, encode_record
from tacit.secure.center.agreement import EngineFailed
from tacit.secure.center.child import end_with
from tacit.secure.center.engine import EngineLink, SecureEngine, enter_folder
from tacit.secure.center.message import Introduction, Meeting
from tacit.secure.center.node import NodeServer

_AGAIN_SECONDS = 1.0


class LateEngine:
    """An engine that connects in the background, while its node already adds."""

    def __init__(self) -> None:
        self._engine: SecureEngine | None = None
        self._failure = "it was not told where the others are"
        self._deadline = 0.0
        self._thread: threading.Thread | None = None

    def start(self, link: EngineLink) -> None:
        """Begin to connect."""
        self._failure = f"the other nodes could not be reached within {link.patience_seconds:g} s"
        self._deadline = time.monotonic() + link.patience_seconds
        self._thread = threading.Thread(target=self._connect, args=(link,), daemon=True)
        self._thread.start()

    def get(self) -> SecureEngine:
        """The engine, once it is connected; `EngineFailed` if it will not be."""
        if self._thread is not None:
            self._thread.join(max(self._deadline - time.monotonic(), 0.0))
        if self._engine is None:
            raise EngineFailed(f"it is not connected: {self._failure}")
        return self._engine

    def _connect(self, link: EngineLink) -> None:
        while self._engine is None:
            try:
                self._engine = SecureEngine(link)
            except TacitError as error:
                self._failure = str(error)
                return
            except Exception as error:  # on a busy machine a peer may be late for one attempt and not for the next
                self._failure = f"the other nodes refuse it, or cannot be reached ({type(error).__name__})"
                print(f"not connected: {error}", flush=True)  # to the node's own log
                if time.monotonic() > self._deadline:
                    return
                time.sleep(_AGAIN_SECONDS)


def serve(pipe: Connection, index: int, home: Path) -> None:
    """Introduce the node, then answer until the pipe closes."""
    end_with(pipe)
    engine = LateEngine()
    node = NodeServer(index, home=home, engine=engine.get)
    pipe.send_bytes(encode_record(Introduction(key=node.public_key)))
    told = decode_record(Meeting, pipe.recv_bytes())
    enter_folder(Path(told.folder))
    engine.start(EngineLink(rank=index, patience_seconds=told.patience_seconds))
    pipe.send_bytes(wire.encode({"done": {}}))
    while True:
        pipe.send_bytes(node.handle(pipe.recv_bytes()))


def main(descriptor: str, index: str, home: str) -> None:
    """Run one node: the pipe's descriptor, the node's place among three, and its folder."""
    with contextlib.suppress(EOFError, OSError):
        serve(Connection(int(descriptor)), int(index), Path(home))
