"""A round of three parties, 1,000 floats each way, against a bare request: TLS, keys, sessions, guard and ledger.

    python benchmarks/rounds.py [ROUNDS] [FOLDER]

Every party is a process of its own with a ledger on disk, which is flushed before each answer leaves. In the same run,
in turn with it, ten and ten: the bare transport, that is, a request to three clients of the same server that send the
same number of bytes back. FOLDER says where ledgers lie; on a disk of memory (/dev/shm) a flush costs nothing.

It prints the median time of a round, the least time of one in ten, and what the processes together took of the
processors. Where other programs keep the machine busy, the last one tells most.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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
from tacit.federation.nats.blocking import BackgroundLoop, BlockingConnection
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
TURN = 10  # rounds of one kind, before as many of the other
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


@dataclass
class Measured:
    """Seconds of each round by the clock, and of the processors for each ten rounds, by process."""

    rounds: list[float] = field(default_factory=list)
    processors: list[dict[str, float]] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.rounds, share))

    def busy(self, process: str) -> float:
        """Seconds that a round takes of the processors: the lower quartile, since a busy machine adds to it."""
        return float(np.quantile([spent[process] for spent in self.processors], 0.25)) / TURN

    def busy_in_all(self) -> float:
        return sum(self.busy(process) for process in self.processors[0])


def processor_seconds(process: int) -> float:
    """What all threads of a process have taken of the processors."""
    seconds = 0.0
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):
            seconds += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return seconds


class Bare:
    """Requests to three clients at once, over TLS, from a loop of their own."""

    def __init__(self, root: Path) -> None:
        coordinator = CoordinatorFolder(root / "coordinator")
        self._loop = BackgroundLoop()
        self._payload = np.arange(float(N_FLOATS)).tobytes()
        self._connection = self._loop.run(self._open(coordinator))

    async def _open(self, coordinator: CoordinatorFolder) -> Connection:
        connection = Connection(coordinator.address, coordinator.credential)
        await connection.open()
        return connection

    def turn(self) -> list[float]:
        return self._loop.run(self._turn())

    async def _turn(self) -> list[float]:
        seconds = []
        for _ in range(TURN):
            start = time.perf_counter()
            requests = (self._connection.request(f"tacit.bare.{name}", self._payload) for name in PARTIES)
            await asyncio.gather(*requests)
            seconds.append(time.perf_counter() - start)
        return seconds

    def close(self) -> None:
        self._loop.run(self._connection.close())
        self._loop.close()


class Real:
    """Rounds of the real thing."""

    def __init__(self, connection: BlockingConnection) -> None:
        offer = Offer(
            name="benchmark",
            digest="0" * 64,
            text="",
            schema=SCHEMA.to_dict(),
            quorum=3,
            deadline_seconds=30.0,
            parties=None,
        )
        engine = NatsEngine(connection, offer)
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=20.0))
        self._parties = Federation(engine, EmbeddedCenter(), study="benchmark").begin(OneStep(echo))
        self._values = np.arange(float(N_FLOATS))
        self._number = 0

    def turn(self) -> list[float]:
        seconds = []
        for _ in range(TURN):
            self._number += 1
            start = time.perf_counter()
            answers = self._parties.ask(echo, Down(values=self._values, number=self._number))
            seconds.append(time.perf_counter() - start)
            assert all(float(np.asarray(a["values"])[1]) == self._number + 1 for a in answers.values())
        return seconds


def measure(turn: Callable[[], list[float]], processes: Mapping[str, int], measured: Measured) -> None:
    # The coordinator's process reads these numbers, so its own come last before the turn and first after it.
    before = {name: processor_seconds(process) for name, process in reversed(list(processes.items()))}
    measured.rounds += turn()
    after = {name: processor_seconds(process) for name, process in processes.items()}
    measured.processors.append({name: after[name] - before[name] for name in processes})


def compare(root: Path, processes: Mapping[str, int], rounds: int) -> None:
    bare_time, real_time = Measured(), Measured()
    bare = Bare(root)
    with BlockingConnection(CoordinatorFolder(root / "coordinator")) as connection:
        real = Real(connection)
        for _ in range(2):
            bare.turn(), real.turn()
        for _ in range(rounds // TURN):
            measure(bare.turn, processes, bare_time)
            measure(real.turn, processes, real_time)
    bare.close()
    for what, share in (("median", 0.5), ("one in ten", 0.1)):
        one, other = real_time.quantile(share), bare_time.quantile(share)
        print(f"{what + ':':<14}{1e3 * one:6.2f} ms a round, {1e3 * other:.2f} ms bare, ratio {one / other:.1f}")
    one, other = real_time.busy_in_all(), bare_time.busy_in_all()
    print(f"{'processors:':<14}{1e3 * one:6.2f} ms a round, {1e3 * other:.2f} ms bare, ratio {one / other:.1f}")
    for process in processes:
        took = 1e6 * real_time.busy(process), 1e6 * bare_time.busy(process)
        if max(took) >= 20:
            print(f"  {process:<24}{took[0]:6.0f} us a round, {took[1]:.0f} us bare")


def wait_for(path: Path, word: str = "") -> None:
    while not (path.exists() and word in path.read_text()):
        time.sleep(0.02)


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def main(rounds: int, where: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=where) as temporary:
        root = Path(temporary)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        coordinator = CoordinatorFolder.make(root / "coordinator", ServerSettings(port=port), None)
        started = {"coordinator's daemon": FORK.Process(target=serve, args=(root, "coordinator"))}
        try:
            started["coordinator's daemon"].start()
            wait_for(root / "coordinator.log", "serving")
            for name in PARTIES:
                invitation = coordinator.invite(Invite(name=name, role="party", without_center=True))
                join(Invitation(**vars(invitation)), root / name)
                for kind, target in (("party", serve), ("bare client", answer_bare)):
                    started[f"{kind} {name}"] = FORK.Process(target=target, args=(root, name))
                    started[f"{kind} {name}"].start()
                wait_for(root / f"{name}.log", "serving")
                wait_for(root / f"{name}.bare")
            processes = {name: process.pid or 0 for name, process in started.items()}
            (server,) = children(processes["coordinator's daemon"])
            for _ in range(3):
                compare(root, {"coordinator": os.getpid(), "message server": server, **processes}, rounds)
        finally:
            for process in reversed(started.values()):
                process.terminate()
                process.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, sys.argv[2] if len(sys.argv) > 2 else None)
