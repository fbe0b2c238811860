"""Whom a member knows: the keys of the others, pinned when they were first told of, and never exchanged since.

The coordinator tells who belongs, and could invent members. So knowing is not agreeing: a party is added up only with
those whom its owner accepted with a study (`daemon/party/consent.py`). Fingerprints can be compared by telephone.

A center node only needs to know who signs. The signed envelopes state which parties agreed to be summed together. The
node's operator may insist on accepting each party's fingerprint first (`insist`). What a party sealed is added up only
then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import SettingError, WireError
from tacit.federation.member.folder import read_json
from tacit.federation.member.identity import Member
from tacit.record import decode_record, encode_record
from tacit.storage import write_json

FILE = "members.json"
ACCEPTED = "accepted.json"  # if it is there, only those in it are believed


class KnownMembers:
    """The file of pinned members, in a member's folder; several processes may read it.

    Guarantees:
        A name has the keys with which it was first told of, until the file is removed by hand. Where the operator
        insists, `keys` has only those whom the operator accepted, with the keys that were accepted.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._accepted = folder / ACCEPTED
        self._read: tuple[object, dict[str, Member]] = (None, {})

    def all(self) -> Mapping[str, Member]:
        """Everybody, by name."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return {}
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read[0] != stamp:
            try:
                members = [Member.from_dict(form) for form in _listed(read_json(self._path))]
            except SettingError as error:
                raise SettingError(f"{self._path} is damaged; remove it, and members are pinned anew") from error
            self._read = (stamp, {member.name: member for member in members})
        return self._read[1]

    def parties(self) -> dict[str, Member]:
        """The parties among them."""
        return {name: member for name, member in self.all().items() if member.role == "party"}

    def keys(self) -> dict[str, bytes]:
        """The names of the parties that are believed, and the public keys of their signatures."""
        accepted = self.accepted()
        return {
            name: member.letter_key
            for name, member in self.parties().items()
            if accepted is None or accepted.get(name) == member.fingerprint
        }

    def accepted(self) -> dict[str, str] | None:
        """The names and fingerprints that the operator accepted; None if all are believed as they are told of."""
        if not self._accepted.exists():
            return None
        match read_json(self._accepted):
            case dict(form):
                return {str(name): str(mark) for name, mark in form.items()}
        raise SettingError(f"{self._accepted} is damaged; write {{}} into it, and accept the parties again")

    def insist(self) -> None:
        """From now on believe only whom the operator accepts: at first nobody."""
        if not self._accepted.exists():
            write_json(self._accepted, {})

    def believe_all(self) -> None:
        """Believe everybody as they are told of; what was accepted is forgotten."""
        self._accepted.unlink(missing_ok=True)

    def accept(self, names: Sequence[str]) -> list[Member]:
        """Accept parties by name, with the keys that are pinned, and return them.

        Raises:
            SettingError: if the operator does not insist, or a name is not that of a party that was told of.
        """
        accepted, parties = self.accepted(), self.parties()
        if accepted is None:
            raise SettingError("every party is believed as it is told of; first `tacit center serve --accept ask`")
        strangers = [name for name in names if name not in parties]
        if strangers:
            known = ", ".join(parties) or "nobody"
            raise SettingError(
                f"no party {strangers[0]!r} was told of; known: {known}. Is `tacit center serve` running?"
            )
        found = [parties[name] for name in names]
        write_json(self._accepted, accepted | {member.name: member.fingerprint for member in found})
        return found

    def learn(self, members: Sequence[Member]) -> list[Member]:
        """Pin those who are new, and return them.

        Raises:
            WireError: if a name comes with other keys than it was pinned with; then nobody is pinned.
        """
        known = dict(self.all())
        for member in members:
            if known.get(member.name, member) != member:
                raise WireError(
                    f"member {member.name!r} is told of with other keys than those pinned in {FILE}; "
                    f"if that is right, remove the file"
                )
        new = [member for member in members if member.name not in known]
        if new:
            write_json(self._path, [member.as_dict() for member in (*known.values(), *new)])
        return new


def _listed(forms: object) -> list[dict[str, object]]:
    if not isinstance(forms, list) or not all(isinstance(form, dict) for form in forms):
        raise SettingError("members are a list of descriptions")
    return forms


@dataclass(frozen=True, kw_only=True)
class _Members:
    """What a letter tells of who belongs."""

    members: tuple[Member, ...]


def encode_members(members: Sequence[Member]) -> bytes:
    """Members as a letter's body."""
    return encode_record(_Members(members=tuple(members)))


def decode_members(body: bytes) -> tuple[Member, ...]:
    """What `encode_members` wrote; a `WireError` for anything else."""
    try:
        return decode_record(_Members, body).members
    except WireError as error:
        raise WireError(f"a message does not say who belongs to the federation: {error}") from error
