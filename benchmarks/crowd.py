"""A thousand parties on one machine, each a real client of the message server, in rounds whose sum alone is opened.

    python benchmarks/crowd.py [PARTIES]

Every party has its own keys, connection (TLS), subjects and ledger on disk; it signs its letters and envelopes, and is
added up with all others, whose signed sizes it checks when the run begins. Three center nodes are processes of their
own, and check every signature. The parties share a few processes, for a thousand would not fit this machine. In the
same run: the same rounds between parties in one process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from one_step import OneStep, Plan

from tacit import wire
from tacit.daemon.center.handler import NodeHandler, prepare_engine
from tacit.daemon.coordinator.joining import join
from tacit.daemon.coordinator.server import CoordinatorDaemon
from tacit.daemon.party.question_check import accepted_keys, check_sizes
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.agreement import Agreement
from tacit.federation.federation import Federation
from tacit.federation.group import SumGroup, size_statement
from tacit.federation.guard import Guard
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder, make_folder
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.roster import Ticket
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.engine import NatsEngine, Wanted
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import ANSWER, ASK, BEGIN, HELLO, LetterReply
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer
from tacit.federation.nats.server import ServerSettings
from tacit.federation.nats.service import MemberService, stop_on_signals
from tacit.federation.policy import Policy
from tacit.federation.reply import Sealed
from tacit.federation.seat import Bond
from tacit.federation.step import step
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.secure.center.embedded import EmbeddedCenter

N_NUMBERS = 100
N_WORKERS = 4
N_ROUNDS = 3
NODES = ("node-a", "node-b", "node-c")
FORK = multiprocessing.get_context("fork")
SCHEMA = Schema.of_arrays(1, ["0", "1"])
STUDY = "0" * 64  # its digest
TABLE = Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA)


@dataclass(frozen=True, kw_only=True)
class Number:
    number: int


@step("benchmark/addend", version=1, plan=Plan, values=Number)
def addend(table: Table, plan: Plan, given: Number, *, rng: Rng) -> Sealed:
    numbers = np.full(N_NUMBERS, given.number, dtype=np.int64)
    bound = (NormBound(size=N_NUMBERS, norm=1 << 40),)
    return Sealed(numbers, Pure(epsilon=1e-6), plan.cohort.n_parties, bound)


AGREEMENT = Agreement(study="benchmark", method=OneStep(addend), digest="benchmark")


class Handler:
    """A party's guard and ledger, without studies: what is timed is the round."""

    streams = (ASK,)

    def __init__(self, folder: MemberFolder, keys: Mapping[str, bytes]) -> None:
        self._folder = folder
        self._keys = keys
        ledger = Ledger(folder.path / "ledger.db")
        self._guard = Guard(folder.identity.name, TABLE, policy=Policy(), ledger=ledger, rng=Rng.system())

    def handle(self, letter: Letter) -> LetterReply | None:
        if letter.kind == HELLO:
            signature = self._folder.identity.sign(size_statement(STUDY, self._guard.name, 2))
            card = {"n_records": 2, "schema": SCHEMA.digest(), "accepts": sorted(self._keys), "signature": signature}
            return LetterReply(kind=HELLO, body=wire.encode(card))
        if letter.kind == BEGIN:
            group = SumGroup.decode(letter.body)
            check_sizes(group, STUDY, accepted_keys(group, self._keys))
            self._guard.begin(letter.run, AGREEMENT, group)
            return LetterReply(kind=BEGIN, body=b"")
        keys = accepted_keys(self._guard.group_of(letter.run), self._keys)
        bond = Bond(sum_group=keys, sign=self._folder.identity.sign, nodes=())
        seals = self._folder.pinned.seal_keys
        return LetterReply(kind=ANSWER, body=self._guard.answer(letter.body, AGREEMENT, seals, bond))

    def arrives(self, letter: Letter) -> None:
        """Nothing is so urgent."""

    def news(self) -> Mapping[str, bytes]:
        return {}


def start(root: Path, name: str, work: Callable[[Journal, asyncio.Event], object]) -> BaseProcess:
    """A process that does `work` until it is told to stop; returns when its log says that it serves."""

    def live() -> None:
        async def serve() -> None:
            with (root / f"{name}.log").open("a") as stream:
                await work(Journal(name, stream), stop_on_signals())  # type: ignore[misc]

        asyncio.run(serve())
        os._exit(0)

    process = FORK.Process(target=live)
    process.start()
    return process


def serve_node(root: Path, name: str) -> Callable[[Journal, asyncio.Event], object]:
    async def work(journal: Journal, stop: asyncio.Event) -> None:
        folder = MemberFolder.load(root / name, "center")
        await MemberService(folder, NodeHandler(folder, journal), journal).serve(stop)

    return work


def serve_parties(root: Path, names: Sequence[str], keys: Mapping[str, bytes]) -> Callable[..., object]:
    async def work(journal: Journal, stop: asyncio.Event) -> None:
        services = []
        for name in names:
            folder = MemberFolder.load(root / "parties" / name, "party")
            service = MemberService(folder, Handler(folder, keys), Journal(name, (root / f"{name}.log").open("a")))
            services.append(asyncio.create_task(service.serve(stop, connect_seconds=120.0)))
            if len(services) % 20 == 0:
                await asyncio.sleep(0.05)  # a real crowd does not come at the same moment
        await asyncio.gather(*services)

    return work


def admit_parties(root: Path, coordinator: CoordinatorFolder, names: Sequence[str]) -> dict[str, bytes]:
    """Make the parties' keys and folders, and take them in as the daemon does, but all at once."""
    keys = {}
    pinned = coordinator.pinned
    for name in names:
        folder = make_folder(root / "parties" / name)
        identity = Identity.make(name, "party", folder)
        nkey = Identity(name, "party", Rng.system().bytes(32)).member.nkey  # the invitation's own
        coordinator.roster.invite(Ticket(id=name, name=name, role="party", nkey=nkey, expires=time.time() + 3600))
        coordinator.roster.admit(name, identity.member)
        MemberFolder.write(folder, identity.member, pinned, None)
        keys[name] = identity.member.letter_key
    coordinator.apply()
    return keys


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def has(path: Path, word: str) -> bool:
    return path.exists() and word in path.read_text()


def time_rounds(federation: Federation) -> list[float]:
    """Seconds of each round: the question, all answers, the opened sum."""
    parties = federation.begin(OneStep(addend))
    seconds = []
    for number in range(1, N_ROUNDS + 1):
        started = time.perf_counter()
        total = parties.sum(addend, Number(number=number))
        seconds.append(time.perf_counter() - started)
        assert np.all(total == number * parties.n_parties)
    return seconds


def sealed_in_one_process(names: Sequence[str]) -> Federation:
    """As many parties in this process, which seal to three nodes in it as those over the network do."""
    tables = {name: Table.from_arrays(np.zeros((2, 1)), np.array([0, 1]), SCHEMA) for name in names}
    parties = Federation.from_tables(tables)
    parties.center = EmbeddedCenter()
    return parties


def measure(root: Path, names: Sequence[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    coordinator = CoordinatorFolder.make(root / "coordinator", ServerSettings(port=port), None)

    async def coordinate(journal: Journal, stop: asyncio.Event) -> None:
        await CoordinatorDaemon(CoordinatorFolder(root / "coordinator"), journal).serve(stop)

    processes = [start(root, "coordinator", coordinate)]
    try:
        wait_until(lambda: has(root / "coordinator.log", '"serving"'))
        for node in NODES:
            join(coordinator.invite(Invite(name=node, role="center")), root / node)
            prepare_engine(root / node, None)
        started = time.perf_counter()
        keys = admit_parties(root, coordinator, names)
        for node in NODES:
            KnownMembers(root / node).learn(coordinator.roster.members("party"))
            processes.append(start(root, node, serve_node(root, node)))
        joined = time.perf_counter()
        for i in range(N_WORKERS):
            processes.append(start(root, f"worker{i}", serve_parties(root, names[i::N_WORKERS], keys)))
        for name in (*NODES, *names):
            wait_until(lambda name=name: has(root / f"{name}.log", '"serving"'))  # type: ignore[misc]
        connected = time.perf_counter()
        print(
            f"{len(names):,} parties: keys and members {joined - started:.1f} s, connected {connected - joined:.1f} s"
        )
        offer = Offer(
            name="crowd", digest="0" * 64, text="", schema=SCHEMA.to_dict(), quorum=len(names), deadline_seconds=120.0,
            parties=None,
        )  # fmt: skip
        with BlockingConnection(CoordinatorFolder(root / "coordinator")) as connection:
            engine = NatsEngine(connection, offer)
            engine.gather(Wanted(asked=tuple(names), quorum=len(names), seconds=120.0))
            print(f"all have told their card after {time.perf_counter() - connected:.1f} s")
            real = time_rounds(Federation(engine, engine.center, study="benchmark"))
        alone = time_rounds(sealed_in_one_process(names))
        print(
            f"a secure-sum round of {len(names):,} parties, {N_NUMBERS} numbers each: "
            f"{', '.join(f'{s:.2f}' for s in real)} s; in one process {', '.join(f'{s:.2f}' for s in alone)} s; "
            f"ratio {min(real) / min(alone):.1f}"
        )
    finally:
        for process in reversed(processes):
            process.terminate()
            process.join()
        coordinator.close()


def main(n_parties: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    with tempfile.TemporaryDirectory() as root:
        measure(Path(root), [f"party{i:04d}" for i in range(n_parties)])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
