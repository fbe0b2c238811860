"""The site's hands in a real federation: a study is announced with its approval, run, and its result kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.federation.member.approval import ApproverKey
from tacit.web.coordinator.operations import StudyOperations, keep_approval
from tests.daemon.conftest import STUDY, Loopback, build, wait_for
from tests.web.browser import live
from tests.web.conftest import Desk, LiveDesk, make_desk

GRACE = ApproverKey("grace", b"g" * 32)


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("federation"), parties={"north": 120, "south": 80})
    for name in ("north", "south"):
        file = made.folder(name) / "party.toml"
        file.write_text(file.read_text() + f'approvers = ["{GRACE.fingerprint}"]\n')
    yield made
    made.close()


@pytest.fixture
def desk(loopback: Loopback) -> Iterator[LiveDesk]:
    made: list[Desk] = []

    def make(port: int) -> tuple[object, object]:
        made.append(make_desk(port=port))
        return made[0].app, made[0].site.live

    with live(make) as site:  # type: ignore[arg-type]
        yield LiveDesk(made[0].site, made[0].studies, made[0].app, live=site)


def offered(folder: Path, digest: str) -> OfferedStudy | None:
    consents = Consents(folder / CONSENT_FILE)
    try:
        return consents.find(digest)
    finally:
        consents.close()


def approved(desk: LiveDesk) -> StudyVersion:
    version = desk.studies.create("ada", STUDY.replace('name = "trial"', 'name = "signed"'))
    version = desk.studies.move(version, "in review", "ada")
    keep_approval(desk.studies, version, GRACE.approve(version.digest, author="ada"))
    return desk.studies.move(version, "approved", "grace")


def test_parties_verify_the_approval_and_the_run_survives_a_restart_of_the_site(
    loopback: Loopback, desk: LiveDesk
) -> None:
    operations = desk.live.call(lambda: StudyOperations(loopback.coordinator, desk.studies))
    version: StudyVersion = desk.live.call(lambda: approved(desk))
    on_loop = asyncio.run_coroutine_threadsafe(operations.announce(version), desk.live._loop)
    on_loop.result(300)
    version = desk.live.call(lambda: desk.studies.move(version, "published", "ada"))
    for name in ("north", "south"):
        wait_for(lambda name=name: offered(loopback.folder(name), version.digest), f"{name} hears of the study")
        found = offered(loopback.folder(name), version.digest)
        assert found is not None
        assert [one.fingerprint for one in found.approvals] == [GRACE.fingerprint]
    loopback.consent("north", version.read())

    desk.live.call(lambda: (desk.studies.move(version, "running", "ada"), operations.start(version)))
    wait_for(
        lambda: any(event.party == "south" for event in desk.live.call(lambda: operations.events.of(version.digest))),
        "south's refusal",
    )
    desk.live.call(operations.close)  # the site ends while the run waits
    assert desk.studies.get(version.study).state == "running"
    loopback.consent("south", version.read())

    again = desk.live.call(lambda: StudyOperations(loopback.coordinator, desk.studies))
    try:
        again.show_on(desk.site)
        desk.live.call(again.resume_all)
        wait_for(lambda: desk.live.call(lambda: desk.studies.get(version.study).state) == "finished", "the result")
        version = desk.live.call(lambda: desk.studies.get(version.study))
        assert {"model.json", "report.html", "result.json"} <= set(desk.studies.attachments(version))
        told = desk.live.call(lambda: again.progress_values(version))["told"]
        assert {party.name: party.tone for party in told.parties} == {"north": "good", "south": "good"}
        assert told.n_runs == 1
    finally:
        desk.live.call(again.close)
