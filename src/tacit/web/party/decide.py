"""Studies that are offered, each as a consent form; opting in and leaving."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.party.consent import OfferedStudy
from tacit.daemon.party.consent_form import consent_form
from tacit.daemon.party.decision import ConsentTerms, end_of_day
from tacit.daemon.party.owner_text import runs_that_fit, study_lines
from tacit.errors import SettingError, UserError
from tacit.web.account import Account
from tacit.web.form import go_to, needs, once, read_form
from tacit.web.page import show
from tacit.web.party.desk import PartyDesk, desk_of, mark_of

router = APIRouter()
Owner = Annotated[Account, Depends(needs("administrator"))]
STATES = {"": "undecided", "in": "taking part", "out": "left"}


@router.get("/")
async def overview(request: Request, account: Owner) -> Response:
    """Every study that was offered, those without a decision first, and what is left of the budget."""
    desk = desk_of(request)
    order = {"": 0, "in": 1, "out": 2}
    studies = sorted(desk.consents.all(), key=lambda offered: (order.get(offered.state, 3), -offered.seen))
    entries = [(offered, offered.read(), STATES[offered.state]) for offered in studies]
    return show(request, "party/studies.html.j2", entries=entries, **budget_facts(desk))


def budget_facts(desk: PartyDesk) -> dict[str, Any]:
    """What was spent and what is left, for the head of a page."""
    budget = desk.file().policy.budget
    spent = desk.ledger.epsilon(desk.account, delta=budget.delta, relation=budget.relation)
    return {"spent": spent, "limit": budget.epsilon_in_all, "n_left": desk.ledger.n_releases(desk.account)}


@router.get("/studies/{digest}")
async def study_page(request: Request, account: Owner, digest: str) -> Response:
    """The consent form of one study."""
    return _form(request, desk_of(request).study(digest))


@router.post("/studies/{digest}/opt-in")
async def opt_in(request: Request, account: Owner, digest: str) -> Response:
    """Take part, as far as the form says."""
    desk, form = desk_of(request), await read_form(request)
    offered = desk.study(digest)
    errors: dict[str, str] = {}
    terms = _terms(form, errors)
    offered = _offering(offered, form, errors)
    if form.get("read") != "yes":
        errors["read"] = "Say that you have read what is asked of you."
    if errors or terms is None:
        return _form(request, offered, status=400, errors=errors, typed=form)
    agreed = terms

    def act() -> str:
        desk.opt_in(offered, agreed, form.get("seen", ""))
        return f"/studies/{digest}"

    try:
        place = once(request, form, act)
    except UserError as error:
        return _form(request, offered, status=400, errors={"": str(error)}, typed=form)
    return go_to(request, place, f"You take part in {offered.read().name}.")


@router.post("/studies/{digest}/leave")
async def leave(request: Request, account: Owner, digest: str) -> Response:
    """Leave a study."""
    desk = desk_of(request)
    offered = desk.study(digest)
    desk.leave(offered)
    told = f"You have left {offered.read().name}. From the next question on nothing leaves you."
    return go_to(request, f"/studies/{digest}", told)


def _offering(offered: OfferedStudy, form: dict[str, str], errors: dict[str, str]) -> OfferedStudy:
    """The study with the epsilon that the owner offers, if it is less than is asked; empty offers what is asked."""
    text = form.get("epsilon", "").strip()
    try:
        value = float(text) if len(text) < 40 and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if text and math.isnan(value):
        errors["epsilon"] = f"{text[:20]!r} is not a number above 0. Leave it empty to offer what is asked."
        return offered
    try:
        return offered.offering(value if text else None)
    except SettingError as error:
        errors["epsilon"] = str(error).replace("--epsilon", "Epsilon")
        return offered


def _terms(form: dict[str, str], errors: dict[str, str]) -> ConsentTerms | None:
    """How far the consent goes, as it was typed; what is wrong with it goes into `errors`."""
    runs, until = form.get("runs", "").strip(), None
    if not (runs.isascii() and runs.isdecimal() and len(runs) <= 6):
        errors["runs"] = f"How many runs: {runs[:20]!r} is not a whole number. Write one such as 2."
    try:
        until = end_of_day(form.get("until", ""))
    except (SettingError, OverflowError) as error:
        errors["until"] = str(error)
    if errors:
        return None
    try:
        return ConsentTerms(runs=int(runs), until=until)
    except SettingError as error:
        errors["until" if "last day" in str(error) else "runs"] = str(error)
        return None


def _form(request: Request, offered: OfferedStudy, *, status: int = 200, **values: Any) -> Response:
    desk = desk_of(request)
    policy = desk.file().policy
    parties = desk.parties(offered)
    values = {
        "offered": offered,
        "study": offered.read(),
        "state": STATES[offered.state],
        "form": consent_form(offered, desk.own, policy, desk.ledger),
        "technical": "\n".join(study_lines(offered, desk.own, policy)),
        "parties": parties,
        "accepted": [party.member.name for party in parties if party.is_accepted],
        "seen": mark_of(parties),
        "runs": offered.runs or runs_that_fit(offered, policy),
        "asked": _asked(offered),
        "n_begun": desk.ledger.n_runs(desk.account, offered.digest),
        **values,
    }
    return show(request, "party/consent.html.j2", status=status, **values)


def _asked(offered: OfferedStudy) -> float | None:
    """The epsilon that the study asks, if a party may offer less; None if it may not."""
    study = offered.read()
    may_offer = study.privacy is not None and study.stop is None and offered.method().takes_offers
    return study.privacy.epsilon if may_offer and study.privacy is not None else None
