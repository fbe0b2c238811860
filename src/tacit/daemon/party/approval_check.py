"""Whether a study is signed by one of those whom the party's owner accepted, and is the latest that they signed."""

from __future__ import annotations

import time

from tacit.daemon.party.consent import OfferedStudy
from tacit.errors import PolicyRefusal
from tacit.federation.member.approval import valid_approvals
from tacit.federation.policy import Policy


def why_not_approved(offered: OfferedStudy, policy: Policy) -> str:
    """Why the policy's approvers do not let the study be answered; empty if they do, or none are asked for."""
    if policy.approvers is None or valid_approvals(offered.approvals, policy.approvers):
        return ""
    told = ", ".join(approval.approver for approval in offered.approvals)
    found = f"the signatures that it brings are by {told}" if told else "it brings no signature that holds"
    return f"none of policy.approvers has signed it; {found}"


def why_replaced(offered: OfferedStudy, policy: Policy) -> str:
    """By what an accepted approver said that the study is replaced; empty if it is not."""
    found = valid_approvals(offered.replaced_by, policy.approvers or ())
    if not found:
        return ""
    newest = max(found, key=lambda approval: approval.version)
    return f"{newest.approver} has approved version {newest.version}, {newest.study[:12]}, in its place"


def check_approved(offered: OfferedStudy, policy: Policy, *, new_run: bool) -> None:
    """Refuse a study that the owner's approvers did not sign; and a new run of one that they have replaced."""
    reason = why_not_approved(offered, policy) or (why_replaced(offered, policy) if new_run else "")
    if reason:
        raise PolicyRefusal(f"it answers no study like {offered.digest[:12]}: {reason}")


def approval_lines(offered: OfferedStudy, policy: Policy) -> list[str]:
    """Who signed the study, one line each, and whether the owner accepted them."""
    accepted = {one.fingerprint for one in valid_approvals(offered.approvals, policy.approvers or ())}
    lines = []
    for one in offered.approvals:
        day, known = time.strftime("%Y-%m-%d", time.gmtime(one.time)), one.fingerprint in accepted
        standing = "one of your approvers" if known else "none of your approvers"
        lines.append(
            f"{one.approver} on {day}, version {one.version}, written by {one.author}; fingerprint {one.fingerprint}, "
            f"{standing}"
        )
    return lines
