"""What an owner decides: whom to be added up with, and which studies to take part in. The one way for command and page.

Being told of is not being accepted: a party is accepted by the fingerprint that it told its owner by telephone.
A study is agreed to by the digest of what was read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tacit.daemon import DEFAULT_RUNS
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.daemon.party.owner_text import why_not, why_not_so_many
from tacit.daemon.party.settings import FILE, PartyFile
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.member.folder import MemberFolder, fingerprints
from tacit.federation.member.identity import Member
from tacit.federation.member.known_members import KnownMembers
from tacit.studies.study import Study

MOST_RUNS = 1000  # that one consent may allow: more is a slip of the pen


@dataclass(frozen=True, kw_only=True)
class ConsentTerms:
    """How far a consent goes.

    Attributes:
        runs: how many runs may begin; one that loses a party starts again, and counts again.
        until: when it ends by itself, in seconds since 1970; None: it does not.
    """

    runs: int = DEFAULT_RUNS
    until: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= MOST_RUNS:
            raise SettingError(f"runs = {self.runs} must lie between 1 and {MOST_RUNS}")
        if self.until is not None and self.until <= time.time():
            raise SettingError("the last day of a consent lies in the past; name a later one, or none")


def end_of_day(text: str) -> float | None:
    """The end of a day, given as YYYY-MM-DD in universal time; None for an empty text."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
        return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + timedelta(days=1).total_seconds()
    except ValueError:
        raise SettingError(f"{text!r} is no date; write the year first, such as 2027-03-31") from None


def candidates_of(offered: OfferedStudy, own: MemberFolder) -> dict[str, Member]:
    """The parties that are known here and that the study names, or all; without this one."""
    named = offered.read().federation.parties
    known = KnownMembers(own.path).parties()
    return {name: known[name] for name in named or known if name in known and name != own.identity.name}


def accepted_among(folder: Path, candidates: Mapping[str, Member]) -> dict[str, Member]:
    """Those whom the owner has accepted, with the very keys that are known now."""
    accepted = KnownMembers(folder).accepted() or {}
    return {name: member for name, member in candidates.items() if accepted.get(name) == member.fingerprint}


def check_open(offered: OfferedStudy, folder: Path, runs: int = 1) -> None:
    """Refuse a study that nobody joins any more or that the party's own policy forbids, and a file that is not there.

    `runs` is how many runs the owner wants to allow: the policy must pay for all of them.
    """
    if offered.state != "in" and (reason := offered.why_closed()):
        raise PolicyRefusal(f"{reason} Nothing has changed")
    file = PartyFile.read(folder)
    if reason := why_not(offered, file.policy) or why_not_so_many(offered, runs, file.policy):
        raise PolicyRefusal(f"your own policy forbids {offered.read().name!r}: {reason}. Change {folder / FILE} first")
    file.data.check_there()


def opt_in(own: MemberFolder, consents: Consents, offered: OfferedStudy, extent: ConsentTerms) -> dict[str, Member]:
    """Take part in a study that the owner has read and confirmed; returns with whom the party may be added up.

    Raises:
        PolicyRefusal: if nobody joins the study any more, or the party's own policy forbids it, or so many runs.
        SettingError: if the file with the records is not there. In all cases nothing has changed.
    """
    check_open(offered, own.path, extent.runs)
    sum_group = accepted_among(own.path, candidates_of(offered, own))
    keys = {name: member.letter_key for name, member in sum_group.items()}
    consents.decide(offered.digest, "in", extent.runs, keys, extent.until, offered.offer)
    return sum_group


def opt_out(consents: Consents, offered: OfferedStudy) -> None:
    """Leave a study: from the next question on nothing leaves. What was spent stays spent."""
    consents.decide(offered.digest, "out")


def sum_group_lines(sum_group: Mapping[str, Member], study: Study, known: Sequence[str]) -> list[str]:
    """Whom a consent lets in, and who is missing; `known` are this party and the others that could be accepted."""
    lines = [f"{study.name}: you are added up with nobody, as no other party is accepted"]
    if sum_group:
        who = "these and nobody else" if study.federation.quorum is None else "some or all of these, and nobody else"
        lines = [f"{study.name}: you may be added up with {who}:"]
        lines += [f"  {line}" for line in fingerprints(list(sum_group.values()))]
    strange = [name for name in known[1:] if name not in sum_group]
    unknown = [name for name in study.federation.parties or () if name not in known]
    if strange:
        lines.append(f"  not accepted: {', '.join(strange)}; `tacit party accept NAME=FINGERPRINT`, then opt in again")
    if unknown:
        lines.append(f"  not known here yet: {', '.join(unknown)}; opt in again when they are")
    return lines
