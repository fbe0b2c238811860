"""The coordinator's daemon: it keeps the message server up, lets in whoever was invited, and notes what happens."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tacit import wire
from tacit.daemon.coordinator.joining import welcome
from tacit.errors import TacitError, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.exchange import keep_streams, tell_members
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import CLOCK_TIME, CONSENT
from tacit.federation.nats.letter import read_letter, signed, write_letter
from tacit.federation.nats.server import LOG, MessageServer
from tacit.federation.nats.subject import CLOCK, COORDINATOR

_LOOK_SECONDS = 1.0
_VIOLATION = re.compile(r"nkey:(U\w+)\".*?(Publish|Subscription) Violation.*?Subject \"([^\"]+)\"")
_REFUSED = re.compile(r"authentication error(?: - Nkey \"(\w+)\")?")


class CoordinatorDaemon:
    """Serves until it is told to stop."""

    def __init__(self, coordinator: CoordinatorFolder, journal: Journal) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._server = MessageServer(coordinator.path, coordinator.settings)
        self._connection = Connection(coordinator.address, coordinator.credential, journal)
        self._log = _Tail(coordinator.path / LOG)

    async def serve(self, stop: asyncio.Event) -> None:
        """Keep the server up and the door open until `stop` is set; then stop the server too."""
        self._coordinator.apply()  # invitations may have expired since
        self._log.skip()
        self._start_server()
        try:
            await self._connection.subscribe("tacit.join.*", self._on_join)
            await self._connection.subscribe("tacit.event.*", self._on_event)
            await self._connection.subscribe(CLOCK, self._on_clock)
            await self._connection.open(seconds=10.0)
            self._connection.on_up = self._tell_members  # members may have joined while it was down
            await keep_streams(self._connection)
            await self._tell_members()
            self._journal.note("serving", server=self._coordinator.address.url)
            while not stop.is_set():
                self._look()
                try:
                    await asyncio.wait_for(stop.wait(), timeout=_LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            await self._connection.close()
            self._server.stop()
            self._look_at_log()
            self._journal.note("stopped")

    def _start_server(self) -> None:
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

    async def _on_join(self, where: str, message: bytes, reply_to: str) -> None:
        invitation = where.rsplit(".", 1)[-1]
        try:
            reply, member = welcome(self._coordinator, invitation, message)
        except WireError as error:
            self._journal.note("not-believed", why=str(error), bytes=len(message))
            return
        if member is not None:
            self._journal.note("joined", member=member.name, role=member.role, fingerprint=member.fingerprint)
        else:
            self._journal.note("invitation-refused", invitation=invitation)
        if reply_to:
            await self._connection.publish(reply_to, reply)
        if member is not None:
            await self._tell_members()

    async def _tell_members(self) -> None:
        await tell_members(self._connection, self._coordinator)

    async def _on_clock(self, _: str, message: bytes, reply_to: str) -> None:
        name = message[:64].decode(errors="replace")
        identity = self._coordinator.identity
        if reply_to and any(member.name == name for member in self._coordinator.roster.members()):
            letter = write_letter(identity, kind=CLOCK_TIME, recipient=name)
            await self._connection.publish(reply_to, signed(letter, identity))

    async def _on_event(self, where: str, message: bytes, _: str) -> None:
        name = where.rsplit(".", 1)[-1]
        member = next((m for m in self._coordinator.roster.members() if m.name == name), None)
        if member is None:
            return
        try:
            letter = read_letter(message, sender=member, recipient=COORDINATOR, kinds=(CONSENT,))
            match wire.decode(letter.body):
                case list(changes):
                    for change in changes:
                        match change:
                            case {"study": str(study), "state": "in" | "out" as state}:
                                self._journal.note(f"opted-{state}", member=name, study=study)
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
