"""Bad connections, bad clocks, full disks, and parties that do not keep to the protocol: nobody else is hurt."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from tacit.daemon.party.handler import PartyHandler
from tacit.federation.log import Log
from tacit.federation.message import Answer
from tacit.federation.nats.kind import ANSWER, ASK, LetterReply
from tacit.federation.nats.letter import Letter
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback
from ..daemon.test_federation import DESCENT, PARTIES, Watch, run
from .proxy import Proxy
from .spy import Spy


def study_of(name: str, text: str = DESCENT, deadline: float = 60) -> Study:
    return Study.parse(text.replace('"trial"', f'"{name}"').replace("= 60", f"= {deadline:g}"))


def opted_in(federation: Loopback, study: Study) -> Study:
    for name in PARTIES:
        federation.consent(name, study)
    return study


class Misbehaving(PartyHandler):
    """A party that takes part and then does not keep to the protocol."""

    def handle(self, letter: Letter) -> LetterReply | None:
        answer = super().handle(letter)
        return self.spoil(answer) if letter.kind == ASK and answer is not None else answer

    def spoil(self, answer: LetterReply) -> LetterReply | None:
        raise NotImplementedError


class Silent(Misbehaving):
    def spoil(self, answer: LetterReply) -> None:
        return None


class Garbage(Misbehaving):
    def spoil(self, answer: LetterReply) -> LetterReply:
        return LetterReply(kind=ANSWER, body=answer.body[: len(answer.body) // 2])


class BadEnvelopes(Misbehaving):
    def spoil(self, answer: LetterReply) -> LetterReply:
        told = Answer.decode(answer.body)
        assert isinstance(told.value, Mapping)
        envelopes = told.value["envelopes"]
        assert isinstance(envelopes, list)
        wrong = {**told.value, "envelopes": [bytes(len(e)) for e in envelopes if isinstance(e, bytes)]}
        return LetterReply(kind=ANSWER, body=replace(told, value=wrong).encode())


@pytest.fixture
def west(federation: Loopback) -> Iterator[Loopback]:
    """The federation; west is started by the test, and is well again after it."""
    pinned = federation.folder("west") / "federation.json"
    right = pinned.read_text()
    federation.stop("west")
    yield federation
    if "west" in federation.processes:
        federation.stop("west")
    pinned.write_text(right)
    federation.start("west", "party")


def test_a_connection_that_is_slow_goes_dead_and_is_cut_costs_time_only(west: Loopback) -> None:
    study = opted_in(west, study_of("connection"))
    proxy = Proxy(west.folder("west"))
    west.start("west", "party")

    def disturb(number: int) -> None:
        match number:
            case 2:
                proxy.delay = 0.05
            case 3:
                proxy.cut()
            case 5:
                proxy.dead = True  # the question or its answer is swallowed, without a word
                threading.Timer(2.0, revive).start()

    def revive() -> None:
        proxy.dead = False
        proxy.cut()  # a stream with a hole in it is no TLS

    finished = run(west, study, Watch(disturb))
    proxy.close()
    assert finished.run.attempt == 1
    assert "connected-again" in west.journal("west")
    assert [west.n_releases(name, study) for name in PARTIES] == [6, 6, 6]


@pytest.mark.parametrize(("skew", "takes_part"), [(60.0, True), (-300.0, False)])
def test_a_wrong_clock_is_told_and_beyond_two_minutes_nothing_is_answered(
    west: Loopback, skew: float, takes_part: bool
) -> None:
    study = opted_in(west, study_of(f"clock{skew:g}", STUDY))
    west.start("west", "party", skew=skew)
    finished = run(west, study, wait=60 if takes_part else 20)  # the others reply meanwhile
    assert (len(finished.model.facts_.parties) == 3) is takes_part
    assert west.n_releases("west", study) == int(takes_part)
    assert ("set both clocks" in west.journal("west").rsplit('"serving"', 1)[-1]) is not takes_part


def test_a_full_disk_lets_nothing_leave_and_the_rest_go_on(west: Loopback) -> None:
    study = opted_in(west, study_of("disk"))
    spy = Spy(west.coordinator)
    sizes = [path.stat().st_size for path in west.folder("west").iterdir()]
    west.start("west", "party", file_bytes=max(*sizes, 1 << 15) + 100_000)  # room for a few answers
    finished = run(west, study)
    spy.close()
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert "it cannot write its ledger, so nothing leaves" in finished.model.facts_.notices[-1]
    ledger = Ledger(west.folder("west") / "ledger.db")
    left = {question: answers for (name, question), answers in spy.answers.items() if name == "west"}
    for question, answers in left.items():
        assert answers == set(ledger.answers(["west"], question).values())
    assert 0 < west.n_releases("west", study) < 6
    Log(ledger, "west").verify()


@pytest.mark.parametrize(
    ("handler", "deadline", "words"),
    [(Silent, 10, r"no answer within 10 s"), (Garbage, 60, r"it sent something that is no answer to the question")],
)
def test_a_party_that_does_not_answer_is_left_out(
    west: Loopback, handler: type[Misbehaving], deadline: float, words: str
) -> None:
    study = opted_in(west, study_of(handler.__name__.lower(), deadline=deadline))
    west.start("west", "party", handler)
    finished = run(west, study, wait=60)
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert re.search(rf"west \({words}", finished.model.facts_.notices[-1])


def test_a_party_whose_envelopes_do_not_open_is_named_and_left_out(west: Loopback) -> None:
    study = opted_in(west, study_of("envelopes"))
    west.start("west", "party", BadEnvelopes)
    finished = run(west, study)
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert "west (an envelope does not open" in finished.model.facts_.notices[-1]
