"""What a ledger knows of one account's run without looking it up for each question: cost, answers, whether it failed.

A run of thousands of questions must not count thousands of answers for each of them. So what was read, or written, is
kept with the open file (`Database.known`), until another process writes or a transaction is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.privacy.ledger_entry import LedgerEntry
from tacit.storage import Database

ASKED, FAILED = "asked", "failed"
"""Pinned for a run before its first step runs, and if one fails, which may tell of a record: it answers no more."""
Tally = dict[str, tuple[int, int]]
"""Of each step that was answered in a run: how often, and the last turn."""


class KnownRuns:
    """The facts of runs in one ledger's file; each of one account.

    Guarantees:
        They are what a query would find, within a transaction that is open on the file, too. That holds as long as
        `count` is told of every release that is written, and `forget` of every other change of a run.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def tally(self, account: str, run: str) -> Tally:
        """What the account answered in a run."""
        known, key = self._database.known, ("tally", account, run)
        if key not in known:
            select = "SELECT step, COUNT(*), MAX(turn) FROM release WHERE party = ? AND run = ? GROUP BY step"
            rows = self._database.execute(select, (account, run))
            known[key] = {step: (count, last_turn) for step, count, last_turn in rows}
        found: Tally = known[key]
        return found

    def reserved(self, account: str, run: str) -> str:
        """What a run has reserved; empty if nothing, or if there is no such run."""
        known, key = self._database.known, ("reserved", account, run)
        if key not in known:
            select = "SELECT reserved FROM run WHERE party = ? AND run = ?"
            row = self._database.execute(select, (account, run)).fetchone()
            known[key] = "" if row is None else str(row[0])
        found: str = known[key]
        return found

    def has_failed(self, account: str, run: str) -> bool:
        """Whether a step of a run failed."""
        known, key = self._database.known, ("failed", account, run)
        if key not in known:
            select = "SELECT 1 FROM pinned WHERE party = ? AND run = ? AND field = ?"
            known[key] = self._database.execute(select, (account, run, FAILED)).fetchone() is not None
        return bool(known[key])

    def count(self, releases: Sequence[LedgerEntry]) -> None:
        """These were just written."""
        known = self._database.known
        for one in releases if known else ():
            key = ("tally", one.account, one.run)
            if key in known:
                count, last_turn = known[key].get(one.step, (0, -1))
                known[key] = {**known[key], one.step: (count + 1, max(last_turn, one.turn))}

    def forget(self, accounts: Sequence[str], run: str) -> None:
        """A run of these accounts begins, is given up or has something pinned; its answers stay what they are."""
        known = self._database.known
        for account in accounts if known else ():
            known.pop(("reserved", account, run), None)
            known.pop(("failed", account, run), None)
