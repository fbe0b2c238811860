"""Ctrl-C ends a command at once, in one line, and leaves nothing behind; progress shows before there is a result."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import parties

SECONDS = 300.0  # only bounds a failure


def commands(trial: Path) -> dict[str, tuple[list[str], str]]:
    """Commands that would take long, each with a word of its progress."""
    study, test = str(trial / "study.toml"), str(trial / "test.csv")
    return {
        "audit": (["audit", "averaging", "--runs", "1000000"], r"auditing averaging"),
        "compare": (["compare", study, *parties(trial), "--test", test, "--repeats", "100000"], "comparing"),
        "plan": (["plan", study, "--records", "north=50000", "--records", "south=50000"], "rehearsing"),
        "demo": (["demo", "--repeats", "100", "--out", str(trial / "results")], "together, data shared"),
        "audit, well under way": (["audit", "averaging", "--runs", "20000"], r"auditing averaging.*[1-9]\d?%"),
    }


# A shell that runs things in the background lets them ignore Ctrl-C; a person's does not.
HEARS_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tacit.cli.main import main
main()
"""


class OnTerminal:
    """A command whose standard error is a terminal, in a group of its own."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        environment = os.environ | {"TMPDIR": str(folder), "TERM": "xterm", "COLUMNS": "120"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HEARS_CTRL_C, *arguments],
            stdout=subprocess.PIPE,
            stderr=slave,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.told = ""

    def read(self) -> str:
        """What was told next; empty at the end."""
        try:
            got = os.read(self._master, 4096).decode(errors="replace")
        except OSError:  # the other side is gone
            got = ""
        self.told += got
        return got

    def until(self, words: str) -> None:
        while not re.search(words, self.told):
            assert self.read(), f"it ended without {words!r}: {self.told}"

    def end(self) -> None:
        while self.read():
            pass
        os.close(self._master)


def wait_for_nobody(group: int) -> None:
    """No process of the group goes on; Python's own tracker of semaphores notices the end a moment later."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process of the command goes on")


@pytest.mark.parametrize("name", ["audit", "compare", "plan", "demo", "audit, well under way"])
def test_ctrl_c_ends_it_at_once_with_nothing_left_behind(
    trial: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    arguments, words = commands(trial)[name]
    temporary = tmp_path_factory.mktemp("temporary")
    running = OnTerminal(arguments, temporary)
    running.until(words)  # progress is there while it works
    os.killpg(running.process.pid, signal.SIGINT)  # a terminal sends it to all of the group
    running.end()
    out, _ = running.process.communicate(timeout=SECONDS)
    assert running.process.returncode == 130, running.told
    assert out == b""
    assert "tacit: stopped; what was written is whole, what was spent stays spent" in running.told
    assert "Traceback" not in running.told
    wait_for_nobody(running.process.pid)
    assert list(temporary.iterdir()) == []
