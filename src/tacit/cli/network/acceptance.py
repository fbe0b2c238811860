"""What a person confirms: a party by its fingerprint, a study by its digest. Being told of is not being accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli.console import err, is_terminal
from tacit.errors import SettingError

if TYPE_CHECKING:
    from tacit.daemon.party.consent import OfferedStudy
    from tacit.federation.member.identity import Member


def accept_parties(folder: Path, said: Sequence[str]) -> list[Member]:
    """Accept parties as `NAME=FINGERPRINT`; or as NAME, if a person on a terminal says that the fingerprint is right.

    Raises:
        SettingError: if a party is not known, has another fingerprint, or nobody is there to compare it.
    """
    from tacit.federation.member.known_members import KnownMembers

    known = KnownMembers(folder)
    parties = known.parties()
    marks: dict[str, str] = {}
    for words in said:
        name, _, mark = words.partition("=")
        if not mark and name in parties:
            if not is_terminal():
                raise SettingError(f"say {name}=FINGERPRINT, as {name} itself told you by telephone")
            mark = parties[name].fingerprint if _compared(parties[name]) else "not accepted"
        marks[name] = mark
    return known.accept({name: mark for name, mark in marks.items() if mark != "not accepted"})


def accept_on_terminal(folder: Path, candidates: Mapping[str, Member]) -> None:
    """Ask a person on a terminal about each of the candidates who is not accepted yet; elsewhere nobody is asked."""
    from tacit.federation.member.known_members import KnownMembers

    known = KnownMembers(folder)
    accepted = known.accepted() or {}
    for name, member in candidates.items():
        if accepted.get(name) != member.fingerprint and is_terminal() and _compared(member):
            known.accept({name: member.fingerprint})


def confirm_study(offered: OfferedStudy, said: str, digests: Collection[str]) -> None:
    """Go on if the study is the one that was read: its digest was given, or a person on a terminal confirms it.

    Raises:
        SettingError: if nobody did.
    """
    if offered.digest in (said, *digests):
        return
    name = offered.read().name
    if is_terminal() and not digests:
        err.print(f"study {name}\ndigest {offered.digest}", soft_wrap=True)
        if typer.confirm("Is this the digest of the study that you read, and do you take part?", err=True):
            return
        raise SettingError(f"{name!r} was not confirmed; nothing has changed")
    raise SettingError(
        f"{name!r} has another digest than was given, or none was given; read it with `tacit party show {said}`, then "
        f"say --digest and what stands there"
    )


def _compared(member: Member) -> bool:
    from tacit.federation.member.folder import fingerprints

    err.print("\n".join(fingerprints([member])), soft_wrap=True)
    return typer.confirm(f"Did {member.name} tell you this fingerprint by telephone, and do you accept it?", err=True)
