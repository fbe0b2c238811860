"""Events that many watchers share."""

from __future__ import annotations

import asyncio

import pytest
from starlette.exceptions import HTTPException

from tacit.web.live import Broadcaster


def test_watchers_get_what_was_and_what_comes_and_end_together() -> None:
    async def main() -> None:
        live = Broadcaster()
        live.publish("a", "step", "1")
        live.publish("b", "step", "not for them")
        told: list[list[str]] = [[] for _ in range(200)]

        async def watch(k: int) -> None:
            async for event in live._events(frozenset({"a"})):
                told[k].append(str(event.data))

        tasks = [asyncio.create_task(watch(k)) for k in range(200)]
        while live.n_watchers < 200:
            await asyncio.sleep(0)
        await asyncio.to_thread(live.publish, "a", "step", "2")  # from another thread
        while not all(each[-1:] == ["2"] for each in told):
            await asyncio.sleep(0)
        live.close()
        await asyncio.gather(*tasks)
        assert live.n_watchers == 0
        assert all(each == ["1", "2"] for each in told)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_slow_watcher_gets_the_last_of_each_name() -> None:
    async def main() -> None:
        live = Broadcaster()
        events = live._events(frozenset({"a"}))
        live.publish("a", "step", "0")
        assert (await anext(events)).data == "0"
        for k in range(1000):
            live.publish("a", "step", str(k))
            live.publish("a", "note", "n")
        assert {(await anext(events)).data, (await anext(events)).data} == {"999", "n"}
        live.close()
        assert [event async for event in events] == []

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_stream_ends_when_its_watcher_may_no_longer_watch_and_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        live, may = Broadcaster(), [True]
        events = live._events(frozenset({"a"}), lambda: may[0])
        live.publish("a", "step", "1")
        assert (await anext(events)).data == "1"
        may[0] = False
        live.publish("a", "step", "not for them")
        assert [event async for event in events] == []
        assert live.n_watchers == 0
        monkeypatch.setattr("tacit.web.live.MOST_WATCHERS", 0)
        with pytest.raises(HTTPException, match="Too many pages"):
            live.watch(["a"])

    asyncio.run(asyncio.wait_for(main(), 60))
