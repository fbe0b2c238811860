"""The list of members as it travels: numbered, so that nobody can be shown an old one for the present one.

The coordinator signs it as a letter. It may be malicious, so a list can only take away: whom a member knows by other
keys stays known by those, unless the old keys signed the new ones (`rotation.py`) or the owner says otherwise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tacit.errors import WireError
from tacit.federation.member.identity import Member
from tacit.federation.member.rotation import Rotation
from tacit.record import decode_record, encode_record


@dataclass(frozen=True, kw_only=True)
class MemberList:
    """Who belongs.

    Attributes:
        number: grows with every change.
        members: who belongs now.
        revoked: the names of those who did, and do no longer.
        rotations: every change of keys of those who belong, each signed with the keys before it.
    """

    number: int
    members: tuple[Member, ...]
    revoked: tuple[str, ...] = ()
    rotations: tuple[Rotation, ...] = ()

    def encode(self) -> bytes:
        """As a letter's body."""
        return encode_record(self)

    @property
    def digest(self) -> str:
        """A name for what it says."""
        return hashlib.sha256(self.encode()).hexdigest()

    @staticmethod
    def decode(body: bytes) -> MemberList:
        """What `encode` wrote; a `WireError` for anything else."""
        try:
            return decode_record(MemberList, body)
        except WireError as error:
            raise WireError(f"a message does not say who belongs to the federation: {error}") from error
