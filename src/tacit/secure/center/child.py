"""A Python program in a process of its own, and the pipe to it.

The program gets the descriptor of its end of the pipe as its first argument. It ends when the other end closes, even in
the middle of a computation, if it called `end_with` at its start.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

# The engine asks OpenMP for a number of threads of its own, which only a limit bounds. They wait for each other in a
# loop: with more of them than cores, a product of 100 x 100 matrices takes seven times the processor time.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")} | {"OMP_THREAD_LIMIT": "1"}
_STOP_SECONDS = 5.0


class ChildProcess:
    """The process, and this end of the pipe to it."""

    def __init__(self, program: Sequence[str], arguments: Sequence[str], log: Path) -> None:
        """Start a program.

        Args:
            program: what follows `python` on the command line, up to the program's own arguments.
            arguments: the program's arguments after the pipe's descriptor.
            log: a file to which whatever it prints is added.
        """
        self.pipe, theirs = Pipe()
        with log.open("ab") as stream, theirs:
            self._process = subprocess.Popen(
                [sys.executable, *program, str(theirs.fileno()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # an interrupt at the keyboard is this process's to handle
            )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()

    def join(self, seconds: float = _STOP_SECONDS) -> None:
        """Wait until it has ended; one that takes too long is killed."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end_with(pipe: Connection) -> None:
    """Let this process end at once when the other end of the pipe closes."""
    threading.Thread(target=_end_with, args=(pipe.fileno(),), daemon=True).start()


def _end_with(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP)
    poll.poll()
    os._exit(0)
