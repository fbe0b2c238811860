"""Notices: what the owner wants to be told of, and what there was to tell."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.party.notice import Wishes
from tacit.errors import SettingError
from tacit.web.form import go_to, read_form
from tacit.web.page import show
from tacit.web.party.decide import Owner
from tacit.web.party.desk import desk_of

router = APIRouter()
_TICKS = ("studies", "runs", "refusals", "members")


@router.get("/notices")
async def notices(request: Request, account: Owner) -> Response:
    """What there was to tell, and the wishes."""
    return _page(request)


@router.post("/notices/read")
async def read(request: Request, account: Owner) -> Response:
    """The owner has seen them all."""
    desk_of(request).notices.mark_read()
    return go_to(request, "/notices")


@router.post("/notices")
async def wish(request: Request, account: Owner) -> Response:
    """Keep what the owner wants to be told of."""
    desk, form = desk_of(request), await read_form(request)
    text = form.get("budget_left", "").strip() or "0"
    try:
        budget_left = float(text) if len(text) < 40 and "_" not in text else float("nan")
        desk.notices.wish(Wishes(**{name: form.get(name) == "yes" for name in _TICKS}, budget_left=budget_left))
    except (ValueError, SettingError):
        wrong = {"budget_left": f"{text[:20]!r} is not a number from 0 on. Write 0 to be told never."}
        return _page(request, status=400, errors=wrong, typed=form)
    return go_to(request, "/notices", "Your wishes are kept.")


def _page(request: Request, *, status: int = 200, **values: Any) -> Response:
    notices = desk_of(request).notices
    values = {"notices": notices.all()[:100], "wishes": notices.wishes, "n_unread": notices.n_unread, **values}
    return show(request, "party/notices.html.j2", status=status, **values)
