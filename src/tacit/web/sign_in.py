"""Pages to log in and out and to choose a password; both sites have them."""

from __future__ import annotations

import asyncio
import math
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import SettingError
from tacit.web.account import ONE_TIME_DAYS, SHORTEST_PASSWORD, Account, check_password, fits
from tacit.web.form import LOG_IN, LOG_OUT, PASSWORD, go_to, local, needs, read_form, visit_of
from tacit.web.page import show
from tacit.web.site import Site, site_of

router = APIRouter()
_WRONG = "Name and password do not fit together. Look at both, and at the Caps Lock key, and try again."
_EXPIRED = (
    f"This one-time password has expired: it was good for {ONE_TIME_DAYS} days. Ask an administrator for a new one. On "
    f"a party's own machine, `tacit party password` gives it."
)


@router.get(LOG_IN)
async def log_in_page(request: Request, next: str = "/") -> Response:  # noqa: A002
    """The form to log in."""
    if visit_of(request).account is not None:
        return go_to(request, next)
    return show(request, "log_in.html.j2", next=local(next))


@router.post(LOG_IN)
async def log_in(request: Request) -> Response:
    """Log in, if name and password fit together and there were not too many attempts."""
    site, visit, form = site_of(request), visit_of(request), await read_form(request)
    name, place = form.get("name", "").strip().lower(), local(form.get("next", "/"))
    if (wait := site.attempts.seconds_to_wait(name, visit.address)) > 0:
        return _too_often(request, wait, place)
    # Counted before it is looked at: attempts that come at the same time count, too.
    site.attempts.failed(name, visit.address)
    is_right = await asyncio.to_thread(fits, form.get("password", ""), site.accounts.password_hash(name))
    account = site.accounts.find(name)
    if not is_right or account is None or account.disabled:
        site.audit.note(name[:40], "failed to log in", client=visit.address)
        values: dict[str, Any] = {"errors": {"": _WRONG}, "typed": {"name": name[:200]}, "next": place}
        return show(request, "log_in.html.j2", status=401, **values)
    site.attempts.succeeded(name, visit.address)
    if account.is_expired:
        site.audit.note(name[:40], "came with a one-time password that has expired", client=visit.address)
        values = {"errors": {"": _EXPIRED}, "typed": {"name": name[:200]}, "next": place}
        return show(request, "log_in.html.j2", status=401, **values)
    begin_session(request, account)
    return go_to(request, PASSWORD if account.must_change else place)


def begin_session(request: Request, account: Account, by: str = "") -> None:
    """Log an account in; `by` says how, if not by its password."""
    site, visit = site_of(request), visit_of(request)
    site.visits.log_in(visit, account)
    site.audit.note(account.name, f"logged in{by}", client=visit.address)


@router.post(LOG_OUT)
async def log_out(request: Request) -> Response:
    """End the session."""
    site, visit = site_of(request), visit_of(request)
    if visit.account is not None:
        site.audit.note(visit.account.name, "logged out", client=visit.address)
    site.visits.log_out(visit)
    return go_to(request, LOG_IN)


@router.get(PASSWORD)
async def password_page(request: Request, account: Annotated[Account, Depends(needs("viewer"))]) -> Response:
    """The form to choose a password."""
    return show(request, "password.html.j2", shortest=SHORTEST_PASSWORD)


@router.post(PASSWORD)
async def choose_password(request: Request, account: Annotated[Account, Depends(needs("viewer"))]) -> Response:
    """Take a new password; every other session of the account ends."""
    site, visit, form = site_of(request), visit_of(request), await read_form(request)
    errors = await _password_errors(site, account, visit.address, form)
    if errors:
        return show(request, "password.html.j2", status=400, errors=errors, shortest=SHORTEST_PASSWORD)
    site.accounts.set_password(account.name, form["new_password"])
    site.sessions.end_all(account.name)
    site.audit.note(account.name, "changed the password", client=visit.address)
    site.visits.log_in(visit, site.accounts.get(account.name))
    return go_to(request, "/", "Your password is changed. Sessions elsewhere have ended.")


async def _password_errors(site: Site, account: Account, address: str, form: dict[str, str]) -> dict[str, str]:
    """What is wrong with a new password, by field."""
    errors: dict[str, str] = {}
    if site.attempts.seconds_to_wait(account.name, address) > 0:
        return {"password": "There were too many attempts. Wait a quarter of an hour."}
    site.attempts.failed(account.name, address)
    if not await asyncio.to_thread(fits, form.get("password", ""), site.accounts.password_hash(account.name)):
        return {"password": "This is not your present password."}
    site.attempts.succeeded(account.name, address)
    new = form.get("new_password", "")
    try:
        check_password(new, account.name)
    except SettingError as error:
        errors["new_password"] = str(error)
    if new == form.get("password"):
        errors["new_password"] = "This is the present password; choose another one."
    if new != form.get("again_password", ""):
        errors["again_password"] = "The two new passwords differ; type the same twice."
    return errors


def _too_often(request: Request, wait: float, place: str) -> Response:
    minutes = math.ceil(wait / 60)
    told = f"Too many attempts. Wait {minutes} {'minute' if minutes == 1 else 'minutes'} before the next one."
    answer = show(request, "log_in.html.j2", status=429, errors={"": told}, next=place)
    answer.headers["retry-after"] = str(math.ceil(wait))
    return answer
