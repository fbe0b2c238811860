"""The other parties: accepted by name and by the fingerprint that each told by telephone."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import UserError
from tacit.federation.member.known_members import KnownMembers
from tacit.visible import shown
from tacit.web.form import go_to, local, read_form
from tacit.web.page import show
from tacit.web.party.decide import Owner
from tacit.web.party.desk import desk_of

router = APIRouter()


@router.get("/parties")
async def parties(request: Request, account: Owner) -> Response:
    """Whom this party knows, and whom it has accepted."""
    return _page(request)


@router.post("/parties/accept")
async def accept(request: Request, account: Owner) -> Response:
    """Accept a party by the fingerprint that the owner compared."""
    desk, form = desk_of(request), await read_form(request)
    name, back = form.get("name", ""), local(form.get("back", "/parties"), "/parties")
    if form.get("compared") != "yes":
        told = f"{shown(name[:100])} is not accepted: call it, compare the fingerprint, and tick that you did."
        return go_to(request, back, told, "bad")
    try:
        desk.accept(name, form.get("fingerprint", ""))
    except UserError as error:
        return go_to(request, back, shown(str(error))[:400], "bad")
    return go_to(request, back, f"{name} is accepted. In studies that you opt into from now on you may be added up.")


@router.post("/parties/accept-key")
async def accept_key(request: Request, account: Owner) -> Response:
    """Believe a member with keys that its old ones did not sign, by the owner's word."""
    form = await read_form(request)
    try:
        member = KnownMembers(desk_of(request).path).accept_key(form.get("name", ""), form.get("fingerprint", ""))
    except UserError as error:
        return _page(request, status=400, errors={"fingerprint": str(error)}, typed=form)
    return go_to(request, "/parties", f"{member.name} is believed with the new keys.")


def _page(request: Request, *, status: int = 200, **values: Any) -> Response:
    desk = desk_of(request)
    known = KnownMembers(desk.path)
    pinned = desk.own.pinned
    values = {
        "parties": desk.parties(),
        "own": desk.own.member,
        "coordinator": pinned.coordinator,
        "nodes": [known.successor(node) for node in pinned.center],
        "gone": sorted(known.gone()),
        "disputed": sorted(known.disputed().values(), key=lambda member: member.name),
        **values,
    }
    return show(request, "party/parties.html.j2", status=status, **values)
