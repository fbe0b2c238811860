"""Pages about people: accounts and the audit trail, for administrators; everybody's own tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import SettingError
from tacit.web.account import ONE_TIME_DAYS, ROLES, Account
from tacit.web.form import go_to, needs, once, read_form, visit_of
from tacit.web.page import show
from tacit.web.site import site_of
from tacit.web.token import MOST_DAYS

router = APIRouter()
Administrator = Annotated[Account, Depends(needs("administrator"))]
Owner = Annotated[Account, Depends(needs("viewer"))]

_LINES = 200


@router.get("/accounts")
async def accounts_page(request: Request, who: Administrator) -> Response:
    """Every account, and the form for a new one."""
    return _accounts(request)


@router.post("/accounts")
async def add_account(request: Request, who: Administrator) -> Response:
    """Make an account and show its first password, once."""
    site, form = site_of(request), await read_form(request)
    name, role, email = form.get("name", "").strip(), form.get("role", ""), form.get("email", "").strip()
    made: list[str] = []

    def add() -> str:
        made.append(site.accounts.add(name, role, email=email))  # type: ignore[arg-type]  # `add` checks the role
        site.audit.note(who.name, f"made an account with the role {role}", name, visit_of(request).address)
        return "/accounts"

    try:
        once(request, form, add)
    except SettingError as error:
        field = "email" if "e-mail" in str(error) else "role" if "role" in str(error) else "name"
        return _accounts(request, status=400, errors={field: str(error)}, typed=form)
    if not made:  # the same form again
        return go_to(
            request, "/accounts", f"The account {name} was made already. Its password was shown then.", "plain"
        )
    return show(request, "coordinator/secret.html.j2", **_first_password(name, made[0]))


@router.post("/accounts/{name}/{deed}")
async def change_account(request: Request, who: Administrator, name: str, deed: str) -> Response:
    """Change an account: its role or e-mail address, whether it may log in, or its password."""
    site, form = site_of(request), await read_form(request)
    if site.accounts.find(name) is None or deed not in ("role", "email", "disable", "enable", "reset"):
        raise HTTPException(404)
    password = ""
    try:
        match deed:
            case "role":
                site.accounts.set_role(name, form.get("role", ""))  # type: ignore[arg-type]
            case "email":
                site.accounts.set_email(name, form.get("email", "").strip())
            case "disable" | "enable":
                site.accounts.disable(name, disabled=deed == "disable")
            case "reset":
                password = site.accounts.reset(name)
    except SettingError as error:
        return go_to(request, "/accounts", str(error), "bad")
    if deed in ("disable", "reset"):
        site.sessions.end_all(name)
    told = _TOLD[deed].format(form.get(deed, ""))
    site.audit.note(who.name, told, name, visit_of(request).address)
    if password:
        return show(request, "coordinator/secret.html.j2", **_first_password(name, password))
    return go_to(request, "/accounts", f"{name}: {told}.")


_TOLD = {
    "role": "changed the role to {}",
    "email": "changed the e-mail address to {}",
    "disable": "disabled the account",
    "enable": "enabled the account",
    "reset": "reset the password",
}


@router.get("/audit")
async def audit_page(
    request: Request, who: Administrator, account: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Who did what, when."""
    lines = site_of(request).audit.lines(most=_LINES, who=account)
    return show(request, "coordinator/audit.html.j2", lines=lines, most=_LINES, only=account)


@router.get("/tokens")
async def tokens_page(request: Request, who: Owner) -> Response:
    """One's own tokens, and the form for a new one."""
    return _tokens(request, who)


@router.post("/tokens")
async def make_token(request: Request, who: Owner) -> Response:
    """Make a token and show it, once."""
    site, form = site_of(request), await read_form(request)
    made: list[str] = []

    def make() -> str:
        try:
            days = float(form.get("days", "90"))
        except ValueError:
            raise SettingError(f"a token is good for a number of days up to {MOST_DAYS:g}") from None
        made.append(site.tokens.make(who, role=form.get("role", ""), label=form.get("label", ""), days=days))
        site.audit.note(
            who.name, f"made a token with the role {form['role']}", form["label"], visit_of(request).address
        )
        return "/tokens"

    try:
        once(request, form, make)
    except SettingError as error:
        field = "days" if "days" in str(error) else "role" if "role" in str(error) else "label"
        return _tokens(request, who, status=400, errors={field: str(error)}, typed=form)
    if not made:
        return go_to(request, "/tokens", "This token was made already. It was shown then.", "plain")
    values: dict[str, Any] = {
        "title": "A token for a script",
        "secret": made[0],
        "told": "Whoever has it may do what its role may do. Send it in the header Authorization: Bearer TOKEN.",
        "back": "/tokens",
    }
    return show(request, "coordinator/secret.html.j2", **values)


@router.post("/tokens/{id_}/revoke")
async def revoke_token(request: Request, who: Owner, id_: str) -> Response:
    """Make a token void."""
    site = site_of(request)
    if not site.tokens.revoke(who.name, id_):
        raise HTTPException(404)
    site.audit.note(who.name, "revoked a token", id_, visit_of(request).address)
    return go_to(request, "/tokens", "The token is void.")


def _accounts(request: Request, *, status: int = 200, **more: Any) -> Response:
    everybody = site_of(request).accounts.all()
    return show(request, "coordinator/accounts.html.j2", status=status, everybody=everybody, roles=ROLES, **more)


def _tokens(request: Request, who: Account, *, status: int = 200, **more: Any) -> Response:
    values: dict[str, Any] = {
        "tokens": site_of(request).tokens.of(who.name),
        "choices": [(role, role) for role in ROLES if who.may(role)],
        "origin": str(request.base_url).rstrip("/"),
    }
    return show(request, "coordinator/tokens.html.j2", status=status, **values, **more)


def _first_password(name: str, password: str) -> dict[str, Any]:
    told = (
        f"Hand it to {name} in confidence. It is good for one log-in within {ONE_TIME_DAYS} days, where it must be "
        f"changed."
    )
    return {"title": f"A password for {name}", "secret": password, "told": told, "back": "/accounts"}
