"""A member's new keys, signed with its old ones: whoever pinned the old ones can follow, and nobody else can lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.errors import WireError
from tacit.federation.member.identity import Identity, Member
from tacit.record import decode_record, encode_record

MOST_ROTATIONS_EACH = 64
"""Of one name: lists of members tell all of them, and a list that is too long reaches nobody."""

_DOMAIN = b"tacit rotation 1\0"


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """One step from old keys to new ones.

    Attributes:
        old, new: the member before and after; only its keys differ.
        signature: the old key's signature of both: the member wants this.
        proof: the new key's: whoever has the new keys wants it too, so nobody takes another's keys for its own.
    """

    old: Member
    new: Member
    signature: bytes = b""
    proof: bytes = b""

    @staticmethod
    def make(old: tuple[Identity, Member], new: tuple[Identity, Member]) -> Rotation:
        """A rotation, signed with both identities."""
        bare = Rotation(old=old[1], new=new[1])
        return replace(bare, signature=old[0].sign(bare._text), proof=new[0].sign(bare._text))

    def check(self) -> None:
        """Refuse a rotation of another name or role, or one that old and new key have not both signed."""
        old, new, text = self.old, self.new, replace(self, signature=b"", proof=b"")._text
        if (old.name, old.role) != (new.name, new.role) or old.letter_key == new.letter_key:
            raise WireError(f"the new keys of {old.name!r} are for another member, or none")
        if not (old.signed(text, self.signature) and new.signed(text, self.proof)):
            raise WireError(f"the new keys of {old.name!r} are not signed with its old and its new key")

    @property
    def _text(self) -> bytes:
        return _DOMAIN + encode_record(replace(self, signature=b"", proof=b""))

    def encode(self) -> bytes:
        """As a letter's body."""
        return encode_record(self)

    @staticmethod
    def decode(body: bytes) -> Rotation:
        """What `encode` wrote, checked; a `WireError` for anything else."""
        found = decode_record(Rotation, body)
        found.check()
        return found


def successor(member: Member, rotations: Sequence[Rotation]) -> Member:
    """Whom a member became by these rotations, which were checked; itself, if there is none of it.

    Proof that only the member leads: each step taken is signed with the key that the step before ended at, and the
    first with the key that was pinned. A key leads once: whoever steals one that was rotated leads nobody.
    """
    steps: dict[tuple[str, bytes], Member] = {}
    for rotation in rotations:
        steps.setdefault((rotation.old.name, rotation.old.letter_key), rotation.new)
    for _ in range(len(steps)):  # and no more, should they lead in a circle
        member = steps.get((member.name, member.letter_key), member)
    return member
