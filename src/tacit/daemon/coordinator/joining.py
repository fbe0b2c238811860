"""Joining: whoever holds an invitation makes keys, sends the public ones, and pins what the invitation says."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

from tacit import wire
from tacit.daemon.party.anchor import make_ledger
from tacit.errors import SettingError, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import PINNED, MemberFolder
from tacit.federation.member.identity import SECRET_FILE, Identity, Member
from tacit.federation.member.invitation import Invitation
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.kind import JOIN, REFUSAL, WELCOME
from tacit.federation.nats.letter import read_letter, signed, write_letter
from tacit.secure.center.node import NodeServer
from tacit.storage import make_private_folder

_LONGEST = 16 << 10  # bytes of a request to join


def join(invitation: Invitation, folder: Path) -> MemberFolder:
    """Make this member's keys in `folder`, become a member, and return the folder, opened.

    A second call with the same folder goes on where a first one broke off; the secret is made once.
    """
    if (folder / PINNED).exists():
        raise SettingError(f"{folder} holds a {invitation.role} already; name another --folder")
    if invitation.expires < time.time():
        raise SettingError(f"the invitation of {invitation.name!r} has expired; ask the coordinator for a new one")
    make_private_folder(folder)
    make = Identity.load if (folder / SECRET_FILE).exists() else Identity.make
    identity = make(invitation.name, invitation.role, folder)
    member = identity.member
    if invitation.role == "center":  # a node seals to a key of its own, which it keeps by itself
        member = replace(member, seal_key=NodeServer(0, home=folder).public_key)
    seat = asyncio.run(_introduce(invitation, identity, member))
    if invitation.role == "party":  # from now on a missing ledger is a lost one
        make_ledger(folder, invitation.name)
    MemberFolder.write(folder, member, invitation.pinned, seat)
    return MemberFolder.load(folder, invitation.role)


async def _introduce(invitation: Invitation, identity: Identity, member: Member) -> int | None:
    letter = write_letter(
        identity, kind=JOIN, recipient=subject.COORDINATOR, body=json.dumps(member.as_dict()).encode()
    )  # fmt: skip
    message = wire.encode({"member": letter.body, "letter": signed(letter, identity)})
    connection = Connection(invitation.pinned.address, invitation.credential)
    try:
        await connection.open(seconds=3.0)
        id_ = invitation.id
        reply = await connection.ask(subject.join(id_), message, hear=subject.welcome(id_), seconds=10.0)
    finally:
        await connection.close()
    told = read_letter(
        reply, sender=invitation.pinned.coordinator, recipient=member.name, kinds=(WELCOME, REFUSAL)
    )  # fmt: skip
    if told.about != letter.nonce:
        raise WireError("the coordinator replied to another letter; try again")
    match wire.decode(told.body):
        case {"seat": int() | None as seat} if told.kind == WELCOME:
            return seat
        case {"why": str(why)}:
            raise SettingError(why)
    raise WireError("the coordinator's welcome cannot be read; use the same release")


def welcome(coordinator: CoordinatorFolder, invitation: str, message: bytes) -> tuple[bytes, Member | None]:
    """The coordinator's side: its reply to somebody who wants to join, and the member, if it is one now.

    Raises:
        WireError: if the message is not a request to join, signed with the keys that it brings.
    """
    if len(message) > _LONGEST:  # whose signature it has to bear is only told within
        raise WireError(f"a request to join has {len(message):,} bytes, over the limit of {_LONGEST:,}")
    match wire.decode(message):
        case {"member": bytes(form), "letter": bytes(frame), **rest} if not rest:
            pass
        case _:
            raise WireError("a message on the subject of an invitation is not a request to join")
    try:
        parsed = json.loads(form)
        member = Member.from_dict(parsed if isinstance(parsed, dict) else {})
    except (ValueError, SettingError) as error:
        raise WireError("a request to join describes no member") from error
    letter = read_letter(frame, sender=member, recipient=subject.COORDINATOR, kinds=(JOIN,))
    if letter.body != form:
        raise WireError("a request to join is signed for other keys than it brings")
    identity = coordinator.identity
    try:
        body, kind = wire.encode({"seat": coordinator.admit(invitation, member)}), WELCOME
    except SettingError as error:
        body, kind = wire.encode({"why": str(error)}), REFUSAL
    reply = write_letter(identity, kind=kind, recipient=member.name, body=body, about=letter.nonce)
    return signed(reply, identity), member if kind == WELCOME else None
