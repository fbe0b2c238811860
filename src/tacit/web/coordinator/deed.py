"""What is done to a study on its page: approve, send back, publish, start, pause, stop; and watch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.coordinator.study_store import State, StudyStore, StudyVersion
from tacit.errors import SettingError, TacitError
from tacit.federation.member.approval import Approval
from tacit.web.account import Account
from tacit.web.coordinator.operations import approvals_of, keep_approval, topic
from tacit.web.coordinator.permission import check_member, desk_of, may_approve, may_change, seen_version
from tacit.web.form import go_to, needs, read_form
from tacit.web.site import site_of

router = APIRouter()
Researcher = Annotated[Account, Depends(needs("researcher"))]
Approver = Annotated[Account, Depends(needs("approver"))]
Reader = Annotated[Account | None, Depends(check_member)]

_LONGEST_REASON = 500  # characters


@router.post("/studies/{study}/approve")
async def approve(request: Request, account: Approver, study: str) -> Response:
    """Take an approver's signature, if it is of exactly this version and by exactly this person."""
    version, typed = seen_version(request, study), await read_form(request)
    studies = desk_of(request).studies
    try:
        approval = Approval.parse((typed.get("file") or typed.get("signature", "")).strip())
        check_signature(studies, version, account, approval)
        keep_approval(studies, version, approval)
        studies.move(version, "approved", account.name, f"signed, fingerprint {approval.fingerprint}")
    except TacitError as error:
        return go_to(request, f"/studies/{study}#approval", str(error), "bad")
    _note(request, account, "study-approved", version)
    return go_to(request, f"/studies/{study}", "Approved. Parties verify your signature themselves.")


def check_signature(studies: StudyStore, version: StudyVersion, account: Account, approval: Approval) -> None:
    """Refuse a signature of another study, version or author, or by another person than who brings it."""
    if not may_approve(account, version):
        raise SettingError(f"{account.name} wrote this version; another person must approve it")
    if version.state != "in review":
        raise SettingError(f"version {version.number} is {version.state}; only what is in review is approved")
    wanted = {
        "study": (approval.study, version.digest),
        "version": (approval.version, version.number),
        "author": (approval.author, version.author),
        "approver": (approval.approver, account.name),
        "replaces": (approval.replaces, replaced_digest(studies, version)),
    }
    for what, (found, due) in wanted.items():
        if found != due:
            shown = f"{found!s:.80}" or "nothing"
            raise SettingError(f"the signature is for {what} {shown}, and this is {due or 'nothing'}; sign it again")


def replaced_digest(studies: StudyStore, version: StudyVersion) -> str:
    """The digest of the version before, if parties were shown one; else empty."""
    for other in studies.versions(version.study):
        was_shown = any(
            deed.number == other.number and deed.state == "published" for deed in studies.deeds(other.study)
        )
        if other.number < version.number and was_shown and other.digest != version.digest:
            return other.digest
    return ""


@router.post("/studies/{study}/send-back")
async def send_back(request: Request, account: Researcher, study: str) -> Response:
    """Make a draft again of what is in review or approved: by an approver with a reason, or by its author."""
    version, typed = seen_version(request, study), await read_form(request)
    if not (may_approve(account, version) or may_change(account, version)):
        raise HTTPException(404)
    why = " ".join(typed.get("why", "").split())[:_LONGEST_REASON]
    return await _moved(request, account, version, "draft", why=why, told="It is a draft again.")


@router.post("/studies/{study}/publish")
async def publish(request: Request, account: Researcher, study: str) -> Response:
    """Show an approved study to all parties."""
    version = _own(request, account, study)
    if not approvals_of(desk_of(request).studies, version):
        return go_to(request, f"/studies/{study}", "Nobody has signed this version; let it be approved first.", "bad")
    operations = desk_of(request).operations
    if operations is not None:
        try:
            await operations.announce(version)
        except TacitError as error:
            return go_to(request, f"/studies/{study}", f"It could not be announced: {error}", "bad")
    return await _moved(request, account, version, "published", told="Published. Every party can read it and opt in.")


@router.post("/studies/{study}/start")
async def start(request: Request, account: Researcher, study: str) -> Response:
    """Begin a run, or resume the one that did not end."""
    version = _own(request, account, study)
    operations = desk_of(request).operations
    if operations is None:
        return go_to(request, f"/studies/{study}", "This site is not connected to a federation.", "bad")
    answer = await _moved(request, account, version, "running", told="The run has begun. You may leave this page.")
    now = desk_of(request).studies.get(study, version.number)
    if now.state == "running":
        try:
            operations.start(now)
        except TacitError as error:
            return await _moved(request, account, now, "stopped", why=str(error), told=str(error))
        operations.show(now.digest)
    return answer


@router.post("/studies/{study}/pause")
async def pause(request: Request, account: Researcher, study: str) -> Response:
    """Stop the run for now; starting goes on where it stopped."""
    told = "Paused. Start goes on where it stopped; what was answered is not asked anew."
    return await _halt(request, account, study, "published", told)


@router.post("/studies/{study}/stop")
async def stop(request: Request, account: Researcher, study: str) -> Response:
    """Stop the study; what was spent stays spent."""
    return await _halt(request, account, study, "stopped", "Stopped. What was spent stays spent.")


@router.get("/studies/{study}/events")
async def events(request: Request, account: Reader, study: str, version: int | None = None) -> Response:
    """What happens in a study, as it happens."""
    found, site, desk = seen_version(request, study, version), site_of(request), desk_of(request)

    def may_go_on() -> bool:
        now = None if account is None else site.accounts.find(account.name)
        is_out = account is not None and (now is None or now.disabled)
        return not is_out and desk.find_seen(now, study, found.number) is not None

    return site.live.watch([topic(found)], may_go_on)


async def _halt(request: Request, account: Account, study: str, state: State, told: str) -> Response:
    version = _own(request, account, study)
    operations = desk_of(request).operations
    answer = await _moved(request, account, version, state, told=told)
    if operations is not None:
        await operations.stop(version)
        operations.show(version.digest)
    return answer


async def _moved(
    request: Request, account: Account, version: StudyVersion, state: State, *, told: str, why: str = ""
) -> Response:
    place = f"/studies/{version.study}"
    try:
        desk_of(request).studies.move(version, state, account.name, why)
    except TacitError as error:
        return go_to(request, place, str(error), "bad")
    _note(request, account, f"study-{state.replace(' ', '-')}", version)
    return go_to(request, place, told)


def _own(request: Request, account: Account, study: str) -> StudyVersion:
    """The latest version, if the account may decide about it."""
    version = seen_version(request, study)
    if not may_change(account, version):
        raise HTTPException(404)
    return version


def _note(request: Request, account: Account, what: str, version: StudyVersion) -> None:
    address: str = request.state.visit.address
    site_of(request).audit.note(account.name, what, f"{version.study} version {version.number}", address)
