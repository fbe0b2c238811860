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
from pathlib import Path

import numpy as np

from tacit import wire
from tacit.daemon.coordinator import CoordinatorDaemon
from tacit.daemon.joining import join
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.guard import Guard
from tacit.federation.nats import NatsEngine, Wanted
from tacit.federation.net.headquarters import Headquarters, Invite
from tacit.federation.net.journal import Journal
from tacit.federation.net.letter import Letter
from tacit.federation.net.line import Line
from tacit.federation.net.link import Link
from tacit.federation.net.offer import Offer
from tacit.federation.net.place import Invitation, Place
from tacit.federation.net.server import ServerSettings
from tacit.federation.net.station import ANSWER, ASK, HELLO, Outgoing, Station, stop_on_signals
from tacit.federation.policy import Policy
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.center import EmbeddedCenter

N_FLOATS = 1000
PARTIES = ("north", "south", "west")
FORK = multiprocessing.get_context("fork")
SCHEMA = Schema.of_arrays(1, ["0", "1"])


@step("benchmark/echo", version=1)
def echo(table: Table, *, rng: Rng, values: np.ndarray, number: int) -> Noised:
    return Noised({"values": values + number}, Pure(epsilon=1e-6))


class Desk:
    """A party's guard and ledger, without studies: what is timed is the round."""

    streams = (ASK,)

    def __init__(self, place: Place) -> None:
        table = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA)
        ledger = Ledger(place.folder / "ledger.db")
        self._guard = Guard(place.identity.name, table, policy=Policy(), ledger=ledger, rng=Rng.system())

    def handle(self, letter: Letter) -> Outgoing | None:
        if letter.kind == HELLO:
            card = {"n_records": 2, "schema": SCHEMA.digest(), "accepts": list(PARTIES)}
            return Outgoing(kind=HELLO, body=wire.encode(card))
        return Outgoing(kind=ANSWER, body=self._guard.answer(letter.body, ()))

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
                await CoordinatorDaemon(Headquarters(root / name), journal).serve(stop)
                return
            place = Place.load(root / name, "party")
            await Station(place, Desk(place), journal).serve(stop)

    asyncio.run(live())
    os._exit(0)


def answer_bare(root: Path, name: str) -> None:
    """The bare transport: send back as many bytes as came."""

    async def live() -> None:
        headquarters = Headquarters(root / "coordinator")
        link = Link(headquarters.address, headquarters.credential)
        await link.open()

        async def back(_: str, message: bytes, reply_to: str) -> None:
            await link.publish(reply_to, message)

        await link.subscribe(f"tacit.bare.{name}", back)
        (root / f"{name}.bare").touch()
        await stop_on_signals().wait()
        await link.close()

    asyncio.run(live())
    os._exit(0)


def time_bare(root: Path, rounds: int) -> float:
    """Seconds for a round of bare requests to three clients at once, over TLS."""

    async def measure() -> float:
        headquarters = Headquarters(root / "coordinator")
        link = Link(headquarters.address, headquarters.credential)
        await link.open()
        payload = np.arange(float(N_FLOATS)).tobytes()
        for _ in range(20):
            await asyncio.gather(*(link.request(f"tacit.bare.{name}", payload) for name in PARTIES))
        start = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(*(link.request(f"tacit.bare.{name}", payload) for name in PARTIES))
        seconds = (time.perf_counter() - start) / rounds
        await link.close()
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
    with Line(Headquarters(root / "coordinator")) as line:
        engine = NatsEngine(line, offer)
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=20.0))
        parties = Federation(engine, EmbeddedCenter(), study="benchmark").begin("benchmark")
        values = np.arange(float(N_FLOATS))
        for number in range(20):
            parties.ask(echo, values=values, number=-number)
        start = time.perf_counter()
        for number in range(1, rounds + 1):
            answers = parties.ask(echo, values=values, number=number)
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
        headquarters = Headquarters.make(root / "coordinator", ServerSettings(port=port), None)
        processes = [FORK.Process(target=serve, args=(root, "coordinator"))]
        processes[0].start()
        wait_for(root / "coordinator.log", "serving")
        for name in PARTIES:
            invitation = headquarters.invite(Invite(name=name, role="party", without_center=True))
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
