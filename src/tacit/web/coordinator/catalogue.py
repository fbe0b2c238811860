"""The catalogue: which studies there are, what each wants to know, and what it promises."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tacit.daemon.coordinator.study_store import STATES, State, StudyVersion
from tacit.errors import TacitError
from tacit.studies.study import Study
from tacit.web.account import Account
from tacit.web.coordinator.permission import check_member, desk_of, may_see, seen_version
from tacit.web.coordinator.study_view import study_values
from tacit.web.coordinator.words import StudyWords, in_words
from tacit.web.page import show

router = APIRouter()
PER_PAGE = 48
Reader = Annotated[Account | None, Depends(check_member)]


@router.get("/")
async def catalogue(
    request: Request,
    account: Reader,
    search: Annotated[str, Query(max_length=200)] = "",
    state: str = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """The studies that the visitor may see, newest first, so many on a page."""
    desk = desk_of(request)
    chosen: tuple[State, ...] = tuple(each for each in STATES if state in ("", each))
    found = desk.seen_studies(account, chosen, search)
    everything = desk.seen_studies(account) if search or state else found
    counts = {each: sum(version.state == each for version in everything) for each in STATES}
    entries = [(version, words_of(version)) for version in found[PER_PAGE * (page - 1) : PER_PAGE * page]]
    values: dict[str, Any] = {
        "entries": entries,
        "counts": counts,
        "total": len(everything),
        "search": search,
        "state": state,
        "page": page,
        "n_pages": max(1, -(-len(found) // PER_PAGE)),
    }
    return show(request, "coordinator/catalogue.html.j2", **values)


def words_of(version: StudyVersion) -> StudyWords | None:
    """A study in plain words; None of a draft that is not a study yet."""
    return _words(version.text)


@lru_cache(maxsize=1000)
def _words(text: str) -> StudyWords | None:
    try:
        return in_words(Study.parse(text))
    except TacitError:
        return None


@router.get("/studies/{study}")
async def study_page(request: Request, account: Reader, study: str, version: int | None = None) -> Response:
    """One study: purpose, data wanted, promise, who asks, and what it builds on."""
    desk, found = desk_of(request), seen_version(request, study, version)
    others = [each for each in desk.studies.versions(study) if may_see(account, each, is_public=desk.is_public)]
    base = desk.studies.find(found.builds_on) if found.builds_on else None
    values: dict[str, Any] = {
        "study": found,
        "words": words_of(found),
        "versions": others,
        "base": base if base is not None and may_see(account, base, is_public=desk.is_public) else None,
        "built_on": [each for each in desk.studies.built_on(study) if may_see(account, each, is_public=desk.is_public)],
        "deeds": [deed for deed in desk.studies.deeds(study) if deed.number in {each.number for each in others}],
    }
    is_latest = found.number == others[0].number
    return show(
        request, "coordinator/study.html.j2", **values, **study_values(request, account, found, is_latest=is_latest)
    )


@router.get("/studies/{study}/file")
async def study_file(request: Request, account: Reader, study: str, version: int | None = None) -> Response:
    """The study file."""
    found = seen_version(request, study, version)
    headers = {"content-disposition": f'attachment; filename="study-{found.study}-{found.number}.toml"'}
    return PlainTextResponse(found.text, headers=headers)
