"""A coordinator that wants a consent to something else than what the owner read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.cli.main import main
from tacit.cli.network import acceptance
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.errors import StudyError
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.studies.study import Study
from tacit.studies.toml import toml_text

from ..daemon.conftest import STUDY
from .office import Office

ERASE = "\x1b[2K\x1b[1A"  # a terminal erases the line and goes up: the price is gone
TURN = "\u202e"  # what follows is shown from right to left
NOTHING = "\u200b"  # of no width: two names look alike
BLANK = "\u3164"  # a letter that draws nothing


@pytest.mark.parametrize("trick", [ERASE, TURN, NOTHING, BLANK, "\r", "\n", "\x9b2K", "\U000e0041"], ids=repr)
@pytest.mark.parametrize(
    ("words", "key"),
    [
        ('name = "trial"', r"study\.name"),
        ('"Who recovers?"', r"study\.purpose"),
        ('name = "recovered"', r"target\.name"),
        ('"yes"', r"target\.classes"),
        ('name = "age"', r"feature\.name"),
        ('values = ["a", "b"]', r"feature\.values"),
        ("deadline_seconds = 60", r"federation\.parties"),
        ("rounds = 3", r"method\.rounds"),
    ],
)
def test_a_text_of_a_study_hides_the_price(trick: str, words: str, key: str) -> None:
    text = STUDY.replace('kind = "binary"', 'kind = "binary"\nvalues = ["a", "b"]')
    text = text.replace('name = "averaging"', 'name = "averaging"\nrounds = 3')
    text = text.replace("quorum = 2\n", "")
    assert words in text
    hidden = {
        "deadline_seconds = 60": f"parties = [{toml_text('north' + trick)}]",
        "rounds = 3": f"rounds = {{ {toml_text('a' + trick)} = 3 }}",
    }
    replaced = hidden.get(words) or re.sub(
        r'"([^"]+)"', lambda found: toml_text(found[1][0] + trick + found[1][1:]), words, count=1
    )
    with pytest.raises(StudyError, match=rf"^a\.toml: {key}.* has U\+[0-9A-F]{{4,5}} .*; write it without"):
        Study.parse(text.replace(words, replaced, 1), source="a.toml")


def test_a_long_purpose_pushes_the_price_off_the_page() -> None:
    with pytest.raises(StudyError, match=r"study\.purpose has 100,013 characters; say it in 2,000"):
        Study.parse(STUDY.replace("Who recovers?", "Who recovers?" + "a" * 100_000))


# --- another study of the same name, and parties that nobody knows ---------------------------------------------------

CHEAP = Study.parse(STUDY.replace("epsilon = 1.0", "epsilon = 0.1"))
DEAR = Study.parse(STUDY.replace("epsilon = 1.0", "epsilon = 5.0"))
SOUTH = Identity("south", "party", b"s" * 32).member


class Owner:
    """The owner of north, at the command line."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.known = KnownMembers(folder)
        self._capsys = capsys

    def says(self, *words: str) -> str:
        """What the command tells; a test that expects an error looks for it in there."""
        with pytest.raises(SystemExit):
            main(["party", *words, "--folder", str(self.folder)])
        told = self._capsys.readouterr()
        return " ".join((told.out + told.err).split())

    def is_told(self, *studies: Study) -> None:
        consents = Consents(self.folder / CONSENT_FILE)
        for study in studies:
            consents.keep(study)
        consents.close()

    def consents(self) -> dict[str, OfferedStudy]:
        consents = Consents(self.folder / CONSENT_FILE)
        found = {offered.digest: offered for offered in consents.all() if offered.state == "in"}
        consents.close()
        return found


@pytest.fixture
def owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Owner]:
    office = Office(tmp_path, {"north": 20})
    made = Owner(office.folders["north"].path, capsys)
    made.known.learn([SOUTH])
    made.is_told(CHEAP)
    yield made
    office.close()


def answers(monkeypatch: pytest.MonkeyPatch, *said: bool) -> list[str]:
    """A person at a terminal who answers so, in this order; what was asked."""
    asked: list[str] = []
    left = [*said]

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return left.pop(0)

    monkeypatch.setattr(acceptance, "is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    return asked


def test_the_study_that_was_read_is_exchanged_for_a_dearer_one_of_the_same_name(owner: Owner) -> None:
    read = owner.says("show", "trial")
    assert f"Digest {CHEAP.digest()}" in read
    owner.is_told(DEAR)  # announced between reading and opting in
    assert f"'trial' are 2 studies; name one by its digest, the newest first: {DEAR.digest()}" in owner.says(
        "opt-in", "trial", "--digest", CHEAP.digest()
    )
    assert "has another digest than was given" in owner.says("opt-in", DEAR.digest()[:12], "--digest", CHEAP.digest())
    assert owner.consents() == {}
    assert f"in: trial, digest {CHEAP.digest()}" in owner.says(
        "opt-in", CHEAP.digest()[:12], "--digest", CHEAP.digest()
    )
    assert set(owner.consents()) == {CHEAP.digest()}


def test_a_script_consents_by_name_alone(owner: Owner, tmp_path: Path) -> None:
    assert "read it with `tacit party show trial`" in owner.says("opt-in", "trial")
    (tmp_path / "study.toml").write_text(CHEAP.to_toml())
    assert "has another digest than was given, or none" in owner.says("opt-in", str(tmp_path / "study.toml"))
    assert owner.consents() == {}
    owner.says("opt-in", CHEAP.digest())  # the whole digest says it
    assert set(owner.consents()) == {CHEAP.digest()}


def test_a_person_is_shown_the_digest_and_each_fingerprint(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, True, False)
    told = owner.says("opt-in", "trial")
    assert SOUTH.fingerprint in told
    assert CHEAP.digest() in told
    assert "was not confirmed; nothing has changed" in told
    assert re.match("Did south tell you this fingerprint", asked[0])
    assert re.match("Is this the digest of the study that you read", asked[1])
    assert owner.consents() == {}
    answers(monkeypatch, True)  # south is accepted by now
    owner.says("opt-in", "trial")
    assert owner.consents()[CHEAP.digest()].sum_group == {"south": SOUTH.letter_key}


def test_forty_invented_parties_are_accepted_with_a_study(owner: Owner) -> None:
    owner.known.learn([Identity(f"clinic-{k}", "party", bytes([k + 1]) * 32).member for k in range(40)])
    assert "accepted: party south" in owner.says("accept", f"south={SOUTH.fingerprint}")
    told = owner.says("opt-in", "trial", "--digest", CHEAP.digest())
    assert "not accepted: clinic-0, clinic-1" in told
    assert owner.consents()[CHEAP.digest()].sum_group == {"south": SOUTH.letter_key}


def test_a_party_is_accepted_under_anothers_keys(owner: Owner) -> None:
    other = Identity("south", "party", b"x" * 32).member
    assert f"'south' was told of with the fingerprint {SOUTH.fingerprint}, not" in owner.says(
        "accept", f"south={other.fingerprint}"
    )
    assert "say south=FINGERPRINT" in owner.says("accept", "south")
    owner.says("opt-in", "trial", "--digest", CHEAP.digest())
    assert owner.consents()[CHEAP.digest()].sum_group == {}


def test_a_node_adds_up_for_a_party_that_its_operator_never_saw(tmp_path: Path) -> None:
    known = KnownMembers(tmp_path)
    known.learn([SOUTH])
    assert known.keys() == {}


def test_a_study_named_like_the_digest_of_another_diverts_no_word(owner: Owner) -> None:
    decoy = Study.parse(CHEAP.to_toml().replace(f'"{CHEAP.name}"', f'"{CHEAP.digest()}"', 1))
    owner.is_told(decoy)
    consents = Consents(owner.folder / CONSENT_FILE)
    assert consents.named(CHEAP.digest()).digest == CHEAP.digest() != decoy.digest()
    consents.close()
