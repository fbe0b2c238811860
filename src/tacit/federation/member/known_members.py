"""Whom a member knows: the keys of the others, pinned when they were first told of, and exchanged by nobody else.

The coordinator tells who belongs, and could invent members. So knowing is not agreeing: a party is added up only with
those whom its owner accepted with a study (`daemon/party/consent.py`). Fingerprints can be compared by telephone.

The coordinator's lists of members are numbered (`member_list.py`). One is followed only if it is newer than every list
before it, and it can only take away:
1. Who is revoked in it, or no longer in it, is gone: not believed, and not by a later list either.
2. Who is in it with other keys than those pinned keeps the pinned ones, unless these signed the new ones.
3. Who is new is pinned, which lets nobody into a sum.
What a list may not do is left to the owner (`accept_key`), who compares a fingerprint by telephone.

A center node needs to know who signs. The signed envelopes state which parties agreed to be summed together. What a
party sealed is added up only if the node's operator accepted the party's fingerprint, or chose to believe everybody
that the coordinator tells of (`believe_all`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.errors import SettingError, WireError
from tacit.federation.member.folder import read_json
from tacit.federation.member.identity import Member
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.rotation import MOST_ROTATIONS_EACH, Rotation, successor
from tacit.federation.member.standing import Standing, StandingFile
from tacit.secure.share import N_NODES
from tacit.storage import OWNER_ONLY, write_json

FILE = "members.json"
ACCEPTED = "accepted.json"  # names and fingerprints that were accepted, or "all"
MOST_MEMBERS = 20_000  # a coordinator that invents members fills no disk
MOST_ROTATIONS = 20_000  # nor one that invents changes of keys, each signed with keys of its own


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What a list of members has changed here: who is new, who is gone, whose keys are new, whose are disputed."""

    new: tuple[Member, ...] = ()
    gone: tuple[str, ...] = ()
    rotated: tuple[Rotation, ...] = ()
    disputed: tuple[Member, ...] = ()


class KnownMembers:
    """The file of pinned members, in a member's folder; several processes may read it.

    Guarantees:
        A name has the keys with which it was first told of, or those that followed them by the member's own signature
        or by the owner's word. Who is gone is in none of the answers but `gone`. `keys` has only those whom the
        operator accepted, with the keys that were accepted, unless the operator chose to believe everybody.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._accepted = folder / ACCEPTED
        self._standing = StandingFile(folder)
        self._read: tuple[object, dict[str, Member]] = (None, {})

    def all(self) -> Mapping[str, Member]:
        """Everybody who belongs, by name."""
        gone = self.gone()
        return {name: member for name, member in self._pinned().items() if name not in gone}

    def gone(self) -> frozenset[str]:
        """The names of those who do not belong any more."""
        return self._standing.read().gone

    def disputed(self) -> Mapping[str, Member]:
        """Members that the coordinator tells of with keys that are not believed."""
        return self._standing.read().disputed

    def rotations(self) -> tuple[Rotation, ...]:
        """The changes of keys that were followed."""
        return self._standing.read().rotations

    def successor(self, member: Member) -> Member:
        """The member with the keys that it has now, which its old ones signed."""
        return successor(member, self.rotations())

    def current(self, keys: Mapping[str, bytes]) -> dict[str, bytes]:
        """Keys that the owner accepted, as they are now: without those who are gone, and with rotated ones."""
        standing, current = self._standing.read(), {}
        for name, key in keys.items():
            then = next(
                (step.old for step in standing.rotations if (step.old.name, step.old.letter_key) == (name, key)), None
            )
            if name not in standing.gone:
                current[name] = key if then is None else successor(then, standing.rotations).letter_key
        return current

    def _pinned(self) -> Mapping[str, Member]:
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

    def node_keys(self) -> set[bytes]:
        """The public keys to which values for the center's nodes are sealed: of the first three that were told of.

        Nobody who is told of later is a node. A coordinator could invent two that hear what nodes tell each other.
        """
        nodes = [member for member in self._pinned().values() if member.role == "center"][:N_NODES]
        gone = self.gone()
        return {member.seal_key for member in nodes if member.name not in gone}

    def accepted(self) -> dict[str, str] | None:
        """The names and fingerprints that were accepted; None if all are believed as they are told of."""
        if not self._accepted.exists():
            return {}
        match read_json(self._accepted):
            case "all":
                return None
            case dict(form):
                return {str(name): str(mark) for name, mark in form.items()}
        raise SettingError(f"{self._accepted} is damaged; write {{}} into it, and accept the parties again")

    def insist(self) -> None:
        """From now on believe only whom the operator accepts; this is so until `believe_all`."""
        if self.accepted() is None:
            write_json(self._accepted, {}, mode=OWNER_ONLY)

    def believe_all(self) -> None:
        """Believe everybody as they are told of; what was accepted is forgotten."""
        write_json(self._accepted, "all", mode=OWNER_ONLY)

    def accept(self, marks: Mapping[str, str]) -> list[Member]:
        """Accept parties by name and fingerprint, and return them.

        Raises:
            SettingError: if all are believed anyway, a name is no party's that was told of, or a fingerprint is not
                that of the keys that are pinned; then nobody is accepted.
        """
        accepted, parties = self.accepted(), self.parties()
        if accepted is None:
            raise SettingError("every party is believed as it is told of; first `tacit center serve --accept ask`")
        for name, mark in marks.items():
            if name not in parties:
                known = ", ".join(parties) or "nobody"
                raise SettingError(f"no party {name!r} was told of; known: {known}. Is the daemon running (`serve`)?")
            if "".join(mark.split()).lower() != "".join(parties[name].fingerprint.split()):
                raise SettingError(
                    f"{name!r} was told of with the fingerprint {parties[name].fingerprint}, not {mark!r}; if {name} "
                    f"confirms yours, the coordinator tells of another"
                )
        found = [parties[name] for name in marks]
        write_json(self._accepted, accepted | {member.name: member.fingerprint for member in found}, mode=OWNER_ONLY)
        return found

    def learn(self, members: Sequence[Member]) -> list[Member]:
        """Pin those who are new, and return them.

        Raises:
            WireError: if a name comes with other keys than it was pinned with; then nobody is pinned.
        """
        known = dict(self._pinned())
        for member in members:
            if known.get(member.name, member) != member:
                raise WireError(
                    f"member {member.name!r} is told of with other keys than those pinned in {FILE}; "
                    f"if that is right, remove the file"
                )
        new = [member for member in members if member.name not in known]
        if new:
            write_json(self._path, [member.as_dict() for member in (*known.values(), *new)], mode=OWNER_ONLY)
        return new

    def follow(self, told: MemberList) -> Followed:
        """Take over what a list of members may change, and return that.

        Raises:
            WireError: if a newer list was seen before, or another one with this number; then nothing changes.
        """
        standing, pinned = self._standing.read(), dict(self._pinned())
        if (told.number, told.digest) == (standing.number, standing.digest):
            return Followed()
        if told.number <= standing.number:
            raise WireError(
                f"list {told.number} of the members is not newer than list {standing.number}, which was seen before"
            )
        of_pinned = [step for step in told.rotations if step.old.name in pinned]
        steps = _checked((*standing.rotations, *of_pinned))
        listed = {member.name: member for member in told.members}
        gone = {name for name in pinned if name not in listed or name in told.revoked}
        new, rotated, disputed = [], [], []
        for name, member in listed.items():
            if name in standing.gone or name in gone or name in told.revoked:
                disputed.append(member)
            elif name not in pinned:
                new.append(member)
            elif pinned[name] != member and successor(pinned[name], steps) == member:
                rotated.append(Rotation(old=pinned[name], new=member))
            elif pinned[name] != member:
                disputed.append(member)
        new = new[: max(0, MOST_MEMBERS - len(pinned))]
        pinned |= {member.name: member for member in (*new, *(step.new for step in rotated))}
        self._write(pinned)
        self._follow_accepted(rotated)
        before = standing.disputed
        self._standing.write(
            Standing(
                number=told.number, digest=told.digest, gone=standing.gone | gone, rotations=steps,
                disputed={member.name: member for member in disputed},
            )
        )  # fmt: skip
        return Followed(
            new=tuple(new), gone=tuple(sorted(gone - standing.gone)), rotated=tuple(rotated),
            disputed=tuple(member for member in disputed if before.get(member.name) != member),
        )  # fmt: skip

    def accept_key(self, name: str, fingerprint: str) -> Member:
        """Believe a member with keys that a list may not bring: the owner has compared their fingerprint.

        Raises:
            SettingError: if the coordinator tells of no such member, or with other keys.
        """
        standing = self._standing.read()
        member = standing.disputed.get(name)
        if member is None:
            raise SettingError(f"the keys of {name!r} are not disputed here: there is nothing to accept")
        if member.fingerprint.split() != fingerprint.split():
            raise SettingError(
                f"{name!r} is told of with the fingerprint {member.fingerprint}, not {fingerprint}; ask it by telephone"
            )
        self._write({**self._pinned(), name: member})
        left = {other: told for other, told in standing.disputed.items() if other != name}
        self._standing.write(replace(standing, gone=standing.gone - {name}, disputed=left))
        return member

    def _follow_accepted(self, rotated: Sequence[Rotation]) -> None:
        """Who was accepted with keys that it has rotated stays accepted."""
        accepted = self.accepted()
        if accepted is not None and rotated:
            moved = {
                step.new.name: step.new.fingerprint
                for step in rotated
                if accepted.get(step.old.name) == step.old.fingerprint
            }
            write_json(self._accepted, accepted | moved, mode=OWNER_ONLY)

    def _write(self, members: Mapping[str, Member]) -> None:
        write_json(self._path, [member.as_dict() for member in members.values()], mode=OWNER_ONLY)


def _listed(forms: object) -> list[dict[str, object]]:
    if not isinstance(forms, list) or not all(isinstance(form, dict) for form in forms):
        raise SettingError("members are a list of descriptions")
    return forms


def _checked(rotations: Sequence[Rotation]) -> tuple[Rotation, ...]:
    """Those that are signed with both keys, and of each old key the first that was seen: it has signed its last.

    What is beyond the most of a name, or of all, is not looked at.
    """
    found: dict[tuple[str, bytes], Rotation] = {}
    each: Counter[str] = Counter()
    for rotation in rotations:
        name, key = rotation.old.name, rotation.old.letter_key
        if (name, key) in found or each[name] >= MOST_ROTATIONS_EACH or len(found) >= MOST_ROTATIONS:
            continue
        try:
            rotation.check()
        except WireError:
            continue
        found[name, key] = rotation
        each[name] += 1
    return tuple(found.values())
