"""The study editor without JavaScript: form and text, errors beside the fields, two tabs, and whose draft it is."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tacit.studies.form import form_of
from tacit.studies.study import Study
from tacit.web.coordinator.forecaster import Forecaster

from .conftest import STUDY, Desk, Visitor, make_desk

FORM = form_of(STUDY)
assert FORM is not None


@pytest.fixture
def ada(desk: Desk) -> Visitor:
    return desk.member("ada", "researcher")


def place(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def hidden(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, name
    return html.unescape(found[1])


def test_a_form_becomes_a_draft_and_the_draft_the_form_again(desk: Desk, ada: Visitor) -> None:
    edit = place(ada.post("/studies/new", {**FORM, "do": "save"}))
    study = edit.split("/")[2]
    assert desk.studies.get(study).read() == Study.parse(STUDY)
    page = ada.get(edit).text
    assert 'value="age"' in page
    assert "Which patients come back within a month?" in page
    saved = ada.post(edit, {**FORM, "name": "Another", "revision": hidden(page, "revision"), "do": "save"})
    assert place(saved) == edit
    assert desk.studies.get(study).name == "Another"


def test_looks_are_typed_in_fields_and_the_page_says_when_the_study_stops(desk: Desk, ada: Visitor) -> None:
    looks = {"looks": "5000, 10000", "coefficient": "age", "half_width": "0.02", "until": "2127-01-31"}
    edit = place(ada.post("/studies/new", {**FORM, **looks, "method": "private-newton", "quorum": "2", "do": "save"}))
    stop = desk.studies.get(edit.split("/")[2]).read().stop
    assert stop is not None
    assert stop.looks == (5000, 10000)
    assert 'value="5000, 10000"' in ada.get(edit).text
    told = (
        "It looks when 5,000; 10,000 records are enrolled, and stops as soon as age is known to 0.02, or after the last"
    )
    page = ada.get(edit.removesuffix("/edit")).text
    assert f"{told} look. Parties may join until 2127-01-31." in page


def test_the_same_form_sent_twice_makes_one_draft(desk: Desk, ada: Visitor) -> None:
    form = {**FORM, "do": "save", "nonce": "n1"}
    assert place(ada.post("/studies/new", form)) == place(ada.post("/studies/new", form))
    assert len(desk.studies.all()) == 1


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"epsilon": "lots"}, "epsilon", "privacy.epsilon must be a number"),
        ({"f0-low": "-"}, "f0-low", "feature &#39;age&#39;: feature.low must be a number"),
        ({"name": "a\x1b[2Kb"}, "name", "study.name has U+001B"),
        ({"classes": "only"}, "classes", "needs two classes or more"),
        ({"looks": "9, 5"}, "looks", "stop.looks = [9, 5] must rise from look to look"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(ada: Visitor, change: dict[str, str], field: str, words: str) -> None:
    answer = ada.post("/studies/new", {**FORM, **change, "do": "check"})
    assert answer.status_code == 200
    slot = re.search(rf'<p class="error" id="e-{field}">([^<]*)</p>', answer.text)
    assert slot
    assert words in slot[1]
    part = ada.client.post(
        "/drafts/check", data={**FORM, **change}, headers={"x-csrf-token": ada.token("/studies/new")}
    )
    assert re.search(rf'id="e-{field}" hx-swap-oob="true">[^<]*{re.escape(words)}', part.text)


def test_script_in_a_name_is_shown_as_text(ada: Visitor) -> None:
    edit = place(ada.post("/studies/new", {**FORM, "name": "<script>alert(1)</script>", "do": "save"}))
    page = ada.get(edit).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_rows_come_and_go_and_nothing_else_is_lost(ada: Visitor) -> None:
    more = ada.post("/studies/new", {**FORM, "do": "add"}).text
    assert 'name="f2-name"' in more
    assert 'value="age"' in more
    less = ada.post("/studies/new", {**FORM, "do": "remove-f0"}).text
    assert 'value="age"' not in less
    assert 'value="ward"' in less
    text = ada.post("/studies/new", {**FORM, "do": "as-text"}).text
    assert "[[feature]]" in text
    back = ada.post("/studies/new", {"text": STUDY, "do": "as-form"}).text
    assert 'value="age"' in back


def test_a_file_is_read_into_the_form(desk: Desk, ada: Visitor) -> None:
    token = ada.token("/studies/new")
    files = {"file": ("study.toml", STUDY.encode(), "text/plain")}
    page = ada.client.post("/studies/new", data={"csrf": token, "do": "upload"}, files=files).text
    assert 'value="Readmission"' in page
    assert desk.studies.all() == []
    broken = {"file": ("study.toml", b"no = toml = at all", "text/plain")}
    page = ada.client.post("/studies/new", data={"csrf": token, "do": "upload"}, files=broken).text
    assert "this is not TOML" in page
    binary = {"file": ("study.toml", b"\xff\xfe\x00", "text/plain")}
    answer = ada.client.post("/studies/new", data={"csrf": token, "do": "upload"}, files=binary)
    assert answer.status_code < 500
    assert "is not UTF-8 text" in answer.text
    huge = {"file": ("study.toml", b"a" * (2 << 20), "text/plain")}
    assert ada.client.post("/studies/new", data={"csrf": token}, files=huge).status_code == 413


def test_the_second_tab_is_told_and_loses_nothing(desk: Desk, ada: Visitor) -> None:
    edit = place(ada.post("/studies/new", {**FORM, "do": "save"}))
    study = edit.split("/")[2]
    revision = hidden(ada.get(edit).text, "revision")
    place(ada.post(edit, {**FORM, "purpose": "The first tab's.", "revision": revision, "do": "save"}))
    answer = ada.post(edit, {**FORM, "purpose": "The second tab's.", "revision": revision, "do": "save"})
    assert answer.status_code == 409
    assert "was changed since you opened it" in answer.text
    assert "The first tab&#39;s." in answer.text
    assert "The second tab&#39;s." in answer.text
    assert desk.studies.get(study).purpose == "The first tab's."
    again = hidden(answer.text, "revision")
    place(ada.post(edit, {**FORM, "purpose": "The second tab's.", "revision": again, "do": "save"}))
    assert desk.studies.get(study).purpose == "The second tab's."


def test_only_a_study_goes_to_review_and_then_it_is_fixed(desk: Desk, ada: Visitor) -> None:
    edit = place(ada.post("/studies/new", {**FORM, "do": "save"}))
    study = edit.split("/")[2]
    revision = hidden(ada.get(edit).text, "revision")
    wrong = ada.post(edit, {**FORM, "epsilon": "-1", "revision": revision, "do": "review"})
    assert wrong.status_code == 422
    assert desk.studies.get(study).state == "draft"
    assert place(ada.post(edit, {**FORM, "revision": revision, "do": "review"})) == f"/studies/{study}"
    assert desk.studies.get(study).state == "in review"
    assert ada.get(edit).status_code == 409
    place(ada.post(f"/studies/{study}/version", {}, page=f"/studies/{study}"))
    assert (desk.studies.get(study).number, desk.studies.get(study).state) == (2, "draft")


def test_nobody_else_edits_a_draft(desk: Desk, ada: Visitor) -> None:
    edit = place(ada.post("/studies/new", {**FORM, "do": "save"}))
    eve, grace = desk.member("eve", "researcher"), desk.member("grace", "approver")
    assert eve.get(edit).status_code == 404
    assert grace.get(edit).status_code == 404
    assert desk.visitor().get("/studies/new").status_code in (303, 401)
    assert desk.member("vic", "viewer").get("/studies/new").status_code == 403


@pytest.fixture
def with_forecasts(tmp_path: Path) -> Iterator[Desk]:
    forecaster = Forecaster(tmp_path)
    yield make_desk(forecaster=forecaster)
    forecaster.close()


def test_the_forecast_stands_beside_the_form(with_forecasts: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.web.coordinator.draft_check._WAIT_SECONDS", 300.0)
    monkeypatch.setattr("tacit.web.coordinator.draft_check.EPSILONS", (1.0,))
    ada = with_forecasts.member("ada", "researcher")
    assumed = {"n_parties": "2", "n_records": "300"}
    first = ada.client.post(
        "/drafts/check", data={**FORM, **assumed}, headers={"x-csrf-token": ada.token("/studies/new")}
    ).text
    assert "Rehearsing the study" in first
    page = ada.post("/studies/new", {**FORM, **assumed, "do": "check"}).text
    assert "Nobody's records were used" in page
    assert page.count("<svg xmlns") + page.count('class="chart"') >= 3
    assert "style=" not in page
    assert "Who sees what" in page
    named = {"method": "private-newton", "settings": 'start = "/etc/passwd"'}
    assert "the site reads none for a forecast" in ada.post("/studies/new", {**FORM, **named, "do": "check"}).text
    wrong = ada.post("/studies/new", {**FORM, "n_records": "-3", "do": "check"}).text
    assert "must be a whole number from 1 to 100,000" in wrong
