"""Whom a member knows: the keys of the others, pinned when they were first told of, and never exchanged since.

The coordinator tells who belongs, and could invent members. So knowing is not agreeing: a party is added up only with
those whom its owner accepted with a study (`daemon/consent.py`), and their fingerprints can be compared by telephone.
A center node only needs to know who signs: that those in a sum agreed to each other, their own envelopes say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit.errors import SettingError, WireError
from tacit.federation.net.identity import Member
from tacit.federation.net.place import read_json

FILE = "members.json"


class Acquaintances:
    """The file of pinned members, in a member's folder; several processes may read it.

    Guarantees:
        A name has the keys with which it was first told of, until the file is removed by hand.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
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
        """The parties' names and the public keys of their signatures."""
        return {name: member.letter_key for name, member in self.parties().items()}

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
            forms = [member.as_dict() for member in (*known.values(), *new)]
            temporary = self._path.with_name(f".{FILE}.{os.getpid()}")
            temporary.write_text(json.dumps(forms, indent=1) + "\n", encoding="utf-8")
            temporary.replace(self._path)
        return new


def _listed(forms: object) -> list[dict[str, object]]:
    if not isinstance(forms, list) or not all(isinstance(form, dict) for form in forms):
        raise SettingError("members are a list of descriptions")
    return forms


def encode_members(members: Sequence[Member]) -> bytes:
    """Members as a letter's body."""
    return json.dumps([member.as_dict() for member in members]).encode()


def decode_members(body: bytes) -> list[Member]:
    """What `encode_members` wrote; a `WireError` for anything else."""
    try:
        return [Member.from_dict(form) for form in _listed(json.loads(body))]
    except (ValueError, SettingError) as error:
        raise WireError("a message does not say who belongs to the federation") from error
