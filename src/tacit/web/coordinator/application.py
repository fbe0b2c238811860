"""The coordinator's site, put together."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.types import ASGIApp

from tacit.daemon.coordinator.study_store import StudyStore
from tacit.storage import Database
from tacit.web import sign_in
from tacit.web.account import Account
from tacit.web.coordinator import api, catalogue, deed, editor, people, result_page, sign_on
from tacit.web.coordinator.forecaster import Forecaster
from tacit.web.coordinator.operations import StudyOperations
from tacit.web.coordinator.permission import Desk
from tacit.web.page import MenuLink
from tacit.web.site import Site, SiteSettings, make_app

# A new page is a module with a `router`, and an entry here.
ROUTERS: tuple[APIRouter, ...] = (
    sign_in.router, editor.router, deed.router, result_page.router, catalogue.router, people.router, api.router,
    sign_on.router,
)  # fmt: skip


def navigation(account: Account | None) -> list[MenuLink]:
    """The entries on top of the coordinator's pages."""
    links = [MenuLink("/", "Studies", below="/studies")]
    if account is not None:
        links.append(MenuLink("/tokens", "Tokens"))
    if account is not None and account.may("administrator"):
        links += [MenuLink("/accounts", "Accounts"), MenuLink("/audit", "Audit trail")]
    return links


def make_coordinator_site(
    settings: SiteSettings,
    database: Database,
    studies: StudyStore,
    *,
    is_public: bool,
    forecaster: Forecaster | None = None,
    operations: StudyOperations | None = None,
) -> tuple[Site, ASGIApp]:
    """The coordinator's site and its application.

    Args:
        settings: its name and hosts; the navigation is its own.
        database: what `tacit.web.store.open_store` opened.
        studies: the coordinator's studies.
        is_public: whether published studies are shown to everybody, and not to members alone.
        forecaster: what forecasts drafts; None where nothing is forecast.
        operations: what announces and runs studies; None where there is no federation.
    """
    site = Site(replace(settings, links=navigation), database)
    desk = Desk(studies, is_public=is_public, forecaster=forecaster, operations=operations)
    if operations is not None:
        operations.show_on(site)
    return site, make_app(site, ROUTERS, desk=desk)
