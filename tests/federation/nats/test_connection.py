"""The connection to the message server, when the server goes away at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tacit.errors import RunError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.server import MessageServer, ServerSettings

from ...daemon.conftest import free_port


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CoordinatorFolder]:
    made = CoordinatorFolder.make(tmp_path / "coordinator", ServerSettings(port=free_port()), None)
    server = MessageServer(made.path, made.settings)
    server.start()
    yield made
    server.stop()
    made.close()


def on_a_connection(coordinator: CoordinatorFolder, work: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
    async def attempt() -> None:
        connection = Connection(coordinator.address, coordinator.credential)
        await connection.open()
        try:
            await work(connection)
        finally:
            await connection.close()

    asyncio.run(attempt())


def test_what_is_told_arrives_although_the_connection_is_lost_meanwhile(coordinator: CoordinatorFolder) -> None:
    async def work(connection: Connection) -> None:
        heard = asyncio.Event()

        async def hear(_: str, message: bytes, __: str) -> None:
            assert message == b"a study"
            heard.set()

        await connection.subscribe("tacit.study.x", hear)
        await connection.client.close()
        await connection.tell("tacit.study.x", b"a study", seconds=60)
        await asyncio.wait_for(heard.wait(), 60)

    on_a_connection(coordinator, work)


def test_a_connection_that_stays_lost_is_told_in_words(coordinator: CoordinatorFolder) -> None:
    async def work(connection: Connection) -> None:
        MessageServer(coordinator.path, coordinator.settings).stop()
        with pytest.raises(RunError, match=r"does not take tacit\.study\.x"):
            await connection.tell("tacit.study.x", b"a study", seconds=0.2)
        with pytest.raises(RunError, match="cannot be reached"):
            await connection.is_refused("tacit.study.x")

    on_a_connection(coordinator, work)


def test_whatever_the_client_raises_the_line_is_made_again(
    coordinator: CoordinatorFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, failures = Client.connect, [ValueError("half a line"), EOFError(), AssertionError()]

    async def connect(*arguments: Any, **settings: Any) -> Any:
        if failures:
            raise failures.pop()
        return await right(*arguments, **settings)

    async def work(connection: Connection) -> None:
        told = asyncio.Event()

        async def on_up() -> None:
            told.set()
            raise LookupError("what is done then may fail too")

        connection.on_up = on_up
        for _ in range(2):
            monkeypatch.setattr("nats.aio.client.Client.connect", connect)
            await connection.client.close()
            await asyncio.wait_for(told.wait(), 60)
            told.clear()
        assert not failures

    on_a_connection(coordinator, work)
