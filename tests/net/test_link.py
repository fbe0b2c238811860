"""The line to the message server, when the server goes away at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tacit.errors import RunError
from tacit.federation.net.exchange import keep_streams
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.link import Link
from tacit.federation.net.server import MessageServer, ServerSettings
from tacit.federation.net.subject import STUDIES

from .conftest import free_port


@pytest.fixture
def headquarters(tmp_path: Path) -> Iterator[Headquarters]:
    made = Headquarters.make(tmp_path / "coordinator", ServerSettings(port=free_port()), None)
    server = MessageServer(made.folder, made.settings)
    server.start()
    yield made
    server.stop()
    made.close()


def on_a_line(headquarters: Headquarters, work: Callable[[Link], Coroutine[Any, Any, None]]) -> None:
    async def attempt() -> None:
        link = Link(headquarters.address, headquarters.credential)
        await link.open()
        try:
            await work(link)
        finally:
            await link.close()

    asyncio.run(attempt())


def test_streams_are_kept_although_the_line_is_lost_meanwhile(headquarters: Headquarters) -> None:
    async def work(link: Link) -> None:
        await link.client.close()
        await keep_streams(link)
        await link.client.close()
        await link.store("tacit.study.x", b"a study")
        assert await link.all_last(STUDIES) == [b"a study"]

    on_a_line(headquarters, work)


def test_a_line_that_stays_lost_is_told_in_words(headquarters: Headquarters) -> None:
    async def work(link: Link) -> None:
        MessageServer(headquarters.folder, headquarters.settings).stop()
        with pytest.raises(RunError, match="does not say what it keeps"):
            await keep_streams(link, seconds=0.2)
        with pytest.raises(RunError, match=r"does not keep tacit\.study\.x"):
            await link.store("tacit.study.x", b"a study", seconds=0.2)
        with pytest.raises(RunError, match="cannot be reached"):
            await link.is_refused("tacit.study.x")

    on_a_line(headquarters, work)


def test_whatever_the_client_raises_the_line_is_made_again(
    headquarters: Headquarters, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, failures = Client.connect, [ValueError("half a line"), EOFError(), AssertionError()]

    async def connect(*arguments: Any, **settings: Any) -> Any:
        if failures:
            raise failures.pop()
        return await right(*arguments, **settings)

    async def work(link: Link) -> None:
        told = asyncio.Event()

        async def on_up() -> None:
            told.set()
            raise LookupError("what is done then may fail too")

        link.on_up = on_up
        for _ in range(2):
            monkeypatch.setattr("nats.aio.client.Client.connect", connect)
            await link.client.close()
            await asyncio.wait_for(told.wait(), 60)
            told.clear()
        assert not failures

    on_a_line(headquarters, work)
