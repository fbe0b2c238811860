"""A party's daemon whose owner offers less epsilon than a study asks: what it signs, charges and refuses."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.daemon.party.consent import FILE, Consents, OfferedStudy
from tacit.daemon.party.owner_text import study_lines, why_not
from tacit.errors import SettingError
from tacit.federation.policy import Policy
from tacit.methods.functional.statistic import noisy_sums
from tacit.privacy.ledger import Budget
from tacit.studies.study import Study

from ...attacks.office import Office
from ..conftest import STUDY

ASKED = Study.parse(STUDY.replace('"averaging"', '"functional-mechanism"'))
SIZES = {"north": 60, "south": 40}


@pytest.fixture
def offered(tmp_path: Path) -> OfferedStudy:
    consents = Consents(tmp_path / FILE)
    consents.keep(ASKED)
    found = consents.named("trial")
    consents.close()
    return found


def test_the_party_is_charged_for_its_offer_and_the_others_for_what_is_asked(tmp_path: Path) -> None:
    office = Office(tmp_path, SIZES)
    office.opt_in(ASKED, offers={"south": 0.25})
    group = office.group(ASKED)
    assert group.offers == {"south": 0.25}
    office.begin(ASKED, "r1", group)
    question = office.question(ASKED, "r1", group, noisy_sums)
    for name, epsilon in {"north": 1.0, "south": 0.25}.items():
        office.ask(name, ASKED, "r1", question)
        spent = office.handlers[name]._ledger.epsilon(name, delta=1e-6)
        assert spent == pytest.approx(epsilon, rel=1e-6)
        assert spent <= epsilon * (1 + 1e-9)
    office.close()


def test_an_owner_reads_what_the_offer_promises_and_may_offer_no_more_than_is_asked(
    tmp_path: Path, offered: OfferedStudy
) -> None:
    (tmp_path / "office").mkdir()
    office = Office(tmp_path / "office", {"north": 60})
    told = " ".join(" ".join(study_lines(offered.offering(0.5), office.folders["north"], Policy())).split())
    office.close()
    assert "(epsilon = 0.5)" in told
    assert "you offer epsilon 0.5, less than is asked" in told
    tight = Policy(budget=Budget(epsilon_per_study=0.6))
    assert why_not(offered, tight) == "one run costs epsilon 1, over policy.epsilon_per_study"
    assert why_not(offered.offering(0.5), tight) == ""
    assert offered.offering(None).offer is None
    with pytest.raises(SettingError, match="--epsilon 1 is not less than the 1 that the study asks"):
        offered.offering(1.0)
    with pytest.raises(SettingError, match="--epsilon = -1 must be a number above 0"):
        offered.offering(-1)
    with pytest.raises(SettingError, match="averaging of study 'trial' cannot take an epsilon that you choose"):
        replace(offered, text=STUDY).offering(0.5)


def test_consents_of_an_older_release_are_read(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with sqlite3.connect(path) as old:
        old.executescript(
            "CREATE TABLE study (digest TEXT PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, seen REAL NOT NULL) "
            "WITHOUT ROWID;"
            "CREATE TABLE consent (digest TEXT PRIMARY KEY, state TEXT NOT NULL, runs INTEGER NOT NULL, time REAL NOT "
            "NULL, told INTEGER NOT NULL, sum_group TEXT NOT NULL) WITHOUT ROWID; PRAGMA user_version = 1;"
        )
        old.execute("INSERT INTO study VALUES (?, 'trial', ?, 1.0)", (ASKED.digest(), ASKED.to_toml()))
        old.execute("INSERT INTO consent VALUES (?, 'in', 2, 1.0, 1, '{}')", (ASKED.digest(),))
    old.close()
    consents = Consents(path)
    found = consents.named("trial")
    consents.decide(found.digest, "in", 3, {}, offer=0.5)
    assert (found.state, found.runs, found.offer) == ("in", 2, None)
    assert consents.named("trial").offer == 0.5
    consents.close()
