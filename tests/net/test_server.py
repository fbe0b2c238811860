"""The message server's process: one for a folder, whoever starts it and whenever they die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.errors import RunError, SettingError
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.server import MessageServer, ServerSettings, running_pid

from .conftest import free_port, wait_for

Servers = Callable[[Headquarters], MessageServer]


@pytest.fixture
def server() -> Iterator[Servers]:
    """Servers for coordinators' folders; they are stopped after the test."""
    made: list[MessageServer] = []

    def make(headquarters: Headquarters) -> MessageServer:
        made.append(MessageServer(headquarters.folder, headquarters.settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def headquarters(tmp_path: Path) -> Iterator[Headquarters]:
    made = Headquarters.make(tmp_path / "coordinator", ServerSettings(port=free_port()), None)
    yield made
    made.close()


def test_a_server_that_runs_is_taken_over_and_one_that_died_is_started(
    headquarters: Headquarters, server: Servers
) -> None:
    first, second = server(headquarters), server(headquarters)
    assert first.start() is True
    pid = running_pid(headquarters.folder)
    assert second.start() is False
    assert running_pid(headquarters.folder) == pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not first.is_running, "its end")
    assert second.start() is True
    second.stop()
    assert running_pid(headquarters.folder) is None


def test_a_server_that_is_still_starting_is_waited_for(headquarters: Headquarters, server: Servers) -> None:
    """As when its daemon was killed in between, and the next one comes before the server has told its number."""
    server(headquarters).start()
    number = headquarters.folder / "nats.pid"
    told = number.read_text()
    number.unlink()
    later = threading.Timer(0.5, number.write_text, args=(told,))
    later.start()
    assert server(headquarters).start() is False
    later.join()
    assert number.read_text() == told


def test_a_server_that_neither_serves_nor_ends_is_told(
    headquarters: Headquarters, server: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server(headquarters).start()
    (headquarters.folder / "nats.pid").unlink()
    monkeypatch.setattr("tacit.federation.net.server._START_SECONDS", 0.2)
    with pytest.raises(RunError, match="neither serves nor ends"):
        server(headquarters).start()
    monkeypatch.undo()


def test_a_port_of_another_program_is_told(headquarters: Headquarters, server: Servers, tmp_path: Path) -> None:
    server(headquarters).start()
    other = Headquarters.make(tmp_path / "other", headquarters.settings, None)
    with pytest.raises(SettingError, match="is in use by another program"):
        server(other).start()
    other.close()
