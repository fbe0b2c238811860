"""Whoever asks, or a party that cannot pay, wants the others to pay for a run that comes to nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tacit.errors import QuorumLost
from tacit.federation.log import Log
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, build
from ..daemon.test_federation import PARTIES, run


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
