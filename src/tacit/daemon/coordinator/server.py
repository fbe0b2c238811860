"""The coordinator's daemon: it keeps the message server up, lets in whoever was invited, and notes what happens."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tacit import wire
from tacit.daemon.coordinator.joining import welcome
from tacit.daemon.coordinator.rotating import rotated
from tacit.daemon.coordinator.watch import REQUEST, SHUT_OUT_SECONDS, Pace, Watch, read_connections
from tacit.errors import RunError, TacitError, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats import subject
from tacit.federation.nats.cluster import OwnCluster
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.exchange import roster_letter, study_letter
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import CLOCK_TIME, CONSENT, MEMBERS, MOST_CHANGES, STUDY
from tacit.federation.nats.letter import Freshness, read_letter, signed, write_letter
from tacit.federation.nats.server import LOG, MessageServer
from tacit.federation.nats.subject import CONNECTIONS, COORDINATOR
from tacit.storage import make_private_folder

_LOOK_SECONDS = 1.0
_VIOLATION = re.compile(r"nkey:(U\w+)\".*?(Publish|Subscription) Violation.*?Subject \"([^\"]+)\"")
_REFUSED = re.compile(r"authentication error(?: - Nkey \"(\w+)\")?")


class CoordinatorDaemon:
    """Serves until it is told to stop."""

    def __init__(self, coordinator: CoordinatorFolder, journal: Journal) -> None:
        make_private_folder(coordinator.path)
        self._coordinator = coordinator
        self._journal = journal
        self._server: MessageServer | OwnCluster = (
            OwnCluster() if coordinator.settings is None else MessageServer(coordinator.path, coordinator.settings)
        )
        self._connection = Connection(coordinator.address, coordinator.credential, journal)
        # What members flood the other one with must not keep the server's word from arriving.
        self._watching = Connection(coordinator.address, coordinator.credential)
        self._watch, self._pace = Watch(), Pace()
        self._freshness = Freshness()  # of what members tell of their own accord
        self._shut_out: frozenset[str] = frozenset()
        self._told = 0  # the number of the last list of members that was told
        self.on_consent: Callable[[str, str, str], None] = lambda member, study, state: (
            None
        )  # told of opting in and out
        self._owed: dict[str, asyncio.Task[None]] = {}  # members that are to be told what they missed
        self._log = _Tail(coordinator.path / LOG)

    async def serve(self, stop: asyncio.Event) -> None:
        """Keep the server up and the door open until `stop` is set; then stop the server too."""
        self._coordinator.apply()  # invitations may have expired since
        self._log.skip()
        self._start_server()
        try:
            await self._listen(subject.join("*"), self._on_join)
            await self._listen(subject.event("*"), self._on_event)
            await self._listen(subject.fetch("*"), self._on_fetch)
            await self._listen(subject.clock("*"), self._on_clock)
            await self._listen(subject.rotate("*"), self._on_rotate)
            await self._connection.open(seconds=10.0)
            await self._watching.open(seconds=10.0)
            self._connection.on_up = self._tell_everything  # members may have come while it was down
            await self._tell_everything()
            self._journal.note("serving", server=self._coordinator.address.url)
            while not stop.is_set():
                self._look()
                await self._look_at_connections()
                if self._coordinator.roster.number != self._told:  # a command has revoked somebody
                    await self._tell_members()
                try:
                    await asyncio.wait_for(stop.wait(), timeout=_LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            for task in list(self._owed.values()):
                task.cancel()
            await self._watching.close()
            await self._connection.close()
            self._server.stop()
            self._look_at_log()
            self._journal.note("stopped")

    async def _listen(self, where: str, on_message: Callable[[str, bytes], Awaitable[None]]) -> None:
        """Hand on what a member says, but not faster than it may; whatever reply subject it names is not looked at."""

        async def take(found: str, message: bytes, _: str) -> None:
            sender = found.rsplit(".", 1)[-1]
            if self._pace.allows(sender, time.monotonic()):
                await on_message(sender, message)

        await self._connection.subscribe(where, take)

    def _start_server(self) -> None:
        if self._coordinator.settings is None:
            return  # others keep it up
        started = self._server.start()
        self._journal.note("server-started" if started else "server-taken-over")

    def _look(self) -> None:
        self._look_at_log()
        if not self._server.is_running:
            self._journal.note("server-died")
            try:
                self._start_server()
            except TacitError as error:
                self._journal.note("server-does-not-start", why=str(error))

    def _look_at_log(self) -> None:
        """Pass on what the server refused."""
        names = {member.nkey: member.name for member in self._coordinator.roster.members()}
        names[self._coordinator.identity.member.nkey] = COORDINATOR
        for line in self._log.lines():
            if found := _VIOLATION.search(line):
                nkey, what, where = found.groups()
                self._journal.note("not-permitted", member=names.get(nkey, nkey), what=what.lower(), subject=where)
            elif found := _REFUSED.search(line):
                self._journal.note("stranger-refused", nkey=found.group(1))

    async def _look_at_connections(self) -> None:
        """Shut out who sends too much; let in again whose time is over."""
        try:
            replies = await self._watching.request_each(CONNECTIONS, REQUEST, seconds=_LOOK_SECONDS)
            listed = [one for reply in replies for one in read_connections(reply)]
        except (RunError, WireError):
            return  # the server is just starting again; the next look sees what was sent
        roster = self._coordinator.roster
        over = dict(self._watch.over(listed, time.monotonic()))
        over.pop(self._coordinator.identity.member.nkey, None)
        names = {member.nkey: member.name for member in roster.members()}
        for nkey, why in over.items():
            roster.shut_out(nkey, time.time() + SHUT_OUT_SECONDS)
            self._journal.note("shut-out", member=names.get(nkey, nkey), why=why, seconds=SHUT_OUT_SECONDS)
        if (now := roster.shut_out_keys()) != self._shut_out:
            self._shut_out = now
            self._coordinator.apply()

    async def _on_join(self, invitation: str, message: bytes) -> None:
        try:
            reply, member = welcome(self._coordinator, invitation, message)
        except WireError as error:
            self._journal.note("not-believed", why=str(error), bytes=len(message))
            return
        if member is not None:
            self._journal.note("joined", member=member.name, role=member.role, fingerprint=member.fingerprint)
        else:
            self._journal.note("invitation-refused", invitation=invitation)
        await self._connection.publish(subject.welcome(invitation), reply)
        if member is not None:
            await self._tell_members()

    async def _tell_members(self) -> None:
        self._told = self._coordinator.roster.number
        await self._connection.publish(subject.MEMBERS, roster_letter(self._coordinator))

    async def _tell_everything(self) -> None:
        await self._tell_members()
        for digest, body in self._coordinator.announced.all().items():
            await self._connection.publish(subject.study(digest), study_letter(self._coordinator, digest, body))

    async def _on_fetch(self, name: str, _: bytes) -> None:
        """Tell a member what it missed, once a second at most however often it asks."""
        if name not in self._owed and self._coordinator.roster.find(name) is not None:
            task = self._owed[name] = asyncio.create_task(self._tell_kept(name))
            task.add_done_callback(lambda _: self._owed.pop(name, None))

    async def _tell_kept(self, name: str) -> None:
        await self._connection.publish(subject.kept(name, MEMBERS), roster_letter(self._coordinator))
        for digest, body in self._coordinator.announced.all().items():
            letter = study_letter(self._coordinator, digest, body)
            await self._connection.publish(subject.kept(name, STUDY), letter)
        await asyncio.sleep(_LOOK_SECONDS)

    async def _on_clock(self, name: str, _: bytes) -> None:
        if self._coordinator.roster.find(name) is None:
            return
        identity = self._coordinator.identity
        letter = write_letter(identity, kind=CLOCK_TIME, recipient=name)
        await self._connection.publish(subject.time(name), signed(letter, identity))

    async def _on_rotate(self, name: str, message: bytes) -> None:
        member = self._coordinator.roster.find(name)
        if member is None:
            return
        try:
            reply, rotation = rotated(self._coordinator, member, message)
        except WireError as error:
            self._journal.note("not-believed", member=name, why=str(error))
            return
        await self._connection.publish(subject.rotated(name), reply)
        if rotation is not None:
            await self._connection.flush()
            self._coordinator.apply()  # which cuts the connection of the old key
            old, new = rotation.old.fingerprint, rotation.new.fingerprint
            self._journal.note("key-rotated", member=name, old=old, new=new)
            await self._tell_members()

    async def _on_event(self, name: str, message: bytes) -> None:
        member = self._coordinator.roster.find(name)
        if member is None:
            return
        try:
            letter = read_letter(message, sender=member, recipient=COORDINATOR, kinds=(CONSENT,))
            self._freshness.check(letter)
            match wire.decode(letter.body):
                case list(changes) if len(changes) <= MOST_CHANGES:
                    for change in changes:
                        match change:
                            case {"study": str(study), "state": "in" | "out" as state}:
                                self._journal.note(f"opted-{state}", member=name, study=study)
                                self.on_consent(name, study, str(state))
                case _:
                    raise WireError(f"its news are no list of at most {MOST_CHANGES} changes; use the same release")
        except WireError as error:
            self._journal.note("not-believed", member=name, why=str(error))


class _Tail:
    """The lines that a growing file has gained since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def skip(self) -> None:
        """Begin at the present end."""
        self._position = self._path.stat().st_size if self._path.exists() else 0

    def lines(self) -> list[str]:
        """New whole lines; a file that was begun anew is read from its start."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._position:
                    self._position = 0
                file.seek(self._position)
                text = file.read(1 << 20)
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.decode(errors="replace").splitlines()
