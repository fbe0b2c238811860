"""What a party or a node writes down when the list of members has changed something here."""

from __future__ import annotations

from tacit.federation.log import Log
from tacit.federation.member.known_members import Followed
from tacit.federation.nats.journal import Journal


def note_changes(changes: Followed, journal: Journal, log: Log | None = None) -> None:
    """Tell the owner: in the daemon's log, and what takes away or exchanges in the party's own log too."""
    for member in changes.new:
        journal.note("pinned", member=member.name, role=member.role, fingerprint=member.fingerprint)
    for name in changes.gone:
        journal.note("revoked", member=name)
        if log is not None:
            log.append("revoked", member=name)
    for step in changes.rotated:
        old, new = step.old.fingerprint, step.new.fingerprint
        journal.note("key-rotated", member=step.new.name, old=old, new=new)
        if log is not None:
            log.append("key-rotated", member=step.new.name, old=old, new=new)
    for member in changes.disputed:
        journal.note(
            "key-not-believed", member=member.name, fingerprint=member.fingerprint,
            why="it was told of with other keys, or was revoked; compare the fingerprint by telephone, then accept-key",
        )  # fmt: skip
