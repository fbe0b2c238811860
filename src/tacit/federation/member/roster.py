"""Who belongs to the federation, at the coordinator's: members, invitations, and what the server must know of them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tacit.errors import SettingError
from tacit.federation.member.identity import Member, Role
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.rotation import MOST_ROTATIONS_EACH, Rotation
from tacit.federation.nats import subject
from tacit.federation.nats.subject import Permissions
from tacit.secure.share import N_NODES
from tacit.storage import open_database

_TABLES = """
CREATE TABLE IF NOT EXISTS member (
    name    TEXT PRIMARY KEY,
    form    TEXT NOT NULL,
    seat    INTEGER,
    joined  REAL NOT NULL,
    revoked REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS invitation (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    role    TEXT NOT NULL,
    nkey    TEXT NOT NULL,
    expires REAL NOT NULL,
    used    REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS list (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS rotation (
    name TEXT NOT NULL,
    step INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (name, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shut_out (
    nkey  TEXT PRIMARY KEY,
    until REAL NOT NULL
) WITHOUT ROWID;
"""
_NUMBER = "number of the list"  # as a key of what is known


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """An invitation as the coordinator remembers it: everything but its secret."""

    id: str
    name: str
    role: Role
    nkey: str
    expires: float


class Roster:
    """Members and invitations, in one SQLite file.

    Guarantees:
        An invitation admits one member, once. A name belongs to one set of keys until it is revoked. A revoked name
        is never given to other keys, so a party's pinned keys cannot be exchanged under it.
    """

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, _TABLES, use="as a roster")

    def members(self, role: Role | None = None, *, revoked: bool = False) -> list[Member]:
        """The members that may take part (or those that were revoked), center nodes in the order of their seats."""
        rows = self._database.execute(
            f"SELECT form FROM member WHERE revoked IS {'NOT ' if revoked else ''}NULL ORDER BY seat, name"
        )
        found = [_member(form) for (form,) in rows]
        return [member for member in found if role is None or member.role == role]

    def find(self, name: str) -> Member | None:
        """The member of this name, if it belongs and was not revoked."""
        row = self._database.execute("SELECT form FROM member WHERE name = ? AND revoked IS NULL", (name,)).fetchone()
        return None if row is None else _member(row[0])

    def seat(self, name: str) -> int | None:
        """The number of a center node among the nodes."""
        row = self._database.execute("SELECT seat FROM member WHERE name = ?", (name,)).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def invite(self, ticket: Ticket) -> None:
        """Remember a new invitation."""
        with self._database.transaction() as database:
            self._check_free(ticket.name, ticket.role)
            # A second invitation for the same name replaces the first: a lost file must not stay valid.
            database.execute("DELETE FROM invitation WHERE name = ? AND used IS NULL", (ticket.name,))
            database.execute(
                "INSERT INTO invitation VALUES (?, ?, ?, ?, ?, NULL)",
                (ticket.id, ticket.name, ticket.role, ticket.nkey, ticket.expires),
            )

    def admit(self, invitation: str, member: Member) -> int | None:
        """Take a member in by its invitation, and return its seat if it is a center node.

        Raises:
            SettingError: if the invitation is unknown, used or expired, or is for another name or role.
        """
        with self._database.transaction() as database:
            row = database.execute(
                "SELECT name, role, expires, used FROM invitation WHERE id = ?", (invitation,)
            ).fetchone()
            if row is None:
                raise SettingError("the invitation is not known here; ask the coordinator for a new one")
            name, role, expires, used = row
            if used is not None:
                known = database.execute("SELECT form FROM member WHERE name = ?", (name,)).fetchone()
                if known is not None and Member.from_dict(json.loads(known[0])) == member:
                    return self.seat(member.name)  # the same member asks again: the welcome was lost on the way
                raise SettingError(f"the invitation of {name!r} was used before; ask the coordinator for a new one")
            if expires < time.time():
                raise SettingError(f"the invitation of {name!r} has expired; ask the coordinator for a new one")
            if (member.name, member.role) != (name, role):
                raise SettingError(f"the invitation is for the {role} {name!r}, not the {member.role} {member.name!r}")
            self._check_free(name, role)
            self._check_keys(member)
            seat = self._free_seat() if role == "center" else None
            database.execute("UPDATE invitation SET used = ? WHERE id = ?", (time.time(), invitation))
            database.execute(
                "INSERT INTO member VALUES (?, ?, ?, ?, NULL)", (name, json.dumps(member.as_dict()), seat, time.time())
            )
            self._count_up()
            return seat

    def revoke(self, name: str) -> None:
        """Shut a member out, for good under this name; an invitation that it has not used goes too."""
        with self._database.transaction() as database:
            gone = database.execute("DELETE FROM invitation WHERE name = ? AND used IS NULL", (name,)).rowcount
            out = database.execute(
                "UPDATE member SET revoked = ? WHERE name = ? AND revoked IS NULL", (time.time(), name)
            ).rowcount
            self._count_up()
        if not (gone or out):
            known = ", ".join(member.name for member in self.members()) or "nobody yet"
            raise SettingError(f"{name!r} is no member and has no open invitation; members are: {known}")

    def rotate(self, rotation: Rotation) -> None:
        """Give a member the new keys that its old ones signed; a second time changes nothing.

        Raises:
            SettingError: if it has other keys than the rotation's old ones, the new ones are another's, or it has had
                too many.
        """
        rotation.check()
        name = rotation.old.name
        with self._database.transaction() as database:
            found = next((member for member in self.members() if member.name == name), None)
            if found == rotation.new:
                return
            if found != rotation.old:
                raise SettingError(f"{name!r} is no member with the keys that it would rotate")
            self._check_keys(rotation.new)
            step = database.execute("SELECT COUNT(*) FROM rotation WHERE name = ?", (name,)).fetchone()[0]
            if step >= MOST_ROTATIONS_EACH:
                raise SettingError(f"{name!r} has rotated {step} times, which is the most; join under another name")
            database.execute("INSERT INTO rotation VALUES (?, ?, ?)", (name, step, rotation.encode()))
            form = json.dumps(rotation.new.as_dict())
            database.execute("UPDATE member SET form = ? WHERE name = ?", (form, name))
            self._count_up()

    @property
    def number(self) -> int:
        """The number of the present list: it grows with every change."""
        known = self._database.known  # every round asks for it
        if _NUMBER not in known:
            row = self._database.execute("SELECT number FROM list").fetchone()
            known[_NUMBER] = 0 if row is None else int(row[0])
        return int(known[_NUMBER])

    def member_list(self) -> MemberList:
        """Who belongs, as every member is told."""
        with self._database.transaction() as database:
            members = self.members()
            rows = database.execute("SELECT name, body FROM rotation ORDER BY name, step").fetchall()
            names = {member.name for member in members}
            return MemberList(
                number=self.number,
                members=tuple(members),
                revoked=tuple(member.name for member in self.members(revoked=True)),
                rotations=tuple(Rotation.decode(bytes(body)) for name, body in rows if name in names),
            )

    def _count_up(self) -> None:
        self._database.execute("INSERT INTO list VALUES (1, 1) ON CONFLICT DO UPDATE SET number = number + 1")
        self._database.known.pop(_NUMBER, None)

    def users(self, coordinator: Member) -> dict[str, Permissions]:
        """The keys that the server lets in now, and what each may do."""
        users = {coordinator.nkey: subject.coordinator_permissions()}
        for member in self.members():
            may = subject.party_permissions if member.role == "party" else subject.node_permissions
            users[member.nkey] = may(member.name)
        # A used invitation may still knock: to be told that it was used, or welcomed again if the welcome was lost.
        rows = self._database.execute("SELECT id, nkey FROM invitation WHERE expires > ?", (time.time(),))
        users |= {str(nkey): subject.join_permissions(str(id_)) for id_, nkey in rows}
        out = self.shut_out_keys() - {coordinator.nkey}
        return {nkey: may for nkey, may in users.items() if nkey not in out}

    def shut_out(self, nkey: str, until: float) -> None:
        """Let nobody in with this key until then."""
        with self._database.transaction() as database:
            database.execute("DELETE FROM shut_out WHERE until < ?", (time.time(),))
            database.execute("INSERT OR REPLACE INTO shut_out VALUES (?, ?)", (nkey, until))

    def shut_out_keys(self) -> frozenset[str]:
        """The keys that are shut out for a while, now."""
        rows = self._database.execute("SELECT nkey FROM shut_out WHERE until >= ?", (time.time(),))
        return frozenset(str(nkey) for (nkey,) in rows)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _check_free(self, name: str, role: str) -> None:
        row = self._database.execute("SELECT revoked FROM member WHERE name = ?", (name,)).fetchone()
        if row is not None:
            state = "was revoked, and its name is not given again" if row[0] is not None else "is a member already"
            raise SettingError(f"{name!r} {state}; choose another name")
        if role == "center" and len(self.members("center")) >= N_NODES:
            raise SettingError(f"the center has its {N_NODES} nodes; revoke one before another is invited")

    def _check_keys(self, member: Member) -> None:
        """Nobody brings a key that is another's: the server would give that key its permissions."""
        keys = (member.nkey, member.letter_key.hex(), member.seal_key.hex())
        where = " OR ".join("instr(form, ?)" for _ in keys)  # revoked members too
        other = self._database.execute(f"SELECT 1 FROM member WHERE {where}", keys).fetchone()
        invitation = self._database.execute("SELECT 1 FROM invitation WHERE nkey = ?", keys[:1]).fetchone()
        if other is not None or invitation is not None:
            raise SettingError(f"{member.name!r} brings a key that is another's; make new ones in another --folder")

    def _free_seat(self) -> int:
        taken = {self.seat(member.name) for member in self.members("center")}
        return next(seat for seat in range(N_NODES) if seat not in taken)


@lru_cache(maxsize=1 << 16)  # members are read for every question, and their keys are checked each time they are parsed
def _member(form: str) -> Member:
    return Member.from_dict(json.loads(form))
