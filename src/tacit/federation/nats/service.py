"""A member's daemon: it receives the coordinator's letters, gives them to the member's handler, and sends the replies.

Letters are checked as `letter.py` says, before anything else looks at them. One that fails is noted and dropped. The
handler works in one thread of its own, one letter after the other. So its files have one writer, and the connection
never waits for a computation.
"""

from __future__ import annotations

import asyncio
import signal
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from tacit.errors import WireError
from tacit.federation.member.folder import MemberFolder
from tacit.federation.message import question_digest
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, MEMBERS, NODE_CALLS, PARTY_CALLS, PING, STUDY, LetterReply
from tacit.federation.nats.letter import MAX_SKEW, Freshness, Letter, read_letter, signed, write_letter

_REPLIES_KEPT = 16
_MOST_WAITING = 256 << 20  # bytes


class Handler(Protocol):
    """What a member does with letters that are believed."""

    @property
    def streams(self) -> tuple[str, ...]:
        """What it listens to besides calls: any of "ask", "study" and "members"."""
        ...

    def handle(self, letter: Letter) -> LetterReply | None:
        """What to say to a letter; None says nothing. Called in the handler's own thread."""
        ...

    def arrives(self, letter: Letter) -> None:
        """Told at once of every call, whatever the handler is at work on; must not take time."""
        ...

    def news(self) -> Mapping[str, bytes]:
        """What happened here since the last look, by kind, that the coordinator is to know."""
        ...


class MemberService:
    """The daemon: connects, listens, and serves its handler until it is told to stop."""

    def __init__(self, folder: MemberFolder, handler: Handler, journal: Journal, *, max_skew: float = MAX_SKEW) -> None:
        self._folder = folder
        self._handler = handler
        self._journal = journal
        self._freshness = Freshness(max_skew=max_skew)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="tacit-handler")
        self._in_work: set[str] = set()  # references of what is being answered now
        self._waiting = 0  # bytes of letters that wait for the handler
        self._said: OrderedDict[str, LetterReply] = OrderedDict()  # the last replies to calls with a reference
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection: Connection | None = None

    async def serve(self, stop: asyncio.Event, *, connect_seconds: float = 60.0) -> None:
        """Serve until `stop` is set; then finish what is in work and close."""
        self._connection = connection = Connection(self._folder.pinned.address, self._folder.credential, self._journal)
        name = self._folder.identity.name
        await connection.subscribe(subject.call(name), self._on_call)
        await connection.subscribe(subject.kept(name, "*"), self._on_kept)
        if ASK in self._handler.streams:
            await connection.subscribe(subject.ask(name), self._on_ask)
        if STUDY in self._handler.streams:
            await connection.subscribe("tacit.study.*", self._on_study)
        if MEMBERS in self._handler.streams:
            await connection.subscribe(subject.MEMBERS, self._on_members)
        try:
            await connection.open(seconds=connect_seconds)
            connection.on_up = self._catch_up
            self._journal.note("serving", server=self._folder.pinned.address.url)
            await self._catch_up()
            await self._tell_news_until(stop)
        finally:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=10)
            await connection.close()
            self._worker.shutdown(wait=True, cancel_futures=True)
            self._journal.note("stopped")

    # --- what comes in -----------------------------------------------------------------------------------------------

    async def _on_call(self, _: str, frame: bytes, __: str) -> None:
        calls = PARTY_CALLS if ASK in self._handler.streams else NODE_CALLS
        letter = self._believed(frame, calls, fresh=True)
        if letter is None:
            return
        if letter.kind == PING:
            await self._say(letter, letter.nonce, LetterReply(kind=PING, body=b""))
        elif letter.about and letter.about in self._said:  # asked again, because the reply was lost
            await self._say(letter, letter.nonce, self._said[letter.about])
        elif letter.about not in self._in_work:
            self._handler.arrives(letter)
            self._start(letter, letter.nonce)

    async def _on_ask(self, _: str, frame: bytes, __: str) -> None:
        letter = self._believed(frame, (ASK,), fresh=True)
        if letter is None:
            return
        digest = question_digest(letter.body)
        if letter.about != digest:
            self._journal.note("not-believed", why="a question is not the one that its letter names")
        elif digest not in self._in_work:  # asked again while it is being answered: one answer will do
            self._start(letter, digest)

    async def _on_study(self, _: str, frame: bytes, __: str) -> None:
        letter = self._believed(frame, (STUDY,), fresh=False, recipient=subject.EVERYBODY)
        if letter is not None:
            self._start(letter, "")

    async def _on_members(self, _: str, frame: bytes, __: str) -> None:
        letter = self._believed(frame, (MEMBERS,), fresh=False, recipient=subject.EVERYBODY)
        if letter is not None:
            self._start(letter, "")

    async def _on_kept(self, where: str, frame: bytes, _: str) -> None:
        what = where.rsplit(".", 1)[-1]
        if what == STUDY and STUDY in self._handler.streams:
            await self._on_study(where, frame, "")
        elif what == MEMBERS and MEMBERS in self._handler.streams:
            await self._on_members(where, frame, "")

    async def _catch_up(self) -> None:
        """Ask for what was told meanwhile: members, studies, and what this member was asked and has not answered."""
        assert self._connection is not None
        await self._connection.publish(subject.fetch(self._folder.identity.name), b"")

    def _believed(self, frame: bytes, kinds: tuple[str, ...], *, fresh: bool, recipient: str = "") -> Letter | None:
        try:
            letter = self._read(frame, kinds, recipient or self._folder.identity.name)
            if fresh:
                self._freshness.check(letter)
        except WireError as error:
            self._journal.note("not-believed", why=str(error), bytes=len(frame))
            return None
        return letter

    def _read(self, frame: bytes, kinds: tuple[str, ...], recipient: str) -> Letter:
        return read_letter(frame, sender=self._folder.pinned.coordinator, recipient=recipient, kinds=kinds)

    # --- what goes out -----------------------------------------------------------------------------------------------

    def _start(self, letter: Letter, reference: str) -> None:
        if self._waiting + len(letter.body) > _MOST_WAITING:
            self._journal.note("failed", kind=letter.kind, why="too much waits to be answered; it will be asked again")
            return
        if letter.about:
            self._in_work.add(letter.about)
        self._waiting += len(letter.body)
        task = asyncio.create_task(self._serve_one(letter, reference))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_one(self, letter: Letter, reference: str) -> None:
        try:
            reply = await asyncio.get_running_loop().run_in_executor(self._worker, self._handler.handle, letter)
        except Exception as error:  # a handler answers for its own errors; this is the last net under it
            self._journal.note("failed", kind=letter.kind, error=type(error).__name__)
            return
        finally:
            self._in_work.discard(letter.about)
            self._waiting -= len(letter.body)
        if reply is None or not reference:
            return
        if letter.about and letter.kind != ASK:
            self._said[letter.about] = reply
            if len(self._said) > _REPLIES_KEPT:
                self._said.popitem(last=False)
        await self._say(letter, reference, reply)

    async def _say(self, letter: Letter, reference: str, reply: LetterReply) -> None:
        assert self._connection is not None
        identity = self._folder.identity
        # An answer is about its question, whoever asks it again; anything else is about this very letter.
        about = reference if reply.kind == ANSWER else letter.nonce
        where = subject.answer if reply.kind == ANSWER else subject.reply
        try:
            outgoing = write_letter(
                identity, kind=reply.kind, recipient=subject.COORDINATOR, body=reply.body,
                study=letter.study, run=letter.run, round=letter.round, about=about,
            )  # fmt: skip
            frame = signed(outgoing, identity)
        except WireError as error:
            self._journal.note("too-long", kind=reply.kind, why=str(error))
            return
        if not await self._connection.publish(where(identity.name, reference), frame):
            self._journal.note("not-sent", kind=reply.kind, why="no connection; the coordinator will ask again")

    async def _tell_news_until(self, stop: asyncio.Event) -> None:
        assert self._connection is not None
        identity = self._folder.identity
        while not stop.is_set():
            news = await asyncio.get_running_loop().run_in_executor(self._worker, self._handler.news)
            for kind, body in news.items():
                letter = write_letter(identity, kind=kind, recipient=subject.COORDINATOR, body=body)
                await self._connection.publish(subject.event(identity.name), signed(letter, identity))
            try:
                await asyncio.wait_for(stop.wait(), timeout=1.0)
            except TimeoutError:
                continue


def stop_on_signals() -> asyncio.Event:
    """An event that Ctrl-C and SIGTERM set; call it on the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
