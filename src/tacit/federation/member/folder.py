"""A member's folder: its secret, and what it pinned about the others when it joined.

What is pinned comes with the invitation, is written once, and is never changed by a letter: above all the center's
keys, to which a party seals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import SettingError
from tacit.federation.member.address import Address, Credential
from tacit.federation.member.identity import Identity, Member, Role
from tacit.storage import OWNER_ONLY, write_json

PINNED = "federation.json"


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """What a member knows for good: where the server is and whose keys are whose."""

    address: Address
    coordinator: Member
    center: tuple[Member, ...]

    def as_dict(self) -> dict[str, object]:
        """As JSON holds it."""
        return {
            "server": self.address.url,
            "authority": self.address.authority,
            "coordinator": self.coordinator.as_dict(),
            "center": [node.as_dict() for node in self.center],
        }

    @staticmethod
    def from_dict(form: object, source: str) -> Pinned:
        """What `as_dict` wrote; a `SettingError` that names the file for anything else."""
        match form:
            case {
                "server": str(server),
                "authority": str(authority),
                "coordinator": dict(coordinator),
                "center": list(center),
            } if all(isinstance(node, dict) for node in center):
                return Pinned(
                    address=Address(url=server, authority=authority),
                    coordinator=Member.from_dict(coordinator),
                    center=tuple(Member.from_dict(node) for node in center),
                )
        raise SettingError(f"{source} does not describe a federation; ask the coordinator for the file again")


@dataclass(frozen=True, kw_only=True)
class MemberFolder:
    """A party's or a center node's folder, opened.

    Attributes:
        path: where it is.
        identity: the member's secret.
        member: what others know of it.
        pinned: what it knows of the others.
        seat: a center node's number among the nodes.
    """

    path: Path
    identity: Identity
    member: Member
    pinned: Pinned
    seat: int | None

    @property
    def credential(self) -> Credential:
        """What opens this member's connection."""
        return Credential(name=self.identity.name, nkey_seed=self.identity.nkey_seed)

    @staticmethod
    def load(path: Path, role: Role) -> MemberFolder:
        """The folder that joining wrote."""
        file = path / PINNED
        if not file.exists():
            raise SettingError(
                f"{path} is not the folder of a {role}; run `tacit {role} init --invite FILE`, or name --folder"
            )
        match read_json(file):
            case {"member": dict(form), "seat": int() | None as seat, **pinned} if form.get("role") == role:
                member = Member.from_dict(form)
                return MemberFolder(
                    path=path,
                    identity=Identity.load(member.name, role, path),
                    member=member,
                    pinned=Pinned.from_dict(pinned, str(file)),
                    seat=seat,
                )
        raise SettingError(f"{file} does not describe a {role}; restore it from your backup, or join again")

    @staticmethod
    def write(path: Path, member: Member, pinned: Pinned, seat: int | None) -> None:
        """Write what a member pins when it joins."""
        form = {"member": member.as_dict(), "seat": seat, **pinned.as_dict()}
        write_json(path / PINNED, form, mode=OWNER_ONLY)


def read_json(path: Path) -> object:
    """A small JSON file."""
    try:
        parsed: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except ValueError:
        raise SettingError(f"{path} is damaged: it is not JSON; ask for it again or restore it") from None
    return parsed


def fingerprints(members: Sequence[Member]) -> list[str]:
    """One line for each, to be compared by telephone."""
    return [f"{member.role:<12} {member.name:<20} {member.fingerprint}" for member in members]
