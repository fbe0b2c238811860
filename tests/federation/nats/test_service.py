"""A member's daemon: who works where. A long answer never keeps the connection waiting; a short one wakes no thread."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.message import Question, question_digest
from tacit.federation.nats import service
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, LetterReply, refusal
from tacit.federation.nats.letter import Letter, signed, write_letter
from tacit.federation.nats.service import MemberService

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)


class Handler:
    """Answers, and notes in which thread; `wait` holds an answer up."""

    streams = (ASK,)

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.wait: threading.Event | None = None
        self.fails = False
        self.refuses = False

    def handle(self, letter: Letter) -> LetterReply | None:
        is_main = threading.current_thread() is threading.main_thread()
        self.threads.append("loop" if is_main else "own")
        if self.wait is not None:
            assert self.wait.wait(30)
        if self.fails:
            raise ValueError("a record says 7")
        if self.refuses:
            return refusal("NotAgreed", "no such run has begun")
        return LetterReply(kind=ANSWER, body=b"yes")

    def arrives(self, letter: Letter) -> None:
        pass

    def news(self) -> Mapping[str, bytes]:
        return {}


class Party:
    def __init__(self, folder: Path) -> None:
        identity = Identity.make("north", "party", folder)
        address = Address(url="tls://nowhere:1", authority="")
        pinned = Pinned(address=address, coordinator=COORDINATOR.member, center=())
        MemberFolder.write(folder, identity.member, pinned, None)
        self.handler, self.journal = Handler(), io.StringIO()
        self.sent: list[bytes] = []
        journal = Journal("north", self.journal)
        self.service = MemberService(MemberFolder.load(folder, "party"), self.handler, journal)
        self.service._connection = self  # type: ignore[assignment]

    async def publish(self, where: str, frame: bytes) -> bool:
        self.sent.append(frame)
        return True

    async def asked(self, turn: int, *, step: str = "s/one", run: str = "r") -> None:
        """A question arrives."""
        body = Question(
            study="s", run=run, method="m", step=step, version=1, group="", plan="", turn=turn, values=None
        ).encode()
        letter = write_letter(COORDINATOR, kind=ASK, recipient="north", body=body, about=question_digest(body))
        await self.service._on_ask("", signed(letter, COORDINATOR), "")

    async def settle(self) -> None:
        while self.service._tasks:
            await asyncio.sleep(0.001)


@pytest.fixture
def party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Party:
    monkeypatch.setattr(service, "_SHORT_SECONDS", 1e9)  # so that no busy machine makes it long
    return Party(tmp_path)


def test_the_first_question_of_a_step_goes_to_the_thread_and_short_ones_like_it_do_not(party: Party) -> None:
    async def run() -> None:
        for turn in range(3):
            await party.asked(turn)
            await party.settle()
        await party.asked(0, step="s/two")  # how long that takes is not known yet
        await party.settle()
        await party.asked(0, run="another")
        await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "loop", "loop", "own", "own"]
    assert len(party.sent) == 5


def test_a_step_that_took_long_goes_to_the_thread(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        await party.asked(0)
        await party.settle()
        monkeypatch.setattr(service, "_SHORT_SECONDS", 0.0)  # from now on whatever it takes is long
        for turn in range(1, 4):
            await party.asked(turn)
            await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "loop", "own", "own"]


def test_a_refusal_does_not_tell_how_long_an_answer_takes(party: Party) -> None:
    """Else the first answer after it would be made while the connection waits, whatever it takes."""

    async def run() -> None:
        party.handler.refuses = True
        await party.asked(0)
        await party.settle()
        party.handler.refuses = False
        await party.asked(1)
        await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "own"]


def test_a_question_that_is_asked_again_does_not_tell_how_long_an_answer_takes(
    party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is stored: the second time it is short, however long the first time was."""

    async def run() -> None:
        monkeypatch.setattr(service, "_SHORT_SECONDS", 0.0)
        await party.asked(0)
        await party.settle()
        monkeypatch.setattr(service, "_SHORT_SECONDS", 1e9)
        await party.asked(0)
        await party.settle()
        await party.asked(1)
        await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "own", "own"]


def test_while_the_thread_works_nothing_is_answered_beside_it(party: Party) -> None:
    """The handler's files have one writer."""
    party.handler.wait = threading.Event()

    async def run() -> None:
        party.service._short["r", "s/one"] = "another", True
        await party.asked(0, step="s/long")
        while not party.handler.threads:
            await asyncio.sleep(0.001)
        await party.asked(0)  # short, but not now
        assert party.handler.threads == ["own"]
        assert party.sent == []
        assert party.handler.wait is not None
        party.handler.wait.set()
        await party.settle()
        news = asyncio.create_task(party.service._in_thread(party.handler.news))
        await asyncio.sleep(0)
        await party.asked(1)  # nor while it looks for news
        await news
        await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "own", "own"]
    assert len(party.sent) == 3


def test_a_short_answer_that_fails_tells_nothing_and_stops_nobody(party: Party) -> None:
    async def run() -> None:
        await party.asked(0)
        await party.settle()
        party.handler.fails = True
        await party.asked(1)
        party.handler.fails = False
        await party.asked(2)
        await party.settle()

    asyncio.run(run())
    assert party.handler.threads == ["own", "loop", "loop"]
    assert len(party.sent) == 2
    assert '"error": "ValueError"' in party.journal.getvalue()
    assert "record" not in party.journal.getvalue()


def test_memory_of_paces_is_bounded(party: Party) -> None:
    async def run() -> None:
        for number in range(200):
            await party.asked(0, run=f"r{number}")
        await party.settle()

    asyncio.run(run())
    assert len(party.service._short) == 64


def test_what_is_refused_leaves_no_names_in_memory(party: Party) -> None:
    """A question may be 60 MB long, and all of it one name."""
    party.handler.refuses = True

    async def run() -> None:
        await party.asked(0, run="r" * 1_000_000)
        await party.settle()

    asyncio.run(run())
    assert not party.service._short
