"""Pages that follow what happens: server-sent events that many watchers share.

    site.live.publish("study/4f", "progress", html)      # from any thread
    return site.live.watch(["study/4f"])                  # in a handler that has checked who asks

An event has a topic, a name and a text, mostly a piece of a page that htmx puts in place of the old one:

    <div hx-ext="sse" sse-connect="/studies/4f/events"><div sse-swap="progress">...</div></div>

A later event of the same topic and name takes the earlier one's place. So a watcher who is slow misses steps, and
never the last one, and whatever is published costs a bounded amount of memory for each watcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

MOST_WATCHERS = 2000
_PING_SECONDS = 15


@dataclass(eq=False)
class _Watcher:
    """What one page is still to be told."""

    topics: frozenset[str]
    due: dict[tuple[str, str], str] = field(default_factory=dict)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Broadcaster:
    """One for a site.

    Guarantees:
        At most 2,000 watch at once. A watcher gets the latest event of each topic and name that it watches: at once
        those published before, then each change. After `close` every stream ends, and new ones end at once.
    """

    def __init__(self) -> None:
        self._watchers: set[_Watcher] = set()
        self._latest: dict[str, dict[str, str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    @property
    def n_watchers(self) -> int:
        """How many watch."""
        return len(self._watchers)

    def publish(self, topic: str, name: str, text: str) -> None:
        """Tell everybody who watches the topic; may be called from any thread."""
        if self._loop is None or _running_loop() is self._loop:
            self._publish(topic, name, text)
        else:
            self._loop.call_soon_threadsafe(self._publish, topic, name, text)

    def forget(self, topic: str) -> None:
        """Keep nothing of a topic for those who come later."""
        self._latest.pop(topic, None)

    def watch(self, topics: Collection[str], may_go_on: Callable[[], bool] = lambda: True) -> EventSourceResponse:
        """The answer to a page that watches these topics, until `may_go_on` says no before an event; 503 if it is full.

        A browser whose stream ends asks again, and is then answered like anybody who comes.
        """
        if len(self._watchers) >= MOST_WATCHERS:
            raise HTTPException(503, "Too many pages follow this site at once. Read the page again in a while.")
        return EventSourceResponse(self._events(frozenset(topics), may_go_on), ping=_PING_SECONDS)

    def close(self) -> None:
        """End every stream; call it on the loop."""
        self._is_closed = True
        for watcher in self._watchers:
            watcher.woken.set()

    def _publish(self, topic: str, name: str, text: str) -> None:
        self._latest.setdefault(topic, {})[name] = text
        for watcher in self._watchers:
            if topic in watcher.topics:
                watcher.due[topic, name] = text
                watcher.woken.set()

    async def _events(
        self, topics: frozenset[str], may_go_on: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[ServerSentEvent]:
        self._loop = asyncio.get_running_loop()
        watcher = _Watcher(topics)
        watcher.due = {(topic, name): text for topic in topics for name, text in self._latest.get(topic, {}).items()}
        self._watchers.add(watcher)
        try:
            while not self._is_closed and may_go_on():
                due, watcher.due = watcher.due, {}
                watcher.woken.clear()
                for (_, name), text in due.items():
                    yield ServerSentEvent(data=text, event=name)
                if not watcher.due:
                    await watcher.woken.wait()
        finally:
            self._watchers.discard(watcher)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
