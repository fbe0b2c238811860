"""Where letters travel, and who may send or read what: the server enforces these permissions.

tacit.ask.NAME             coordinator -> party: a question          kept by the server (JetStream)
tacit.answer.NAME.DIGEST   party -> coordinator: its answer          kept
tacit.study.DIGEST         coordinator -> everybody: a study         kept
tacit.members              coordinator -> everybody: who belongs     kept
tacit.event.NAME           member -> coordinator: it opted in or out kept
tacit.call.NAME            coordinator -> member: anything that need not outlive a restart
tacit.reply.NAME.REF       member -> coordinator: what it says to that, refusals included
tacit.join.ID              whoever holds invitation ID -> coordinator, once
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import SettingError

COORDINATOR = "coordinator"
EVERYBODY = "*"
CLOCK = "tacit.clock"
MEMBERS = "tacit.members"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What the server keeps on disk: the subjects, how many messages of each, for how long, and how much in all."""

    name: str
    subjects: str
    per_subject: int
    days: int
    megabytes: int


ASKS = Stream(name="TACIT_ASK", subjects="tacit.ask.*", per_subject=1, days=7, megabytes=512)
ANSWERS = Stream(name="TACIT_ANSWER", subjects="tacit.answer.*.*", per_subject=1, days=7, megabytes=2048)
STUDIES = Stream(name="TACIT_STUDY", subjects="tacit.study.*", per_subject=1, days=365, megabytes=64)
EVENTS = Stream(name="TACIT_EVENT", subjects="tacit.event.*", per_subject=1000, days=365, megabytes=64)
ROSTER = Stream(name="TACIT_MEMBERS", subjects=MEMBERS, per_subject=1, days=3650, megabytes=64)
STREAMS = (ASKS, ANSWERS, STUDIES, EVENTS, ROSTER)


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


def inbox(name: str) -> str:
    """The prefix of the subjects on which one member hears the server's own replies."""
    return f"_INBOX.{name}"


def stored(stream: Stream, subject: str = "") -> str:
    """Where the last kept message of `subject` is asked for; without one, where any message of the stream is."""
    return f"$JS.API.DIRECT.GET.{stream.name}{'.' + subject if subject else ''}"


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The subjects that one key may publish to and subscribe to."""

    publish: Sequence[str]
    subscribe: Sequence[str]


def coordinator_permissions() -> Permissions:
    """Every subject of the federation, and the server's storage."""
    everything = ("tacit.>", "_INBOX.>", "$JS.>")
    return Permissions(publish=everything, subscribe=everything)


def party_permissions(name: str) -> Permissions:
    """A party's own subjects, the studies, and no other party's anything."""
    return Permissions(
        publish=(
            f"tacit.answer.{name}.*", f"tacit.reply.{name}.*", event(name), CLOCK, stored(ASKS, ask(name)),
            stored(STUDIES), stored(ROSTER, MEMBERS),
        ),
        subscribe=(ask(name), call(name), "tacit.study.*", MEMBERS, f"{inbox(name)}.>"),
    )  # fmt: skip


def node_permissions(name: str) -> Permissions:
    """A center node's own subjects."""
    return Permissions(
        publish=(f"tacit.reply.{name}.*", event(name), CLOCK, stored(ROSTER, MEMBERS)),
        subscribe=(call(name), MEMBERS, f"{inbox(name)}.>"),
    )


def join_permissions(invitation: str) -> Permissions:
    """What an invitation's key may do: ask to join."""
    return Permissions(publish=(join(invitation),), subscribe=(f"{inbox(invitation)}.>",))
