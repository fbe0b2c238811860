"""What left this party, what it has cost over time, and the log with its verification."""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.party.history import releases, runs, spent_over_time
from tacit.errors import LogTampered
from tacit.federation.log import Line
from tacit.federation.log_check import check_releases
from tacit.report.number import byte_count, plural
from tacit.web.page import show
from tacit.web.party.decide import Owner, budget_facts
from tacit.web.party.desk import PartyDesk, desk_of
from tacit.web.party.spending_chart import spending_chart

router = APIRouter()
_LINES = 200


@dataclass(frozen=True, kw_only=True)
class LogWords:
    """A line of the log, as an owner reads it."""

    number: int
    time: float
    what: str
    details: str


@router.get("/left")
async def left(request: Request, account: Owner) -> Response:
    """Every release with its size, cost and study."""
    desk = desk_of(request)
    budget = desk.file().policy.budget
    all_runs = await asyncio.to_thread(runs, desk.ledger, desk.account, budget)
    points = await asyncio.to_thread(spent_over_time, desk.ledger, desk.account, budget)
    limit = budget.epsilon_in_all
    return show(
        request,
        "party/left.html.j2",
        chart=spending_chart(points, limit if math.isfinite(limit) else None, time.time()),
        runs=[
            (run, "unbounded" if math.isinf(run.epsilon) else f"{run.epsilon:.3g}", byte_count(run.n_bytes))
            for run in reversed(all_runs)
        ],
        releases=[(one, byte_count(one.n_bytes)) for one in releases(desk.ledger, desk.account, most=_LINES)],
        most=_LINES,
        budget=budget,
        **budget_facts(desk),
    )


@router.get("/log")
async def log(request: Request, account: Owner, head: str = "") -> Response:
    """The log, checked; with `head`, whether a hash that the owner kept is in it."""
    desk = desk_of(request)
    n_lines, now = desk.log.tail()
    told, is_well = await asyncio.to_thread(_verify, desk, head.strip().lower())
    lines = [_words(line) for line in reversed(desk.log.lines(after=n_lines - _LINES))]
    return show(
        request, "party/log.html.j2", lines=lines, head=now, kept=head, told=told, is_well=is_well, n_lines=n_lines
    )  # fmt: skip


def _verify(desk: PartyDesk, head: str) -> tuple[str, bool]:
    try:
        n_lines = desk.log.verify(head or None)
        n_releases = check_releases(desk.ledger, desk.log, desk.account)
    except LogTampered as error:
        return str(error), False
    kept = " The hash that you kept is in it." if head else ""
    lines, left = plural(n_lines, "line"), plural(n_releases, "release")
    return f"{lines}, whole and in order; {left}, each with its line.{kept}", True


def _words(line: Line) -> LogWords:
    facts = dict(line.decision)
    what, moment = str(facts.pop("decision", "")), facts.pop("time", 0.0)
    details = ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in facts.items()
    )
    seconds = float(moment) if isinstance(moment, int | float) else 0.0
    return LogWords(number=line.number, time=seconds, what=what, details=details)
