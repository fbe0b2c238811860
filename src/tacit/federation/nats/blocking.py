"""The coordinator's connection, for callers that wait."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.center import RemoteCenter
from tacit.federation.nats.exchange import Exchange, Request
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer

T = TypeVar("T")

_QUIET_SECONDS = 0.02  # after which the thread in the background runs the loop


class BackgroundLoop:
    """Runs coroutines; the caller waits for their results.

    A caller that waits runs the loop itself: to wake another thread, and be woken by it, would cost more than a letter.
    When nobody has waited for a moment, a thread in the background runs it, so that connections stay alive.

    Guarantees:
        One thread at a time runs the loop. Work of several callers goes on side by side.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._turn = threading.RLock()  # whoever runs the loop holds it
        self._is_kept = False  # whether that is the thread in the background
        self._n_waiting = 0  # callers whose work somebody else runs
        self._counting = threading.Lock()
        self._left = 0.0  # when a caller last ran it
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._keep, name="tacit-net", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. If the caller is interrupted, so is the work."""
        try:
            if _is_in_a_loop() or not self._take_turn():
                return self._wait_for(work)
            return self._run_here(work)
        finally:
            try:  # noqa: SIM105  # at once, since Ctrl-C may end this at any call that is written in Python
                self._turn.release()
            except RuntimeError:  # it was another's
                pass
            if self._n_waiting:
                self._wake.set()

    def close(self) -> None:
        """Stop the loop and its thread; tasks that are left are cancelled first."""
        if self._loop.is_closed():
            return
        self.run(self._cancel_all())
        self._closing = True
        self._wake.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _take_turn(self) -> bool:
        """Whether the loop is now the caller's to run; not if another caller runs it."""
        if self._turn.acquire(blocking=False):
            return True
        while self._is_kept:
            self._loop.call_soon_threadsafe(self._loop.stop)  # each time: it may have let go and be back already
            if self._turn.acquire(timeout=_QUIET_SECONDS):
                return True
        return False  # another caller was faster

    def _run_here(self, work: Coroutine[Any, Any, T]) -> T:
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: self._loop.stop())
        try:
            with _interrupting(self._loop, task):
                while not task.done():  # somebody may have stopped it who came a moment too late
                    self._loop.run_forever()
        except BaseException:
            task.cancel()
            raise
        finally:
            self._left = time.monotonic()
        return task.result()

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that another thread runs."""
        with self._counting:
            self._n_waiting += 1
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._wake.set()
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._counting:
                self._n_waiting -= 1

    def _keep(self) -> None:
        """Run the loop whenever no caller does, until it is closed."""
        while not self._closing:
            self._wake.wait(_QUIET_SECONDS)
            self._wake.clear()
            if time.monotonic() - self._left < _QUIET_SECONDS and not self._n_waiting:
                continue
            if not self._turn.acquire(blocking=False):
                continue
            self._is_kept = True
            try:
                if not self._closing:
                    self._loop.run_forever()  # until a caller stops it
            finally:
                self._is_kept = False
                self._turn.release()

    @staticmethod
    async def _cancel_all() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def _interrupting(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[None]:
    """Let Ctrl-C cancel the task, and end in a `KeyboardInterrupt`; else it would end whatever the loop just does."""
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    is_interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # it may be waiting for a message

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_interrupted:
        raise KeyboardInterrupt


def _is_in_a_loop() -> bool:
    """Whether the caller is itself run by a loop, so that it cannot run another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
