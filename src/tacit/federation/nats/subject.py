"""Where letters travel, and who may send or read what: the server enforces these permissions.

tacit.ask.NAME             coordinator -> party: a question
tacit.answer.NAME.DIGEST   party -> coordinator: its answer
tacit.study.DIGEST         coordinator -> every party: a study
tacit.members              coordinator -> everybody: who belongs
tacit.fetch.NAME           member -> coordinator: it is here, and asks for what it missed
tacit.kept.NAME.WHAT       coordinator -> member: a study, or who belongs, as it was announced before
tacit.event.NAME           member -> coordinator: it opted in or out
tacit.call.NAME            coordinator -> member: any other request
tacit.reply.NAME.REF       member -> coordinator: what it says to that, refusals included
tacit.clock.NAME           member -> coordinator: what time is it?
tacit.time.NAME            coordinator -> member: this
tacit.rotate.NAME          member -> coordinator: its new keys, signed with the old ones
tacit.rotated.NAME         coordinator -> member: it knows them now
tacit.join.ID              whoever holds invitation ID -> coordinator, once
tacit.welcome.ID           coordinator -> whoever holds invitation ID

Nobody replies to a subject that a message names. A member could name any, and whoever replies has more rights than it.
So every reply has a subject of its own above, which follows from who asked. The server has no API that a member could
reach and keeps nothing (no JetStream): what must outlive a restart is in the folders of those whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import SettingError

COORDINATOR = "coordinator"
EVERYBODY = "*"
MEMBERS = "tacit.members"
CONNECTIONS = "$SYS.REQ.ACCOUNT.PING.CONNZ"  # the server itself answers it

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def check_name(name: str, what: str) -> str:
    """The name, if it can stand in a subject and on a file system."""
    if not _NAME.fullmatch(name) or name == COORDINATOR:
        raise SettingError(
            f"{what} {name!r} cannot be used: give 1 to 63 lower-case letters, digits, - or _, and not {COORDINATOR!r}"
        )
    return name


def ask(name: str) -> str:
    """Questions to one party."""
    return f"tacit.ask.{name}"


def answer(name: str, digest: str) -> str:
    """One party's answer to one question."""
    return f"tacit.answer.{name}.{digest}"


def study(digest: str) -> str:
    """One study."""
    return f"tacit.study.{digest}"


def event(name: str) -> str:
    """What one member tells of its own accord."""
    return f"tacit.event.{name}"


def call(name: str) -> str:
    """Calls to one member."""
    return f"tacit.call.{name}"


def reply(name: str, reference: str) -> str:
    """One member's reply to one call or question."""
    return f"tacit.reply.{name}.{reference}"


def join(invitation: str) -> str:
    """The one subject of an invitation."""
    return f"tacit.join.{invitation}"


def welcome(invitation: str) -> str:
    """Where whoever holds an invitation hears what is said to it."""
    return f"tacit.welcome.{invitation}"


def fetch(name: str) -> str:
    """Where one member asks for what it missed."""
    return f"tacit.fetch.{name}"


def kept(name: str, what: str) -> str:
    """Where one member hears what it missed: "study" or "members"."""
    return f"tacit.kept.{name}.{what}"


def clock(name: str) -> str:
    """Where one member asks for the time."""
    return f"tacit.clock.{name}"


def time(name: str) -> str:
    """Where one member hears the time."""
    return f"tacit.time.{name}"


def rotate(name: str) -> str:
    """Where one member sends its new keys."""
    return f"tacit.rotate.{name}"


def rotated(name: str) -> str:
    """Where one member hears that its new keys are known."""
    return f"tacit.rotated.{name}"


def inbox(name: str) -> str:
    """The prefix of the subjects on which the coordinator hears the server's own replies; no other key has one."""
    return f"_INBOX.{name}"


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The subjects that one key may publish to and subscribe to."""

    publish: Sequence[str]
    subscribe: Sequence[str]


def coordinator_permissions() -> Permissions:
    """Every subject of the federation, and the server's list of connections."""
    everything = ("tacit.>", f"{inbox(COORDINATOR)}.>")
    return Permissions(publish=(*everything, CONNECTIONS), subscribe=everything)


def party_permissions(name: str) -> Permissions:
    """A party's own subjects, the studies, and no other party's anything."""
    node = node_permissions(name)
    return Permissions(
        publish=(f"tacit.answer.{name}.*", *node.publish), subscribe=(ask(name), "tacit.study.*", *node.subscribe)
    )


def node_permissions(name: str) -> Permissions:
    """A center node's own subjects."""
    return Permissions(
        publish=(f"tacit.reply.{name}.*", event(name), fetch(name), clock(name), rotate(name)),
        subscribe=(call(name), MEMBERS, kept(name, "*"), time(name), rotated(name)),
    )


def join_permissions(invitation: str) -> Permissions:
    """What an invitation's key may do: ask to join."""
    return Permissions(publish=(join(invitation),), subscribe=(welcome(invitation),))
