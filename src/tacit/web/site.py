"""A site: its settings, what it remembers, and the application that serves it.

    site = Site(SiteSettings(name="North", hosts=own_hosts(8020)), open_store(path))
    app = make_app(site, [router])

Every application has the same protection: it answers to its own host names alone, to bodies of a bounded size, and to
forms that it made itself. Its pages run no script and no style but the site's own files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from starlette.requests import Request
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tacit.storage import Database
from tacit.web.account import Accounts
from tacit.web.error_page import add_error_pages
from tacit.web.form import check_form, check_password_chosen
from tacit.web.live import Broadcaster
from tacit.web.open_id import Provider
from tacit.web.page import MenuLink, make_environment
from tacit.web.protection import Protection
from tacit.web.session import Attempts, AuditTrail, SentForms, SiteSessions
from tacit.web.store import site_secret
from tacit.web.token import ApiTokens
from tacit.web.visit import Visits

STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """What a site is called, and whom it answers.

    Attributes:
        name: what stands on top of every page.
        hosts: the values of the Host header that it answers to, such as "127.0.0.1:8020".
        tls: whether it is reached by https.
        max_body: the most bytes of a request's body.
        links: the navigation: for an account, or None for a visitor.
        has_roles: whether people with several roles use it; a party's site has its owner alone.
    """

    name: str
    hosts: frozenset[str]
    tls: bool = False
    max_body: int = 1 << 20
    links: Callable[[Any], Sequence[MenuLink]] = field(default=lambda account: ())
    has_roles: bool = True


class Site:
    """What the pages of one site share. Handlers find it as `site_of(request)`."""

    def __init__(self, settings: SiteSettings, database: Database) -> None:
        self.settings = settings
        self.secret = site_secret(database)
        self.accounts = Accounts(database)
        self.sessions = SiteSessions(database)
        self.attempts = Attempts(database)
        self.sent_forms = SentForms(database)
        self.audit = AuditTrail(database)
        self.tokens = ApiTokens(database, self.accounts)
        self.live = Broadcaster()
        self.visits = Visits(self.secret, self.sessions, self.accounts, tls=settings.tls)
        self.provider: Provider | None = None  # whom it asks who somebody is
        self.environment = make_environment()
        self.on_failure: Callable[[Exception], None] = lambda error: None


def make_app(site: Site, routers: Sequence[APIRouter], **state: object) -> ASGIApp:
    """The application of a site with these pages; handlers find `state` in `request.app.state`."""
    checks = [Depends(check_form), Depends(check_password_chosen)]
    app = FastAPI(title=site.settings.name, docs_url=None, redoc_url=None, openapi_url=None, dependencies=checks)
    app.state.site = site
    for name, value in state.items():
        setattr(app.state, name, value)
    for router in routers:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    add_error_pages(app)
    return Protection(app, site)


def site_of(request: Request) -> Site:
    """The site that a request is to."""
    site: Site = request.app.state.site
    return site


def own_hosts(port: int, names: Sequence[str] = ("127.0.0.1", "localhost", "[::1]")) -> frozenset[str]:
    """The Host headers under which a site at this port is reached; the default names are this machine's."""
    default = {name for name in names if port in (80, 443)}
    return frozenset({f"{name}:{port}" for name in names} | default)
