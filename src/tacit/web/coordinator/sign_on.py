"""Single sign-on: whoever the provider names is logged in, if an administrator has made an account for them.

An account is known by the provider's own name for the person. The first time it is found by the e-mail address that
the administrator wrote down, if the provider has verified it, and keeps that name from then on. No account is made and
no role is changed by signing on.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.web.account import Account, Accounts
from tacit.web.form import go_to, local, visit_of
from tacit.web.open_id import KnownPerson, Provider, SignOnFailed
from tacit.web.page import show
from tacit.web.sign_in import begin_session
from tacit.web.site import site_of

router = APIRouter()
PATH, BACK = "/sign-on", "/sign-on/back"


@router.get(PATH)
async def begin(request: Request, next: str = "/") -> Response:  # noqa: A002
    """Send the visitor to the provider."""
    provider, visit = _provider(request), visit_of(request)
    if visit.account is not None:
        return go_to(request, next)
    visit.must_keep = True  # the answer must come back to this very browser
    try:
        place = await provider.begin(visit.key, local(next), _back(request))
    except SignOnFailed as error:
        return _failed(request, str(error))
    return RedirectResponse(place, status_code=303)


@router.get(BACK)
async def finish(request: Request) -> Response:
    """Log in whoever the provider names."""
    provider, visit, site = _provider(request), visit_of(request), site_of(request)
    try:
        person, place = await provider.finish(visit.key, dict(request.query_params), _back(request))
        account = account_of(site.accounts, person)
    except SignOnFailed as error:
        site.audit.note("somebody", "failed to sign on", str(error), visit.address)
        return _failed(request, str(error))
    begin_session(request, account, by=" by single sign-on")
    return go_to(request, place)


def account_of(accounts: Accounts, person: KnownPerson) -> Account:
    """The account of a person; a `SignOnFailed` if there is none that may log in."""
    account = accounts.by_subject(person.subject)
    if account is None and person.email:
        found = accounts.by_email(person.email)
        account = found if found is not None and not found.subject else None
    if account is None or account.disabled:
        raise SignOnFailed(
            "no account here is known by your verified e-mail address; ask the administrator to write it down"
        )
    if not account.subject:
        accounts.set_subject(account.name, person.subject)
    if account.must_change:
        accounts.drop_password(account.name)  # nobody needs the one that was given any more
    return accounts.get(account.name)


def _failed(request: Request, why: str) -> Response:
    told = f"You are not logged in: {why}."
    return show(request, "log_in.html.j2", status=403, errors={"": told}, next="/")


def _provider(request: Request) -> Provider:
    provider = site_of(request).provider
    if provider is None:
        raise HTTPException(404)
    return provider


def _back(request: Request) -> str:
    scheme = "https" if site_of(request).settings.tls else "http"
    return f"{scheme}://{request.headers['host']}{BACK}"
