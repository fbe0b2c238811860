"""What the coordinator's site does in the federation: it announces studies, runs them, and hears how they get on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.daemon.coordinator import run_event
from tacit.daemon.coordinator.run_event import RunEvent, RunEvents
from tacit.daemon.coordinator.run_supervisor import RunSupervisor
from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.coordinator.study_store import State, StudyStore, StudyVersion
from tacit.errors import TacitError
from tacit.federation.member.approval import Approval
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.blocking import BlockingConnection
from tacit.studies.export import EXPORT_FILES
from tacit.studies.result import RESULT_FILES
from tacit.web.coordinator.progress import progress_values
from tacit.web.page import fragment
from tacit.web.site import Site

WAIT_SECONDS = 600.0  # that a run waits for parties to opt in
_UNDER_WAY: tuple[State, ...] = ("running",)
_PAUSE = 0.2  # seconds in which events are gathered before a page is told
_APPROVAL = "approval "  # kinds of attachments that are approvals begin so, and end with a fingerprint


class StudyOperations:
    """The site's hands in the federation. All methods but `take_from_thread` are called on the site's event loop."""

    def __init__(self, folder: Path, studies: StudyStore) -> None:
        """Work for the coordinator whose folder this is."""
        self._folder = folder
        self._studies = studies
        self.events = RunEvents(folder / run_event.FILE)
        self.supervisor = RunSupervisor(folder, self.take_from_thread)
        self._site: Site | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: set[str] = set()

    def show_on(self, site: Site) -> None:
        """Tell the watchers of this site's pages what happens."""
        self._site = site

    async def announce(self, version: StudyVersion) -> None:
        """Show a study with its approvals to every party."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._announce, version, approvals_of(self._studies, version))

    def start(self, version: StudyVersion) -> None:
        """Run a study, or resume its run."""
        self._loop = asyncio.get_running_loop()
        self.supervisor.start(version.digest, version.text, wait=WAIT_SECONDS)

    async def stop(self, version: StudyVersion) -> None:
        """Stop the run of a study; it can be resumed."""
        await asyncio.to_thread(self.supervisor.stop, version.digest)

    def resume_all(self) -> None:
        """After a restart: go on with what was running."""
        for version in self._studies.all(_UNDER_WAY):
            try:
                self.start(version)
            except TacitError as error:
                self.take(version.digest, RunEvent(kind="ended", words=str(error)))

    def consented(self, member: str, digest: str, state: str) -> None:
        """A party's owner opted in or out."""
        self._loop = asyncio.get_running_loop()
        if self._studies.by_digest(digest) is not None:  # others are nobody's here, and fill no disk
            self.take(digest, RunEvent(kind="consent", party=member, words=state))

    def take_from_thread(self, digest: str, event: RunEvent) -> None:
        """An event of a run's process."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.take, digest, event)

    def take(self, digest: str, event: RunEvent) -> None:
        """Write an event down, change the study's state where it says so, and tell the watchers."""
        self.events.add(digest, event)
        version = self._studies.by_digest(digest)
        if version is None:
            return
        if event.kind == "finished":
            self._keep_result(version)
        elif event.kind == "ended" and version.state == "running":
            self._studies.move(version, "stopped", "the run", event.words)
        if digest not in self._due:
            self._due.add(digest)
            self._later(lambda: self.show(digest))

    def show(self, digest: str) -> None:
        """Tell the watchers of a study's page how it is now."""
        self._due.discard(digest)
        version = self._studies.by_digest(digest)
        if version is not None and self._site is not None:
            text = fragment(self._site, "coordinator/study_progress.html.j2", **self.progress_values(version))
            self._site.live.publish(topic(version), "progress", text)

    def progress_values(self, version: StudyVersion) -> dict[str, Any]:
        """What the live part of a study's page shows."""
        try:
            study = version.read()
        except TacitError:
            return progress_values((), version)
        return progress_values(self.events.of(version.digest), version, study)

    def close(self) -> None:
        """Stop all runs, which the next start resumes, and close the file."""
        self._loop = None
        self.supervisor.close()
        self.events.close()

    def _keep_result(self, version: StudyVersion) -> None:
        results = self.supervisor.results(version.digest)
        for name in (*RESULT_FILES, *EXPORT_FILES):
            if (results / name).exists():
                self._studies.attach(version, name, (results / name).read_bytes())
        self._studies.attach(version, "study.toml", version.text.encode())
        if version.state == "running":
            self._studies.move(version, "finished", "the run")

    def _announce(self, version: StudyVersion, approvals: list[Approval]) -> None:
        coordinator = CoordinatorFolder(self._folder)
        try:
            for approval in approvals:
                coordinator.announced.approve(approval)
            kept = coordinator.announced.approvals(version.digest)
            with BlockingConnection(coordinator) as connection:
                connection.announce(offer_of(version.read(), kept))
        finally:
            coordinator.close()

    def _later(self, act: Callable[[], None]) -> None:
        if self._loop is None:
            act()
        else:
            self._loop.call_later(_PAUSE, act)


def topic(version: StudyVersion) -> str:
    """Under which the watchers of a study's page are told."""
    return f"study/{version.study}/{version.number}"


def keep_approval(studies: StudyStore, version: StudyVersion, approval: Approval) -> None:
    """Keep an approval with the version that it is of."""
    studies.attach(version, f"{_APPROVAL}{approval.fingerprint}", approval.text().encode())


def approvals_of(studies: StudyStore, version: StudyVersion) -> list[Approval]:
    """Who approved a version."""
    found = []
    for kind in studies.attachments(version):
        content = studies.attachment(version, kind) if kind.startswith(_APPROVAL) else None
        if content is not None:
            found.append(Approval.parse(content.decode()))
    return found
