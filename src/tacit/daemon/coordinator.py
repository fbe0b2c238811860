"""The coordinator's daemon: it keeps the message server up, lets in whoever was invited, and notes what happens."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tacit import wire
from tacit.daemon.joining import welcome
from tacit.errors import TacitError, WireError
from tacit.federation.net.exchange import keep_streams, tell_members
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.journal import Journal
from tacit.federation.net.letter import read_letter, signed, write_letter
from tacit.federation.net.link import Link
from tacit.federation.net.server import LOG, MessageServer
from tacit.federation.net.station import CONSENT
from tacit.federation.net.subject import CLOCK, COORDINATOR

_LOOK_SECONDS = 1.0
_VIOLATION = re.compile(r"nkey:(U\w+)\".*?(Publish|Subscription) Violation.*?Subject \"([^\"]+)\"")
_REFUSED = re.compile(r"authentication error(?: - Nkey \"(\w+)\")?")


class CoordinatorDaemon:
    """Serves until it is told to stop."""

    def __init__(self, headquarters: Headquarters, journal: Journal) -> None:
        self._headquarters = headquarters
        self._journal = journal
        self._server = MessageServer(headquarters.folder, headquarters.settings)
        self._link = Link(headquarters.address, headquarters.credential, journal)
        self._log = _Tail(headquarters.folder / LOG)

    async def serve(self, stop: asyncio.Event) -> None:
        """Keep the server up and the door open until `stop` is set; then stop the server too."""
        self._headquarters.apply()  # invitations may have expired since
        self._log.skip()
        self._start_server()
        try:
            await self._link.subscribe("tacit.join.*", self._on_join)
            await self._link.subscribe("tacit.event.*", self._on_event)
            await self._link.subscribe(CLOCK, self._on_clock)
            await self._link.open(seconds=10.0)
            self._link.on_up = self._tell_members  # whoever joined while the line was down was told by nobody
            await keep_streams(self._link)
            await self._tell_members()
            self._journal.note("serving", server=self._headquarters.address.url)
            while not stop.is_set():
                self._look()
                try:
                    await asyncio.wait_for(stop.wait(), timeout=_LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            await self._link.close()
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
        names = {member.nkey: member.name for member in self._headquarters.roster.members()}
        names[self._headquarters.identity.member.nkey] = COORDINATOR
        for line in self._log.lines():
            if found := _VIOLATION.search(line):
                nkey, what, where = found.groups()
                self._journal.note("not-permitted", member=names.get(nkey, nkey), what=what.lower(), subject=where)
            elif found := _REFUSED.search(line):
                self._journal.note("stranger-refused", nkey=found.group(1))

    async def _on_join(self, where: str, message: bytes, reply_to: str) -> None:
        invitation = where.rsplit(".", 1)[-1]
        try:
            reply, member = welcome(self._headquarters, invitation, message)
        except WireError as error:
            self._journal.note("not-believed", why=str(error), bytes=len(message))
            return
        if member is not None:
            self._journal.note("joined", member=member.name, role=member.role, fingerprint=member.fingerprint)
        else:
            self._journal.note("invitation-refused", invitation=invitation)
        if reply_to:
            await self._link.publish(reply_to, reply)
        if member is not None:
            await self._tell_members()

    async def _tell_members(self) -> None:
        await tell_members(self._link, self._headquarters)

    async def _on_clock(self, _: str, message: bytes, reply_to: str) -> None:
        name = message[:64].decode(errors="replace")
        identity = self._headquarters.identity
        if reply_to and any(member.name == name for member in self._headquarters.roster.members()):
            letter = write_letter(identity, kind="clock", recipient=name)
            await self._link.publish(reply_to, signed(letter, identity))

    async def _on_event(self, where: str, message: bytes, _: str) -> None:
        name = where.rsplit(".", 1)[-1]
        member = next((m for m in self._headquarters.roster.members() if m.name == name), None)
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
