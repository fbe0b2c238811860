"""The interface for scripts: /api/v1, described by /api/v1/openapi.json.

A script shows a token in the header `Authorization: Bearer TOKEN`; no cookie is looked at. It may see and do what the
token's account may, with the token's role. Every error is `{"error": {"status": ..., "title": ..., "message": ...}}`.
New tokens are made on the site alone: whoever finds a token cannot make another one that outlives it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tacit.daemon.coordinator.study_store import LONGEST_TEXT, STATES, State, StudyVersion
from tacit.web.account import Account, Role
from tacit.web.coordinator.permission import desk_of
from tacit.web.form import visit_of
from tacit.web.site import site_of

router = APIRouter(prefix="/api/v1")
_bearer = HTTPBearer(auto_error=False, description="A token of the page Tokens.")
_MOST = 200
_MEDIA = {"json": "application/json", "csv": "text/csv", "toml": "text/plain", "txt": "text/plain"}


class ErrorFacts(BaseModel):
    """What went wrong."""

    status: int
    title: str
    message: str


class ErrorBody(BaseModel):
    """The one form of every error."""

    error: ErrorFacts


class StudyEntry(BaseModel):
    """A version of a study, without its text."""

    study: str = Field(description="The study's id; the same for all of its versions.")
    version: int
    state: Literal["draft", "in review", "approved", "published", "running", "finished", "stopped"]
    name: str
    purpose: str
    author: str
    digest: str = Field(description="What parties consent to; empty while a draft is not a whole study.")
    builds_on: str | None
    created: float = Field(description="Seconds since 1970.")
    changed: float


class StudyPage(BaseModel):
    """Some of the studies, and how many there are."""

    total: int
    studies: list[StudyEntry]


class StudyDetail(StudyEntry):
    """A version of a study with its text and its results."""

    text: str
    results: list[str] = Field(description="The names of the files that a run left.")


class DraftWish(BaseModel):
    """A new draft."""

    model_config = ConfigDict(extra="forbid")
    text: str = Field(max_length=LONGEST_TEXT, description="The study file (TOML). A draft need not be whole.")
    builds_on: str | None = Field(default=None, max_length=64, description="The id of a study to build on.")


class TokenEntry(BaseModel):
    """A token, without its secret."""

    id: str
    label: str
    role: Role
    created: float
    expires: float


class AccountEntry(BaseModel):
    """The account that a token speaks for."""

    name: str
    role: Role


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody} for status in (400, 401, 413, 422, *statuses)}


def speaker(
    request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Account | None:
    """The account that a script speaks for; None without a token, where the site is public."""
    if shown is None:
        if request.headers.get("authorization") is not None or not desk_of(request).is_public:
            raise _no_token()
        return None
    account = site_of(request).tokens.account_of(shown.credentials)
    if account is None:
        raise _no_token()
    return account


def writer(account: Annotated[Account | None, Depends(speaker)]) -> Account:
    """A researcher."""
    if account is None:
        raise _no_token()
    if not account.may("researcher"):
        raise HTTPException(403, f"This is for the role researcher, and this token's is {account.role}.")
    return account


def named(account: Annotated[Account | None, Depends(speaker)]) -> Account:
    """Anybody with a token."""
    if account is None:
        raise _no_token()
    return account


Speaker = Annotated[Account | None, Depends(speaker)]
StudyId = Annotated[str, Path(max_length=64, description="A study's id.")]
VersionNumber = Annotated[int | None, Query(ge=1, le=1_000_000, description="A version; the latest by default.")]


@router.get("/studies", responses=_errors())
async def list_studies(
    request: Request,
    account: Speaker,
    state: Annotated[State | None, Query(description="Only studies in this state.")] = None,
    search: Annotated[str, Query(max_length=200, description="Words that all occur.")] = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
) -> StudyPage:
    """The studies that you may see, the latest change first."""
    found = desk_of(request).seen_studies(account, STATES if state is None else (state,), search)
    return StudyPage(total=len(found), studies=[StudyEntry(**_entry(each)) for each in found[offset : offset + limit]])


@router.post("/studies", status_code=201, responses=_errors(403))
async def create_draft(request: Request, account: Annotated[Account, Depends(writer)], wish: DraftWish) -> StudyDetail:
    """Write a new draft."""
    desk, site = desk_of(request), site_of(request)
    if wish.builds_on is not None and desk.find_seen(account, wish.builds_on) is None:
        raise HTTPException(400, "There is no study of that id to build on.")
    made = desk.studies.create(account.name, wish.text, builds_on=wish.builds_on)
    site.audit.note(account.name, "wrote a draft by a script", made.study, visit_of(request).address)
    return _detail(request, made)


@router.get("/studies/{study}", responses=_errors(404))
async def show_study(request: Request, account: Speaker, study: StudyId, version: VersionNumber = None) -> StudyDetail:
    """One version of a study."""
    return _detail(request, _seen(request, account, study, version))


@router.get(
    "/studies/{study}/text", response_class=Response, responses={**_errors(404), 200: {"content": {"text/plain": {}}}}
)
async def study_text(request: Request, account: Speaker, study: StudyId, version: VersionNumber = None) -> Response:
    """The study file, as it was written."""
    return PlainTextResponse(_seen(request, account, study, version).text)


@router.get(
    "/studies/{study}/results/{name}",
    response_class=Response,
    responses={**_errors(404), 200: {"content": {"application/octet-stream": {}, "application/json": {}}}},
)
async def study_result(
    request: Request,
    account: Speaker,
    study: StudyId,
    name: Annotated[str, Path(max_length=100, description="One of the study's `results`.")],
    version: VersionNumber = None,
) -> Response:
    """A file that a run left, such as model.json."""
    return result_file(request, _seen(request, account, study, version), name)


def result_file(request: Request, version: StudyVersion, name: str) -> Response:
    """A version's file of results as a download; 404 if there is none of this name."""
    content = desk_of(request).studies.attachment(version, name) if name in results_of(request, version) else None
    if content is None:
        raise HTTPException(404)
    kind = _MEDIA.get(name.rpartition(".")[2], "application/octet-stream")  # never one that a browser would run
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def results_of(request: Request, version: StudyVersion) -> list[str]:
    """The names of a version's files: of what is attached, whatever is named like a file."""
    return [kind for kind in desk_of(request).studies.attachments(version) if "." in kind]


@router.get("/tokens", responses=_errors())
async def list_tokens(request: Request, account: Annotated[Account, Depends(named)]) -> list[TokenEntry]:
    """The tokens of your account."""
    tokens = site_of(request).tokens.of(account.name)
    return [
        TokenEntry(id=each.id, label=each.label, role=each.role, created=each.created, expires=each.expires)
        for each in tokens
    ]


@router.delete("/tokens/{token}", status_code=204, responses=_errors(404))
async def revoke_token(
    request: Request, account: Annotated[Account, Depends(named)], token: Annotated[str, Path(max_length=64)]
) -> Response:
    """Make a token of your account void."""
    site = site_of(request)
    if not site.tokens.revoke(account.name, token):
        raise HTTPException(404)
    site.audit.note(account.name, "revoked a token by a script", token, visit_of(request).address)
    return Response(status_code=204)


@router.get("/account", responses=_errors())
async def show_account(account: Annotated[Account, Depends(named)]) -> AccountEntry:
    """The account that your token speaks for, with the role that it has by this token."""
    return AccountEntry(name=account.name, role=account.role)


@router.get("/openapi.json", include_in_schema=False)
async def openapi() -> JSONResponse:
    """What scripts can ask, as OpenAPI."""
    return JSONResponse(description())


def description() -> dict[str, Any]:
    """The OpenAPI document."""
    return get_openapi(title="Tacit coordinator", version="1", routes=router.routes, description=__doc__)


def _seen(request: Request, account: Account | None, study: str, version: int | None) -> StudyVersion:
    found = desk_of(request).find_seen(account, study, version)
    if found is None:
        raise HTTPException(404, "There is no such study, or it is not for you to see.")
    return found


def _entry(version: StudyVersion) -> dict[str, Any]:
    names = ("study", "state", "name", "purpose", "author", "digest", "builds_on", "created", "changed")
    return {"version": version.number, **{name: getattr(version, name) for name in names}}


def _detail(request: Request, version: StudyVersion) -> StudyDetail:
    return StudyDetail(**_entry(version), text=version.text, results=results_of(request, version))


def _no_token() -> HTTPException:
    told = "Show a token that is good: Authorization: Bearer TOKEN. Tokens are made on the site, under Tokens."
    return HTTPException(401, told, headers={"WWW-Authenticate": "Bearer"})
