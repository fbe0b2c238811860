"""A member's daemon: it receives the coordinator's letters, gives them to the member's handler, and sends the replies.

Letters are checked as `letter.py` says, before anything else looks at them. One that fails is noted and dropped. The
handler works on one letter after the other, so its files have one writer. It does so in a thread of its own, so that
the connection never waits for a computation. The one exception is a question of a step that took some milliseconds the
last time that this run asked it: to wake the thread would cost more than to wait for the answer.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol, TypeVar

from tacit.errors import WireError
from tacit.federation.member.folder import MemberFolder
from tacit.federation.message import Question, question_digest
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, MEMBERS, NODE_CALLS, PARTY_CALLS, PING, STUDY, LetterReply
from tacit.federation.nats.letter import MAX_SKEW, Freshness, Letter, read_letter, signed, tagged, write_letter
from tacit.federation.nats.session import AcceptedSessions

T = TypeVar("T")

_REPLIES_KEPT = 16
_SHORT_SECONDS = 0.05  # a connection that waits for so long misses nothing
_PACES_KEPT = 64
_MOST_WAITING = 256 << 20  # bytes
_LETTER_BYTES = 8 << 10  # that a letter takes while it waits, beside its body: its head, and its task


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
        self._sessions = AcceptedSessions(folder.member, folder.pinned.coordinator)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="tacit-handler")
        self._n_at_work = 0  # what the thread has been given and has not done yet
        self._short: OrderedDict[tuple[str, str], tuple[str, bool]] = OrderedDict()
        """(run, step) -> the question that was answered last, and whether that was short."""
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
            if self._is_short(letter):
                reply, seconds = self._handled(letter)
                self._note_pace(letter, reply, seconds)
                await self._say_reply(letter, digest, reply)
            else:
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
        coordinator = self._folder.pinned.coordinator
        find = None if recipient == subject.EVERYBODY else self._sessions.find
        return read_letter(frame, sender=coordinator, recipient=recipient, kinds=kinds, find=find)

    # --- what goes out -----------------------------------------------------------------------------------------------

    def _start(self, letter: Letter, reference: str) -> None:
        if self._waiting + _size(letter) > _MOST_WAITING:
            self._journal.note("failed", kind=letter.kind, why="too much waits to be answered; it will be asked again")
            return
        if letter.about:
            self._in_work.add(letter.about)
        self._waiting += _size(letter)
        task = asyncio.create_task(self._serve_one(letter, reference))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_one(self, letter: Letter, reference: str) -> None:
        try:
            reply, seconds = await self._in_thread(lambda: self._handled(letter))
        finally:
            self._in_work.discard(letter.about)
            self._waiting -= _size(letter)
        self._note_pace(letter, reply, seconds)
        await self._say_reply(letter, reference, reply)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do something in the handler's thread."""
        self._n_at_work += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        finally:
            self._n_at_work -= 1

    def _handled(self, letter: Letter) -> tuple[LetterReply | None, float]:
        """What the handler says to a letter, and how long it took."""
        start = time.monotonic()
        try:
            reply = self._handler.handle(letter)
        except Exception as error:  # a handler answers for its own errors; this is the last net under it
            self._journal.note("failed", kind=letter.kind, error=type(error).__name__)
            reply = None
        return reply, time.monotonic() - start

    def _is_short(self, letter: Letter) -> bool:
        """Whether a question can be answered at once: the handler is idle, and the last one like it was short."""
        pace = _pace_of(letter)
        return pace is not None and not self._n_at_work and not self._tasks and self._short.get(pace, ("", False))[1]

    def _note_pace(self, letter: Letter, reply: LetterReply | None, seconds: float) -> None:
        """Remember how long an answer took.

        A refusal does not tell that. Nor does a question that is asked again, whose answer is stored.
        """
        if letter.kind != ASK or reply is None or reply.kind != ANSWER:
            return
        pace = _pace_of(letter)
        if pace is not None and self._short.get(pace, ("", False))[0] != letter.about:
            self._short[pace] = letter.about, seconds < _SHORT_SECONDS
            if len(self._short) > _PACES_KEPT:
                self._short.popitem(last=False)

    async def _say_reply(self, letter: Letter, reference: str, reply: LetterReply | None) -> None:
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
            session = self._sessions.find(letter.session)
            if session is not None:
                frame = tagged(outgoing, session)
            else:
                frame = signed(replace(outgoing, key=self._accepted(letter)), identity)
        except WireError as error:
            self._journal.note("too-long", kind=reply.kind, why=str(error))
            return
        if not await self._connection.publish(where(identity.name, reference), frame):
            self._journal.note("not-sent", kind=reply.kind, why="no connection; the coordinator will ask again")

    def _accepted(self, letter: Letter) -> bytes:
        """What to say to the offer of a session in a letter; nothing to a bad one, which costs its sender the speed."""
        try:
            return self._sessions.accept(letter.key) if letter.key else b""
        except WireError as error:
            self._journal.note("not-believed", why=str(error))
            return b""

    async def _tell_news_until(self, stop: asyncio.Event) -> None:
        assert self._connection is not None
        identity = self._folder.identity
        while not stop.is_set():
            news = await self._in_thread(self._handler.news)
            for kind, body in news.items():
                letter = write_letter(identity, kind=kind, recipient=subject.COORDINATOR, body=body)
                await self._connection.publish(subject.event(identity.name), signed(letter, identity))
            try:
                await asyncio.wait_for(stop.wait(), timeout=1.0)
            except TimeoutError:
                continue


def _size(letter: Letter) -> int:
    """The bytes that a letter takes while it waits."""
    return len(letter.body) + _LETTER_BYTES


def _pace_of(letter: Letter) -> tuple[str, str] | None:
    """By what one tells how long a question will take: its run and its step; None if it is none."""
    try:
        question = Question.decode(letter.body)
    except WireError:
        return None
    return question.run, question.step


def stop_on_signals() -> asyncio.Event:
    """An event that Ctrl-C and SIGTERM set; call it on the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
