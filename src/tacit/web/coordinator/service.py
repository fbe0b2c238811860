"""The coordinator's site as a part of its daemon."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tacit.daemon.coordinator import study_store
from tacit.daemon.coordinator.study_store import StudyStore
from tacit.federation.nats.journal import Journal
from tacit.web import store
from tacit.web.coordinator.application import make_coordinator_site
from tacit.web.coordinator.forecaster import Forecaster
from tacit.web.coordinator.operations import StudyOperations
from tacit.web.coordinator.web_file import WebFile
from tacit.web.open_id import Provider
from tacit.web.serving import Listen, SiteServer, host_names
from tacit.web.site import SiteSettings, own_hosts

DEFAULT = "127.0.0.1:8020"


@dataclass(frozen=True, kw_only=True)
class WebWish:
    """What the operator asks of the site.

    Attributes:
        listen: HOST:PORT.
        names: further host names under which browsers reach it.
        is_public: whether published studies are shown to everybody.
    """

    listen: str = DEFAULT
    names: tuple[str, ...] = ()
    is_public: bool = False


class CoordinatorSite:
    """The coordinator's site, opened: its socket listens and its files are open."""

    def __init__(self, folder: Path, wish: WebWish, journal: Journal) -> None:
        self._journal = journal
        file = WebFile.read(folder)
        listen = Listen.parse(wish.listen)
        names = host_names(listen, wish.names)
        self._server = SiteServer(listen, folder)
        self._database = store.open_store(folder / store.FILE)
        self.studies = StudyStore(folder / study_store.FILE)
        self.operations = StudyOperations(folder, self.studies)
        self._forecaster = Forecaster(folder)
        hosts = frozenset({file.host}) if file.host else own_hosts(self._server.port, names)
        settings = SiteSettings(name=file.name, hosts=hosts, tls=self._server.is_tls or bool(file.host))
        self.site, self.app = make_coordinator_site(
            settings,
            self._database,
            self.studies,
            is_public=wish.is_public,
            forecaster=self._forecaster,
            operations=self.operations,
        )
        self.site.provider = None if file.provider is None else Provider(file.provider)
        self.site.on_failure = lambda error: journal.note("page-failed", error=type(error).__name__)

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return self._server.url

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        self._journal.note("site-serving", url=self.url)
        if not self.site.accounts.all():
            self._journal.note("no-accounts", hint="tacit coordinator account add NAME --role administrator")
        self.operations.resume_all()
        await self._server.serve(self.app, stop, self.site.live.close)

    def close(self) -> None:
        """Close socket and files."""
        self._server.close()
        self._forecaster.close()
        self.operations.close()
        self.studies.close()
        self._database.close()
