"""A coordinator that wants a study answered which nobody approved whom the owner trusts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.errors import SettingError
from tacit.federation.member.announced import Announced
from tacit.federation.member.approval import MOST_APPROVALS, Approval, ApproverKey
from tacit.studies.study import Study

from ..daemon.conftest import STUDY
from .office import Office, refusal

FIRST = Study.parse(STUDY)
SECOND = Study.parse(STUDY.replace("epsilon = 1.0", "epsilon = 0.5"))
GRACE = ApproverKey("Grace Hopper", b"g" * 32)
MALLORY = ApproverKey("Grace Hopper", b"m" * 32)  # the same name, another key
NOT_SIGNED = "none of policy.approvers has signed it"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, {"north": 30})
    made.set_policy("north", "^not_private.*$", f'not_private = []\napprovers = ["{GRACE.fingerprint}"]')
    yield made
    made.close()


def announced(office: Office, study: Study, *approvals: Approval) -> str:
    """The study is announced with these approvals, and its owner opts in; what the party says to a run of it."""
    office.handlers["north"]._consents.add(offer_of(study, approvals), office.handlers["north"]._approvers())
    office.opt_in(study)
    return refusal(lambda: office.send("north", "hello", study))


def test_a_study_that_an_accepted_person_signed_is_answered(office: Office) -> None:
    assert announced(office, FIRST, GRACE.approve(FIRST.digest(), author="Ada")) == ""


def test_a_study_that_nobody_signed(office: Office) -> None:
    assert f"{NOT_SIGNED}; it brings no signature that holds" in announced(office, FIRST)


def test_somebody_of_the_same_name_signs(office: Office) -> None:
    assert MALLORY.fingerprint != GRACE.fingerprint
    told = announced(office, FIRST, MALLORY.approve(FIRST.digest(), author="Ada"))
    assert f"{NOT_SIGNED}; the signatures that it brings are by Grace Hopper" in told


@pytest.mark.parametrize(
    "change",
    [{"author": "Eve"}, {"version": 2}, {"replaces": "0" * 64}, {"time": 1.0}, {"signature": bytes(64)}],
    ids=lambda change: next(iter(change)),
)
def test_an_approval_is_changed_after_it_was_signed(office: Office, change: dict[str, object]) -> None:
    forged = replace(GRACE.approve(FIRST.digest(), author="Ada"), **change)  # type: ignore[arg-type]
    assert NOT_SIGNED in announced(office, FIRST, forged)


def test_anothers_key_is_put_beside_the_signature(office: Office) -> None:
    theirs = replace(MALLORY.approve(FIRST.digest(), author="Ada"), key=GRACE.public)
    assert theirs.fingerprint == GRACE.fingerprint
    assert NOT_SIGNED in announced(office, FIRST, theirs)


def test_an_approval_of_one_study_is_shown_for_another(office: Office) -> None:
    approval = GRACE.approve(FIRST.digest(), author="Ada")
    assert NOT_SIGNED in announced(office, SECOND, approval)
    assert NOT_SIGNED in announced(office, SECOND, replace(approval, study=SECOND.digest()))


def test_an_approver_whom_the_owner_has_taken_out_does_not_count_any_more(office: Office) -> None:
    assert announced(office, FIRST, GRACE.approve(FIRST.digest(), author="Ada")) == ""
    office.set_policy("north", "^approvers.*$", "approvers = []")
    assert NOT_SIGNED in refusal(lambda: office.send("north", "hello", FIRST))
    assert NOT_SIGNED in refusal(lambda: office.send("north", "ask", FIRST, "r", b""))


def test_an_old_version_is_brought_back_after_a_new_one_was_approved(office: Office) -> None:
    first = GRACE.approve(FIRST.digest(), author="Ada")
    assert announced(office, FIRST, first) == ""
    theirs = MALLORY.approve(SECOND.digest(), author="Ada", version=2, replaces=FIRST.digest())
    announced(office, SECOND, theirs)  # whoever is not accepted takes nothing away
    assert announced(office, FIRST, first) == ""
    second = GRACE.approve(SECOND.digest(), author="Ada", version=2, replaces=FIRST.digest())
    assert announced(office, SECOND, second) == ""
    assert f"Grace Hopper has approved version 2, {SECOND.digest()[:12]}, in its place" in announced(
        office, FIRST, first
    )
    for k in range(210):  # studies that nobody answered are forgotten, and that one was replaced is not
        office.handlers["north"]._consents.keep(Study.parse(STUDY.replace("Who recovers?", f"Who recovers {k}?")))
    assert "in its place" in announced(office, FIRST, first)


def test_invented_approvals_fill_no_disk_and_hide_no_true_one(office: Office) -> None:
    many = [ApproverKey(f"Eve {k}", bytes([k + 1]) * 32) for k in range(MOST_APPROVALS + 4)]
    announced(office, FIRST, *(eve.approve(FIRST.digest(), author="Ada") for eve in many))
    assert announced(office, FIRST, GRACE.approve(FIRST.digest(), author="Ada")) == ""
    consents = Consents(office.folders["north"].path / CONSENT_FILE)
    found = consents.find(FIRST.digest())
    consents.close()
    assert found is not None
    assert len(found.approvals) == MOST_APPROVALS


@pytest.mark.parametrize("author", ["Grace Hopper", "grace  hopper", "GRACE HOPPER"])
def test_the_author_approves(author: str) -> None:
    with pytest.raises(SettingError, match="wrote the study; another person must approve it"):
        GRACE.approve(FIRST.digest(), author=author)


def test_what_is_pasted_must_hold(tmp_path: Path) -> None:
    approval = GRACE.approve(FIRST.digest(), author="Ada")
    assert Approval.parse(approval.text()) == approval
    with pytest.raises(SettingError, match="the signature of 'Grace Hopper' does not hold"):
        Approval.parse(approval.text().replace("Ada", "Eve"))
    for text in (
        "",
        "{",
        "[]",
        "null",
        '{"format": "tacit approval 1"}',
        approval.text().replace('"key": "', '"key": "x'),
    ):
        with pytest.raises(SettingError, match="this is no approval"):
            Approval.parse(text)
    with pytest.raises(SettingError, match="4,096 characters at most"):
        Approval.parse("x" * 5000)
    announced = Announced(tmp_path / "announced.db")
    with pytest.raises(SettingError, match="does not hold; let it be signed again"):
        announced.approve(replace(approval, author="Eve"))
    announced.approve(approval)
    announced.approve(approval)
    assert announced.approvals(FIRST.digest()) == (approval,)
    announced.close()
