"""What the party's pages look at, and the one way in which they decide: the functions that the commands use.

The desk has connections of its own to the party's files. It holds no key and no table. It answers no question: that is
the daemon's handler with its guard, which reads the same files before every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tacit.daemon.party import decision
from tacit.daemon.party.anchor import open_ledger
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.daemon.party.notice import Notices
from tacit.daemon.party.settings import PartyFile
from tacit.errors import SettingError
from tacit.federation.log import Log
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import Member
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.nats.journal import Journal


@dataclass(frozen=True, kw_only=True)
class KnownParty:
    """Another party, and whether the owner has accepted it with the keys that it has."""

    member: Member
    is_accepted: bool


class PartyDesk:
    """The party's files, opened for its pages; close it at the end."""

    def __init__(self, folder: MemberFolder, journal: Journal) -> None:
        self.own = folder
        self.path = folder.path
        self.name = folder.identity.name
        self.consents = Consents(folder.path / CONSENT_FILE)
        self.ledger = open_ledger(folder.path, self.name)
        self.log = Log(self.ledger, self.name)
        self.notices = Notices(folder.path)
        self._journal = journal

    def close(self) -> None:
        """Close the files."""
        self.consents.close()
        self.ledger.close()
        self.notices.close()

    @property
    def account(self) -> str:
        """Whose costs the ledger counts."""
        return self.ledger.sole_account(self.name)

    def file(self) -> PartyFile:
        """`party.toml` as it is now."""
        return PartyFile.read(self.path)

    def study(self, digest: str) -> OfferedStudy:
        """A study that was announced; 404 if there is none with exactly this digest."""
        found = self.consents.find(digest)
        if found is None:
            raise HTTPException(404)
        return found

    def parties(self, offered: OfferedStudy | None = None) -> list[KnownParty]:
        """The other parties that are known here; with a study, those that could be added up in it."""
        if offered is None:
            known: Mapping[str, Member] = KnownMembers(self.path).parties()
            candidates = {name: member for name, member in known.items() if name != self.name}
        else:
            candidates = decision.candidates_of(offered, self.own)
        accepted = decision.accepted_among(self.path, candidates)
        return [KnownParty(member=candidates[name], is_accepted=name in accepted) for name in sorted(candidates)]

    # --- what the owner decides --------------------------------------------------------------------------------------

    def accept(self, name: str, fingerprint: str) -> None:
        """Accept a party by the fingerprint that it told by telephone."""
        KnownMembers(self.path).accept({name: fingerprint})
        self._journal.note("accepted", member=name, fingerprint=fingerprint)

    def opt_in(self, offered: OfferedStudy, terms: decision.ConsentTerms, seen: str) -> None:
        """Take part, with those whom the owner saw on the form.

        Raises:
            SettingError: if others are accepted now than the form showed (`seen`, a `mark_of`).
        """
        if mark_of(self.parties(offered)) != seen:
            raise SettingError("Whom you have accepted has changed since this page was opened. Read it again below.")
        decision.opt_in(self.own, self.consents, offered, terms)

    def leave(self, offered: OfferedStudy) -> None:
        """Leave a study."""
        decision.opt_out(self.consents, offered)


def mark_of(parties: list[KnownParty]) -> str:
    """Who of these is accepted, with which keys, as a form carries it."""
    accepted = sorted(f"{party.member.name}={party.member.fingerprint}" for party in parties if party.is_accepted)
    return "; ".join(accepted)


def desk_of(request: Request) -> PartyDesk:
    """The desk of the site that a request is to."""
    desk: PartyDesk = request.app.state.party_desk
    return desk
