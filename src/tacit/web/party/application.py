"""The party's site, put together."""

from __future__ import annotations

from dataclasses import replace

from starlette.types import ASGIApp

from tacit.storage import Database
from tacit.web import sign_in
from tacit.web.account import Account
from tacit.web.page import MenuLink
from tacit.web.party import data_check, decide, known_parties, past, policy_form, told
from tacit.web.party.desk import PartyDesk
from tacit.web.site import Site, SiteSettings, make_app

# A new page is a module with a `router`, and an entry here.
ROUTERS = (
    sign_in.router,
    decide.router,
    known_parties.router,
    past.router,
    policy_form.router,
    data_check.router,
    told.router,
)


def make_party_site(settings: SiteSettings, database: Database, desk: PartyDesk) -> tuple[Site, ASGIApp]:
    """The party's site and its application.

    Args:
        settings: its name and hosts; the navigation is its own.
        database: what `tacit.web.store.open_store` opened.
        desk: the party's files.
    """

    def navigation(account: Account | None) -> list[MenuLink]:
        if account is None:
            return []
        unread = desk.notices.n_unread
        return [
            MenuLink("/", "Studies"),
            MenuLink("/parties", "Parties"),
            MenuLink("/left", "What left"),
            MenuLink("/log", "Log"),
            MenuLink("/policy", "Policy"),
            MenuLink("/check", "Data check"),
            MenuLink("/notices", f"Notices ({unread})" if unread else "Notices"),
        ]

    site = Site(replace(settings, links=navigation, has_roles=False), database)
    return site, make_app(site, ROUTERS, party_desk=desk)
