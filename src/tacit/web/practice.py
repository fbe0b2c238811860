"""The sites of a practice federation: accounts with one-time passwords, and the ready-made study in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.daemon.center.handler import free_port
from tacit.daemon.coordinator import study_store
from tacit.daemon.coordinator.study_store import StudyStore
from tacit.daemon.practice.material import APPROVER, AUTHOR, ready_approval, ready_study
from tacit.web import store
from tacit.web.account import Accounts, Role
from tacit.web.coordinator.operations import keep_approval
from tacit.web.party.service import OWNER, new_password

ADMINISTRATOR = "root"
_ROLES: dict[str, Role] = {AUTHOR: "researcher", APPROVER: "approver", ADMINISTRATOR: "administrator"}


@dataclass(frozen=True, kw_only=True)
class SiteEntry:
    """Where a person logs in, as whom, with which one-time password; None: with the one that they chose before."""

    whose: str
    url: str
    account: str
    password: str | None


class PracticeSites:
    """Prepares each daemon's site before it starts, and remembers who may log in where.

    Attributes:
        entries: everybody who can log in, in the order in which the daemons started.
    """

    def __init__(self, *, is_new: bool) -> None:
        self._is_new = is_new
        self.entries: list[SiteEntry] = []

    def options(self, role: str, folder: Path) -> list[str]:
        """What `serve` of this daemon is told, so that it has a site; a center node has none."""
        if role == "center":
            return []
        listen = f"127.0.0.1:{free_port()}"
        add = self._add_coordinator if role == "coordinator" else self._add_party
        add(folder, f"http://{listen}")
        return ["--web", "--web-listen", listen]

    def _add_coordinator(self, folder: Path, url: str) -> None:
        passwords: dict[str, str] = {}
        if self._is_new:
            passwords = _coordinator_accounts(folder)
            publish_ready_study(folder)
        for name in _ROLES:
            self.entries.append(SiteEntry(whose="coordinator", url=url, account=name, password=passwords.get(name)))

    def _add_party(self, folder: Path, url: str) -> None:
        password = new_password(folder) if self._is_new else None
        self.entries.append(SiteEntry(whose=folder.name, url=url, account=OWNER, password=password))


def publish_ready_study(folder: Path) -> None:
    """Put the ready-made study into the coordinator's catalogue: written by one, signed by another, published."""
    studies = StudyStore(folder / study_store.FILE)
    try:
        version = studies.create(AUTHOR, ready_study().to_toml())
        version = studies.move(version, "in review", AUTHOR)
        approval = ready_approval(folder.parent)
        keep_approval(studies, version, approval)
        version = studies.move(version, "approved", APPROVER, f"signed, fingerprint {approval.fingerprint}")
        studies.move(version, "published", AUTHOR)
    finally:
        studies.close()


def _coordinator_accounts(folder: Path) -> dict[str, str]:
    database = store.open_store(folder / store.FILE)
    try:
        accounts = Accounts(database)
        return {name: accounts.add(name, role) for name, role in _ROLES.items()}
    finally:
        database.close()
