"""What `tacit party` and `tacit center` share: who belongs, and whose keys are whose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.console import err, out

if TYPE_CHECKING:
    from tacit.federation.member.identity import Member, Role


def show_standing(folder: Path) -> None:
    """Print who was revoked, whose keys were rotated, and whose are told of but not believed."""
    from tacit.federation.member.known_members import KnownMembers

    known = KnownMembers(folder)
    lines = [f"revoked      {name}" for name in sorted(known.gone())]
    for step in known.rotations():
        lines.append(f"rotated      {step.old.name:<20} {step.old.fingerprint} signed {step.new.fingerprint}")
    for member in known.disputed().values():
        lines.append(f"NOT BELIEVED {member.name:<20} {member.fingerprint}  compare by telephone, then accept-key")
    if lines:
        out.print("\n".join(lines), markup=False, soft_wrap=True)


def standing(folder: Path, everybody: Sequence[Member]) -> dict[str, object]:
    """The same as plain values, with the fingerprints of those who belong."""
    from tacit.federation.member.known_members import KnownMembers

    known = KnownMembers(folder)
    rotated = [(step.old.name, step.old.fingerprint, step.new.fingerprint) for step in known.rotations()]
    return {
        "members": [{"name": one.name, "role": one.role, "fingerprint": one.fingerprint} for one in everybody],
        "revoked": sorted(known.gone()),
        "rotated": [{"name": name, "was": old, "is": new} for name, old, new in rotated],
        "not_believed": {member.name: member.fingerprint for member in known.disputed().values()},
    }


def accept_key(folder: Path, role: Role, name: str, fingerprint: str) -> None:
    """Believe a member with new keys, by the owner's word."""
    from tacit.federation.member.folder import MemberFolder, fingerprints
    from tacit.federation.member.known_members import KnownMembers

    MemberFolder.load(folder, role)
    member = KnownMembers(folder).accept_key(name, fingerprint)
    out.print("believed from now on:\n" + "\n".join(fingerprints([member])), markup=False)


def rotate_key(folder: Path, role: Role) -> None:
    """Give a member new keys, and say what everybody sees of it."""
    from tacit.daemon.coordinator.rotating import rotate_key as rotate

    old, new = rotate(folder, role)
    out.print(f"was  {old.fingerprint}\nis   {new.fingerprint}", markup=False)
    err.print(f"next: start `tacit {role} serve --folder {folder}` again; back up the new identity.key", markup=False)
