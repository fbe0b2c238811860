"""A coordinator, or whoever has its server, that does not keep to the protocol: a party keeps to its word."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.daemon.coordinator.study_run import offer_of
from tacit.errors import QuorumLost, WireError
from tacit.federation.engine import RunStart
from tacit.federation.federation import Federation
from tacit.federation.group import SumGroup
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.engine import NatsEngine, Wanted, leave_strangers
from tacit.federation.nats.exchange import Request
from tacit.federation.nats.kind import ASK, BEGIN
from tacit.federation.nats.letter import Letter, signed
from tacit.privacy.ledger import Ledger
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, wait_for
from ..daemon.test_federation import DESCENT, PARTIES, run
from .spy import Spy


@pytest.fixture
def spy(federation: Loopback) -> Iterator[Spy]:
    made = Spy(federation.coordinator)
    yield made
    made.close()


def opted_in(federation: Loopback, name: str, text: str = DESCENT) -> Study:
    study = Study.parse(text.replace('"trial"', f'"{name}"'))
    for party in PARTIES:
        federation.consent(party, study)
    return study


def ledger(federation: Loopback, name: str = "north") -> Ledger:
    return Ledger(federation.folder(name) / "ledger.db")


def test_letters_that_come_twice_late_and_out_of_order_change_nothing(federation: Loopback, spy: Spy) -> None:
    study = opted_in(federation, "again")
    run(federation, study)
    assert ledger(federation, "west").n_releases("west", "again") == 6
    before = {key: set(answers) for key, answers in spy.answers.items()}
    frames = spy.asks["west"] * 3
    random.Random(1).shuffle(frames)
    spy.send("tacit.ask.west", frames)
    wait_for(lambda: "came twice" in federation.journal("west"), "a letter that came twice")
    federation.stop("west")  # and once more when it has forgotten every nonce and session
    federation.start("west", "party")
    told = federation.journal("west").count("not-believed")
    spy.send("tacit.ask.west", frames)
    wait_for(lambda: federation.journal("west").count("not-believed") > told, "a letter of a session that is gone")
    assert ledger(federation, "west").n_releases("west", "again") == 6
    assert {key: set(answers) for key, answers in spy.answers.items()} == before


def test_answers_in_a_partys_name_are_not_believed(federation: Loopback, spy: Spy) -> None:
    study = opted_in(federation, "forged")
    coordinator = CoordinatorFolder(federation.coordinator)
    letter = Letter(kind="answer", sender="west", recipient="coordinator", nonce="0" * 32, time=0.0, body=b"N")
    spy.forge["west"] = [b"", b"garbage", signed(letter, coordinator.identity), bytes(1000)]
    finished = run(federation, study)
    assert finished.run.attempt == 1
    assert len(finished.model.facts_.parties) == 3


def test_the_same_question_asked_again_gets_the_same_answer(federation: Loopback) -> None:
    """Fresh noise for an old question would average out."""
    study = opted_in(federation, "average", STUDY)
    question, group = asked_of(federation, study)
    answers = {put(federation, study, question) for _ in range(5)}
    assert len(answers) == 1
    assert ledger(federation).n_releases("north", "average") == 1
    # Under another name it is another question, and is paid for: two runs are what was consented to.
    assert begin(federation, study, "average-second", group).startswith("begin")
    assert put(federation, study, replace(question, run="average-second")).startswith("answer")
    assert "agreed to 2 runs of study 'average', and as many have begun" in begin(federation, study, "third", group)
    assert "no run 'third' has begun" in put(federation, study, replace(question, run="third"))
    assert ledger(federation).n_releases("north", "average") == 2


def asked_of(federation: Loopback, study: Study) -> tuple[Question, SumGroup]:
    """The first question of a real run, of which nothing else happens, and the group with which it began."""
    connection = BlockingConnection(CoordinatorFolder(federation.coordinator))
    try:
        engine = NatsEngine(connection, offer_of(study))
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=60))
        parties = Federation(engine, engine.center, study=study.name, run=f"{study.name}-first")
        caught: list[tuple[RunStart, bytes]] = []

        def catch(start: RunStart, message: bytes, *_: object) -> dict[str, Answer]:
            caught.append((start, message))
            raise KeyboardInterrupt

        engine.ask = catch  # type: ignore[assignment, method-assign]
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            method_of(study).fit(parties)
        start, message = caught[0]
        return Question.decode(message), start.group
    finally:
        connection.close()


def put(federation: Loopback, study: Study, question: Question) -> str:
    """What north says to a question."""
    message = question.encode()
    return said(federation, study, Request(
        kind=ASK, bodies={"north": message}, reference=question_digest(message), run=question.run, seconds=60.0
    ))  # fmt: skip


def begin(federation: Loopback, study: Study, run: str, group: SumGroup) -> str:
    """What north says to a run with a group of the coordinator's choice."""
    return said(federation, study, Request(kind=BEGIN, bodies={"north": group.encode()}, run=run, seconds=60.0))


def said(federation: Loopback, study: Study, request: Request) -> str:
    with BlockingConnection(CoordinatorFolder(federation.coordinator)) as connection:
        letter = connection.send(replace(request, study=study.digest()))["north"]
    return f"{letter.kind} {letter.body.decode(errors='replace')}"


def test_a_run_is_with_those_whom_the_owner_accepted_and_with_enough_of_them(federation: Loopback) -> None:
    study = opted_in(federation, "sum-group")
    question, group = asked_of(federation, study)
    sizes = dict(zip(group.names, group.sizes, strict=True))

    def with_(names: tuple[str, ...], **changes: object) -> SumGroup:
        chosen = {name: sizes.get(name, 70) for name in names}
        made = SumGroup.of(chosen, quorum=len(names), signatures=group.signatures)
        return replace(made, **changes)  # type: ignore[arg-type]

    for words, other in {
        "with 'puppet', whom its owner has not accepted": with_(("north", "puppet")),
        "a group that party 'north' is not in": with_(("south", "west")),
        "asks for 2 parties or more, and the run has 1": with_(("north",)),
        "the size of 'south' is not the one that 'south' announced": with_(PARTIES, sizes=(120, 8, 50), n_records=178),
        "the size of 'north' is not the one that 'north' announced": with_(PARTIES, signatures={}),
        "go on with 2 of 3 parties, and the study with no fewer than 3": with_(PARTIES, quorum=2),
        "began with another group or study": with_(("north", "south")),
    }.items():
        told = begin(federation, study, question.run if "began" in words else "other", other)
        assert told.startswith("refusal"), words
        assert words in told
    assert begin(federation, study, question.run, group).startswith("begin")  # as it began
    assert ledger(federation).n_releases("north", "sum-group") == 0
    assert put(federation, study, question).startswith("answer")


@pytest.mark.usefixtures("patient")
def test_a_study_without_a_quorum_runs_with_everybody_accepted_or_not_at_all(federation: Loopback) -> None:
    text = STUDY.replace("quorum = 2\n", "")
    assert len(run(federation, opted_in(federation, "everybody", text)).model.facts_.parties) == 3
    study = Study.parse(text.replace('"trial"', '"all-but-one"'))
    for party in ("north", "south"):
        federation.consent(party, study)
    with pytest.raises(QuorumLost, match=r"names no quorum, so all who were accepted take part, and west do not"):
        run(federation, study, wait=0.0)


def test_a_party_that_others_have_not_accepted_is_left_out() -> None:
    everybody = frozenset(("a", "b", "c", "d"))
    cards = dict.fromkeys("abcd")
    left = leave_strangers(cards, {"a": everybody - {"d"}, "b": everybody - {"d"}, "c": everybody, "d": everybody})  # type: ignore[arg-type]
    assert list(cards) == ["a", "b", "c"]
    assert left == {"d": "a, b did not accept it yet; let them opt in again"}


@pytest.mark.usefixtures("patient")
def test_a_small_table_is_not_told_to_the_coordinator(federation: Loopback) -> None:
    study = opted_in(federation, "small", STUDY)
    path = federation.folder("north") / "party.toml"
    text = path.read_text()
    path.write_text(text.replace("min_records = 1 ", "min_records = 1000 "))
    try:
        with BlockingConnection(CoordinatorFolder(federation.coordinator)) as connection:
            engine = NatsEngine(connection, offer_of(study))
            absent = engine.gather(Wanted(asked=("north", "south"), quorum=1, seconds=0))
    finally:
        path.write_text(text)
    assert "its policy does not allow this" in absent["north"]
    assert "1000" not in absent["north"]
    assert "answers with 1000 records or more and has fewer" in federation.journal("north")


def test_what_the_study_did_not_say_is_refused(federation: Loopback) -> None:
    study = opted_in(federation, "more")
    question, _ = asked_of(federation, study)
    for words, change in {
        "never asks step 'pooled/sums'": {"step": "pooled/sums"},
        "agreed to was 'noisy-descent' in 'more'": {"method": "averaging"},
        "the coordinator's plan is not the one that study 'more' entails": {"plan": "0" * 64},
        "began with another group": {"group": "0" * 64},
        "turn 7 is not the next": {"turn": 6},
        "Iterate": {"values": {"theta": np.zeros(3), "epsilon": 9.0}},
    }.items():
        told = put(federation, study, replace(question, **change))  # type: ignore[arg-type]
        assert told.startswith("refusal"), words
        assert words in told
    assert ledger(federation).n_releases("north", "more") == 0
    digest = study.digest()
    federation.consent("north", study, state="out")
    assert "its owner opted out of study 'more'" in put(federation, study, question)
    assert digest == study.digest()


def test_a_member_whose_keys_change_is_not_believed(federation: Loopback, tmp_path: Path) -> None:
    coordinator = CoordinatorFolder(federation.coordinator)
    members = coordinator.roster.members()
    known = KnownMembers(tmp_path)
    assert known.learn(MemberList.decode(coordinator.roster.member_list().encode()).members) == members
    assert known.learn(members) == []
    other = replace(members[-1], letter_key=bytes(32))
    with pytest.raises(WireError, match=f"{other.name!r} is told of with other keys than those pinned"):
        known.learn([other])
    assert set(KnownMembers(tmp_path).parties()) == set(PARTIES)
    wait_for(lambda: (federation.folder("node-a") / "members.json").exists(), "the node's pins")
    for garbage in (b"", b"{}", b"[1]", b'[{"name": "x"}]'):
        with pytest.raises(WireError, match="does not say who belongs"):
            MemberList.decode(garbage)
