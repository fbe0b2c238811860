"""The party's site as a part of its daemon."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tacit.federation.member.folder import MemberFolder
from tacit.federation.nats.journal import Journal
from tacit.web import store
from tacit.web.account import Accounts
from tacit.web.party.application import make_party_site
from tacit.web.party.desk import PartyDesk
from tacit.web.serving import Listen, SiteServer, host_names
from tacit.web.session import SiteSessions
from tacit.web.site import SiteSettings, own_hosts

OWNER = "owner"  # the one account of a party's site


@dataclass(frozen=True, kw_only=True)
class PartyWebWish:
    """Where the site listens (HOST:PORT), and further host names under which browsers reach it."""

    listen: str = "127.0.0.1:8021"
    names: tuple[str, ...] = ()


class PartySite:
    """The party's site, opened: its socket listens and its files are open.

    Attributes:
        first_password: the one-time password, if this start made the account; None if there was one.
    """

    def __init__(self, folder: MemberFolder, wish: PartyWebWish, journal: Journal) -> None:
        listen = Listen.parse(wish.listen)
        names = host_names(listen, wish.names)
        self._journal = journal
        self._server = SiteServer(listen, folder.path)
        self._database = store.open_store(folder.path / store.FILE)
        self._desk = PartyDesk(folder, journal)
        settings = SiteSettings(
            name=f"{folder.identity.name} · Tacit", hosts=own_hosts(self._server.port, names), tls=self._server.is_tls
        )
        self.site, self.app = make_party_site(settings, self._database, self._desk)
        self.site.on_failure = lambda error: journal.note("page-failed", error=type(error).__name__)
        accounts = self.site.accounts
        self.first_password = None if accounts.find(OWNER) else accounts.add(OWNER, "administrator")

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return self._server.url

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        self._journal.note("site-serving", url=self.url)
        await self._server.serve(self.app, stop, self.site.live.close)

    def close(self) -> None:
        """Close socket and files."""
        self._server.close()
        self._desk.close()
        self._database.close()


def new_password(folder: Path) -> str:
    """A new one-time password for the owner of the party in `folder`; every session ends, and the old one is void."""
    database = store.open_store(folder / store.FILE)
    try:
        accounts = Accounts(database)
        if accounts.find(OWNER) is None:
            return accounts.add(OWNER, "administrator")
        SiteSessions(database).end_all(OWNER)
        return accounts.reset(OWNER)
    finally:
        database.close()
