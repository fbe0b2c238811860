"""The party's pages: an owner reads, decides and finds out; whoever asks, the guard alone answers."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from tacit.daemon.party.policy_file import policy_values
from tacit.daemon.party.settings import PartyFile
from tacit.methods.averaging.statistic import local_model
from tacit.report.number import byte_count
from tacit.studies.study import Study
from tacit.web.party.application import ROUTERS
from tests.attacks.office import PartyRefused
from tests.daemon.conftest import STUDY
from tests.web.conftest import Visitor
from tests.web.party import TRIAL, PartyOffice, make_party_office


@pytest.fixture
def party(tmp_path: Path) -> Iterator[PartyOffice]:
    made = make_party_office(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartyOffice]:
    """One for all tests that change nothing there."""
    made = make_party_office(tmp_path_factory.mktemp("settled"))
    yield made
    made.close()


def text_of(page: str) -> str:
    """What a reader sees."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, name
    return html.unescape(found[1])


def accept(party: PartyOffice, owner: Visitor, *names: str) -> None:
    for name in names:
        form = {"name": name, "fingerprint": party.fingerprint(name), "compared": "yes"}
        assert owner.post("/parties/accept", form, page="/parties").headers["location"] == "/parties"


def opt_in(owner: Visitor, digest: str, **changes: str) -> tuple[int, str]:
    """Send the form of a study; the status, and what is read then."""
    page = f"/studies/{digest}"
    shown = owner.get(page).text
    form = {"runs": "2", "until": "", "read": "yes", "seen": hidden(shown, "seen"), "nonce": hidden(shown, "nonce")}
    answer = owner.post(f"{page}/opt-in", {**form, **changes}, page=page)
    return answer.status_code, text_of(owner.get(page).text if answer.status_code == 303 else answer.text)


def test_every_page_but_the_log_in_is_for_the_owner_alone(party: PartyOffice) -> None:
    digest = party.announce()
    stranger = Visitor(party.owner().client.__class__(party.app))
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            path = route.path.replace("{digest}", digest)
            if path in ("/log-in", "/log-out"):
                continue
            for method in route.methods:
                token = stranger.token("/log-in")
                answer = stranger.client.request(method, path, data={"csrf": token} if method == "POST" else None)
                assert (answer.status_code, answer.headers["location"][:7]) == (303, "/log-in"), (method, path)
    assert party.consent(digest).state == ""


def test_a_study_is_read_in_plain_words_and_agreed_to(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    assert "undecided" in owner.get("/").text
    read = text_of(owner.get(f"/studies/{digest}").text)
    for words in ("Who recovers?", "age and treated. No other column is read.", "factor of 2.72 at most", digest):
        assert words in read
    for words in ("You allow 20 in all studies", "You have accepted no other party yet"):
        assert words in read
    accept(party, owner, "south", "west")
    status, read = opt_in(owner, digest, runs="3", until="2999-12-31")
    assert status == 303
    assert "0 of 3 runs have begun, until the end of 31 December 2999" in read
    assert "You may be added up with south, west." in read
    found = party.consent(digest)
    assert (found.state, found.runs, set(found.sum_group)) == ("in", 3, {"south", "west"})
    assert found.until is not None
    assert found.until > time.time()


def test_an_owner_offers_less_than_is_asked(party: PartyOffice) -> None:
    study = Study.parse(STUDY.replace('name = "averaging"', 'name = "private-newton"'))
    digest, owner = party.announce(study), party.owner()
    accept(party, owner, "south", "west")
    for typed in ("1", "2", "0", "-1", "nan", "inf"):
        assert opt_in(owner, digest, epsilon=typed)[0] == 400, typed
    assert party.consent(digest).state == ""
    assert opt_in(owner, digest, epsilon="0.5")[0] == 303
    assert party.consent(digest).offer == 0.5
    assert opt_in(owner, digest, epsilon="")[0] == 303
    assert party.consent(digest).offer is None


def test_leaving_is_one_click_and_the_guard_keeps_to_it(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    accept(party, owner, "south", "west")
    assert opt_in(owner, digest)[0] == 303
    party.office.opt_in(TRIAL, runs=2)  # the others, too
    group = party.office.group(TRIAL)
    party.office.begin(TRIAL, "first", group)
    message = party.office.question(TRIAL, "first", group, local_model)
    assert owner.post(f"/studies/{digest}/leave", {}, page=f"/studies/{digest}").status_code == 303
    with pytest.raises(PartyRefused, match="its owner opted out"):
        party.office.ask("north", TRIAL, "first", message)
    assert party.consent(digest).state == "out"
    assert "nothing leaves you" in text_of(owner.get(f"/studies/{digest}").text)
    assert party.office.n_releases("north") == 0


def test_the_back_button_agrees_to_nothing_again(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    accept(party, owner, "south")
    page = f"/studies/{digest}"
    shown = owner.get(page).text
    form = {"runs": "2", "until": "", "read": "yes", "seen": hidden(shown, "seen"), "nonce": hidden(shown, "nonce")}
    assert owner.post(f"{page}/opt-in", form, page=page).status_code == 303
    assert owner.post(f"{page}/leave", {}, page=page).status_code == 303
    assert owner.post(f"{page}/opt-in", form, page=page).status_code == 303
    assert party.consent(digest).state == "out"


def test_whom_the_form_showed_is_whom_is_agreed_to(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    accept(party, owner, "south")
    shown = owner.get(f"/studies/{digest}").text
    accept(party, owner, "west")  # in another tab
    status, read = opt_in(owner, digest, seen=hidden(shown, "seen"))
    assert (status, party.consent(digest).state) == (400, "")
    assert "Whom you have accepted has changed since this page was opened" in read


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"runs": "0"}, "runs = 0 must lie between 1 and 1000"),
        ({"runs": "1001"}, "must lie between 1 and 1000"),
        ({"runs": "-1"}, "'-1' is not a whole number"),
        ({"runs": "two\x1b[2K"}, "is not a whole number"),
        ({"runs": "9" * 5000}, "is not a whole number"),
        ({"runs": "\u0662"}, "is not a whole number"),
        ({"until": "2020-01-01"}, "lies in the past"),
        ({"until": "31.12.2999"}, "is no date; write the year first"),
        ({"until": "<script>alert(1)</script>"}, "is no date"),
        ({"read": ""}, "Say that you have read"),
        ({"epsilon": "0.5"}, "cannot take an epsilon that you choose"),
        ({"epsilon": "less"}, "'less' is not a number above 0"),
    ],
)
def test_what_cannot_be_agreed_to_is_told_beside_its_field(
    settled: PartyOffice, changes: dict[str, str], told: str
) -> None:
    digest, owner = settled.announce(), settled.owner()
    status, read = opt_in(owner, digest, **changes)
    assert (status, settled.consent(digest).state) == (400, "")
    assert told in read
    assert "<script>alert" not in owner.get(f"/studies/{digest}").text


def test_a_study_with_an_odd_purpose_is_shown_as_text(party: PartyOffice) -> None:
    name = "<img src=x onerror=alert(1)> {{ 7*7 }}"
    digest = party.announce(Study.parse(STUDY.replace('"Who recovers?"', f'"{name}"')))
    owner = party.owner()
    for path in ("/", f"/studies/{digest}"):
        page = owner.get(path).text
        assert "<img" not in page
        assert name in html.unescape(page)


def test_a_study_that_the_policy_forbids_has_no_form(party: PartyOffice) -> None:
    party.office.set_policy("north", "^epsilon_per_study = .*", "epsilon_per_study = 0.5")
    digest, owner = party.announce(), party.owner()
    page = owner.get(f"/studies/{digest}").text
    assert "Your own policy does not allow this study" in page
    assert "/opt-in" not in page
    form = {"runs": "1", "until": "", "read": "yes", "seen": ""}
    answer = owner.post(f"/studies/{digest}/opt-in", form, page=f"/studies/{digest}")
    assert answer.status_code == 400
    assert party.consent(digest).state == ""


@pytest.mark.parametrize("digest", ["nothing", "0" * 64, "..%2f..", "'; DROP TABLE study; --"])
def test_a_study_that_nobody_announced_is_not_found(settled: PartyOffice, digest: str) -> None:
    owner = settled.owner()
    assert owner.get(f"/studies/{digest}").status_code == 404
    assert owner.post(f"/studies/{digest}/opt-in", {}, page="/parties").status_code == 404
    assert owner.post(f"/studies/{digest}/leave", {}, page="/parties").status_code == 404


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "south", "fingerprint": "0000", "compared": "yes"}, "was told of with the fingerprint"),
        ({"name": "nobody", "fingerprint": "0000", "compared": "yes"}, "no party 'nobody' was told of"),
        ({"name": "south", "compared": ""}, "tick that you did"),
        ({"name": "<b>", "fingerprint": "\x00", "compared": "yes"}, "no party '<b>' was told of"),
        ({}, "tick that you did"),
    ],
)
def test_nobody_is_accepted_without_the_right_fingerprint(
    settled: PartyOffice, form: dict[str, str], told: str
) -> None:
    owner = settled.owner()
    owner.post("/parties/accept", form, page="/parties")
    page = owner.get("/parties").text
    assert told in text_of(page)
    assert "<b>" not in page
    assert not any(one.is_accepted for one in settled.desk.parties())


def test_what_left_is_told_with_size_cost_and_study(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    assert "Nothing has left you yet." in owner.get("/left").text
    party.office.opt_in(TRIAL, runs=2)
    group = party.office.group(TRIAL)
    party.office.begin(TRIAL, "first", group)
    answer = party.office.ask("north", TRIAL, "first", party.office.question(TRIAL, "first", group, local_model))
    read = text_of(owner.get("/left").text)
    assert "averaging/model" in read
    assert "1 is spent of 20." in read
    assert byte_count(len(answer)) in read
    assert "1 answer has left you" in text_of(owner.get("/").text)
    read = text_of(owner.get("/log").text)
    assert "whole and in order; 1 release, each with its line." in read
    assert "Checked just now." in read
    assert digest
    head = party.desk.log.head()
    assert "The hash that you kept is in it." in owner.get(f"/log?head={head}").text
    assert "Something is wrong." in owner.get("/log?head=" + "0" * 64).text


def test_a_log_that_was_changed_is_told(party: PartyOffice) -> None:
    owner = party.owner()
    party.desk.log.append("began", run="first")
    party.desk.ledger.database.execute("UPDATE log SET text = replace(text, 'first', 'other')")
    read = text_of(owner.get("/log").text)
    assert "Something is wrong. the log of party 'north' was changed at or before line 1" in read


POLICY = {
    "epsilon_in_all": "5", "epsilon_per_study": "2.5", "delta": "1e-7", "relation": "add-remove", "min_records": "7",
    "min_records_exact": "33", "columns": "age\ntreated, recovered", "methods": "averaging", "not_private": "",
    "any_approver": "yes",
}  # fmt: skip


def test_a_policy_is_written_and_holds_at_once(party: PartyOffice) -> None:
    digest, owner = party.announce(), party.owner()
    party.office.opt_in(TRIAL, runs=2)
    party.office.group(TRIAL, "north")
    assert owner.post("/policy", {**POLICY, "epsilon_per_study": "0.5"}).status_code == 303
    written = policy_values(PartyFile.read(party.folder).policy)
    assert written["columns"] == ["age", "treated", "recovered"]
    assert (written["epsilon_in_all"], written["relation"], written["min_records"]) == (5.0, "add-remove", 7)
    with pytest.raises(PartyRefused, match="its policy does not allow this"):
        party.office.group(TRIAL, "north")
    assert "does not allow this study" in owner.get(f"/studies/{digest}").text
    everything = {**POLICY, "any_column": "yes", "any_method": "yes", "epsilon_in_all": ""}
    assert owner.post("/policy", everything).status_code == 303
    written = policy_values(PartyFile.read(party.folder).policy)
    assert (written["columns"], written["methods"], written["epsilon_in_all"]) == (None, None, float("inf"))


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("epsilon_in_all", "-1", "'-1' is not a number above 0"),
        ("epsilon_in_all", "nan", "'nan' is not a number above 0"),
        ("epsilon_per_study", "1_0", "is not a number above 0"),
        ("epsilon_per_study", "a lot", "'a lot' is not a number above 0"),
        ("delta", "", "'' is not a number between 0 and 1"),
        ("delta", "1", "is not a number between 0 and 1"),
        ("delta", "inf", "is not a number between 0 and 1"),
        ("min_records", "0", "'0' is not a whole number from 1 on"),
        ("min_records", "1.5", "is not a whole number"),
        ("min_records_exact", "9" * 400, "is not a whole number"),
        ("relation", "either", "Choose one of replace-one, add-remove."),
        ("methods", "magic", "There is no method 'magic'."),
        ("not_private", "averaging\nmagic", "There is no method 'magic'."),
        ("approvers", "somebody", "somebody"),
        ("columns", "a\u202eb", "has a character that nobody sees"),
        ("columns", "x" * 20_001, "20,001 characters; 20,000 is the most"),
    ],
)
def test_a_policy_that_says_nothing_sensible_changes_nothing(
    settled: PartyOffice, field: str, typed: str, told: str
) -> None:
    before = (settled.folder / "party.toml").read_bytes()
    answer = settled.owner().post("/policy", {**POLICY, field: typed})
    assert answer.status_code == 400
    assert told in text_of(answer.text)
    assert (settled.folder / "party.toml").read_bytes() == before


def test_the_data_check_names_lines_to_the_owner_alone(party: PartyOffice, tmp_path: Path) -> None:
    digest, owner = party.announce(), party.owner()
    assert "Every record counts as it is." in owner.get(f"/check?study={digest}").text
    file = tmp_path / "north.csv"
    lines = file.read_text().splitlines()
    lines[4] = "<i>forty</i>,1,yes"
    file.write_text("\n".join(lines) + "\n")
    page = owner.get(f"/check?study={digest}").text
    assert "line 5 age <i>forty</i> is no finite number" in text_of(page)
    assert "<i>" not in page
    for log in tmp_path.glob("*.log"):
        assert "forty" not in log.read_text()
    file.unlink()
    assert "is not a file" in owner.get(f"/check?study={digest}").text


def test_notices_are_wished_for_told_and_read(party: PartyOffice) -> None:
    owner = party.owner()
    wishes = {"studies": "yes", "runs": "yes", "budget_left": "19.5"}
    assert owner.post("/notices", wishes).status_code == 303
    party.announce()
    party.office.opt_in(TRIAL)
    party.office.begin(TRIAL, "first", party.office.group(TRIAL))
    handler = party.office.handlers["north"]
    handler.news()
    handler.news()
    page = owner.get("/notices").text
    for words in ("The study 'trial' was announced", "A run of 'trial' began.", "Of your budget 19 is left."):
        assert text_of(page).count(words) == 1, words
    assert "Notices (3)" in page
    assert owner.post("/notices/read", {}, page="/notices").status_code == 303
    assert "Notices (" not in owner.get("/notices").text
    assert '"event": "notice"' in (party.office.root / "north.log").read_text()


@pytest.mark.parametrize("typed", ["-1", "nan", "inf", "much", "1_0", "9" * 400])
def test_a_wish_that_is_no_number_is_told(settled: PartyOffice, typed: str) -> None:
    answer = settled.owner().post("/notices", {"budget_left": typed})
    assert answer.status_code == 400
    assert "is not a number from 0 on" in text_of(answer.text)


def test_no_page_shows_a_record(party: PartyOffice, tmp_path: Path) -> None:
    digest, owner = party.announce(), party.owner()
    ages = {line.split(",")[0] for line in (tmp_path / "north.csv").read_text().splitlines()[1:]}
    for path in (
        "/",
        f"/studies/{digest}",
        "/parties",
        "/left",
        "/log",
        "/policy",
        "/notices",
        f"/check?study={digest}",
    ):
        words = set(text_of(owner.get(path).text).split())
        assert not words & ages, path


ODD = (
    {},
    {"name": "\x00\x1b[2K", "fingerprint": "\u202e" * 500, "runs": "1e9", "until": "0000-00-00", "columns": "\x00"},
    dict.fromkeys(("runs", "until", "seen", "nonce", "budget_left", "delta", "epsilon_in_all"), "9" * 50000),
    {"name": "{{ 7*7 }}", "methods": "<script>", "relation": "'; --", "back": "//evil.example", "head": "%00"},
)


@pytest.mark.parametrize("form", ODD, ids=["empty", "unseen", "long", "markup"])
def test_no_form_is_too_odd_for_a_page(party: PartyOffice, form: dict[str, str]) -> None:
    digest, owner = party.announce(), party.owner()
    before = (party.folder / "party.toml").read_bytes()
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            path = route.path.replace("{digest}", digest)
            if "POST" not in route.methods or path in ("/log-out", "/log-in"):
                continue
            token = owner.token("/parties")
            answers = [
                owner.client.post(path, data={"csrf": token, **form}),
                owner.client.post(path, files={"name": ("a.txt", b"\xff\xfe")}, data={"csrf": token}),
                owner.client.post(path, content=b"[1, 2", headers={"content-type": "application/json"}),
            ]
            assert all(answer.status_code < 500 for answer in answers), path
            assert all(not answer.headers.get("location", "").startswith("//") for answer in answers), path
    assert (party.folder / "party.toml").read_bytes() == before
    assert party.consent(digest).state in ("", "out")
    for path in ("/log?head=%00%1b", "/check?study=%ff", "/check?study='", "/studies/%00"):
        assert owner.get(path).status_code < 500, path
