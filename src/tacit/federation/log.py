"""The party's log: every decision of its guard, each line chained to the one before by a hash.

Line i holds H_i = SHA-256(H_{i-1} || text_i), with H_0 = SHA-256(party's name). Whoever knows H_n (it is printed with
the log) can tell whether any of the first n lines was altered, removed, added or moved. It lives in the ledger's
file, so that a release and its line are written in one transaction.

Whoever asks can be refused, and can ask the same again, as often as it likes, and each time is a decision. So of such
decisions 200 a day get a line of their own. The others are counted, and the count is written with the next line. A text
in a line is cut to 300 characters. So a flood adds at most about 100 KB a day.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
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
_DAYS = """
CREATE TABLE IF NOT EXISTS log_day (
    party TEXT PRIMARY KEY,
    day   INTEGER NOT NULL,
    lines INTEGER NOT NULL
) WITHOUT ROWID
"""
_LAST_LINES = (
    "SELECT party, line, hash FROM {} log USING (party) WHERE line = (SELECT MAX(line) FROM log AS own WHERE "
    "own.party = each.party)"  # of log.party it would look at every line
)
Fact = str | int | float | None

_encode = json.JSONEncoder(sort_keys=True).encode
_ENDLESS = ("refused", "repeated", "began", "abandoned")  # decisions that whoever asks can bring about without end
_LINES_A_DAY = 200
_MOST_CHARACTERS = 300


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
        `append` is part of the transaction that is open on the ledger, if one is. Every release has a line; of
        refusals, repeated answers and runs that begin or are given up, the first 200 a day. `verify` raises
        `LogTampered` for the first line whose hash does not follow from the lines before it, and for a missing number.
    """

    def __init__(self, ledger: Ledger, party: str) -> None:
        self._ledger = ledger
        self._party = party
        ledger.add_table(_TABLE)
        ledger.add_table(_DAYS)
        self._left_out = 0  # decisions that were counted since the last line

    def append(self, decision: str, **facts: Fact) -> None:
        """Write one decision down, or count it, where whoever asks brings it about too often."""
        append_all([self], decision, [facts])

    def lines(self, *, after: int = 0) -> list[Line]:
        """All lines, or those after a number, oldest first."""
        rows = self._ledger.database.execute(
            "SELECT line, text, hash FROM log WHERE party = ? AND line > ? ORDER BY line", (self._party, after)
        )
        return [Line(number=int(number), text=str(text), hash=str(hash_)) for number, text, hash_ in rows]

    def head(self) -> str:
        """The hash over all lines; keep it elsewhere to notice a log that was cut short."""
        return self.tail()[1]

    def hash_at(self, number: int) -> str | None:
        """The hash over the lines up to one; None if there is no such line."""
        row = self._ledger.database.execute(
            "SELECT hash FROM log WHERE party = ? AND line = ?", (self._party, number)
        ).fetchone()
        return None if row is None else str(row[0])

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

    def _line(
        self, about: Mapping[str, Fact], facts: Mapping[str, Fact], tails: Mapping[str, tuple[int, str]]
    ) -> tuple[str, int, str, str]:
        """The row of the next line."""
        cut = {name: fact[:_MOST_CHARACTERS] if isinstance(fact, str) else fact for name, fact in facts.items()}
        if self._left_out:
            cut, self._left_out = {**cut, "left_out": self._left_out}, 0
        number, previous = tails.get(self._party) or (0, self._first())
        text = _encode({**about, **cut})
        return self._party, number + 1, text, _chain(previous, text)

    def _first(self) -> str:
        return hashlib.sha256(self._party.encode()).hexdigest()

    def tail(self) -> tuple[int, str]:
        """The number of the last line, and the hash over all."""
        return _tails(self._ledger, [self._party]).get(self._party, (0, self._first()))


def append_all(logs: Sequence[Log], decision: str, facts: Sequence[Mapping[str, Fact]]) -> None:
    """Write a decision of each of several parties down, which keep their logs in one ledger."""
    ledger, day = logs[0]._ledger, _today()
    with ledger.transaction() as database:
        is_endless = decision in _ENDLESS
        before = _lines_of(ledger, [log._party for log in logs], day) if is_endless else {}
        shown: list[tuple[Log, Mapping[str, Fact]]] = []
        for log, own in zip(logs, facts, strict=True):
            if before.get(log._party, 0) >= _LINES_A_DAY:
                log._left_out += 1
            else:
                shown.append((log, own))
        if is_endless:
            database.executemany(
                "INSERT OR REPLACE INTO log_day VALUES (?, ?, ?)",
                ((log._party, day, before.get(log._party, 0) + 1) for log, _ in shown),
            )
        tails = _tails(ledger, [log._party for log, _ in shown])
        about: dict[str, Fact] = {"decision": decision, "time": round(time.time(), 3)}
        lines = [log._line(about, own, tails) for log, own in shown]
        database.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", lines)
        for party, number, _, hash_ in lines:
            if ("tail", party) in database.known:
                database.known["tail", party] = {party: (number, hash_)}


def _tails(ledger: Ledger, parties: Sequence[str]) -> dict[str, tuple[int, str]]:
    """The number of the last line, and the hash over all, of each party that has lines."""
    if len(parties) == 1:
        known, key = ledger.database.known, ("tail", parties[0])
        if key not in known:
            select = "SELECT line, hash FROM log WHERE party = ? ORDER BY line DESC LIMIT 1"
            row = ledger.database.execute(select, (parties[0],)).fetchone()
            known[key] = {} if row is None else {parties[0]: (int(row[0]), str(row[1]))}
        found: dict[str, tuple[int, str]] = known[key]
        return found
    return {str(party): (int(line), str(hash_)) for party, line, hash_ in ledger.look_up(_LAST_LINES, parties)}


def _lines_of(ledger: Ledger, parties: Sequence[str], day: int) -> dict[str, int]:
    """How many lines of endless decisions were written on a day, by whatever process, of each party that has some."""
    return dict(ledger.look_up("SELECT party, lines FROM {} log_day USING (party) WHERE day = ?", parties, day))


def _today() -> int:
    return int(time.time() // 86400)


def _chain(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
