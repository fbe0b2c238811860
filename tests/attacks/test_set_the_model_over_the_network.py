"""A party of a running federation adds what no records could give: real daemons, real nodes, a real run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tacit.daemon.party.handler import PartyHandler
from tacit.errors import QuorumLost
from tacit.federation import leaving
from tacit.federation.member.folder import MemberFolder
from tacit.federation.nats.journal import Journal
from tacit.secure import envelope
from tacit.secure.envelope import Label
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, build
from ..daemon.test_federation import DESCENT, Watch, opt_in, run


class Poisoner(PartyHandler):
    """Does all that a party does, but adds ten times what its records and noise could come to."""

    def __init__(self, folder: MemberFolder, journal: Journal) -> None:
        honest = envelope.seal

        def poisoned(addend: Any, label: Label, *arguments: Any, **settings: Any) -> list[bytes]:
            return honest(addend + 10 * label.bound[0].norm, label, *arguments, **settings)

        leaving.seal = poisoned  # type: ignore[attr-defined]
        super().__init__(folder, journal)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("poisoned"), parties={"north": 120, "south": 80})
    try:
        made.add_party("west", 50, 2)
        made.start("west", "party", Poisoner)
        yield made
    finally:
        made.close()


def test_a_run_begins_again_without_the_party_that_the_nodes_name(federation: Loopback) -> None:
    study = Study.parse(STUDY.replace('"trial"', '"again"'))
    opt_in(federation, study)
    watch = Watch()
    finished = run(federation, study, watch)
    assert ("lost", "west") in watch.told
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert "west (its addend is longer than its bound" in finished.model.facts_.notices[-1]
    assert np.abs(finished.model.coef_).max() < 100


def test_a_round_goes_on_without_it_where_the_study_allows_that(federation: Loopback) -> None:
    study = Study.parse(DESCENT.replace('"trial"', '"on"').replace("quorum = 2", "quorum = 2\ndropouts = 1"))
    opt_in(federation, study)
    finished = run(federation, study)
    assert finished.run.attempt == 1
    assert any("without a party: west in 6" in notice for notice in finished.model.facts_.notices)
    assert np.abs(finished.model.coef_).max() < 100


def test_a_run_that_needs_it_ends_with_its_name(federation: Loopback) -> None:
    study = Study.parse(STUDY.replace('"trial"', '"all"').replace("quorum = 2", "quorum = 3"))
    opt_in(federation, study)
    with pytest.raises(QuorumLost, match="west: its addend is longer than its bound"):
        run(federation, study)
