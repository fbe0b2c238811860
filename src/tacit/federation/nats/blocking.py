"""The coordinator's connection, for callers that wait: an event loop in a thread of its own runs it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.center import RemoteCenter
from tacit.federation.nats.exchange import Exchange, Request
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines in the background; the caller waits for their results."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tacit-net", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. If the caller is interrupted, so is the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and its thread; tasks that are left are cancelled first."""
        if self._loop.is_closed():
            return
        self.run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @staticmethod
    async def _cancel_all() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class BlockingConnection:
    """The coordinator's connection, for callers that wait; close it, or use it in a `with` statement."""

    def __init__(self, coordinator: CoordinatorFolder, journal: Journal | None = None) -> None:
        self.coordinator = coordinator
        self.exchange = Exchange(coordinator, journal)
        self._center: RemoteCenter | None = None
        self._loop = BackgroundLoop()
        try:
            self._loop.run(self.exchange.open())
        except BaseException:
            self.close()
            raise

    def send(self, request: Request) -> dict[str, Letter]:
        """The members' replies, from those that gave one in time."""
        return self._loop.run(self.exchange.send(request))

    def announce(self, offer: Offer) -> None:
        """Make a study, and who belongs, known to every party, now and later."""
        self._loop.run(self.exchange.announce(offer.encode(), offer.digest))

    def offers(self) -> list[Offer]:
        """Every study that was announced, oldest first."""
        return [Offer.decode(body) for body in self.coordinator.announced.all().values()]

    def center(self) -> RemoteCenter:
        """The federation's center."""
        if self._center is None:
            nodes = self.coordinator.pinned.center
            self._center = RemoteCenter(self.send, nodes, self.coordinator.center_turn)
        return self._center

    def close(self) -> None:
        """Close the connection."""
        try:
            self._loop.run(self.exchange.close())
        finally:
            self._loop.close()

    def __enter__(self) -> BlockingConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
