"""The message server's process: one for a folder, whoever starts it and whenever they die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.errors import RunError, SettingError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.server import MessageServer, ServerSettings, running_pid

from ...daemon.conftest import free_port, wait_for

Servers = Callable[[CoordinatorFolder], MessageServer]


@pytest.fixture
def server() -> Iterator[Servers]:
    """Servers for coordinators' folders; they are stopped after the test."""
    made: list[MessageServer] = []

    def make(coordinator: CoordinatorFolder) -> MessageServer:
        made.append(MessageServer(coordinator.path, coordinator.settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CoordinatorFolder]:
    made = CoordinatorFolder.make(tmp_path / "coordinator", ServerSettings(port=free_port()), None)
    yield made
    made.close()


def test_a_server_that_runs_is_taken_over_and_one_that_died_is_started(
    coordinator: CoordinatorFolder, server: Servers
) -> None:
    first, second = server(coordinator), server(coordinator)
    assert first.start() is True
    pid = running_pid(coordinator.path)
    assert second.start() is False
    assert running_pid(coordinator.path) == pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not first.is_running, "its end")
    assert second.start() is True
    second.stop()
    assert running_pid(coordinator.path) is None


def test_a_server_that_is_still_starting_is_waited_for(coordinator: CoordinatorFolder, server: Servers) -> None:
    """As when its daemon was killed in between, and the next one comes before the server has told its number."""
    server(coordinator).start()
    number = coordinator.path / "nats.pid"
    told = number.read_text()
    number.unlink()
    later = threading.Timer(0.5, number.write_text, args=(told,))
    later.start()
    assert server(coordinator).start() is False
    later.join()
    assert number.read_text() == told


def test_a_server_that_neither_serves_nor_ends_is_told(
    coordinator: CoordinatorFolder, server: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server(coordinator).start()
    (coordinator.path / "nats.pid").unlink()
    monkeypatch.setattr("tacit.federation.nats.server._START_SECONDS", 0.2)
    with pytest.raises(RunError, match="neither serves nor ends"):
        server(coordinator).start()
    monkeypatch.undo()


def test_a_port_of_another_program_is_told(coordinator: CoordinatorFolder, server: Servers, tmp_path: Path) -> None:
    server(coordinator).start()
    other = CoordinatorFolder.make(tmp_path / "other", coordinator.settings, None)
    with pytest.raises(SettingError, match="is in use by another program"):
        server(other).start()
    other.close()
