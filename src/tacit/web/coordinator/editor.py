"""The study editor: a form or a text, checked while one types, with a forecast beside it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.coordinator.study_store import StaleDraft, StudyVersion
from tacit.errors import TacitError
from tacit.studies.form import MOST_FEATURES, positions
from tacit.web.account import Account
from tacit.web.coordinator.draft_check import checked, fields_of, method_choices, outlook_values
from tacit.web.coordinator.permission import desk_of, may_change, seen_version
from tacit.web.form import go_to, needs, once, read_form
from tacit.web.page import show
from tacit.web.site import site_of

router = APIRouter()
Researcher = Annotated[Account, Depends(needs("researcher"))]

_EMPTY = {"f0-kind": "numeric", "f1-kind": "numeric", "epsilon": "1", "relation": "replace-one"}
_LISTS = ("numeric", "binary", "categorical")


@router.get("/studies/new")
async def new_page(request: Request, account: Researcher) -> Response:
    """An empty form, or a file to begin with."""
    return await _page(request, account, None, dict(_EMPTY))


@router.post("/studies/new")
async def create(request: Request, account: Researcher) -> Response:
    """Keep what was typed as a new draft."""
    typed = await _typed(request)
    if (turned := _turned(typed)) is not None:
        return await _page(request, account, None, turned)
    draft = checked(typed)
    if draft.text is None or typed.get("do") == "check":
        return await _page(request, account, None, typed, draft_errors=dict(draft.errors), status=200)
    text, desk = draft.text, desk_of(request)
    place = once(request, typed, lambda: f"/studies/{desk.studies.create(account.name, text).study}/edit")
    site_of(request).audit.note(account.name, "study-created", place, request_address(request))
    return go_to(request, place, "The draft is kept. Nobody but you and approvers sees it.")


@router.get("/studies/{study}/edit")
async def edit_page(request: Request, account: Researcher, study: str, text: bool = False) -> Response:
    """A draft, as a form, or as a text."""
    version = _draft(request, account, study)
    fields = {"text": version.text} if text else fields_of(version.text)
    return await _page(request, account, version, fields)


@router.post("/studies/{study}/edit")
async def save(request: Request, account: Researcher, study: str) -> Response:
    """Save a draft, check it, or send it to review."""
    version, typed = _draft(request, account, study), await _typed(request)
    if (turned := _turned(typed)) is not None:
        return await _page(request, account, version, turned)
    draft, do = checked(typed), typed.get("do", "save")
    if draft.text is None or do == "check" or (do == "review" and not draft.is_good):
        status = 200 if do == "check" else 422
        return await _page(request, account, version, typed, draft_errors=dict(draft.errors), status=status)
    studies = desk_of(request).studies
    try:
        kept = version if draft.text == version.text else studies.save(_as_read(version, typed), draft.text)
        if do == "review":
            studies.move(kept, "in review", account.name)
            return go_to(request, f"/studies/{study}", "The study is in review. Another person reads and signs it.")
    except StaleDraft:
        return await _page(request, account, version, typed, stale=version, status=409)
    except TacitError as error:
        return await _page(request, account, version, typed, draft_errors={"": str(error)}, status=422)
    return go_to(request, f"/studies/{study}/edit{'?text=true' if 'text' in typed else ''}", "Saved.")


@router.post("/studies/{study}/version")
async def new_version(request: Request, account: Researcher, study: str) -> Response:
    """Begin the next version of a study, from the text of the latest."""
    version = seen_version(request, study)
    if not may_change(account, version):
        raise HTTPException(404)
    if version.state != "draft":
        desk_of(request).studies.new_version(study, account.name, version.text)
    told = "This is a new version. It needs approval and consent anew."
    return go_to(request, f"/studies/{study}/edit", told)


@router.post("/drafts/check")
async def check(request: Request, account: Researcher) -> Response:
    """What the panel beside the form shows, and each field's error; asked while one types."""
    typed = await _typed(request)
    draft = checked(typed)
    values = await outlook_values(desk_of(request).forecaster, draft, typed, account.name, wait=False)
    slots = ["", "text"] if "text" in typed else ["", *_fields(typed)]
    return show(request, "coordinator/draft_panel.html.j2", slots=slots, is_part=True, **values)


async def _page(
    request: Request,
    account: Account,
    version: StudyVersion | None,
    typed: dict[str, str],
    *,
    draft_errors: dict[str, str] | None = None,
    stale: StudyVersion | None = None,
    status: int = 200,
) -> Response:
    draft = checked(typed)
    is_asked = typed.get("do") == "check"
    forecaster = desk_of(request).forecaster
    values: dict[str, Any] = await outlook_values(forecaster, draft, typed, account.name, wait=is_asked)
    values |= {
        "version": version,
        "typed": typed,
        "errors": draft_errors or {},
        "rows": positions(typed) or [0],
        "kinds": _LISTS,
        "methods": method_choices(),
        "stale": stale,
        "is_part": False,
        "slots": [],
    }
    return show(request, "coordinator/editor.html.j2", status=status, **values)


def _turned(typed: dict[str, str]) -> dict[str, str] | None:
    """The form with a row more or less, or as a text, or as a form again; None if none of that was asked."""
    do = typed.get("do", "")
    rows = positions(typed)
    if do == "add" and len(rows) < MOST_FEATURES:
        return typed | {f"f{max(rows, default=-1) + 1}-kind": "numeric"}
    if do.startswith("remove-"):
        return {key: value for key, value in typed.items() if not key.startswith(f"{do.removeprefix('remove-')}-")}
    if do == "as-text":
        return {"text": checked(typed).text or "", **_beside(typed)}
    if do == "as-form":
        return {**fields_of(typed.get("text", "")), **_beside(typed)}
    return None


def _beside(typed: dict[str, str]) -> dict[str, str]:
    """What stands in the form besides the study."""
    return {key: typed[key] for key in ("revision", "nonce", "n_parties", "n_records", "auc") if key in typed}


async def _typed(request: Request) -> dict[str, str]:
    """What was typed; an uploaded file is the text."""
    typed = await read_form(request)
    if file := typed.pop("file", ""):
        typed = {"text": file, **_beside(typed), "do": "as-form"}
    return typed


def _draft(request: Request, account: Account, study: str) -> StudyVersion:
    version = seen_version(request, study)
    if not may_change(account, version):
        raise HTTPException(404)
    if version.state != "draft":
        raise HTTPException(409, f"Version {version.number} is {version.state} and stays as it is.")
    return version


def _as_read(version: StudyVersion, typed: dict[str, str]) -> StudyVersion:
    """The version as this tab read it: with the revision that its form carries."""
    from dataclasses import replace

    revision = typed.get("revision", "")
    return replace(version, revision=int(revision) if revision.isascii() and revision.isdecimal() else -1)


def _fields(typed: dict[str, str]) -> list[str]:
    from tacit.studies.form import FEATURE_KEYS

    own = (
        "name",
        "purpose",
        "target",
        "classes",
        "norm_bound",
        "epsilon",
        "delta",
        "unit",
        "person",
        "relation",
        "method",
    )
    more = ("settings", "quorum", "deadline_seconds", "colluders", "parties", "dropouts", "rest")
    looks = ("looks", "coefficient", "half_width", "auc_width", "until")
    return [*own, *more, *looks, *(f"f{k}-{key}" for k in positions(typed) for key in FEATURE_KEYS)]


def request_address(request: Request) -> str:
    """Where a request comes from, for the audit trail."""
    address: str = request.state.visit.address
    return address
