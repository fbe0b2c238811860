"""Between processes: a party that offers less than is asked takes part, pays its offer, and the report says so."""

from __future__ import annotations

import pytest

from tacit.studies.study import Study

from .conftest import Loopback
from .test_federation import DESCENT, ledger, opt_in, run


@pytest.mark.slow
def test_a_party_that_offers_less_takes_part_and_pays_its_offer(federation: Loopback) -> None:
    study = Study.parse(DESCENT.replace('"trial"', '"offers"'))
    opt_in(federation, study, "north", "west")
    federation.consent("south", study, offer=0.25)
    finished = run(federation, study, wait=60)
    spent = {party.name: party.epsilon for party in finished.model.facts_.parties}
    assert spent == {"north": 1.0, "south": pytest.approx(0.25, rel=1e-6), "west": 1.0}
    assert any("offered by south epsilon 0.25" in notice for notice in finished.model.facts_.notices)
    book = ledger(federation, "south")
    assert book.epsilon("south", delta=1e-6, study="offers") == pytest.approx(0.25, rel=1e-6)
    book.close()
