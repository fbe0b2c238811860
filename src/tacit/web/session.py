"""Sessions, the limit on attempts to log in, forms that are sent twice, and the audit trail: what a site remembers."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import time
from dataclasses import dataclass
from typing import Literal

from tacit.rand import Rng
from tacit.storage import Database

IDLE_SECONDS = 3600.0  # a session that is not used for so long ends
LONGEST_SECONDS = 12 * 3600.0  # and every session ends after this
_SEEN_EVERY = 60.0  # so that reading a page rarely writes
_KEEP_FORMS = 7 * 86400.0
_KEEP_AUDIT = 3 * 365 * 86400.0

Tone = Literal["good", "bad", "plain"]


@dataclass(frozen=True, kw_only=True)
class Flash:
    """A message that is shown once, on the next page."""

    text: str
    tone: Tone = "good"


def new_key() -> str:
    """256 bits as text."""
    return base64.urlsafe_b64encode(Rng.system().bytes(32)).decode("ascii").rstrip("=")


class SiteSessions:
    """Who is logged in. The cookie has a key, the database its hash.

    Guarantees:
        A copy of the database opens no session. A session ends after an hour without use, and after twelve in any case.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, account: str) -> str:
        """A new session; returns the key for its cookie."""
        key, now = new_key(), time.time()
        with self._database.transaction() as database:
            self._forget_old(now)
            database.execute("INSERT INTO session VALUES (?, ?, ?, ?, '[]')", (_hash(key), account, now, now))
        return key

    def account_of(self, key: str) -> str | None:
        """Whose session this is; None if there is none or it has ended."""
        row = self._database.execute(
            "SELECT account, created, seen FROM session WHERE id = ?", (_hash(key),)
        ).fetchone()
        now = time.time()
        if row is None or not (row[2] > now - IDLE_SECONDS and row[1] > now - LONGEST_SECONDS):
            return None
        if row[2] < now - _SEEN_EVERY:
            self._database.execute("UPDATE session SET seen = ? WHERE id = ?", (now, _hash(key)))
        return str(row[0])

    def end(self, key: str) -> None:
        """End a session."""
        self._database.execute("DELETE FROM session WHERE id = ?", (_hash(key),))

    def end_all(self, account: str) -> None:
        """End every session of an account."""
        self._database.execute("DELETE FROM session WHERE account = ?", (account,))

    def flash(self, key: str, flash: Flash) -> None:
        """Keep a message for the session's next page."""
        with self._database.transaction() as database:
            waiting = [*self._flashes(key), flash][-5:]
            form = json.dumps([[each.text, each.tone] for each in waiting])
            database.execute("UPDATE session SET flashes = ? WHERE id = ?", (form, _hash(key)))

    def take_flashes(self, key: str) -> list[Flash]:
        """The messages that wait; they are shown once."""
        waiting = self._flashes(key)
        if waiting:
            self._database.execute("UPDATE session SET flashes = '[]' WHERE id = ?", (_hash(key),))
        return waiting

    def _flashes(self, key: str) -> list[Flash]:
        row = self._database.execute("SELECT flashes FROM session WHERE id = ?", (_hash(key),)).fetchone()
        return [] if row is None else [Flash(text=text, tone=tone) for text, tone in json.loads(row[0])]

    def _forget_old(self, now: float) -> None:
        self._database.execute(
            "DELETE FROM session WHERE seen < ? OR created < ?", (now - IDLE_SECONDS, now - LONGEST_SECONDS)
        )


class Attempts:
    """Failed attempts to log in, counted by name and address: a guesser is slowed down, and others are not shut out."""

    WINDOW = 900.0
    PER_PAIR, PER_ADDRESS, PER_NAME = 5, 30, 100

    def __init__(self, database: Database) -> None:
        self._database = database

    def seconds_to_wait(self, name: str, address: str) -> float:
        """How long this name has to wait at this address; 0 if it may try."""
        return max(self._wait(key, most) for key, most in self._keys(name, address))

    def failed(self, name: str, address: str) -> None:
        """Count a failed attempt."""
        now = time.time()
        with self._database.transaction() as database:
            database.execute("DELETE FROM attempt WHERE time < ?", (now - self.WINDOW,))
            for key, _ in self._keys(name, address):
                database.execute("INSERT INTO attempt VALUES (?, ?)", (key, now))

    def succeeded(self, name: str, address: str) -> None:
        """Forget the failures of this name at this address; elsewhere, this attempt alone, which was counted before."""
        (pair, _), *others = self._keys(name, address)
        with self._database.transaction() as database:
            database.execute("DELETE FROM attempt WHERE key = ?", (pair,))
            for key, _ in others:
                latest = "SELECT rowid FROM attempt WHERE key = ? ORDER BY time DESC LIMIT 1"
                database.execute(f"DELETE FROM attempt WHERE rowid IN ({latest})", (key,))

    def _keys(self, name: str, address: str) -> list[tuple[str, int]]:
        short, place = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16], one_place(address)
        return [
            (f"pair {short} {place}", self.PER_PAIR),
            (f"address {place}", self.PER_ADDRESS),
            (f"name {short}", self.PER_NAME),
        ]

    def _wait(self, key: str, most: int) -> float:
        since = time.time() - self.WINDOW
        rows = self._database.execute(
            "SELECT time FROM attempt WHERE key = ? AND time > ? ORDER BY time DESC LIMIT ?", (key, since, most)
        ).fetchall()
        return max(0.0, rows[-1][0] - since) if len(rows) == most else 0.0


def one_place(address: str) -> str:
    """The address as attempts are counted: of IPv6 its first 64 bits. Whoever has one address has all of these."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


class SentForms:
    """Forms that were sent, by the number that each carries: the same form sent again leads to the same place."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def place(self, nonce: str) -> str | None:
        """Where a form with this number led; None if it was not sent yet."""
        row = self._database.execute("SELECT place FROM sent_form WHERE nonce = ?", (_hash(nonce),)).fetchone()
        return None if row is None else str(row[0])

    def keep(self, nonce: str, place: str) -> None:
        """Remember where a form led."""
        now = time.time()
        with self._database.transaction() as database:
            database.execute("DELETE FROM sent_form WHERE time < ?", (now - _KEEP_FORMS,))
            database.execute("INSERT OR IGNORE INTO sent_form VALUES (?, ?, ?)", (_hash(nonce), place, now))


@dataclass(frozen=True, kw_only=True)
class AuditLine:
    """Who did what, when, to what, and from which address."""

    time: float
    who: str
    what: str
    object: str
    client: str


class AuditTrail:
    """Who did what when; lines are added, never changed, and forgotten after three years."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, who: str, what: str, object: str = "", client: str = "") -> None:  # noqa: A002
        """Write a line."""
        now = time.time()
        with self._database.transaction() as database:
            database.execute("DELETE FROM audit WHERE time < ?", (now - _KEEP_AUDIT,))
            row = (now, who[:100], what[:100], object[:300], client[:100])
            database.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?)", row)

    def lines(self, *, most: int = 500, who: str = "") -> list[AuditLine]:
        """The latest lines, the last first."""
        rows = self._database.execute(
            "SELECT time, who, what, object, client FROM audit WHERE ? IN ('', who) ORDER BY rowid DESC LIMIT ?",
            (who, most),
        )
        return [AuditLine(time=t, who=who, what=what, object=o, client=client) for t, who, what, o, client in rows]


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
