"""The coordinator's site, put together."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.types import ASGIApp

from tacit.daemon.coordinator.study_store import StudyStore
from tacit.storage import Database
from tacit.web import sign_in
from tacit.web.account import Account
from tacit.web.coordinator import api, catalogue, people, sign_on
from tacit.web.coordinator.permission import Desk
from tacit.web.page import MenuLink
from tacit.web.site import Site, SiteSettings, make_app

# A new page is a module with a `router`, and an entry here.
ROUTERS: tuple[APIRouter, ...] = (sign_in.router, catalogue.router, people.router, api.router, sign_on.router)


def navigation(account: Account | None) -> list[MenuLink]:
    """The entries on top of the coordinator's pages."""
    links = [MenuLink("/", "Studies", below="/studies")]
    if account is not None:
        links.append(MenuLink("/tokens", "Tokens"))
    if account is not None and account.may("administrator"):
        links += [MenuLink("/accounts", "Accounts"), MenuLink("/audit", "Audit trail")]
    return links


def make_coordinator_site(
    settings: SiteSettings, database: Database, studies: StudyStore, *, is_public: bool
) -> tuple[Site, ASGIApp]:
    """The coordinator's site and its application.

    Args:
        settings: its name and hosts; the navigation is its own.
        database: what `tacit.web.store.open_store` opened.
        studies: the coordinator's studies.
        is_public: whether published studies are shown to everybody, and not to members alone.
    """
    site = Site(replace(settings, links=navigation), database)
    return site, make_app(site, ROUTERS, desk=Desk(studies, is_public=is_public))
