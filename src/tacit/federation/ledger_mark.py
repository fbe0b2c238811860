"""The states of a ledger, as those who see a party's envelopes can tell them apart.

A ledger draws its epoch when it is made, and counts what it seals. A ledger that was lost and begun anew has another
epoch. One that was copied, or restored from a copy, gives a number a second time. Nodes remember both.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.federation.log import Log
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.envelope import LedgerMark

_TABLE = """
CREATE TABLE IF NOT EXISTS mark (
    party  TEXT PRIMARY KEY,
    epoch  TEXT NOT NULL,
    number INTEGER NOT NULL
) WITHOUT ROWID
"""
_EPOCH_BYTES = 16


class LedgerMarks:
    """The epoch of one party's ledger, and the number of what it sealed last.

    Guarantees:
        `next` is part of the transaction that is open on the ledger, if one is. It gives each number once.
    """

    def __init__(self, ledger: Ledger, log: Log, party: str) -> None:
        self._ledger = ledger
        self._log = log
        self._party = party
        ledger.add_table(_TABLE)

    def now(self) -> LedgerMark:
        """The state as it is."""
        known = self._ledger.database.known
        mark, tail = known.get(("mark", self._party)), known.get(("tail", self._party))
        if mark and tail:
            return LedgerMark(epoch=mark[0], number=mark[1], line=tail[self._party][0], head=tail[self._party][1])
        row = self._row()
        if row is None:  # the ledger is new, or of an earlier release
            with self._ledger.transaction() as database:
                new = (self._party, Rng.system().bytes(_EPOCH_BYTES).hex(), 0)
                database.execute("INSERT OR IGNORE INTO mark VALUES (?, ?, ?)", new)
                row = self._row() or new[1:]
        line, head = self._log.tail()
        return LedgerMark(epoch=row[0], number=row[1], line=line, head=head)

    def next(self) -> LedgerMark:
        """The state for what is sealed now, with a number of its own."""
        with self._ledger.transaction() as database:
            now = self.now()
            database.execute("UPDATE mark SET number = number + 1 WHERE party = ?", (self._party,))
            database.known["mark", self._party] = now.epoch, now.number + 1
        return replace(now, number=now.number + 1)

    def _row(self) -> tuple[str, int] | None:
        known, key = self._ledger.database.known, ("mark", self._party)
        if key not in known:
            select = "SELECT epoch, number FROM mark WHERE party = ?"
            row = self._ledger.database.execute(select, (self._party,)).fetchone()
            if row is None:
                return None
            known[key] = str(row[0]), int(row[1])
        found: tuple[str, int] = known[key]
        return found
