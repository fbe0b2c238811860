"""Whoever asks, or a party that cannot pay, wants the others to pay for a run that comes to nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import wire
from tacit.errors import QuorumLost
from tacit.federation.log import Log
from tacit.federation.nats.kind import BEGIN
from tacit.federation.nats.letter import Letter
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, build
from ..daemon.test_federation import PARTIES, run
from .office import Office


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("parties"), parties={"north": 120, "south": 80, "west": 50})
    yield made
    made.close()


def test_nobody_pays_for_a_run_that_one_party_cannot_pay_for(parties: Loopback) -> None:
    """And all that the coordinator hears is that the party cannot take part: not what it spent, nor what it may."""
    file = parties.folder("west") / "party.toml"
    file.write_text(file.read_text().replace("epsilon_in_all = 20.0", "epsilon_in_all = 0.4321"))
    study = Study.parse(STUDY.replace('"trial"', '"short"').replace("quorum = 2", "quorum = 3"))
    for name in PARTIES:
        parties.consent(name, study)
    with pytest.raises(QuorumLost, match=r"2 parties are left .* 3 are needed \(west: .*it cannot take part") as told:
        run(parties, study)
    assert not any(word in str(told.value) for word in ("0.4321", "limit", "spent already", "epsilon"))
    decisions = {}
    for name in PARTIES:
        book = Ledger(parties.folder(name) / "ledger.db")
        assert (book.n_releases(name), book.epsilon(name, delta=1e-6)) == (0, 0.0)
        decisions[name] = [line.decision for line in Log(book, name).lines()]
        book.close()
    assert [line["decision"] for line in decisions["north"]] == ["began", "abandoned"]
    assert "over the limit of 0.4321; 0 is spent already" in str(decisions["west"][-1]["why"])  # its owner knows


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, {"north": 40, "south": 30})
    yield made
    made.close()


def test_a_beginning_that_the_network_held_back_is_not_paid_for(office: Office) -> None:
    """It arrives after the run was given up, and nobody would ever give that up again."""
    study = Study.parse(STUDY)
    office.opt_in(study, runs=1)
    handler = office.handlers["north"]
    body = office.group(study).encode()

    def put(kind: str, at: float, run: str = "r") -> str:
        letter = Letter(
            kind=kind, study=study.digest(), run=run, sender="coordinator", recipient="north",
            nonce=Rng.system().bytes(16).hex(), time=at, body=body if kind == BEGIN else b"",
        )  # fmt: skip
        reply = handler.handle(letter)
        assert reply is not None
        told = wire.decode(reply.body) if reply.kind == "refusal" else {"why": ""}
        assert isinstance(told, dict)
        return str(told["why"])

    def spent() -> float:
        book = Ledger(office.folders["north"].path / "ledger.db")
        try:
            return book.epsilon("north", delta=1e-6)
        finally:
            book.close()

    now = time.time()
    assert put("abandon", now) == ""
    assert "given up after this letter was written" in put(BEGIN, now - 1)
    assert spent() == 0.0
    assert put(BEGIN, now + 1) == ""  # the coordinator may begin it again itself
    assert spent() == pytest.approx(1.0)
