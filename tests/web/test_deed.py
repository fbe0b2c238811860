"""What is done to a study on its page: approval by a signature, publishing, a run, and its result."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.daemon.coordinator.run_event import RunEvent
from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.errors import SettingError
from tacit.federation.member.approval import ApproverKey
from tacit.methods import load
from tacit.studies.export import export_csv, export_onnx, write_exports
from tacit.studies.result import write_result
from tacit.studies.study import Study
from tacit.web.coordinator.deed import replaced_digest
from tacit.web.coordinator.operations import StudyOperations, approvals_of

from ..daemon.conftest import STUDY as TRIAL
from ..daemon.conftest import records
from .conftest import STUDY, Desk, Visitor, make_desk

GRACE = ApproverKey("grace", b"g" * 32)


class Operations(StudyOperations):
    """A federation that is not there: what would be done to it is noted."""

    def __init__(self, folder: Path, desk_studies: object) -> None:
        super().__init__(folder, desk_studies)  # type: ignore[arg-type]
        self.done: list[str] = []

    async def announce(self, version: StudyVersion) -> None:
        if "refused" in self.done:
            raise SettingError("the message server is not there")
        self.done.append("announced")

    def start(self, version: StudyVersion) -> None:
        self.done.append("started")

    async def stop(self, version: StudyVersion) -> None:
        self.done.append("stopped")


class Office:
    """A site with an author, an approver and a federation that is not there."""

    def __init__(self, folder: Path) -> None:
        self.desk: Desk = make_desk(is_public=True)
        self.operations = Operations(folder, self.desk.studies)
        self.operations.show_on(self.desk.site)
        self.app_desk().operations = self.operations
        self.ada = self.desk.member("ada", "researcher")
        self.grace = self.desk.member("grace", "approver")

    def app_desk(self) -> Any:
        return self.desk.app._app.state.desk  # type: ignore[attr-defined]

    def in_review(self, text: str = STUDY) -> StudyVersion:
        version = self.desk.studies.create("ada", text)
        return self.desk.studies.move(version, "in review", "ada")

    def approved(self, text: str = STUDY) -> StudyVersion:
        version = self.in_review(text)
        self.sign(version)
        return self.now(version)

    def sign(self, version: StudyVersion, /, **change: object) -> str:
        """The approver uploads a signature; what the next page says."""
        wanted = {"author": "ada", "version": version.number, "replaces": replaced_digest(self.desk.studies, version)}
        made = GRACE.approve(version.digest, **{**wanted, **change})  # type: ignore[arg-type]
        return self.does(self.grace, version, "approve", signature=made.text())

    def does(self, visitor: Visitor, version: StudyVersion, deed: str, **form: str) -> str:
        page = f"/studies/{version.study}"
        answer = visitor.post(f"{page}/{deed}", form, page=page)
        return visitor.get(answer.headers["location"].partition("#")[0]).text if answer.status_code == 303 else ""

    def now(self, version: StudyVersion) -> StudyVersion:
        return self.desk.studies.get(version.study, version.number)

    def happens(self, version: StudyVersion, *events: RunEvent) -> None:
        for event in events:
            self.operations.take(version.digest, event)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_an_approver_signs_and_the_signature_goes_with_the_study(office: Office) -> None:
    version = office.in_review()
    page = office.grace.get(f"/studies/{version.study}").text
    assert f"--author ada --version 1 --digest {version.digest}" in page
    assert "Approved. Parties verify your signature themselves." in office.sign(version)
    assert office.now(version).state == "approved"
    (approval,) = approvals_of(office.desk.studies, version)
    assert approval.fingerprint == GRACE.fingerprint
    assert GRACE.fingerprint in office.ada.get(f"/studies/{version.study}").text
    office.does(office.ada, version, "publish")
    assert office.now(version).state == "published"
    assert office.operations.done == ["announced"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"author": "somebody"}, "the signature is for author somebody, and this is ada"),
        ({"version": 2}, "the signature is for version 2, and this is 1"),
        ({"replaces": "0" * 64}, "the signature is for replaces 0000"),
    ],
)
def test_a_signature_of_something_else_is_refused(office: Office, change: dict[str, object], words: str) -> None:
    version = office.in_review()
    assert words in office.sign(version, **change)
    assert office.now(version).state == "in review"


def test_a_signature_of_another_study_or_by_another_person_or_none_is_refused(office: Office) -> None:
    version, other = office.in_review(), office.in_review(STUDY.replace("within a month", "within a year"))
    of_other = GRACE.approve(other.digest, author="ada")
    by_other = ApproverKey("hopper", b"h" * 32).approve(version.digest, author="ada")
    assert "the signature is for study" in office.does(office.grace, version, "approve", signature=of_other.text())
    assert "for approver hopper, and this is grace" in office.does(
        office.grace, version, "approve", signature=by_other.text()
    )
    assert "this is no approval" in office.does(office.grace, version, "approve", signature="<script>")
    assert office.now(version).state == "in review"


def test_the_author_approves_nothing_of_its_own(office: Office) -> None:
    version = office.desk.studies.create("grace", STUDY)
    version = office.desk.studies.move(version, "in review", "grace")
    own = ApproverKey("hopper", b"h" * 32).approve(version.digest, author="grace")
    told = office.does(office.grace, version, "approve", signature=own.text())
    assert "grace wrote this version; another person must approve it" in told
    assert office.ada.post(f"/studies/{version.study}/approve", {}, page="/studies/new").status_code == 403
    assert office.now(version).state == "in review"


def test_without_a_signature_nothing_is_published(office: Office) -> None:
    version = office.in_review()
    version = office.desk.studies.move(version, "approved", "an intruder in the store")
    assert "Nobody has signed this version" in office.does(office.ada, version, "publish")
    assert office.operations.done == []


def test_what_cannot_be_announced_stays_approved(office: Office) -> None:
    version = office.approved()
    office.operations.done.append("refused")
    assert "It could not be announced: the message server is not there" in office.does(office.ada, version, "publish")
    assert office.now(version).state == "approved"


def test_a_new_version_is_shown_as_a_difference_and_needs_a_new_signature(office: Office) -> None:
    version = office.approved()
    office.does(office.ada, version, "publish")
    second = office.desk.studies.new_version(version.study, "ada", STUDY.replace("epsilon = 1.0", "epsilon = 0.5"))
    second = office.desk.studies.move(second, "in review", "ada")
    page = office.grace.get(f"/studies/{version.study}").text
    assert "privacy.epsilon was 1.0 and is now 0.5" in page
    assert "<ins>+epsilon = 0.5</ins>" in page
    assert f"--replaces {version.digest}" in page
    assert approvals_of(office.desk.studies, second) == []
    assert "the signature is for replaces nothing" in office.sign(second, replaces="")
    assert "Approved." in office.sign(second)


def test_a_study_is_sent_back_with_a_reason(office: Office) -> None:
    version = office.in_review()
    office.does(office.grace, version, "send-back", why="Say who pays.")
    assert office.now(version).state == "draft"
    assert "Say who pays." in office.ada.get(f"/studies/{version.study}").text
    eve = office.desk.member("eve", "researcher")
    assert eve.post(f"/studies/{version.study}/send-back", {}, page="/studies/new").status_code == 404


def test_a_run_is_started_paused_stopped_and_watched(office: Office) -> None:
    version = office.approved()
    office.does(office.ada, version, "publish")
    office.happens(office.now(version), RunEvent(kind="consent", party="north", words="in"))
    assert "opted in" in office.desk.visitor().get(f"/studies/{version.study}").text
    office.does(office.ada, version, "start")
    assert office.now(version).state == "running"
    refusal = "party 'south': <b>no</b>"
    office.happens(
        office.now(version),
        RunEvent(kind="began", words="r1", attempt=1),
        RunEvent(kind="party", party="south", words=refusal, attempt=1),
        RunEvent(kind="round", words="newton/squares", round=1, attempt=1),
        RunEvent(kind="answered", party="north", words="answered round 1", round=1, attempt=1),
    )
    page = office.desk.visitor().get(f"/studies/{version.study}").text
    assert "Round 1 is under way" in page
    assert "answered round 1" in page
    assert "<b>no</b>" not in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "style=" not in page
    office.does(office.ada, version, "pause")
    assert office.now(version).state == "published"
    office.does(office.ada, version, "start")
    office.happens(office.now(version), RunEvent(kind="ended", words="1 parties take part and 2 are needed"))
    assert office.now(version).state == "stopped"
    assert "1 parties take part and 2 are needed" in office.ada.get(f"/studies/{version.study}").text
    assert office.operations.done == ["announced", "started", "stopped", "started"]


def test_only_the_owner_or_an_administrator_runs_a_study(office: Office) -> None:
    version = office.approved()
    office.does(office.ada, version, "publish")
    eve, root = office.desk.member("eve", "researcher"), office.desk.member("root", "administrator")
    assert "Start the run" not in eve.get(f"/studies/{version.study}").text
    assert eve.post(f"/studies/{version.study}/start", {}, page="/studies/new").status_code == 404
    assert office.desk.visitor().client.post(f"/studies/{version.study}/start").status_code == 403
    office.does(root, version, "start")
    assert office.now(version).state == "running"


# --- the result ------------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(office: Office) -> StudyVersion:
    """A study whose run has ended, with a model of two parties."""
    text = TRIAL.replace('name = "averaging"', 'name = "private-newton"')
    version = office.approved(text)
    office.does(office.ada, version, "publish")
    office.does(office.ada, version, "start")
    study = Study.parse(text)
    tables = {name: tacit.Table.from_frame(records(400, seed), study.schema) for seed, name in enumerate(("a", "b"))}
    model = tacit.PrivateNewton(epsilon=1.0).fit(tacit.Federation.from_tables(tables))
    results = office.operations.supervisor.results(version.digest)
    results.mkdir(parents=True)
    write_result(model, results, {"run": "r1"})
    write_exports(model, results)
    office.happens(office.now(version), RunEvent(kind="finished"))
    return office.now(version)


def test_the_result_is_shown_and_every_download_is_the_models(
    office: Office, finished: StudyVersion, tmp_path: Path
) -> None:
    assert finished.state == "finished"
    page = office.desk.visitor().get(f"/studies/{finished.study}/result").text
    assert "What came out of trial" in page
    assert 'id="forest-title"' in page or "Odds ratios" in page
    assert f"sha256:{finished.digest}" in page
    files = {
        name: office.ada.get(f"/studies/{finished.study}/result/{name}")
        for name in re.findall(r"/result/([\w.]+)\?", page)
    }
    assert [*files] == ["model.json", "model.onnx", "coefficients.csv", "report.html", "result.json", "study.toml"]
    (tmp_path / "m.json").write_bytes(files["model.json"].content)
    model = load(tmp_path / "m.json")
    assert files["model.onnx"].content == export_onnx(model)
    assert files["coefficients.csv"].content == export_csv(model)
    assert json.loads(files["result.json"].content)["run"] == "r1"
    assert Study.parse(files["study.toml"].text).digest() == finished.digest
    assert all("attachment" in answer.headers["content-disposition"] for answer in files.values())
    for name, answer in files.items():
        assert office.desk.visitor().get(f"/api/v1/studies/{finished.study}/results/{name}").content == answer.content
    assert office.ada.get(f"/studies/{finished.study}/result/process.log").status_code == 404
    unfinished = office.in_review()
    assert office.grace.get(f"/studies/{unfinished.study}/result").status_code == 404


def test_a_new_study_starts_from_the_model(office: Office, finished: StudyVersion) -> None:
    page = f"/studies/{finished.study}/result"
    answer = office.ada.post(f"/studies/{finished.study}/continue", {"nonce": "n"}, page=page)
    again = office.ada.post(f"/studies/{finished.study}/continue", {"nonce": "n"}, page=page)
    assert answer.headers["location"] == again.headers["location"]
    draft = office.desk.studies.get(answer.headers["location"].split("/")[2])
    assert draft.builds_on == finished.study
    start = draft.read().settings["start"]
    assert isinstance(start, dict)
    assert len(start["coef"][0]) == 2
    editor = office.ada.get(answer.headers["location"])
    assert editor.status_code == 200
    assert "start = { coef" in editor.text
    assert "Not a study yet" not in editor.text


def test_the_owner_measures_the_model_on_test_records(office: Office, finished: StudyVersion) -> None:
    page = f"/studies/{finished.study}/result"
    token, path = office.ada.token(page), f"/studies/{finished.study}/measure"
    test = {"records": ("t.csv", records(300, 9).to_csv(index=False).encode(), "text/csv")}
    assert office.ada.client.post(path, data={"csrf": token}, files=test).status_code == 303
    text = office.ada.get(page).text
    assert "ROC curve" in text
    assert "Calibration" in text
    bad = {"records": ("t.csv", b"a,b\n1,2\n", "text/csv")}
    office.ada.client.post(path, data={"csrf": token}, files=bad)
    assert "flash bad" in office.ada.get(page).text
    assert office.grace.client.post(path, data={"csrf": office.grace.token(page)}, files=test).status_code == 404


def test_watchers_are_told(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    version = office.approved()
    office.does(office.ada, version, "publish")
    told: list[tuple[str, str, str]] = []
    monkeypatch.setattr(office.desk.site.live, "publish", lambda *event: told.append(event))
    office.happens(office.now(version), RunEvent(kind="consent", party="north", words="in"))
    assert [(topic, name) for topic, name, _ in told] == [(f"study/{version.study}/1", "progress")]
    assert "opted in" in told[0][2]
    asyncio.run(_consent(office, version))
    assert len(office.operations.events.of(version.digest)) == 2


async def _consent(office: Office, version: StudyVersion) -> None:
    office.operations.consented("south", version.digest, "in")
    office.operations.consented("south", "0" * 64, "in")  # a study that nobody here knows
    assert office.operations.events.of("0" * 64) == []
