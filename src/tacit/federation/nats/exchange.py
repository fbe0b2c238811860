"""The coordinator's requests: letters to members out, their replies in, matched to what was asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tacit.errors import RunError, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.identity import Member
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, MEMBERS, REFUSAL, STUDY
from tacit.federation.nats.letter import Letter, read_letter, signed, tagged, write_letter
from tacit.federation.nats.session import LetterSession, OfferedSessions

_FIRST_REPEAT, _LONGEST_REPEAT = 1.0, 10.0  # seconds until a letter without a reply is sent again
_GRACE_SECONDS = 0.25  # for those who are not waited for, after the others
_MOST_FAULTS = 32  # letters of one member that are not believed, in one request
_REPEAT_EACH = 0.02  # more for each member: a crowd needs its time, and would be slowed down by being asked again


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is sent to several members: one letter each, with the same body (or one of its own).

    Attributes:
        kind: "ask" for a question, or a call's kind.
        bodies: member -> body.
        reference: the digest of the question, if it is one.
        study, run, round: what the letters belong to.
        seconds: how long replies are waited for.
        unwaited: members whose replies are taken if they come with the others', or a moment later.
        on_reply: told of every reply when it comes, while others are waited for.
    """

    kind: str
    bodies: Mapping[str, bytes]
    reference: str = ""
    study: str = ""
    run: str = ""
    round: int = 0
    seconds: float
    unwaited: frozenset[str] = frozenset()
    on_reply: Callable[[Letter], None] | None = None


@dataclass
class _Pending:
    """One request under way."""

    request: Request
    missing: set[str]
    replies: dict[str, Letter] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)  # nonce of a letter that was sent -> its recipient
    faults: Counter[str] = field(default_factory=Counter)  # member -> letters of it that were not believed
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_enough(self) -> bool:
        """Whether everybody who is waited for has replied."""
        return self.missing <= self.request.unwaited


class Exchange:
    """Sends requests and gathers replies. All of its methods run on one event loop."""

    def __init__(self, coordinator: CoordinatorFolder, journal: Journal | None = None) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._connection = Connection(coordinator.address, coordinator.credential, journal)
        self._sessions = OfferedSessions(coordinator.identity.member)
        self._pending: list[_Pending] = []
        self._members: dict[str, Member] = {}
        self._listed = -1  # the number of the list of members that these are of
        self._fetched: dict[str, float] = {}  # member -> when it last said that it is back
        self.on_reply: Callable[[str, str], None] | None = None  # told (member, kind) of every reply, for progress

    async def open(self, *, seconds: float = 10.0) -> None:
        """Connect."""
        await self._connection.subscribe("tacit.answer.*.*", self._on_letter)
        await self._connection.subscribe("tacit.reply.*.*", self._on_letter)
        await self._connection.subscribe(subject.fetch("*"), self._on_fetch)
        await self._connection.open(seconds=seconds)
        self._connection.on_up = self._send_again

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def announce(self, body: bytes, digest: str) -> None:
        """Make a study, and who belongs, known to every member, now and later."""
        self._coordinator.announced.keep(digest, body)
        await self._connection.tell(subject.MEMBERS, roster_letter(self._coordinator))
        await self._connection.tell(subject.study(digest), study_letter(self._coordinator, digest, body))

    async def send(self, request: Request) -> dict[str, Letter]:
        """The members' replies, from those that gave one in time; letters without one are sent again meanwhile."""
        self._look_at_roster()
        strangers = [name for name in request.bodies if name not in self._members]
        if strangers:
            raise RunError(f"{strangers[0]!r} is not, or no longer, a member of this federation; run without it")
        pending = _Pending(request, set(request.bodies))
        self._pending.append(pending)
        try:
            await self._gather(pending)
        finally:
            self._pending.remove(pending)
        return {name: pending.replies[name] for name in request.bodies if name in pending.replies}

    # --- inside ------------------------------------------------------------------------------------------------------

    def _look_at_roster(self) -> None:
        """Read who belongs again, if that has changed: another process may have let somebody in, or revoked one."""
        number = self._coordinator.roster.number
        if number != self._listed:
            self._members = {member.name: member for member in self._coordinator.roster.members()}
            self._listed = number

    async def _gather(self, pending: _Pending) -> None:
        clock = asyncio.get_running_loop().time
        deadline, repeat = clock() + pending.request.seconds, _FIRST_REPEAT + _REPEAT_EACH * len(pending.missing)
        while not pending.is_enough and (left := deadline - clock()) > 0:
            await self._send_letters(pending, sorted(pending.missing), again=bool(pending.nonces))
            try:
                async with asyncio.timeout(min(repeat, left)):
                    await pending.done.wait()
            except TimeoutError:
                repeat = max(repeat, min(2 * repeat, _LONGEST_REPEAT))
        grace = clock() + _GRACE_SECONDS
        while pending.missing and pending.is_enough and clock() < grace:
            await asyncio.sleep(0.01)

    async def _send_letters(self, pending: _Pending, names: Sequence[str], *, again: bool) -> None:
        """Send a letter to each; one that is sent again is signed, since the member may know no session any more."""
        identity, request = self._coordinator.identity, pending.request
        where = subject.ask if request.kind == ASK else subject.call
        for name in names:
            letter = write_letter(
                identity, kind=request.kind, recipient=name, body=request.bodies[name],
                study=request.study, run=request.run, round=request.round, about=request.reference,
            )  # fmt: skip
            pending.nonces[letter.nonce] = name
            member = self._members.get(name)  # none, if it was revoked a moment ago
            session = None if again or member is None else self._sessions.find(member)
            if session is not None:
                frame = tagged(letter, session)
            else:
                frame = signed(replace(letter, key=self._sessions.offer), identity)
            await self._connection.publish(where(name), frame)

    async def _send_again(self) -> None:
        """After a new connection: whoever has not replied may never have been asked."""
        for pending in list(self._pending):
            await self._send_letters(pending, sorted(pending.missing), again=True)

    async def _on_fetch(self, where: str, _: bytes, __: str) -> None:
        """A member is back: what it was asked meanwhile did not reach it."""
        name, now = where.rsplit(".", 1)[-1], asyncio.get_running_loop().time()
        if name not in self._members:
            return  # nobody who was asked anything; a server may make up names without end
        self._sessions.forget(name)
        if now - self._fetched.get(name, -_FIRST_REPEAT) < _FIRST_REPEAT:
            return  # it is asked again in any case
        self._fetched[name] = now
        for pending in list(self._pending):
            if name in pending.missing:
                await self._send_letters(pending, [name], again=True)

    async def _on_letter(self, where: str, frame: bytes, _: str) -> None:
        _, stream, name, reference = where.split(".")
        member = self._members.get(name)
        expected = [p for p in self._pending if name in p.missing and self._is_for(p, stream, reference, name)]
        if member is None or not expected:
            return  # a late reply, or one to another process of the coordinator
        kinds = (ANSWER,) if stream == ANSWER else (REFUSAL, *(p.request.kind for p in expected))
        try:
            letter = read_letter(
                frame,
                sender=member,
                recipient=subject.COORDINATOR,
                kinds=kinds,
                find=lambda one: self._find(member, one),
            )
            for pending in expected:
                self._take(pending, letter)
            if letter.key and not letter.session:
                self._sessions.take(member, letter.key)
        except WireError as error:
            for pending in expected:
                pending.faults[name] += 1
            if self._journal is not None:
                self._journal.note("not-believed", member=name, why=str(error))

    def _find(self, member: Member, name: bytes) -> LetterSession | None:
        session = self._sessions.find(member)
        return session if session is not None and session.name == name else None

    @staticmethod
    def _is_for(pending: _Pending, stream: str, reference: str, name: str) -> bool:
        if pending.faults[name] >= _MOST_FAULTS:  # who sends so much nonsense is not read any more
            return False
        if pending.request.kind == ASK:
            return reference == pending.request.reference
        return stream == "reply" and pending.nonces.get(reference) == name

    def _take(self, pending: _Pending, letter: Letter) -> None:
        request = pending.request
        about_is_right = letter.about == request.reference if letter.kind == ANSWER else (
            pending.nonces.get(letter.about) == letter.sender
        )  # fmt: skip
        if not about_is_right or (letter.study, letter.run) != (request.study, request.run):
            raise WireError(f"{letter.sender!r} replied to another letter than the one that was sent")
        pending.replies[letter.sender] = letter
        pending.missing.discard(letter.sender)
        if request.on_reply is not None:
            request.on_reply(letter)
        if self.on_reply is not None:
            self.on_reply(letter.sender, letter.kind)
        if pending.is_enough:
            pending.done.set()


def roster_letter(coordinator: CoordinatorFolder) -> bytes:
    """Who belongs, as it travels."""
    identity = coordinator.identity
    body = coordinator.roster.member_list().encode()
    return signed(write_letter(identity, kind=MEMBERS, recipient=subject.EVERYBODY, body=body), identity)


def study_letter(coordinator: CoordinatorFolder, digest: str, body: bytes) -> bytes:
    """A study as it travels."""
    identity = coordinator.identity
    letter = write_letter(identity, kind=STUDY, recipient=subject.EVERYBODY, body=body, study=digest)
    return signed(letter, identity)
