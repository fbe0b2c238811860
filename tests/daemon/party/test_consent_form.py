"""What an owner reads before consenting: every method in plain words, in short sentences, and nothing left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.consent_form import ConsentForm, consent_form
from tacit.daemon.party.settings import PartyFile
from tacit.methods import METHODS
from tacit.privacy.ledger import Ledger
from tacit.studies.plain_words import PLAIN_WORDS
from tacit.studies.study import Study
from tests.attacks.office import Office

from ..conftest import STUDY


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", text.strip())


def n_words(sentence: str) -> int:
    return len([word for word in sentence.split() if any(letter.isalnum() for letter in word)])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("field", ["record", "seen", "risk"])
def test_every_method_is_told_in_plain_words(name: str, field: str) -> None:
    told = sentences(getattr(PLAIN_WORDS[name], field))
    assert 2 <= len(told) <= 4
    assert all(n_words(sentence) <= 30 for sentence in told), told
    assert not re.search(r"[_=`\\]", " ".join(told).replace("release = minimiser", "")), "no code in plain words"


def test_no_words_are_kept_for_a_method_that_is_gone() -> None:
    assert set(PLAIN_WORDS) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_are_never_private_say_so(name: str) -> None:
    method = METHODS[name]()
    assert ("No noise is added" in PLAIN_WORDS[name].risk) == (not method.guarantee.is_private)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, {"north": 40})
    yield made
    made.close()


def form_of(office: Office, text: str) -> ConsentForm:
    folder = office.folders["north"]
    study = Study.parse(text)
    consents = Consents(folder.path / CONSENT_FILE)
    ledger = Ledger(folder.path / "ledger.db")
    try:
        consents.keep(study)
        offered = consents.named(study.digest())
        return consent_form(offered, folder, PartyFile.read(folder.path).policy, ledger)
    finally:
        consents.close()
        ledger.close()


def test_a_form_answers_every_question_of_an_owner(office: Office) -> None:
    form = form_of(office, STUDY)
    told = {part.heading: part.text for part in form.parts}
    assert office.folders["north"].pinned.coordinator.fingerprint in told["Who asks"]
    assert told["Why"] == "Who recovers?"
    assert "recovered (no, yes) from age and treated. No other column is read." in told["Which of your columns"]
    assert "factor of 2.72 at most" in told["What is promised"]
    assert "2 runs together spend epsilon 1.45 at most." in told["What it costs"]
    assert "You allow 20 in all studies, of which 20 is left now and 18.5 would be left then." in told["What it costs"]
    assert "At least 2 parties" in told["With whom you are added up"]
    assert "From the next question on nothing leaves" in told["If you leave"]
    assert form.warnings == ()
    assert form.forbidden == ""
    for part in form.parts:
        assert all(n_words(sentence) <= 30 for sentence in sentences(part.text)), part


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("epsilon = 1.0", "epsilon = 11.0", "Epsilon 11 is a weak promise"),
        ("quorum = 2", "quorum = 2\ncolluders = 0", "you have less protection than promised"),
        ('name = "averaging"', 'name = "averaging"\ncalibration = "paper"', "NOT differentially private"),
        ('name = "averaging"', 'name = "curator-averaging"', "holds only if this does"),
    ],
)
def test_what_weakens_the_promise_stands_on_top(office: Office, old: str, new: str, warning: str) -> None:
    form = form_of(office, STUDY.replace(old, new))
    assert any(warning in told for told in form.warnings)
    assert form.lines()[0].startswith("BEWARE: ")


def test_a_form_says_what_the_policy_forbids(office: Office) -> None:
    office.set_policy("north", "^epsilon_per_study = .*", "epsilon_per_study = 0.5")
    assert "over policy.epsilon_per_study" in form_of(office, STUDY).forbidden


def test_a_study_that_looks_several_times_says_when_and_what_each_look_costs(office: Office) -> None:
    text = STUDY.replace('name = "averaging"', 'name = "private-newton"')
    form = form_of(office, text + '\n[stop]\nlooks = [500, 1000]\ncoefficient = "age"\nhalf_width = 0.02\n')
    told = {part.heading: part.text for part in form.parts}["When it looks, and when it stops"]
    assert told.startswith("How many looks: 2, when 500, 1,000 records are enrolled.")
    assert "You pay for the looks that you are in, and for no others." in told
