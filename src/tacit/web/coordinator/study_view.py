"""What a study's page shows besides its purpose: differences, approvals, buttons, the run and its result."""

from __future__ import annotations

import shlex
from typing import Any

from starlette.requests import Request

from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.errors import TacitError
from tacit.studies.difference import key_changes, line_changes
from tacit.web.account import Account
from tacit.web.coordinator.deed import replaced_digest
from tacit.web.coordinator.operations import approvals_of
from tacit.web.coordinator.permission import desk_of, may_approve, may_change
from tacit.web.coordinator.progress import progress_values

_RUN_STATES = ("published", "running", "finished", "stopped")


def study_values(
    request: Request, account: Account | None, version: StudyVersion, *, is_latest: bool
) -> dict[str, Any]:
    """The values of the page's own parts."""
    desk = desk_of(request)
    owns = is_latest and may_change(account, version)
    values: dict[str, Any] = {
        "may_edit": owns and version.state == "draft",
        "may_manage": owns,
        "may_renew": owns and version.state != "draft",
        "may_sign": is_latest and version.state == "in review" and may_approve(account, version),
        "may_send_back": is_latest
        and version.state in ("in review", "approved")
        and (owns or may_approve(account, version)),
        "is_own_work": account is not None and account.name == version.author,
        "approvals": approvals_of(desk.studies, version),
        "command": sign_command(version, replaced_digest(desk.studies, version)),
        "changes": changes_of(request, version),
        "has_result": "model.json" in desk.studies.attachments(version),
        "runs": version.state in _RUN_STATES,
        "state": version.state,
    }
    if desk.operations is None:
        return values | progress_values((), version)
    return values | desk.operations.progress_values(version)


def sign_command(version: StudyVersion, replaces: str) -> str:
    """What an approver types on a machine of their own."""
    words = ["tacit", "approver", "sign", f"study-{version.study}-{version.number}.toml", "--author", version.author]
    words += ["--version", str(version.number)]
    words += ["--replaces", replaces] if replaces else []
    return shlex.join([*words, "--digest", version.digest])


def changes_of(request: Request, version: StudyVersion) -> dict[str, Any] | None:
    """What differs from the version before, in words and line by line; None of a first version."""
    before = desk_of(request).studies.find(version.study, version.number - 1)
    if before is None:
        return None
    try:
        old, new = before.read(), version.read()
    except TacitError:
        return None
    names = (f"version {before.number}", f"version {version.number}")
    return {
        "before": before.number,
        "words": [change.words.removeprefix("study.") for change in key_changes(old, new)],
        "lines": line_changes(old, new, names),
    }
