"""Forms: only those that this site made are taken, and what they carry is text that a page can show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.errors import UserError
from tacit.web.account import Account, Role
from tacit.web.session import Flash, Tone
from tacit.web.visit import SiteVisit

if TYPE_CHECKING:
    from tacit.web.site import Site

FIELD, HEADER, NONCE = "csrf", "x-csrf-token", "nonce"
API = "/api/"
LOG_IN, LOG_OUT, PASSWORD = "/log-in", "/log-out", "/password"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class NotOwnForm(HTTPException):
    """A form that this site did not make for this visitor, or not lately."""

    def __init__(self, *, from_here: bool) -> None:
        super().__init__(403, "This form was not made for this visit.")
        self.from_here = from_here


class NeedsLogIn(Exception):
    """The page is for those who have logged in."""


class MustChoosePassword(Exception):
    """The account has a password that somebody else gave it."""


def visit_of(request: Request) -> SiteVisit:
    """Who asks."""
    visit: SiteVisit = request.state.visit
    return visit


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def check_password_chosen(request: Request) -> None:
    """Whoever got the password from somebody else chooses an own one before anything else."""
    account = visit_of(request).account
    if account is not None and account.must_change and request.url.path not in (PASSWORD, LOG_OUT):
        raise MustChoosePassword


async def check_form(request: Request) -> AsyncIterator[None]:
    """Refuse whatever changes something and was not sent from a page of this site, made for this visitor.

    The interface for scripts looks at no cookie, so no other site can speak for a visitor there. Files that came with a
    form are closed when the page is done.
    """
    await _check_own(request)
    try:
        yield
    finally:
        await request.close()


async def _check_own(request: Request) -> None:
    if request.method in _SAFE or request.url.path.startswith(API):
        return
    if not is_from_here(request):
        raise NotOwnForm(from_here=False)
    token = request.headers.get(HEADER, "")
    if not token and _is_form(request):
        found = (await request.form(max_files=10, max_fields=1000)).get(FIELD, "")
        token = found if isinstance(found, str) else ""
    if not visit_of(request).is_own(token):
        raise NotOwnForm(from_here=True)


def is_from_here(request: Request) -> bool:
    """Whether the browser says that a page of this very site sent the request; one that says nothing is believed."""
    origin, fetched = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if fetched not in (None, "same-origin", "none"):
        return False
    settings = _site(request).settings
    return origin is None or origin in {f"{'https' if settings.tls else 'http'}://{host}" for host in settings.hosts}


async def read_form(request: Request) -> dict[str, str]:
    """The texts of a form, one for each name; an uploaded file is read as UTF-8 text."""
    texts: dict[str, str] = {}
    form: FormData = await request.form(max_files=10, max_fields=1000)
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            content = await value.read()
            await value.close()
            try:
                texts[name] = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise UserError(f"the file {value.filename!r} is not UTF-8 text; save it as UTF-8") from None
        else:
            texts[name] = value.replace("\r\n", "\n")
    return texts


def needs(role: Role) -> Callable[[Request], Account]:
    """A dependency: the account that asks, which must be logged in and have this role or a higher one."""

    def account(request: Request) -> Account:
        found = visit_of(request).account
        if found is None:
            raise NeedsLogIn
        if not found.may(role):
            raise HTTPException(403, f"This page is for the role {role}, and yours is {found.role}.")
        return found

    return account


def go_to(request: Request, place: str, told: str = "", tone: Tone = "good") -> Response:
    """Lead on to another page of the site after a form, with a message on it."""
    if told:
        _site(request).visits.flash(visit_of(request), Flash(text=told, tone=tone))
    place = local(place)
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": place})
    return RedirectResponse(place, status_code=303)


def local(place: str, default: str = "/") -> str:
    """`place`, if it is a path of this site; nobody is sent elsewhere by a link."""
    is_path = place.startswith("/") and not place.startswith(("//", "/\\")) and "\\" not in place
    return place if is_path and place.isprintable() and len(place) < 2000 else default


def once(request: Request, form: dict[str, str], act: Callable[[], str]) -> str:
    """Do what a form asks, once: where `act` led. The same form sent again leads there and does nothing.

    A page's form carries the number by the macro `nonce()`.
    """
    account, sent = visit_of(request).account, _site(request).sent_forms
    nonce = f"{account.name if account else ''} {request.url.path} {form[NONCE]}" if form.get(NONCE) else ""
    if nonce and (place := sent.place(nonce)) is not None:
        return place
    place = act()
    if nonce:
        sent.keep(nonce, place)
    return place


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in ("application/x-www-form-urlencoded", "multipart/form-data")
