"""Studies on their way from a draft to a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.daemon.coordinator.study_store import LONGEST_TEXT, NEXT, STATES, StaleDraft, StudyStore
from tacit.errors import SettingError, StudyError
from tests.web.conftest import STUDY


@pytest.fixture
def store() -> StudyStore:
    return StudyStore(None)


def test_a_study_goes_its_way_and_everything_is_written_down(tmp_path: Path) -> None:
    store = StudyStore(tmp_path / "studies.db")
    study = store.create("ada", STUDY)
    assert (study.state, study.number, study.name) == ("draft", 1, "Readmission")
    assert study.digest == study.read().digest()
    for state, who in (("in review", "ada"), ("approved", "bob"), ("published", "bob"), ("running", "ada")):
        study = store.move(study, state, who, why=f"so says {who}")
    store.close()
    again = StudyStore(tmp_path / "studies.db")
    assert again.get(study.study) == study
    assert again.by_digest(study.digest) == study
    assert [(deed.state, deed.who) for deed in again.deeds(study.study)] == [
        ("draft", "ada"), ("in review", "ada"), ("approved", "bob"), ("published", "bob"), ("running", "ada"),
    ]  # fmt: skip


def test_states_change_only_as_listed(store: StudyStore) -> None:
    assert set(NEXT) == set(STATES)
    study = store.create("ada", STUDY)
    for state in STATES:
        if state not in NEXT["draft"]:
            with pytest.raises(SettingError, match="cannot become"):
                store.move(study, state, "ada")
    assert store.get(study.study).state == "draft"


def test_two_tabs_on_one_draft_lose_nothing(store: StudyStore) -> None:
    study = store.create("ada", STUDY)
    first = store.save(study, STUDY.replace("month", "year"))
    with pytest.raises(StaleDraft, match="changed since you opened it"):
        store.save(study, STUDY.replace("month", "week"))
    assert "year" in store.get(study.study).text
    with pytest.raises(StaleDraft, match="look at it again"):
        store.move(study, "in review", "ada")  # what would be reviewed is not what was read
    assert store.move(first, "in review", "ada").state == "in review"


def test_what_was_reviewed_stays_and_a_change_is_a_new_version(store: StudyStore) -> None:
    study = store.create("ada", STUDY)
    with pytest.raises(SettingError, match="still is a draft"):
        store.new_version(study.study, "ada", STUDY)
    fixed = store.move(study, "in review", "ada")
    with pytest.raises(SettingError, match="stays as it is"):
        store.save(fixed, STUDY + "# more")
    second = store.new_version(study.study, "bob", STUDY.replace("1.0", "2.0"))
    assert (second.number, second.state, second.author) == (2, "draft", "bob")
    assert second.digest != fixed.digest
    assert [each.number for each in store.versions(study.study)] == [2, 1]
    assert store.get(study.study, 1).text == STUDY


def test_a_draft_need_not_be_a_study_but_what_is_reviewed_must(store: StudyStore) -> None:
    draft = store.create("ada", "[study]\nname = ")
    assert (draft.name, draft.digest) == ("Untitled draft", "")
    with pytest.raises(StudyError, match="not TOML"):
        store.move(draft, "in review", "ada")
    with pytest.raises(StudyError, match="is the most"):
        store.create("ada", "#" * (LONGEST_TEXT + 1))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "1" * 5000, "a.b.c" * 3000 + " = 1", "\x00", "\ud800"])
def test_hostile_texts_are_drafts_that_are_no_studies(store: StudyStore, text: str) -> None:
    if text == "\ud800":
        with pytest.raises(StudyError, match="not UTF-8"):
            store.create("ada", text)
    else:
        assert store.create("ada", text).digest == ""


def test_search_finds_words_and_takes_no_pattern(store: StudyStore) -> None:
    study = store.create("ada", STUDY)
    for words in ("readmission", "month PATIENTS", "ward", "ada"):
        assert [each.study for each in store.all(search=words)] == [study.study], words
    for words in ("%", "_", "surgery nothing", "'; DROP TABLE study; --"):
        assert store.all(search=words) == [], words


def test_links_and_attachments(store: StudyStore) -> None:
    study = store.create("ada", STUDY)
    next_ = store.create("bob", STUDY, builds_on=study.study)
    assert store.built_on(study.study) == [next_]
    with pytest.raises(SettingError, match="to build on"):
        store.create("bob", STUDY, builds_on="nothing")
    store.attach(study, "model.json", b"{}")
    assert store.attachment(study, "model.json") == b"{}"
    assert store.attachments(study) == ["model.json"]
    assert store.attachment(next_, "model.json") is None
