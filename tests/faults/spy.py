"""Somebody who has the message server: sees every letter, and can send any again. It has no key, so it only reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.blocking import BackgroundLoop
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.letter import _HEADER, _LENGTHS, _START, Letter, _letter


def seen(frame: bytes) -> Letter:
    """The letter in a frame, as anybody on the way can read it, without asking whose it is."""
    n_head, _ = _LENGTHS.unpack_from(frame, _HEADER.size)
    return _letter(frame[_START : _START + n_head], frame[_START + n_head :], b"")


class Spy:
    """Listens to questions and answers, through restarts of the server, until it is closed."""

    def __init__(self, folder: Path) -> None:
        self._coordinator = CoordinatorFolder(folder)
        self.asks: dict[str, list[bytes]] = defaultdict(list)  # party -> frames, as they came
        self.answers: dict[tuple[str, str], set[bytes]] = defaultdict(set)  # (party, question) -> different answers
        self.forge: dict[str, Sequence[bytes]] = {}  # party -> what is sent in its name at once when it is asked
        self._loop = BackgroundLoop()
        self._loop.run(self._open())

    async def _open(self) -> None:
        self._connection = Connection(self._coordinator.address, self._coordinator.credential)
        await self._connection.subscribe("tacit.ask.*", self._on_ask)
        await self._connection.subscribe("tacit.answer.*.*", self._on_answer)
        await self._connection.open()

    async def _on_ask(self, where: str, frame: bytes, _: str) -> None:
        name = where.rsplit(".", 1)[-1]
        self.asks[name].append(frame)
        about = seen(frame).about
        for forged in self.forge.get(name, ()):
            await self._connection.publish(f"tacit.answer.{name}.{about}", forged)

    async def _on_answer(self, where: str, frame: bytes, _: str) -> None:
        _, _, name, question = where.split(".")
        if frame in self.forge.get(name, ()):
            return  # one of our own making
        self.answers[name, question].add(seen(frame).body)

    def send(self, where: str, frames: Sequence[bytes]) -> None:
        """Send frames, in this order."""
        self._loop.run(self._send(where, frames))

    async def _send(self, where: str, frames: Sequence[bytes]) -> None:
        for frame in frames:
            await self._connection.publish(where, frame)
        await self._connection.flush()

    def close(self) -> None:
        self._loop.run(self._connection.close())
        self._loop.close()
        self._coordinator.close()
