"""A loop that whoever waits runs: work of several callers, in between, and Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tacit.federation.nats import blocking
from tacit.federation.nats.blocking import BackgroundLoop


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    made = BackgroundLoop()
    yield made
    made.close()


async def who() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_a_caller_runs_its_work_in_its_own_thread(loop: BackgroundLoop) -> None:
    assert {loop.run(who()) for _ in range(50)} == {threading.current_thread().name}


def test_between_two_calls_the_background_runs_what_is_left(loop: BackgroundLoop) -> None:
    done = threading.Event()

    async def later() -> str:
        await asyncio.sleep(0.05)
        done.set()
        return threading.current_thread().name

    async def begin() -> asyncio.Task[str]:
        return asyncio.create_task(later())

    task = loop.run(begin())
    assert done.wait(10)  # nobody waits for it in the loop
    assert task.result() == "tacit-net"
    assert loop.run(who()) == threading.current_thread().name  # and a caller gets the loop back


def test_callers_of_several_threads_do_not_wait_for_each_other(loop: BackgroundLoop) -> None:
    """Each waits until all have begun: one after the other they would wait for ever."""
    begun = 0

    async def together(n_callers: int) -> str:
        nonlocal begun
        begun += 1
        async with asyncio.timeout(30):
            while begun < n_callers:
                await asyncio.sleep(0.001)
        return threading.current_thread().name

    for round_ in range(1, 6):
        with ThreadPoolExecutor(8) as threads:
            runs = [threads.submit(loop.run, together(8 * round_)) for _ in range(8)]
            assert all(run.result(60) for run in runs)


def test_a_caller_that_a_loop_runs_waits_for_the_background(loop: BackgroundLoop) -> None:
    async def outer() -> str:
        return loop.run(who())

    assert asyncio.run(outer()) == "tacit-net"


class LateLock:
    """A lock of a busy machine: who waits for it looks a moment after it was let go."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # as that of the loop: who does not hold it cannot let it go
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        time.sleep(max(0.0, timeout / 2))
        return self._lock.acquire(blocking and timeout < 0)


def test_a_caller_asks_again_for_a_loop_that_was_let_go_and_taken_back_before_it_looked() -> None:
    made, names = BackgroundLoop(), list[str]()
    made._turn = LateLock()  # type: ignore[assignment]

    async def outer() -> str:
        return made.run(who())

    def work() -> None:
        time.sleep(0.1)  # now the thread in the background runs the loop
        asyncio.run(outer())  # which wakes it once more than it needs: it lets go, and is back at once
        names.append(made.run(who()))

    caller = threading.Thread(target=work, daemon=True)
    caller.start()
    caller.join(120)
    assert names == [caller.name]
    made.close()


def test_an_error_is_the_callers(loop: BackgroundLoop) -> None:
    async def fails() -> None:
        raise ValueError("as it was")

    with pytest.raises(ValueError, match="as it was"):
        loop.run(fails())
    assert loop.run(who())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as a program in the foreground has it: one that a script starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_work_and_nothing_else(loop: BackgroundLoop) -> None:
    ended: list[str] = []

    async def beside() -> None:
        while True:  # as a connection reads, all the time
            await asyncio.sleep(0)

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(beside())

    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(600)
        finally:
            ended.append("work")

    other = loop.run(begin())
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, RUF100
        loop.run(interrupted())
    assert ended == ["work"]
    assert not other.done()
    assert loop.run(who()) == threading.current_thread().name
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_when_the_work_has_just_ended_leaves_the_loop_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever comes next waits for ever for a turn that nobody has, `close` too."""
    made, clock = BackgroundLoop(), time.monotonic

    def interrupted() -> float:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return clock()

    with monkeypatch.context() as patched:
        patched.setattr(blocking, "time", SimpleNamespace(monotonic=interrupted))
        with pytest.raises(KeyboardInterrupt):
            made.run(who())
    other = threading.Thread(target=made.run, args=(who(),), daemon=True)
    other.start()
    other.join(20)
    assert not other.is_alive()
    made.close()


def test_a_closed_loop_has_no_thread_left() -> None:
    made = BackgroundLoop()
    thread = made._thread
    made.run(who())
    made.close()
    made.close()
    assert not thread.is_alive()
