"""A center on this machine: three processes, whose engines meet in a folder that only this account may enter.

Each process makes its own key, in a folder of its own, and speaks with this one through a pipe that carries bytes
only. It ends when its pipe closes, whatever it is doing. When one of them dies, what runs kept is gone; keys and what
the nodes agreed to are not, so that after `restart` the parties' stored answers can be used again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tacit import wire
from tacit.errors import CenterError
from tacit.record import decode_record, encode_record
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.child import ChildProcess
from tacit.secure.center.engine import require
from tacit.secure.center.message import Introduction, Meeting
from tacit.secure.share import N_NODES

_SILENT_SECONDS = 2.0
_CONNECT_SECONDS = 120.0  # on a loaded machine importing the engine alone may take half a minute
_ENDING_SECONDS = 1.0
_FOLDER = "tacit-center-"
_ENGINES = "engines"  # where they meet
_BROKEN = wire.encode({"broken": ""})[:-5]  # how the message of a node begins whose engine stopped
# A node needs this folder only. Importing the whole package, with tables and plots, would take most of its start.
_START = """
import sys, types
package = types.ModuleType("tacit")
package.__path__ = [sys.argv[1]]
sys.modules["tacit"] = package
from tacit.secure.center.local_node import main
main(*sys.argv[2:])
"""


class ProcessCenter(MessageCenter):
    """A center whose nodes are processes of this machine: it computes, and is closed at exit.

    The processes start in the background; the first call that needs them waits.
    """

    def __init__(self, *, announce: Callable[[str], None] | None = None) -> None:
        """Start the nodes.

        Args:
            announce: told when starting takes long; by default a line on standard error.
        """
        require()
        self._announce = _say if announce is None else announce
        _sweep()
        self._home = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._connect_seconds = _CONNECT_SECONDS
        self._nodes: list[_NodeProcess] = []
        self._keys: tuple[bytes, ...] | None = None
        self._launch()
        atexit.register(self.close)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""
        with self._lock:
            self._wait_until_started()
            assert self._keys is not None
            return self._keys

    @property
    def is_broken(self) -> bool:
        """Whether a node has died, or the center was closed."""
        return not self._nodes or any(not node.is_alive for node in self._nodes)

    def computing(self) -> Center:
        """Itself."""
        return self

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        """Give one message to each node, and return their answers.

        Raises:
            CenterError: if a node dies; the others are then stopped too.
        """
        with self._lock:
            self._wait_until_started()
            return self._converse(requests)

    def restart(self) -> None:
        """Start the nodes again, with the same keys: runs begin anew, and parties' stored answers can be kept again."""
        with self._lock:
            if not self._home.exists():
                raise CenterError("this center was closed; make a new one")
            self._stop()
            self._launch()

    def close(self) -> None:
        """Stop the nodes and remove their folders."""
        if os.getpid() != self._owner:  # a forked copy does not own them
            return
        with self._lock:
            self._stop()
            shutil.rmtree(self._home, ignore_errors=True)
            atexit.unregister(self.close)

    def __enter__(self) -> ProcessCenter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self) -> None:
        self._keys = None
        for index in range(N_NODES):
            home = self._home / f"node{index}"
            home.mkdir(mode=0o700, exist_ok=True)
            self._nodes.append(_NodeProcess(index, home))

    def _wait_until_started(self) -> None:
        """Take the nodes' keys, and tell each where their engines meet."""
        if self._keys is not None:
            return
        timer = threading.Timer(
            _SILENT_SECONDS, self._announce, [f"starting the center's {N_NODES} nodes on this machine ..."]
        )
        timer.daemon = True
        timer.start()
        try:
            nodes = [decode_record(Introduction, message) for message in self._converse(None)]
            meeting = Meeting(folder=str(self._home / _ENGINES), patience_seconds=self._connect_seconds)
            self._converse([encode_record(meeting)] * N_NODES)
            self._keys = tuple(node.key for node in nodes)
        finally:
            timer.cancel()

    def _converse(self, requests: Sequence[bytes] | None) -> list[bytes]:
        """Send, if there is something to send, and wait for a message from every node, or the end of one."""
        if os.getpid() != self._owner:
            raise CenterError("the center belongs to the process that started it; a forked one needs its own")
        if self.is_broken:
            raise self._failure()
        answers: dict[int, bytes] = {}
        try:
            for node, request in zip(self._nodes, requests or (), strict=requests is not None):
                node.pipe.send_bytes(request)
            while len(answers) < len(self._nodes):
                waiting = {node.pipe: node.index for node in self._nodes if node.index not in answers}
                for pipe in wait(list(waiting)):
                    assert isinstance(pipe, Connection)
                    answers[waiting[pipe]] = message = pipe.recv_bytes()
                    if message.startswith(_BROKEN):
                        raise EOFError
        except (EOFError, OSError) as error:
            failure = self._failure(next((m for m in answers.values() if m.startswith(_BROKEN)), None))
            self._stop(kill=True)
            raise failure from error
        except BaseException:  # interrupted half-way: an answer that comes later would be taken for the next one
            self._stop(kill=True)
            raise
        return [answers[node.index] for node in self._nodes]

    def _failure(self, message: bytes | None = None) -> CenterError:
        """Who is gone; or what a living node said of its engine."""
        gone = self._gone()
        reason = wire.decode(message) if message is not None else None
        if gone:
            what = f"node {' and '.join(gone)} of the center has ended"
        elif isinstance(reason, dict):
            what = f"the center's engine stopped: {reason['broken']}"
        else:
            what = "the center's nodes were stopped"
        return CenterError(
            f"{what}, and the shares that runs kept are gone; call restart() on the center and resume the run: parties "
            "give the same answers again, at no cost"
        )

    def _gone(self) -> list[str]:
        """The nodes that have ended; a pipe closes a moment before its process is over."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while True:
            gone = [str(node.index) for node in self._nodes if not node.is_alive]
            if gone or not self._nodes or time.monotonic() > deadline:
                return gone
            time.sleep(0.01)

    def _stop(self, *, kill: bool = False) -> None:
        for node in self._nodes:
            node.part(kill=kill)
        for node in self._nodes:
            node.join()
        self._nodes = []
        self._keys = None


class _NodeProcess(ChildProcess):
    """One node's process."""

    def __init__(self, index: int, home: Path) -> None:
        self.index = index
        package = str(Path(__file__).parents[2])
        super().__init__(["-c", _START, package], [str(index), str(home)], home / "log")

    def part(self, *, kill: bool) -> None:
        """Close the pipe, upon which the process ends by itself."""
        self.pipe.close()
        if kill:
            self.kill()


_shared: ProcessCenter | None = None
_shared_lock = threading.Lock()


def shared_center() -> ProcessCenter:
    """The one center that all simulations of this process share; started again if a node of it has died."""
    global _shared
    with _shared_lock:
        if _shared is None or _shared._owner != os.getpid() or not _shared._home.exists():
            _shared = ProcessCenter()
        elif _shared.is_broken:
            _shared.restart()
        return _shared


def _say(text: str) -> None:
    print(f"tacit: {text}", file=sys.stderr, flush=True)


def _sweep() -> None:
    """Remove the folders of centers whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        owner = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdecimal() and not _exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
