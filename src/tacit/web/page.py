"""Pages: templates that show values as text, whatever they contain, with what every page of a site has.

    return show(request, "coordinator/catalogue.html.j2", studies=studies)

A template extends `base.html.j2` and uses the macros of `part.html.j2`.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from tacit.visible import shown
from tacit.web.session import new_key
from tacit.web.visit import SiteVisit

if TYPE_CHECKING:
    from tacit.web.site import Site

_STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class MenuLink:
    """An entry of the navigation; `below` is where its pages are, if not below its own path."""

    path: str
    label: str
    below: str = ""

    def is_here(self, path: str) -> bool:
        """Whether a page at `path` is under this entry."""
        below = self.below or self.path
        return path == self.path or (below != "/" and path.startswith(f"{below}/"))


def make_environment() -> jinja2.Environment:
    """The templates of all sites: `base.html.j2`, and a folder for each site."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tacit.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.finalize = _finalized
    environment.filters |= {"day": day, "moment": moment}
    environment.globals |= {"static": static, "new_nonce": new_key}
    return environment


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one, from a template."""
    return HTMLResponse(render(request, request.app.state.site, template, **values), status_code=status)


def render(request: Request, site: Site, template: str, **values: Any) -> str:
    """The text of a page for this visitor."""
    visit: SiteVisit = request.state.visit
    own: dict[str, Any] = {
        "site_name": site.settings.name,
        "links": site.settings.links(visit.account),
        "account": visit.account,
        "has_roles": site.settings.has_roles,
        "sign_on": site.provider.settings.label if site.provider else "",
        "path": request.url.path,
        "token": visit.token,
        "flashes": lambda: site.visits.take_flashes(visit),  # by whole pages alone: a part that is exchanged shows none
        "errors": {},
        "typed": {},
    }
    return site.environment.get_template(template).render({**own, **values})


def fragment(site: Site, template: str, **values: Any) -> str:
    """The text of a part that many watchers see alike; it knows no visitor."""
    return site.environment.get_template(template).render(values)


@cache
def static(name: str) -> str:
    """The address of a static file; another content has another address, so browsers may keep it."""
    digest = hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"


def day(seconds: float) -> str:
    """A date, such as 18 November 2026."""
    return time.strftime("%d %B %Y", time.gmtime(seconds)).lstrip("0")


def moment(seconds: float) -> str:
    """A date and time, such as 2026-11-18 03:41 UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _finalized(value: object) -> object:
    """Texts with every unseen character but line ends written out: names from elsewhere move nothing on a page."""
    if type(value) is str and not value.isprintable():
        return "\n".join(shown(line.replace("\t", "    ")) for line in value.split("\n"))
    return value
