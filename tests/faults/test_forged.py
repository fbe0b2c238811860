"""Ten thousand forged, altered, replayed and meaningless messages: none is believed, and nobody falls over."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit import wire
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.identity import Identity
from tacit.federation.message import Question, question_digest
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.letter import signed, tagged, write_letter
from tacit.federation.nats.session import AcceptedSessions, OfferedSessions
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, build, wait_for
from ..daemon.test_federation import decisions, run

N_MESSAGES = 10_000


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Loopback]:
    made = build(tmp_path, parties={"north": 120, "south": 80})
    yield made
    made.close()


def forgeries(study: Study, real: Identity) -> Iterator[bytes]:
    """What somebody who has the server, but not the coordinator's key, could send."""
    chance = random.Random(0)
    stranger, party = Identity("coordinator", "coordinator", b"s" * 32), Identity("north", "party", b"p" * 32)
    body = Question(
        study="trial", run="r", method="averaging", step="averaging/model", version=2, group="0" * 64, plan="0" * 64,
        turn=0, values=None,
    ).encode()  # fmt: skip
    facts = {"study": study.digest(), "run": "r", "round": 1, "about": question_digest(body)}

    def genuine(recipient: str = "north", **changes: object) -> bytes:
        letter = write_letter(real, kind="ask", recipient=recipient, body=body, **facts)  # type: ignore[arg-type]
        return signed(replace(letter, **changes), real)  # type: ignore[arg-type]

    while True:
        match chance.randrange(9):
            case 0:
                yield chance.randbytes(chance.randrange(2000))
            case 1:
                yield signed(write_letter(stranger, kind="ask", recipient="north", body=body, **facts), stranger)  # type: ignore[arg-type]
            case 2:
                frame = bytearray(genuine())
                frame[chance.randrange(len(frame))] ^= chance.randrange(1, 256)
                yield bytes(frame)
            case 3:
                yield genuine(recipient="south")
            case 4:  # far from the limit of two minutes, however late it is read
                yield genuine(time=time.time() + chance.choice([-1, 1]) * chance.uniform(600, 1e6))
            case 5:
                yield genuine()[: chance.randrange(200)]
            case 6:
                yield genuine(kind=chance.choice(["answer", "study", "refusal", ""]))
            case 7:
                yield wire.encode({"letter": chance.randbytes(100), "signature": chance.randbytes(64)})
            case 8:  # as in a session, of which the stranger knows the form and no key
                letter = write_letter(stranger, kind="ask", recipient="north", body=body, **facts)  # type: ignore[arg-type]
                offered = OfferedSessions(stranger.member)
                accepted = AcceptedSessions(party.member, stranger.member)
                offered.take(party.member, accepted.accept(offered.offer))
                session = offered.find(party.member)
                assert session is not None
                yield tagged(letter, session)


def test_ten_thousand_forged_messages(federation: Loopback) -> None:
    study = Study.parse(STUDY)
    for name in ("north", "south"):
        federation.consent(name, study)
    coordinator = CoordinatorFolder(federation.coordinator)

    async def flood() -> None:
        connection = Connection(coordinator.address, coordinator.credential)  # a server that lets everything through
        await connection.open()
        source = forgeries(study, coordinator.identity)
        targets = ("tacit.ask.north", "tacit.call.north", "tacit.study.x", "tacit.call.node-a", "tacit.event.north")
        for i in range(N_MESSAGES):
            target = targets[i % len(targets)]
            await connection.publish(target, next(source))
            if i % 500 == 0:
                await connection.flush()
        await connection.flush()
        await connection.close()

    asyncio.run(flood())
    for name in ("north", "south"):
        assert Ledger(federation.folder(name) / "ledger.db").n_releases(name) == 0
    assert all(process.is_alive() for process in federation.processes.values())
    assert "crashed" not in "".join(federation.journal(name) for name in federation.processes)
    wait_for(lambda: "not-believed" in federation.journal("north"), "a letter that is not believed")
    finished = run(federation, study)  # and all of them still work
    assert len(finished.model.facts_.parties) == 2
    for name in ("north", "south"):
        assert Ledger(federation.folder(name) / "ledger.db").n_releases(name) == 1
        assert '"refused"' not in federation.journal(name)  # as a question is that is believed: its run never began
        assert decisions(federation, name) == {"began": 1, "released": 1}
