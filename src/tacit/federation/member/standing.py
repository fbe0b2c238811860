"""How known members stand: by which list they were last told of, who is gone, and whose keys are disputed.

It is a file in a party's or a node's folder, beside the pinned members. The daemon writes it; commands read it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tacit.errors import SettingError, WireError
from tacit.federation.member.folder import read_json
from tacit.federation.member.identity import Member
from tacit.federation.member.rotation import Rotation
from tacit.storage import OWNER_ONLY, write_json

FILE = "standing.json"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the lists of members said so far.

    Attributes:
        number, digest: the highest list that was seen.
        gone: names that were revoked, or left out of a list; they do not come back by a list.
        disputed: members that a list tells of with other keys than those pinned, or although they are gone.
        rotations: changes of keys, each signed with the keys before it.
    """

    number: int = 0
    digest: str = ""
    gone: frozenset[str] = frozenset()
    disputed: Mapping[str, Member] = field(default_factory=dict)
    rotations: tuple[Rotation, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """As JSON holds it."""
        return {
            "number": self.number,
            "digest": self.digest,
            "gone": sorted(self.gone),
            "disputed": [member.as_dict() for member in self.disputed.values()],
            "rotations": [rotation.encode().hex() for rotation in self.rotations],
        }


class StandingFile:
    """The file; several processes may read it.

    Guarantees:
        A file that cannot be read is an error and believes nobody: who was revoked must not come back by its loss.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._read: tuple[object, Standing] = (None, Standing())

    def read(self) -> Standing:
        """How everybody stands; nobody is gone where no list was seen yet."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return Standing()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read[0] != stamp:
            self._read = (stamp, _parsed(read_json(self._path), self._path))
        return self._read[1]

    def write(self, standing: Standing) -> None:
        """Write it, whole or not at all."""
        write_json(self._path, standing.as_dict(), mode=OWNER_ONLY)


def _parsed(form: object, path: Path) -> Standing:
    match form:
        case {
            "number": int(number),
            "digest": str(digest),
            "gone": list(gone),
            "disputed": list(disputed),
            "rotations": list(rotations),
        }:
            try:
                members = [Member.from_dict(member) for member in disputed]
                steps = tuple(Rotation.decode(bytes.fromhex(step)) for step in rotations)
                return Standing(
                    number=number,
                    digest=digest,
                    gone=frozenset(str(name) for name in gone),
                    disputed={member.name: member for member in members},
                    rotations=steps,
                )
            except (SettingError, WireError, TypeError, ValueError, AttributeError):
                pass
    raise SettingError(f"{path} is damaged; restore it from your backup, so that nobody who was revoked comes back")
