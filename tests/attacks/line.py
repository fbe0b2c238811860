"""A line between the coordinator and its members, without a server, on which somebody sits who may do anything."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tacit.federation.member.address import Address, Credential
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.message import question_digest
from tacit.federation.nats.exchange import Exchange, Request
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, HELLO, LetterReply
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.service import MemberService

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
NOWHERE = Address(url="tls://nowhere:1", authority="")
Alter = Callable[[str, bytes], Sequence[bytes]]


class Echo:
    """A handler that says what it was asked, and remembers it."""

    streams = (ASK,)

    def __init__(self) -> None:
        self.handled: list[bytes] = []

    def handle(self, letter: Letter) -> LetterReply | None:
        self.handled.append(letter.body)
        return LetterReply(kind=ANSWER if letter.kind == ASK else HELLO, body=b"to " + letter.body)

    def arrives(self, letter: Letter) -> None:
        pass

    def news(self) -> Mapping[str, bytes]:
        return {}


class Line:
    """The coordinator's exchange and members' daemons; `alter` says what becomes of each frame, by its subject."""

    def __init__(self, root: Path, names: Sequence[str] = ("north", "south")) -> None:
        self.root = root
        self.seen: list[tuple[str, bytes]] = []
        self.alter: Alter = lambda _, frame: [frame]
        self.journals = {name: io.StringIO() for name in (*names, "coordinator")}
        self.services: dict[str, MemberService] = {}
        self.handlers: dict[str, Echo] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for name in names:
            (root / name).mkdir()
            identity = Identity.make(name, "party", root / name)
            pinned = Pinned(address=NOWHERE, coordinator=COORDINATOR.member, center=())
            MemberFolder.write(root / name, identity.member, pinned, None)
            self.start(name)
        self.members = {name: self.folder(name).member for name in names}
        self.roster = SimpleNamespace(number=1, members=lambda: list(self.members.values()))
        self.exchange = self.new_exchange()

    def folder(self, name: str) -> MemberFolder:
        return MemberFolder.load(self.root / name, "party")

    def start(self, name: str) -> None:
        """A member's daemon, or a new one after a restart."""
        self.handlers[name] = self.handlers.get(name, Echo())
        made = MemberService(self.folder(name), self.handlers[name], Journal(name, self.journals[name]))
        made._connection = self  # type: ignore[assignment]
        self.services[name] = made

    def new_exchange(self) -> Exchange:
        """A process of the coordinator's."""
        credential = Credential(name="coordinator", nkey_seed=COORDINATOR.nkey_seed)
        folder: Any = SimpleNamespace(address=NOWHERE, credential=credential, identity=COORDINATOR, roster=self.roster)
        with patch("tacit.federation.nats.exchange.Connection", return_value=self):
            made = Exchange(folder, Journal("coordinator", self.journals["coordinator"]))
        return made

    async def publish(self, where: str, frame: bytes) -> bool:
        """What a member or the coordinator sends."""
        self.seen.append((where, frame))
        for altered in self.alter(where, frame):
            self.deliver(where, altered)
        return True

    def deliver(self, where: str, frame: bytes) -> None:
        """What arrives, whoever sent it."""
        _, stream, name, *_ = where.split(".")
        if stream == "ask":
            work = self.services[name]._on_ask(where, frame, "")
        elif stream == "call":
            work = self.services[name]._on_call(where, frame, "")
        elif stream == "study":
            work = self.services["north"]._on_study(where, frame, "")
        else:
            work = self.exchange._on_letter(where, frame, "")
        task = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Until nobody has anything to do any more."""
        while self._tasks or any(service._tasks for service in self.services.values()):
            await asyncio.sleep(0.001)

    async def ask(self, body: bytes, names: Sequence[str] = ("north",), seconds: float = 30.0) -> dict[str, bytes]:
        """What members say to a question."""
        request = Request(
            kind=ASK, bodies=dict.fromkeys(names, body), reference=question_digest(body), run="r", study="s",
            seconds=seconds,
        )  # fmt: skip
        return {name: letter.body for name, letter in (await self.exchange.send(request)).items()}

    async def ask_in_vain(self, body: bytes, names: Sequence[str] = ("north",)) -> None:
        """Ask, and see that somebody's reply never comes: not in a time, but when all that was sent has been read."""
        asked = asyncio.create_task(self.ask(body, names))
        await asyncio.sleep(0)  # it sends its letters
        await self.settle()
        assert not asked.done()
        asked.cancel()
        await asyncio.wait([asked])

    def frames(self, stream: str, name: str = "north") -> list[bytes]:
        """What was sent on a stream of one member so far."""
        return [frame for where, frame in self.seen if where.startswith(f"tacit.{stream}.{name}")]

    def believed(self, name: str) -> list[bytes]:
        """What a member's handler was given."""
        return self.handlers[name].handled

    def not_believed(self, name: str) -> str:
        """What a member, or the coordinator, said of letters that it did not believe."""
        return "\n".join(line for line in self.journals[name].getvalue().splitlines() if "not-believed" in line)
