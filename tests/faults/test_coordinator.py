"""A coordinator, or whoever has its server, that does not keep to the protocol: a party keeps to its word."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.daemon.run import offer_of
from tacit.errors import PolicyRefusal, WireError
from tacit.federation.message import Question, question_digest
from tacit.federation.nats import ConnectedFederation, NatsEngine, Wanted, leave_strangers
from tacit.federation.net.acquaintance import Acquaintances, decode_members, encode_members
from tacit.federation.net.exchange import Post
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.letter import Letter, signed
from tacit.federation.net.line import Line
from tacit.federation.net.station import ASK
from tacit.privacy.ledger import Ledger
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..net.conftest import STUDY, Loopback, build, wait_for
from ..net.test_federation import DESCENT, PARTIES, run
from .spy import Spy


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("federation"), parties={"north": 120, "south": 80, "west": 50})
    yield made
    made.close()


@pytest.fixture
def spy(federation: Loopback) -> Iterator[Spy]:
    made = Spy(federation.headquarters)
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
    federation.stop("west")  # and once more when it has forgotten every nonce
    federation.start("west", "party")
    spy.send("tacit.ask.west", frames)
    wait_for(lambda: "came twice" in federation.journal("west"), "a letter that came twice")
    assert ledger(federation, "west").n_releases("west", "again") == 6
    assert {key: set(answers) for key, answers in spy.answers.items()} == before


def test_answers_in_a_partys_name_are_not_believed(federation: Loopback, spy: Spy) -> None:
    study = opted_in(federation, "forged")
    headquarters = Headquarters(federation.headquarters)
    letter = Letter(kind="answer", sender="west", recipient="coordinator", nonce="0" * 32, time=0.0, body=b"N")
    spy.forge["west"] = [b"", b"garbage", signed(letter, headquarters.identity), bytes(1000)]
    finished = run(federation, study)
    assert finished.run.attempt == 1
    assert len(finished.model.facts_.parties) == 3


def test_the_same_question_asked_again_gets_the_same_answer(federation: Loopback) -> None:
    """Fresh noise for an old question would average out."""
    study = opted_in(federation, "average", STUDY)
    question = asked_of(federation, study)
    answers = {put(federation, study, question, PARTIES) for _ in range(5)}
    assert len(answers) == 1
    assert ledger(federation).n_releases("north", "average") == 1
    # Under another name it is another question, and is paid for: two runs are what was consented to.
    assert put(federation, study, replace(question, run="second"), PARTIES).startswith("answer")
    said = put(federation, study, replace(question, run="third"), PARTIES)
    assert re.search(r"refusal .*would bring epsilon in this study to 3 .* over the limit of 2", said)


def asked_of(federation: Loopback, study: Study) -> Question:
    """The first question of a real run, of which nothing else happens."""
    line = Line(Headquarters(federation.headquarters))
    try:
        engine = NatsEngine(line, offer_of(study))
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=60))
        parties = ConnectedFederation(engine, line.center(), study=study.name, run="first")
        caught: list[bytes] = []

        def catch(message: bytes, *_: object) -> dict[str, bytes]:
            caught.append(message)
            raise KeyboardInterrupt

        engine.ask = catch  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            method_of(study).fit(parties)
        return Question.decode(caught[0])
    finally:
        line.close()


def put(federation: Loopback, study: Study, question: Question, company: tuple[str, ...]) -> str:
    """What north says to a question that is put to a company of the coordinator's choice."""
    message = question.encode()
    with Line(Headquarters(federation.headquarters)) as line:
        post = Post(
            kind=ASK,
            bodies={"north": message},
            reference=question_digest(message),
            study=study.digest(),
            run=question.run,
            company=company,
            seconds=60.0,
        )
        letter = line.send(post)["north"]
    return f"{letter.kind} {letter.body.decode(errors='replace')}"


def test_a_sum_is_over_those_whom_the_owner_accepted_and_over_enough_of_them(federation: Loopback) -> None:
    study = opted_in(federation, "company")
    question = asked_of(federation, study)
    assert "with 'puppet', whom its owner has not accepted" in put(federation, study, question, ("north", "puppet"))
    assert "is not put to 'north'" in put(federation, study, question, ("south", "west"))
    alone = put(federation, study, question, ("north",))
    assert alone.startswith("refusal")
    assert "its owner sees which in its log" in alone
    why = str(ledger(federation).database.execute("SELECT text FROM log ORDER BY line DESC LIMIT 1").fetchone()[0])
    assert "added up over 3 parties or more, and the question names 1" in why
    assert ledger(federation).n_releases("north", "company") == 0
    assert put(federation, study, question, PARTIES).startswith("answer")


def test_a_party_that_others_have_not_accepted_is_left_out() -> None:
    everybody = frozenset(("a", "b", "c", "d"))
    cards = dict.fromkeys("abcd")
    left = leave_strangers(cards, {"a": everybody - {"d"}, "b": everybody - {"d"}, "c": everybody, "d": everybody})  # type: ignore[arg-type]
    assert list(cards) == ["a", "b", "c"]
    assert left == {"d": "a, b did not accept it yet; let them opt in again"}


def test_a_small_table_is_not_told_to_the_coordinator(federation: Loopback) -> None:
    study = opted_in(federation, "small", STUDY)
    path = federation.folder("north") / "party.toml"
    text = path.read_text()
    path.write_text(text.replace("min_records = 10", "min_records = 1000"))
    try:
        with Line(Headquarters(federation.headquarters)) as line:
            engine = NatsEngine(line, offer_of(study))
            absent = engine.gather(Wanted(asked=("north", "south"), quorum=1, seconds=0))
    finally:
        path.write_text(text)
    assert "its policy does not allow this" in absent["north"]
    assert "1000" not in absent["north"]
    assert "answers with 1000 records or more and has fewer" in federation.journal("north")


def test_what_the_study_did_not_say_is_refused(federation: Loopback) -> None:
    study = opted_in(federation, "more")
    question = asked_of(federation, study)
    for words, change in {
        "is not part of it": {"step": "pooled/sums"},
        "the question has another; it is not the study's": {"arguments": {**question.arguments, "epsilon": 9.0}},
        "counts on 0 colluders, and the study on 1 or more": {"arguments": {**question.arguments, "colluders": 0}},
        "go on with 2 of 3 parties, and the study with no fewer than 3": {
            "arguments": {**question.arguments, "quorum": 2}
        },
    }.items():
        said = put(federation, study, replace(question, **change), PARTIES)  # type: ignore[arg-type]
        assert said.startswith("refusal")
        assert words in said
    assert ledger(federation).n_releases("north", "more") == 0
    with Line(Headquarters(federation.headquarters)) as line:
        engine = NatsEngine(line, replace(offer_of(study), digest="0" * 64))
        with pytest.raises(PolicyRefusal, match="has not opted into a study with digest"):
            engine.ask(question.encode(), ["north"], ())


def test_a_member_whose_keys_change_is_not_believed(federation: Loopback, tmp_path: Path) -> None:
    headquarters = Headquarters(federation.headquarters)
    members = headquarters.roster.members()
    known = Acquaintances(tmp_path)
    assert known.learn(decode_members(encode_members(members))) == members
    assert known.learn(members) == []
    other = replace(members[-1], letter_key=bytes(32))
    with pytest.raises(WireError, match=f"{other.name!r} is told of with other keys than those pinned"):
        known.learn([other])
    assert set(Acquaintances(tmp_path).keys()) == set(PARTIES)
    wait_for(lambda: (federation.folder("node-a") / "members.json").exists(), "the node's pins")
    for garbage in (b"", b"{}", b"[1]", b'[{"name": "x"}]'):
        with pytest.raises(WireError, match="does not say who belongs"):
            decode_members(garbage)
