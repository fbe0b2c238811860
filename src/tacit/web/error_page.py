"""Error pages in the site's own look, and the same errors as JSON for scripts.

Each says what happened and what to do. What was typed into a form that came too late is shown again and can be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from tacit.errors import SettingError, TacitError, UserError
from tacit.visible import shown
from tacit.web.form import API, LOG_IN, PASSWORD, MustChoosePassword, NeedsLogIn, NotOwnForm, read_form
from tacit.web.page import render

if TYPE_CHECKING:
    from tacit.web.site import Site

_SECRET_FIELDS = ("csrf", "nonce")
_TOLD = {
    400: ("This request cannot be understood", "Go back, look at what was asked for, and try again."),
    401: ("Log in first", "This page is for those who have logged in."),
    403: ("This is not open to you", "Your account may not do this. An administrator can give you another role."),
    404: ("There is no such page", "It may have moved, or it may be for others. The address may also be mistyped."),
    405: ("This cannot be done here", "The page takes other requests. Go back and use its buttons."),
    413: ("That is too much at once", "The site takes one megabyte. Send a shorter text or a smaller file."),
    429: ("Too many attempts", "Wait a while before the next one. This keeps others from guessing a password."),
    503: ("Too many at once", "The site is busy. Try again in a while."),
    500: ("Something went wrong here", "It is not your fault. Try again, and tell the administrator if it stays so."),
}


class TooLong(HTTPException):
    """A body of more bytes than the site takes."""

    def __init__(self) -> None:
        super().__init__(413)


def add_error_pages(app: FastAPI) -> None:
    """Let every error of an application end on a page, or as JSON under /api/."""

    async def on_http(request: Request, error: HTTPException) -> Response:
        is_ours = (
            error.detail != HTTPStatus(error.status_code).phrase if error.status_code in set(HTTPStatus) else False
        )
        return failure(request, error.status_code, error.detail if is_ours else "", error.headers)

    async def on_not_own(request: Request, error: NotOwnForm) -> Response:
        return await _not_own_form(request, error)

    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        problems = "; ".join(f"{'.'.join(str(part) for part in e['loc'][1:])}: {e['msg']}" for e in error.errors()[:5])
        return failure(request, 422 if _is_api(request) else 400, shown(problems)[:500])

    async def on_user_error(request: Request, error: UserError) -> Response:
        return failure(request, 400, shown(str(error)))

    async def on_log_in(request: Request, error: NeedsLogIn) -> Response:
        return _lead_to(request, f"{LOG_IN}?next={quote(_asked(request))}")

    async def on_password(request: Request, error: MustChoosePassword) -> Response:
        return _lead_to(request, PASSWORD)

    async def on_ours(request: Request, error: Exception) -> Response:
        return failure(request, 500)

    app.exception_handler(Exception)(on_ours)
    app.exception_handler(HTTPException)(on_http)
    app.exception_handler(NotOwnForm)(on_not_own)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(UserError)(on_user_error)
    app.exception_handler(SettingError)(on_user_error)
    app.exception_handler(NeedsLogIn)(on_log_in)
    app.exception_handler(MustChoosePassword)(on_password)


def failure(request: Request, status: int, why: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """The error page, or the error as JSON."""
    made = failure_page(request, request.app.state.site, status, why)
    for name, value in (headers or {}).items():
        made.headers[name] = value
    return made


def failure_page(request: Request, site: Site, status: int, why: str = "") -> Response:
    """As `failure`, for a request that reached no application."""
    title, advice = _TOLD.get(status, (HTTPStatus(status).phrase, "Go back and try again."))
    if _is_api(request):
        error = {"status": status, "title": title, "message": why or advice}
        return JSONResponse({"error": error}, status_code=status)
    page = render(request, site, "error.html.j2", status=status, title=title, why=why, advice=advice)
    return HTMLResponse(page, status_code=status)


async def _not_own_form(request: Request, error: NotOwnForm) -> Response:
    """Say why a form was not taken; show what was typed again, unless another site sent it."""
    site: Site = request.app.state.site
    kept: dict[str, str] = {}
    if error.from_here and "form" in request.headers.get("content-type", ""):
        try:
            form = await read_form(request)
        except (TacitError, HTTPException):
            form = {}
        await request.close()
        kept = {name: text for name, text in form.items() if name not in _SECRET_FIELDS and "password" not in name}
    values = {"kept": kept, "from_here": error.from_here, "action": request.url.path, "log_in": LOG_IN}
    return HTMLResponse(render(request, site, "not_own_form.html.j2", status=403, **values), status_code=403)


def _lead_to(request: Request, place: str) -> Response:
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"HX-Redirect": place})
    return RedirectResponse(place, status_code=303)


def _asked(request: Request) -> str:
    """Where to go on after logging in: the page itself, or the one that a form stood on."""
    if request.method != "GET":
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _is_api(request: Request) -> bool:
    return request.url.path.startswith(API)
