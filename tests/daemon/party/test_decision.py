"""What an owner decides holds at the party's daemon, whoever asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.decision import ConsentTerms, end_of_day, opt_in, opt_out
from tacit.daemon.party.owner_text import runs_that_fit
from tacit.daemon.party.settings import DataSource, PartyFile, write_party_file
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.member.known_members import KnownMembers
from tacit.methods.averaging.statistic import local_model
from tacit.storage import open_database
from tacit.studies.study import Study
from tests.attacks.office import Office, PartyRefused

from ..conftest import STUDY, allow

TRIAL = Study.parse(STUDY)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, {"north": 40, "south": 30})
    yield made
    made.close()


def decide(office: Office, name: str, extent: ConsentTerms) -> None:
    """The owner accepts the other party, and opts in."""
    folder = office.folders[name]
    others = [other.member for key, other in office.folders.items() if key != name]
    known = KnownMembers(folder.path)
    known.learn(others)
    known.accept({member.name: member.fingerprint for member in others})
    consents = Consents(folder.path / CONSENT_FILE)
    consents.keep(TRIAL)
    assert set(opt_in(folder, consents, consents.named("trial"), extent)) == {member.name for member in others}
    consents.close()


def test_nothing_leaves_after_the_last_day_of_a_consent(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for name in office.sizes:
        decide(office, name, ConsentTerms(until=now + 3600))
    group = office.group(TRIAL)
    office.begin(TRIAL, "first", group)
    office.begin(TRIAL, "second", group)
    message = office.question(TRIAL, "first", group, local_model)
    office.ask("north", TRIAL, "first", message)
    monkeypatch.setattr("tacit.daemon.party.consent.time.time", lambda: now + 3601)
    for kind in ("hello", "begin"):
        with pytest.raises(PartyRefused, match="the time is over for which its owner opted into study 'trial'"):
            office.send("north", kind, TRIAL, "third", group.encode())
    with pytest.raises(PartyRefused, match="the time is over"):
        office.ask("south", TRIAL, "first", message)
    assert office.n_releases("south") == 0
    told = office.handlers["south"].news()
    assert list(told) == ["consent"]
    assert b"out" in told["consent"]
    assert office.handlers["south"]._ledger.n_runs("south", TRIAL.digest()) == 0  # what was reserved is given back
    assert not office.handlers["south"].news()


def test_leaving_takes_back_what_was_said(office: Office) -> None:
    decide(office, "north", ConsentTerms(runs=1))
    consents = Consents(office.folders["north"].path / CONSENT_FILE)
    opt_out(consents, consents.named("trial"))
    with pytest.raises(PartyRefused, match="its owner opted out"):
        office.send("north", "hello", TRIAL)
    consents.close()


def test_a_study_that_the_policy_forbids_is_not_opted_into(office: Office) -> None:
    office.set_policy("north", "^epsilon_per_study = .*", "epsilon_per_study = 0.5")
    with pytest.raises(PolicyRefusal, match=r"your own policy forbids 'trial': one run costs epsilon 1, over"):
        decide(office, "north", ConsentTerms())
    consents = Consents(office.folders["north"].path / CONSENT_FILE)
    assert consents.named("trial").state == ""
    consents.close()


@pytest.mark.parametrize("runs", [0, -1, 1001])
def test_a_number_of_runs_that_nobody_means_is_refused(runs: int) -> None:
    with pytest.raises(SettingError, match=rf"runs = {runs} must lie between 1 and 1000"):
        ConsentTerms(runs=runs)


def test_a_last_day_is_a_day_to_come() -> None:
    assert end_of_day(" ") is None
    assert end_of_day("1970-01-02") == 2 * 86400.0
    with pytest.raises(SettingError, match=r"'31\.3\.2027' is no date; write the year first"):
        end_of_day("31.3.2027")
    with pytest.raises(SettingError, match="lies in the past"):
        ConsentTerms(until=end_of_day("2020-02-29"))


def test_consents_of_an_earlier_release_have_no_last_day(tmp_path: Path) -> None:
    old = open_database(
        tmp_path / "studies.db",
        "CREATE TABLE study (digest TEXT PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, seen REAL NOT NULL) "
        "WITHOUT ROWID; CREATE TABLE consent (digest TEXT PRIMARY KEY, state TEXT NOT NULL, runs INTEGER NOT NULL, "
        "time REAL NOT NULL, told INTEGER NOT NULL, sum_group TEXT NOT NULL) WITHOUT ROWID;",
        use="in a test",
    )
    old.execute("INSERT INTO consent VALUES (?, 'in', 3, 0, 1, '{}')", (TRIAL.digest(),))
    old.close()
    consents = Consents(tmp_path / "studies.db")
    consents.keep(TRIAL)
    found = consents.named("trial")
    assert (found.state, found.runs, found.until, found.has_ended) == ("in", 3, None, False)
    consents.close()


def state_of(office: Office, name: str = "north") -> str:
    consents = Consents(office.folders[name].path / CONSENT_FILE)
    try:
        return consents.named("trial").state
    finally:
        consents.close()


def test_the_policy_that_a_party_begins_with_pays_for_one_run_at_epsilon_1_and_says_what_more_would_need(
    office: Office,
) -> None:
    allow(office.folders["north"].path, 1.0, 3.0)  # as in a new party.toml
    words = r"2 runs together cost epsilon 1\.4\d+, over the 1 that it allows one study; allow fewer runs, or raise "
    with pytest.raises(PolicyRefusal, match=words + r"epsilon_per_study to 1\.4\d. Change .*party\.toml first"):
        decide(office, "north", ConsentTerms(runs=2))
    assert state_of(office) == ""
    consents = Consents(office.folders["north"].path / CONSENT_FILE)
    policy = PartyFile.read(office.folders["north"].path).policy
    assert runs_that_fit(consents.named("trial"), policy) == 1
    consents.close()
    for name in office.sizes:
        decide(office, name, ConsentTerms(runs=1))
    group = office.group(TRIAL)
    office.begin(TRIAL, "first", group)
    with pytest.raises(
        PartyRefused,
        match=r"agreed to 1 run of study 'trial', and as many .* in to more: `tacit party opt-in trial --runs 2`",
    ):
        office.send("north", "begin", TRIAL, "second", group.encode())
    allow(office.folders["north"].path, 1.5, 3.0)  # as the line said
    decide(office, "north", ConsentTerms(runs=2))
    office.send("north", "begin", TRIAL, "second", group.encode())


def test_a_new_party_file_allows_epsilon_1_a_study_and_3_in_all(tmp_path: Path) -> None:
    write_party_file(tmp_path, DataSource(file=tmp_path / "t.csv"))
    budget = PartyFile.read(tmp_path).policy.budget
    assert (budget.epsilon_per_study, budget.epsilon_in_all) == (1.0, 3.0)


def test_nobody_opts_in_without_records(office: Office) -> None:
    data = office.root / "north.csv"
    data.rename(office.root / "elsewhere.csv")
    with pytest.raises(SettingError, match=r"north\.csv is not there, and party\.toml says that your records are; put"):
        decide(office, "north", ConsentTerms(runs=1))
    assert state_of(office) == ""
    (office.root / "elsewhere.csv").rename(data)
    decide(office, "north", ConsentTerms(runs=1))
    assert state_of(office) == "in"
