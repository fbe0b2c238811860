"""The catalogue: who sees which study, and in which words."""

from __future__ import annotations

import pytest

from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.studies.study import Study
from tacit.web.coordinator.words import in_words
from tests.web.conftest import STUDY, Desk

WAY = ("in review", "approved", "published", "running", "finished")


def publish(desk: Desk, text: str = STUDY, *, state: str = "published", **more: object) -> StudyVersion:
    study = desk.studies.create("ada", text, **more)
    for each in WAY[: WAY.index(state) + 1]:
        study = desk.studies.move(study, each, "bob")
    return study


def test_a_public_catalogue_tells_what_is_asked_and_promised(public_desk: Desk) -> None:
    study = publish(public_desk)
    later = publish(public_desk, STUDY.replace("Readmission", "Second"), builds_on=study.study)
    page = public_desk.visitor().get("/").text
    assert "Which patients come back within a month?" in page
    assert "Predicts readmitted: no or yes." in page
    page = public_desk.visitor().get(f"/studies/{later.study}").text
    assert f'href="/studies/{study.study}"' in page
    assert "by a factor of 2.72 at most" in page
    assert "a number from 0 to 110" in page
    assert "one of surgery, medicine" in page
    assert later.digest in page
    assert f'href="/studies/{later.study}"' in public_desk.visitor().get(f"/studies/{study.study}").text


def test_a_catalogue_for_members_asks_to_log_in(desk: Desk) -> None:
    study = publish(desk)
    assert desk.visitor().get("/").headers["location"] == "/log-in?next=/"
    assert desk.visitor().get(f"/studies/{study.study}").status_code == 303
    assert "Readmission" in desk.member("eve", "viewer").get("/").text


@pytest.mark.parametrize("path", ["", "/file", "?version=1", "?version=7", "/file?version=1"])
def test_a_study_that_one_may_not_see_is_not_there(public_desk: Desk, path: str) -> None:
    draft = public_desk.studies.create("ada", STUDY)
    for visitor in (public_desk.visitor(), public_desk.member("eve", "researcher")):
        hidden = visitor.get(f"/studies/{draft.study}{path}")
        nothing = visitor.get(f"/studies/0000000000000000{path}")
        assert hidden.status_code == nothing.status_code == 404
        assert "Readmission" not in hidden.text
        assert "Readmission" not in visitor.get("/").text
    for name, role in (("ada", "researcher"), ("bob", "approver")):
        seen = public_desk.member(name, role)
        assert "Readmission" in seen.get("/").text
        assert seen.get(f"/studies/{draft.study}").status_code == 200


def test_a_draft_of_the_next_version_hides_nothing_and_is_hidden(public_desk: Desk) -> None:
    study = publish(public_desk)
    public_desk.studies.new_version(study.study, "ada", STUDY.replace("Readmission", "Secret plans"))
    visitor = public_desk.visitor()
    page = visitor.get(f"/studies/{study.study}").text
    assert "Readmission" in page
    assert "Secret plans" not in page + visitor.get("/").text
    assert visitor.get(f"/studies/{study.study}?version=2").status_code == 404
    assert "Secret plans" in public_desk.member("ada", "researcher").get("/").text


def test_search_and_states(public_desk: Desk) -> None:
    publish(public_desk)
    publish(public_desk, STUDY.replace("Readmission", "Falls"), state="finished")
    visitor = public_desk.visitor()
    assert "Falls" not in visitor.get("/?search=readmission").text
    assert "Readmission" not in visitor.get("/?state=finished").text
    assert "No study has these words" in visitor.get("/?search=nothing").text
    assert visitor.get("/?state=no+such+state").status_code == 200
    assert visitor.get("/?search=" + "x" * 201).status_code == 400


def test_many_studies_come_on_pages(public_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.web.coordinator.catalogue.PER_PAGE", 2)
    for name in ("First", "Second", "Third"):
        publish(public_desk, STUDY.replace("Readmission", name))
    visitor = public_desk.visitor()
    first, second = visitor.get("/?state=published").text, visitor.get("/?page=2&state=published").text
    assert [f">{name}<" in first for name in ("First", "Second", "Third")] == [False, True, True]
    assert 'href="/?page=2&amp;state=published"' in first
    assert ">First<" in second
    assert ">Third<" not in second
    assert "no more studies" in visitor.get("/?page=9").text
    assert visitor.get("/?page=0").status_code == 400


def test_names_are_text_whatever_they_contain(public_desk: Desk) -> None:
    publish(public_desk, STUDY.replace("Readmission", "A <script>alert(1)"))
    page = public_desk.visitor().get("/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    bad = STUDY.replace("Readmission", "turn\u202earound")
    draft = public_desk.studies.create("ada", bad)
    assert draft.digest == ""  # no study may have such a name
    answer = public_desk.visitor().get("/?search=turn\u202earound")
    assert "\u202e" not in answer.text


def test_what_is_promised_in_words() -> None:
    def words(text: str) -> str:
        return in_words(Study.parse(text)).promise

    assert "factor of 1.11" in words(STUDY.replace("epsilon = 1.0", "epsilon = 0.1"))
    assert "No noise" in words(STUDY.partition("[privacy]")[0])
    assert "promises nothing" in words(STUDY.replace("epsilon = 1.0", "epsilon = inf"))


def test_the_study_file_is_what_was_written(public_desk: Desk) -> None:
    study = publish(public_desk)
    answer = public_desk.visitor().get(f"/studies/{study.study}/file")
    assert answer.text == STUDY
    assert answer.headers["content-type"].startswith("text/plain")
    assert "attachment" in answer.headers["content-disposition"]
