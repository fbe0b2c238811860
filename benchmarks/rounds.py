"""Rounds a second between three parties, 1,000 floats down and 1,000 up: TLS, keys, signatures, guard and ledger on.

    python benchmarks/rounds.py [ROUNDS]

Every party is a process of its own with a ledger on disk, which is flushed before each answer leaves. In the same run:
the bare transport, that is, a request to three clients of the same server that send the same number of bytes back.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from one_step import OneStep, Plan

from tacit import wire
from tacit.daemon.coordinator.joining import join
from tacit.daemon.coordinator.server import CoordinatorDaemon
from tacit.daemon.party.anchor import AnchoredLedger
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Agreement
from tacit.federation.federation import Federation
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.invitation import Invitation
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.engine import NatsEngine, Wanted
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, BEGIN, HELLO, LetterReply
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer
from tacit.federation.nats.server import ServerSettings
from tacit.federation.nats.service import MemberService, stop_on_signals
from tacit.federation.policy import Policy
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.privacy.event import Pure
from tacit.rand import Rng
from tacit.secure.center.embedded import EmbeddedCenter

N_FLOATS = 1000
PARTIES = ("north", "south", "west")
FORK = multiprocessing.get_context("fork")
SCHEMA = Schema.of_arrays(1, ["0", "1"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Down:
    values: npt.NDArray[np.float64]
    number: int


@step("benchmark/echo", version=1, plan=Plan, values=Down)
def echo(table: Table, plan: Plan, down: Down, *, rng: Rng) -> Noised:
    return Noised({"values": down.values + down.number}, Pure(epsilon=1e-6))


AGREEMENT = Agreement(study="benchmark", method=OneStep(echo), digest="benchmark")


class Handler:
    """A party's guard and ledger, without studies: what is timed is the round."""

    streams = (ASK,)

    def __init__(self, folder: MemberFolder) -> None:
        table = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA)
        self._anchored = AnchoredLedger(folder.path, folder.identity.name)
        ledger = self._anchored.ledger
        self._guard = Guard(folder.identity.name, table, policy=Policy(), ledger=ledger, rng=Rng.system())

    def handle(self, letter: Letter) -> LetterReply | None:
        if letter.kind == HELLO:
            card = {"n_records": 2, "schema": SCHEMA.digest(), "accepts": list(PARTIES), "signature": b""}
            return LetterReply(kind=HELLO, body=wire.encode(card))
        if letter.kind == BEGIN:
            self._guard.begin(letter.run, AGREEMENT, SumGroup.decode(letter.body))
            return LetterReply(kind=BEGIN, body=b"")
        answer = self._guard.answer(letter.body, AGREEMENT, ())
        self._anchored.anchor()
        return LetterReply(kind=ANSWER, body=answer)

    def arrives(self, letter: Letter) -> None:
        """Nothing is so urgent."""

    def news(self) -> Mapping[str, bytes]:
        return {}


def serve(root: Path, name: str) -> None:
    """A daemon in a process of its own; a party also answers bare requests."""

    async def live() -> None:
        with (root / f"{name}.log").open("a") as stream:
            journal = Journal(name, stream)
            stop = stop_on_signals()
            if name == "coordinator":
                await CoordinatorDaemon(CoordinatorFolder(root / name), journal).serve(stop)
                return
            folder = MemberFolder.load(root / name, "party")
            await MemberService(folder, Handler(folder), journal).serve(stop)

    asyncio.run(live())
    os._exit(0)


def answer_bare(root: Path, name: str) -> None:
    """The bare transport: send back as many bytes as came."""

    async def live() -> None:
        coordinator = CoordinatorFolder(root / "coordinator")
        connection = Connection(coordinator.address, coordinator.credential)
        await connection.open()

        async def back(_: str, message: bytes, reply_to: str) -> None:
            await connection.publish(reply_to, message)

        await connection.subscribe(f"tacit.bare.{name}", back)
        (root / f"{name}.bare").touch()
        await stop_on_signals().wait()
        await connection.close()

    asyncio.run(live())
    os._exit(0)


def time_bare(root: Path, rounds: int) -> float:
    """Seconds for a round of bare requests to three clients at once, over TLS."""

    async def measure() -> float:
        coordinator = CoordinatorFolder(root / "coordinator")
        connection = Connection(coordinator.address, coordinator.credential)
        await connection.open()
        payload = np.arange(float(N_FLOATS)).tobytes()
        for _ in range(20):
            await asyncio.gather(*(connection.request(f"tacit.bare.{name}", payload) for name in PARTIES))
        start = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(*(connection.request(f"tacit.bare.{name}", payload) for name in PARTIES))
        seconds = (time.perf_counter() - start) / rounds
        await connection.close()
        return seconds

    return asyncio.run(measure())


def time_rounds(root: Path, rounds: int) -> float:
    """Seconds for a round of the real thing."""
    offer = Offer(
        name="benchmark",
        digest="0" * 64,
        text="",
        schema=SCHEMA.to_dict(),
        quorum=3,
        deadline_seconds=30.0,
        parties=None,
    )
    with BlockingConnection(CoordinatorFolder(root / "coordinator")) as connection:
        engine = NatsEngine(connection, offer)
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=20.0))
        parties = Federation(engine, EmbeddedCenter(), study="benchmark").begin(OneStep(echo))
        values = np.arange(float(N_FLOATS))
        for number in range(20):
            parties.ask(echo, Down(values=values, number=-number))
        start = time.perf_counter()
        for number in range(1, rounds + 1):
            answers = parties.ask(echo, Down(values=values, number=number))
            assert all(float(np.asarray(a["values"])[1]) == number + 1 for a in answers.values())
        return (time.perf_counter() - start) / rounds


def wait_for(path: Path, word: str = "") -> None:
    while not (path.exists() and word in path.read_text()):
        time.sleep(0.02)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        coordinator = CoordinatorFolder.make(root / "coordinator", ServerSettings(port=port), None)
        processes = [FORK.Process(target=serve, args=(root, "coordinator"))]
        processes[0].start()
        wait_for(root / "coordinator.log", "serving")
        for name in PARTIES:
            invitation = coordinator.invite(Invite(name=name, role="party", without_center=True))
            join(Invitation(**vars(invitation)), root / name)
            for target in (serve, answer_bare):
                processes.append(FORK.Process(target=target, args=(root, name)))
                processes[-1].start()
            wait_for(root / f"{name}.log", "serving")
            wait_for(root / f"{name}.bare")
        try:
            for _ in range(3):
                bare, real = time_bare(root, rounds), time_rounds(root, rounds)
                print(
                    f"three parties, {N_FLOATS:,} floats: {1 / real:,.0f} rounds a second "
                    f"({1e3 * real:.2f} ms); bare requests over TLS {1 / bare:,.0f} ({1e3 * bare:.2f} ms); "
                    f"ratio {real / bare:.1f}"
                )
        finally:
            for process in reversed(processes):
                process.terminate()
                process.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
