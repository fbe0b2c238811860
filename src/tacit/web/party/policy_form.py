"""The party's policy as a form, each rule with its meaning."""

from __future__ import annotations

import math
import re
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.party.policy_file import write_policy
from tacit.errors import SettingError, UserError
from tacit.federation.member.approval import plain_fingerprint
from tacit.federation.policy import Policy
from tacit.methods import METHODS
from tacit.privacy.guarantee import RELATIONS
from tacit.privacy.ledger import Budget
from tacit.visible import unseen
from tacit.web.form import go_to, read_form
from tacit.web.page import show
from tacit.web.party.decide import Owner
from tacit.web.party.desk import desk_of

router = APIRouter()
_LONGEST = 20_000  # characters of a list


@router.get("/policy")
async def policy_page(request: Request, account: Owner) -> Response:
    """What the party allows."""
    return _page(request)


@router.post("/policy")
async def change_policy(request: Request, account: Owner) -> Response:
    """Write another policy, which holds from the next question on."""
    desk, form = desk_of(request), await read_form(request)
    errors: dict[str, str] = {}
    policy = read_policy(form, errors)
    if policy is not None:
        try:
            write_policy(desk.path, policy)
            return go_to(request, "/policy", "Your policy is written. It holds from the next question on.")
        except UserError as error:
            errors[""] = str(error)
    return _page(request, status=400, errors=errors, typed=form)


def read_policy(form: dict[str, str], errors: dict[str, str]) -> Policy | None:
    """The policy that a form says; None if something is wrong, which goes into `errors` by field."""
    methods = _names(form, "methods", errors)
    columns = _names(form, "columns", errors)
    not_private = _names(form, "not_private", errors) or []
    approvers = _names(form, "approvers", errors)
    try:
        for mark in approvers or ():
            plain_fingerprint(mark)
    except SettingError as error:
        errors["approvers"] = str(error)
    for field, names in (("methods", methods or []), ("not_private", not_private)):
        unknown = [name for name in names if name not in METHODS]
        if unknown:
            errors[field] = f"There is no method {unknown[0]!r}. There are: {', '.join(METHODS)}."
    numbers = {name: _whole(form, name, errors) for name in ("min_records", "min_records_exact")}
    limits = {name: _number(form, name, errors) for name in ("epsilon_per_study", "epsilon_in_all", "delta")}
    relation = form.get("relation", "")
    if relation not in RELATIONS:
        errors["relation"] = f"Choose one of {', '.join(RELATIONS)}."
    if errors:
        return None
    try:
        budget = Budget(
            epsilon_per_study=limits["epsilon_per_study"],
            epsilon_in_all=limits["epsilon_in_all"],
            delta=limits["delta"],
            relation=relation,  # type: ignore[arg-type]  # is one of RELATIONS
        )
        return Policy(
            methods=methods if form.get("any_method") != "yes" else None,
            columns=columns if form.get("any_column") != "yes" else None,
            min_records=numbers["min_records"],
            min_records_exact=numbers["min_records_exact"],
            budget=budget,
            not_private=not_private,
            approvers=approvers if form.get("any_approver") != "yes" else None,
        )
    except SettingError as error:
        field = next((name for name in (*limits, *numbers) if name.rpartition("_")[2] and name in str(error)), "")
        errors[field] = str(error)
        return None


def _names(form: dict[str, str], field: str, errors: dict[str, str]) -> list[str] | None:
    """A list, one name a line or with commas between."""
    text = form.get(field, "")
    if len(text) > _LONGEST:
        errors[field] = f"The list has {len(text):,} characters; {_LONGEST:,} is the most."
        return None
    names = [name.strip() for name in re.split(r"[,\n]", text) if name.strip()]
    if bad := next((name for name in names if unseen(name)), None):
        errors[field] = f"{bad[:40]!r} has a character that nobody sees. Write it without."
    return list(dict.fromkeys(names))


def _whole(form: dict[str, str], field: str, errors: dict[str, str]) -> int:
    text = form.get(field, "").strip()
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text) >= 1):
        errors[field] = f"{text[:20]!r} is not a whole number from 1 on."
        return 1
    return int(text)


def _number(form: dict[str, str], field: str, errors: dict[str, str]) -> float:
    text = form.get(field, "").strip().lower()
    if not text and field != "delta":
        return math.inf  # no limit
    try:
        value = float(text) if len(text) < 40 and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not value > 0 or (field == "delta" and value >= 1):
        hint = (
            "between 0 and 1, such as 1e-6" if field == "delta" else "above 0, such as 10; leave it empty for no limit"
        )
        errors[field] = f"{text[:20]!r} is not a number {hint}."
        return 1.0
    return value


def _page(request: Request, *, status: int = 200, **values: Any) -> Response:
    file = desk_of(request).file()
    policy, budget = file.policy, file.policy.budget
    shown = {
        "methods": "\n".join(policy.methods or ()),
        "columns": "\n".join(policy.columns or ()),
        "min_records": policy.min_records,
        "min_records_exact": policy.min_records_exact,
        "epsilon_per_study": _plain(budget.epsilon_per_study),
        "epsilon_in_all": _plain(budget.epsilon_in_all),
        "delta": f"{budget.delta:g}",
        "relation": budget.relation,
        "not_private": "\n".join(policy.not_private),
        "approvers": "\n".join(policy.approvers or ()),
    }
    values = {
        "now": shown,
        "any_method": policy.methods is None,
        "any_column": policy.columns is None,
        "any_approver": policy.approvers is None,
        "promised_delta": f"{budget.promised_delta:g}",
        "method_names": list(METHODS),
        **values,
    }
    return show(request, "party/policy.html.j2", status=status, **values)


def _plain(epsilon: float) -> str:
    return "" if math.isinf(epsilon) else f"{epsilon:g}"
