"""The data check: which of the owner's own records do not fit a study, and in which line."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tacit.errors import DataError, UserError
from tacit.web.page import show
from tacit.web.party.decide import Owner
from tacit.web.party.desk import desk_of

router = APIRouter()


@router.get("/check")
async def check(request: Request, account: Owner, study: str = "") -> Response:
    """Look through the records for a study; what is found is shown here and kept nowhere."""
    desk = desk_of(request)
    offered = desk.consents.all()
    choices = [(each.digest, each.read().name) for each in offered]
    asked = desk.study(study) if study else None
    found, wrong = None, ""
    if asked is not None:
        try:
            data = desk.file().data
            found = await asyncio.to_thread(data.inspect, asked.read().schema)
        except (DataError, UserError) as error:
            wrong = str(error)
    return show(
        request,
        "party/check.html.j2",
        choices=choices,
        study=asked,
        name=asked.read().name if asked else "",
        found=found,
        wrong=wrong,
    )
