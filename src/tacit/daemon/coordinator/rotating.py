"""Rotating keys: a member makes new ones, signs them with the old ones, and the coordinator tells everybody.

A command that breaks off can be given again. The new keys are kept in a folder of their own until the coordinator knows
them. They are then put in the place of the old ones, which are gone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from tacit import wire
from tacit.errors import RunError, SettingError, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import SECRET_FILE, Identity, Member, Role
from tacit.federation.member.rotation import Rotation
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.kind import REFUSAL, ROTATE, ROTATED, refusal
from tacit.federation.nats.letter import read_letter, signed, write_letter
from tacit.secure.center.node_key import KEY_FILE, key_of

_NEXT = "next"  # in a member's folder: its new keys, until everybody may know them


@dataclass(frozen=True, kw_only=True)
class _NewKeys:
    identity: Identity
    member: Member


def rotate_key(path: Path, role: Role) -> tuple[Member, Member]:
    """Give this member new keys, and return what it was and what it is now. Its daemon must be started again."""
    folder = MemberFolder.load(path, role)
    new = _new_keys(folder, role)
    if folder.identity.member.letter_key != new.identity.member.letter_key:  # else it broke off while it was swapped
        rotation = Rotation.make((folder.identity, folder.member), (new.identity, new.member))
        asyncio.run(_announce(folder, new, rotation))
    for name in (SECRET_FILE, KEY_FILE):  # in this order, which `_new_keys` counts on
        if (path / _NEXT / name).exists():
            (path / _NEXT / name).replace(path / name)
    MemberFolder.write(path, new.member, folder.pinned, folder.seat)
    (path / _NEXT).rmdir()
    return folder.member, new.member


def _new_keys(folder: MemberFolder, role: Role) -> _NewKeys:
    """The member's new keys, made once."""
    place, name = folder.path / _NEXT, folder.member.name
    place.mkdir(mode=0o700, exist_ok=True)
    where = (
        place if (place / SECRET_FILE).exists() or folder.identity.member.nkey == folder.member.nkey else folder.path
    )
    make = Identity.load if (where / SECRET_FILE).exists() else Identity.make
    identity = make(name, role, where)
    member = identity.member
    if role == "center":  # a node seals to a key of its own, which it keeps by itself
        is_swapped = where is folder.path and not (place / KEY_FILE).exists()
        member = replace(member, seal_key=bytes(key_of(folder.path if is_swapped else place).public_key))
    return _NewKeys(identity=identity, member=member)


async def _announce(folder: MemberFolder, new: _NewKeys, rotation: Rotation) -> None:
    """Return when the coordinator knows the new keys."""
    name, identity = folder.member.name, folder.identity
    letter = write_letter(identity, kind=ROTATE, recipient=subject.COORDINATOR, body=rotation.encode())
    connection = Connection(folder.pinned.address, folder.credential)
    try:
        await connection.open(seconds=3.0)
        reply = await connection.ask(
            subject.rotate(name), signed(letter, identity), hear=subject.rotated(name), seconds=10.0
        )
    except RunError:
        if await _is_let_in(folder, new):
            return  # an earlier call was heard, and its reply was lost
        raise
    finally:
        await connection.close()
    told = read_letter(reply, sender=folder.pinned.coordinator, recipient=name, kinds=(ROTATED, REFUSAL))
    if told.about != letter.nonce:
        raise WireError("the coordinator replied to another letter; try again")
    match wire.decode(told.body):
        case {"why": str(why)}:
            raise SettingError(why)


async def _is_let_in(folder: MemberFolder, new: _NewKeys) -> bool:
    credential = replace(folder.credential, nkey_seed=new.identity.nkey_seed)
    connection = Connection(folder.pinned.address, credential)
    try:
        await connection.open(seconds=3.0)
    except RunError:
        return False
    finally:
        await connection.close()
    return True


def rotated(coordinator: CoordinatorFolder, member: Member, message: bytes) -> tuple[bytes, Rotation | None]:
    """The coordinator's side: its reply to a member that brings new keys, and the rotation, if that holds now.

    Raises:
        WireError: if the message is no rotation, signed with the member's present key.
    """
    letter = read_letter(message, sender=member, recipient=subject.COORDINATOR, kinds=(ROTATE,))
    rotation = Rotation.decode(letter.body)
    kind, body = ROTATED, b"N"
    done: Rotation | None = rotation
    try:
        if rotation.old != member:
            raise SettingError("the rotation is of another member, or of keys that it has no longer")
        coordinator.rotate(rotation)
    except SettingError as error:
        said = refusal(type(error).__name__, str(error))
        kind, body, done = said.kind, said.body, None
    identity = coordinator.identity
    reply = write_letter(identity, kind=kind, recipient=member.name, body=body, about=letter.nonce)
    return signed(reply, identity), done
