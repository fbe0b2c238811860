"""A party's site in this process, beside the party's real handler, and its owner as a visitor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.federation.member.known_members import KnownMembers
from tacit.studies.study import Study
from tacit.web.party.application import make_party_site
from tacit.web.party.desk import PartyDesk
from tacit.web.site import Site, SiteSettings, own_hosts
from tacit.web.store import open_store
from tests.attacks.office import Office
from tests.daemon.conftest import STUDY
from tests.web.conftest import PASSWORD, Client, Visitor

TRIAL = Study.parse(STUDY)


@dataclass
class PartyOffice:
    """North's site, with its handler, and other parties that it was told of."""

    office: Office
    desk: PartyDesk
    site: Site
    app: object
    failures: list[Exception]
    _owner: Visitor | None = None

    @property
    def folder(self) -> Path:
        return self.desk.path

    def owner(self) -> Visitor:
        """The owner, logged in once."""
        if self._owner is None:
            self._owner = Visitor(Client(self.app))
            assert self._owner.log_in("owner").status_code == 303
        return self._owner

    def announce(self, study: Study = TRIAL) -> str:
        """A study is announced to north; its digest."""
        self.desk.consents.keep(study)
        return study.digest()

    def consent(self, digest: str) -> OfferedStudy:
        consents = Consents(self.folder / CONSENT_FILE)
        try:
            found = consents.find(digest)
            assert found is not None
            return found
        finally:
            consents.close()

    def fingerprint(self, name: str) -> str:
        return self.office.folders[name].member.fingerprint

    def close(self) -> None:
        self.desk.close()
        self.office.close()
        for failure in self.failures:
            raise failure


def make_party_office(root: Path, *, port: int = 8020) -> PartyOffice:
    office = Office(root, {"north": 40, "south": 30, "west": 25})
    folder = office.folders["north"]
    others = [office.folders[name].member for name in ("south", "west")]
    KnownMembers(folder.path).learn(others)
    desk = PartyDesk(folder, office.handlers["north"]._journal)
    settings = SiteSettings(name="north · Tacit", hosts=own_hosts(port))
    site, app = make_party_site(settings, open_store(None), desk)
    failures: list[Exception] = []
    site.on_failure = failures.append
    site.accounts.add("owner", "administrator")
    site.accounts.set_password("owner", PASSWORD)
    return PartyOffice(office, desk, site, app, failures)
