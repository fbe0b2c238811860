"""Walk through a page as a reader would: its commands, one after another, in one folder, on a terminal.

    with Walk(folder) as walk:
        for block in blocks(page, "sh"):
            walk.run(block)

A command that goes on until Ctrl-C gets a terminal of its own, and the walk goes on when it says that it is ready.
Whatever asks for a yes gets one.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import tacit

A_LONG_WHILE = 900.0  # seconds: bounds a failure
_QUESTION = re.compile(rb"\[y/N\]:? *$")
_STAYS = re.compile(r"^tacit (practice|\w+ serve)\b")


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    """The commands of a block, a line each; a line that ends in a backslash goes on."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


class Walk:
    """A reader who types."""

    def __init__(self, folder: Path, prefix: tuple[str, ...] = ()) -> None:
        """Begin in an empty folder, with the programs of this environment; every command stands behind `prefix`."""
        self.folder, self._prefix = folder, prefix
        self.typed: list[str] = []
        programs, source = Path(sys.executable).parent, Path(tacit.__file__).parents[1]
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")])),
            "COLUMNS": "120",
            "TERM": "dumb",
        }
        self._stay: list[subprocess.Popen[bytes]] = []

    def run(self, block: str) -> str:
        """Type a block's commands; what they say. A command that fails is an AssertionError with what it said."""
        return "".join(self._type(command) for command in commands(block))

    def _type(self, command: str) -> str:
        self.typed.append(command)
        if command.startswith("cd "):
            self.folder = (self.folder / command.removeprefix("cd ")).resolve(strict=True)
            return ""
        return self._leave_running(command) if _STAYS.match(command) else self._wait_for(command)

    def _wait_for(self, command: str) -> str:
        screen, terminal = pty.openpty()
        with subprocess.Popen(
            [*self._prefix, "bash", "-c", command], cwd=self.folder, env=self.environment, start_new_session=True,
            stdin=terminal, stdout=terminal, stderr=terminal,
        ) as process:  # fmt: skip
            os.close(terminal)
            said = _converse(screen, process)
            status = process.wait(A_LONG_WHILE)
        os.close(screen)
        text = said.decode(errors="replace").replace("\r\n", "\n")
        assert status == 0, f"{command}\n{text}"
        return text

    def _leave_running(self, command: str) -> str:
        log = self.folder / f"terminal-{len(self._stay)}.log"
        with log.open("wb") as told:
            process = subprocess.Popen(
                [*self._prefix, "bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=told, stderr=told,
            )  # fmt: skip
        self._stay.append(process)
        deadline = time.monotonic() + A_LONG_WHILE
        while not re.search(r"^ready|\"serving\"", log.read_text(errors="replace"), re.MULTILINE):
            assert process.poll() is None, f"{command}\n{log.read_text()}"
            assert time.monotonic() < deadline, f"{command} is not ready\n{log.read_text()}"
            time.sleep(0.1)
        return log.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in reversed(self._stay):
            process.send_signal(signal.SIGTERM)
            process.wait(A_LONG_WHILE)


def _converse(screen: int, process: subprocess.Popen[bytes]) -> bytes:
    """What a program says until it ends; each of its questions is answered with yes."""
    said, answered = b"", 0
    deadline = time.monotonic() + A_LONG_WHILE
    while True:
        assert time.monotonic() < deadline, f"no end: {said[-2000:]!r}"
        if select.select([screen], [], [], 0.2)[0]:
            try:
                more = os.read(screen, 65536)
            except OSError:  # the other side is closed: the program has ended
                return said
            said += more
            if _QUESTION.search(said, answered):
                os.write(screen, b"y\n")
                answered = len(said)
        elif process.poll() is not None:
            return said
