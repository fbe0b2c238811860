"""What members tell the coordinator's daemon of their own accord: a little of it, lately written, and once."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tacit import wire
from tacit.daemon.coordinator.run_event import MOST_EVENTS, RunEvent, RunEvents
from tacit.daemon.coordinator.server import CoordinatorDaemon
from tacit.daemon.party.consent import Consents
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.identity import Identity
from tacit.federation.member.roster import Ticket
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import CONSENT, MOST_CHANGES
from tacit.federation.nats.letter import signed, write_letter
from tacit.federation.nats.server import ServerSettings
from tacit.studies.study import Study
from tacit.wire import Value

from ..conftest import STUDY

NORTH = Identity("north", "party", b"n" * 32)
IN: Value = {"study": "a" * 64, "state": "in"}


class Heard:
    """A coordinator's daemon that is not connected, and what it took from the letters that it was given."""

    def __init__(self, root: Path) -> None:
        self.folder = CoordinatorFolder.make(root / "coordinator", ServerSettings(port=1), None)
        ticket = Ticket(id="t", name="north", role="party", nkey="invited", expires=time.time() + 60)
        self.folder.roster.invite(ticket)
        self.folder.roster.admit("t", NORTH.member)
        self.said = io.StringIO()
        self.daemon = CoordinatorDaemon(self.folder, Journal("coordinator", self.said))
        self.states: list[str] = []
        self.daemon.on_consent = lambda member, study, state: self.states.append(state)

    def take(self, changes: Sequence[Value], at: float | None = None, times: int = 1) -> None:
        letter = write_letter(NORTH, kind=CONSENT, recipient="coordinator", body=wire.encode([*changes]))
        frame = signed(letter if at is None else replace(letter, time=at), NORTH)
        for _ in range(times):
            asyncio.run(self.daemon._on_event("north", frame))


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    made = Heard(tmp_path)
    yield made
    made.folder.close()


def test_a_consent_is_heard_once(heard: Heard) -> None:
    heard.take([IN], times=2)
    assert heard.states == ["in"]
    assert "came twice" in heard.said.getvalue()


def test_a_consent_of_long_ago_is_not_heard(heard: Heard) -> None:
    """The network may keep what an owner said, and say it again when it is no longer true."""
    heard.take([IN], at=time.time() - 30 * 86400)
    assert heard.states == []
    assert "behind this clock" in heard.said.getvalue()


def test_a_letter_tells_of_few_changes(heard: Heard) -> None:
    """Each is written down before the next thing is done: hundreds of them would hold up everybody."""
    heard.take([IN] * MOST_CHANGES)
    assert len(heard.states) == MOST_CHANGES
    heard.take([IN] * (MOST_CHANGES + 1))
    assert len(heard.states) == MOST_CHANGES


def test_an_owner_with_more_changes_tells_of_them_in_turn(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "consent.db")
    studies = [Study.parse(STUDY.replace('"trial"', f'"s{i}"')) for i in range(MOST_CHANGES + 3)]
    for i, study in enumerate(studies):
        consents.keep(study)
        consents.decide(study.digest(), "out" if i == MOST_CHANGES else "in")
    told = [consents.changes(MOST_CHANGES) for _ in range(3)]
    assert [len(changes) for changes in told] == [MOST_CHANGES, 3, 0]
    assert told[0][0].state == "out"  # who leaves is not kept waiting
    assert {change.digest for changes in told for change in changes} == {study.digest() for study in studies}
    consents.close()


def test_who_changes_its_mind_for_ever_crowds_nothing_else_out() -> None:
    events = RunEvents(None)
    events.add("a", RunEvent(kind="left", party="north", words="its addend is longer than it may be"))
    events.add("a", RunEvent(kind="consent", party="south", words="in"))
    for number in range(MOST_EVENTS + 10):
        events.add("a", RunEvent(kind="consent", party="north", words="in", round=number))
    kept = events.of("a")
    assert [event.kind for event in kept[:2]] == ["left", "consent"]
    assert kept[1].party == "south"
    assert kept[-1].round == MOST_EVENTS + 9
    assert len(kept) == 102
    events.close()


@pytest.mark.parametrize("subject", ["fetch", "clock"])
def test_who_does_not_belong_is_told_nothing(heard: Heard, subject: str) -> None:
    told: list[str] = []

    async def publish(where: str, _: bytes) -> bool:
        told.append(where)
        return True

    async def ask(name: str) -> None:
        await (heard.daemon._on_fetch(name, b"") if subject == "fetch" else heard.daemon._on_clock(name, b""))
        for task in list(heard.daemon._owed.values()):
            while not told:
                await asyncio.sleep(0)
            task.cancel()

    heard.daemon._connection.publish = publish  # type: ignore[method-assign,assignment]
    asyncio.run(ask("made up"))
    assert told == []
    asyncio.run(ask("north"))
    assert "north" in told[0]
