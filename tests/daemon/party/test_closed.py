"""Studies that nobody joins any more, as a party remembers them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.federation.nats.offer import Offer
from tacit.studies.study import Study

from ..conftest import STUDY

LOOKS = STUDY.replace('"averaging"', '"private-newton"') + "[stop]\nlooks = [100]\n"


def found(consents: Consents, study: Study) -> OfferedStudy:
    offered = consents.find(study.digest())
    assert offered is not None
    return offered


def test_a_study_that_ended_stays_ended(tmp_path: Path) -> None:
    study, consents = Study.parse(LOOKS), Consents(tmp_path / "studies.db")
    consents.add(offer_of(study))
    assert found(consents, study).why_closed() == ""
    consents.add(Offer.decode(replace(offer_of(study), ended="It stopped at look 1 of 1.\x1b[2K").encode()))
    consents.add(offer_of(study))  # announced again, as if nothing had happened
    told = found(consents, study).why_closed()
    assert told.startswith("study 'trial' is over, and nobody joins any more. It stopped at look 1 of 1.")
    assert "\x1b" not in told
    consents.close()


def test_after_the_last_day_nobody_joins(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "studies.db")
    early, late = (Study.parse(f"{LOOKS}[enrolment]\nuntil = {year}-01-31\n") for year in (2020, 2999))
    for study in (early, late):
        consents.keep(study)
    assert found(consents, early).why_closed() == "parties could join study 'trial' until 2020-01-31, which is over"
    assert found(consents, late).why_closed() == ""
    consents.close()


def test_a_consent_that_is_given_again_counts_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, consents = Study.parse(LOOKS), Consents(tmp_path / "studies.db")
    consents.keep(study)
    times = iter([100.0, 200.0, 300.0, 400.0])
    monkeypatch.setattr("tacit.daemon.party.consent.time.time", lambda: next(times))
    decided = []
    for state in ("in", "in", "out", "in"):
        consents.decide(study.digest(), state)
        decided.append(found(consents, study).decided)
    assert decided == [100.0, 100.0, 200.0, 300.0]
    consents.close()
