"""What a node remembers of parties' ledgers, so that one that was lost, copied or taken back is noticed.

Fresh noise for what was answered before would average out. A party's own ledger prevents that, as long as it is there.
So a node pins the epoch of each party's ledger, and takes each number that it seals once. What these two refuse:

1. A ledger that was lost and begun anew has another epoch. The node's operator may accept it, once and by name
   (`tacit center accept-ledger`); the old one is then refused for good.
2. A ledger that was restored from an older copy, or runs twice, gives a number again to something else.

Numbers are kept as ranges. What was sealed and never brought here leaves a gap. So the table grows with the number of
such gaps and not with the number of sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import AddendRefused, CenterError
from tacit.secure.envelope import LedgerMark
from tacit.storage import Database

TABLES = """
CREATE TABLE IF NOT EXISTS ledger (
    party   TEXT NOT NULL,
    epoch   TEXT NOT NULL,
    retired INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    line    INTEGER NOT NULL,
    head    TEXT NOT NULL,
    PRIMARY KEY (party, epoch)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken (
    party TEXT NOT NULL,
    epoch TEXT NOT NULL,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (party, epoch, first)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, kw_only=True)
class WatchedLedger:
    """A party's ledger, in the newest state that was seen here."""

    party: str
    mark: LedgerMark


class LedgerWatch:
    """The pinned epochs and the numbers that were taken, in a node's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def check(self, marks: Mapping[str, LedgerMark]) -> None:
        """Refuse, within the transaction that is open, what `take` would refuse; nothing is written.

        Raises:
            AddendRefused: naming the parties that have another ledger than before, or whose number was taken before.
        """
        refused: dict[str, str] = {}
        for party, mark in marks.items():
            try:
                self._check_epoch(party, mark)
                self._range_before(party, mark)
            except CenterError as error:
                refused[party] = str(error)
        if refused:
            raise AddendRefused(refused)

    def take(self, marks: Mapping[str, LedgerMark]) -> None:
        """Take one number of each party, within the transaction that is open.

        Raises:
            AddendRefused: as `check`.
        """
        self.check(marks)
        for party, mark in marks.items():
            self._pin(party, mark)
            self._take(party, mark)

    def accept_new(self, party: str) -> None:
        """Let the party's next ledger be pinned in place of the one that is.

        Raises:
            CenterError: if no ledger of that party was seen yet.
        """
        with self._database.transaction():
            done = self._database.execute("UPDATE ledger SET retired = 1 WHERE party = ? AND retired = 0", (party,))
            if not done.rowcount:
                raise CenterError(f"no ledger of party {party!r} was seen here, so the next one is taken anyway")

    def all(self) -> list[WatchedLedger]:
        """The ledgers that are pinned."""
        rows = self._database.execute(
            "SELECT party, epoch, number, line, head FROM ledger WHERE retired = 0 ORDER BY party"
        )
        return [
            WatchedLedger(party=str(party), mark=LedgerMark(epoch=epoch, number=number, line=line, head=head))
            for party, epoch, number, line, head in rows
        ]

    def _check_epoch(self, party: str, mark: LedgerMark) -> int | None:
        """The largest number that was seen of the party's ledger, if it is the one that is pinned, or none is."""
        known = self._database.execute(
            "SELECT epoch, retired, number FROM ledger WHERE party = ? AND (epoch = ? OR retired = 0)",
            (party, mark.epoch),
        ).fetchall()
        if any(epoch != mark.epoch or retired for epoch, retired, _ in known):
            raise CenterError(
                f"it has another ledger than before: the old one was lost, or left. If its owner says so "
                f"by telephone, each node's operator accepts that once: `tacit center accept-ledger {party}`"
            )
        return int(known[0][2]) if known else None

    def _pin(self, party: str, mark: LedgerMark) -> None:
        seen = self._check_epoch(party, mark)
        if seen is None or seen < mark.number:
            self._database.execute(
                "INSERT OR REPLACE INTO ledger VALUES (?, ?, 0, ?, ?, ?)",
                (party, mark.epoch, mark.number, mark.line, mark.head),
            )

    def _range_before(self, party: str, mark: LedgerMark) -> tuple[int, int] | None:
        """The range of taken numbers that begins before this one, which must not be in it."""
        before = self._database.execute(
            "SELECT first, last FROM taken WHERE party = ? AND epoch = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            (party, mark.epoch, mark.number),
        ).fetchone()
        if before is not None and mark.number <= before[1]:
            raise CenterError(
                f"it sealed this with a ledger that was taken back to an earlier state, or that runs "
                f"twice: its number {mark.number} was something else before. Let its owner restore the newest ledger"
            )
        return None if before is None else (int(before[0]), int(before[1]))

    def _take(self, party: str, mark: LedgerMark) -> None:
        """Add one number to the ranges: to the one before it, to the one after it, or between the two as its own."""
        whose, number = (party, mark.epoch), mark.number
        before = self._range_before(party, mark)
        after = self._database.execute(
            "SELECT last FROM taken WHERE party = ? AND epoch = ? AND first = ?", (*whose, number + 1)
        ).fetchone()
        first = before[0] if before is not None and before[1] == number - 1 else number
        last = number if after is None else after[0]
        self._database.execute("DELETE FROM taken WHERE party = ? AND epoch = ? AND first = ?", (*whose, number + 1))
        self._database.execute("INSERT OR REPLACE INTO taken VALUES (?, ?, ?, ?)", (*whose, first, last))
