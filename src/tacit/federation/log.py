"""The party's log: every decision of its guard, each line chained to the one before by a hash.

Line i holds H_i = SHA-256(H_{i-1} || text_i), with H_0 = SHA-256(party's name). Whoever knows H_n (it is printed with
the log) can tell whether any of the first n lines was altered, removed, added or moved. It lives in the ledger's
file, so that a release and its line are written in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass

from tacit.errors import LogTampered
from tacit.privacy.ledger import Ledger

_TABLE = """
CREATE TABLE IF NOT EXISTS log (
    party TEXT NOT NULL,
    line  INTEGER NOT NULL,
    text  TEXT NOT NULL,
    hash  TEXT NOT NULL,
    PRIMARY KEY (party, line)
) WITHOUT ROWID
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: its number from 1, what was decided as JSON, and the hash over all lines so far."""

    number: int
    text: str
    hash: str

    @property
    def decision(self) -> dict[str, object]:
        """The text, parsed."""
        parsed: dict[str, object] = json.loads(self.text)
        return parsed


class Log:
    """An append-only list of decisions.

    Guarantees:
        `append` is part of the transaction that is open on the ledger, if one is. `verify` raises `LogTampered` for
        the first line whose hash does not follow from the lines before it, and for a number that is missing.
    """

    def __init__(self, ledger: Ledger, party: str) -> None:
        self._ledger = ledger
        self._party = party
        with ledger.transaction() as database:
            database.execute(_TABLE)

    def append(self, decision: str, **facts: str | int | float | None) -> None:
        """Write one decision down."""
        with self._ledger.transaction() as database:
            number, previous = self._tail()
            text = json.dumps({"decision": decision, "time": round(time.time(), 3), **facts}, sort_keys=True)
            database.execute(
                "INSERT INTO log VALUES (?, ?, ?, ?)", (self._party, number + 1, text, _chain(previous, text))
            )

    def lines(self) -> list[Line]:
        """All lines, oldest first."""
        rows = self._ledger.database.execute(
            "SELECT line, text, hash FROM log WHERE party = ? ORDER BY line", (self._party,)
        )
        return [Line(number=int(number), text=str(text), hash=str(hash_)) for number, text, hash_ in rows]

    def head(self) -> str:
        """The hash over all lines; keep it elsewhere to notice a log that was cut short."""
        return self._tail()[1]

    def verify(self, head: str | None = None) -> int:
        """Check the chain, up to `head` if given, and return the number of lines."""
        previous = self._first()
        lines = self.lines()
        for expected, line in enumerate(lines, start=1):
            if line.number != expected or line.hash != _chain(previous, line.text):
                raise LogTampered(f"the log of party {self._party!r} was changed at or before line {expected}")
            previous = line.hash
        if head is not None and head not in (self._first(), *(line.hash for line in lines)):
            raise LogTampered(f"the log of party {self._party!r} lacks the lines that led to hash {head[:12]}")
        return len(lines)

    def _first(self) -> str:
        return hashlib.sha256(self._party.encode()).hexdigest()

    def _tail(self) -> tuple[int, str]:
        row = self._ledger.database.execute(
            "SELECT line, hash FROM log WHERE party = ? ORDER BY line DESC LIMIT 1", (self._party,)
        ).fetchone()
        return (0, self._first()) if row is None else (int(row[0]), str(row[1]))


def _chain(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
