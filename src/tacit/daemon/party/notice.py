"""What an owner wants to be told of, and what there is to tell: a badge on the page and a line in the journal.

The daemon looks once a second at what is new: studies that were announced, and lines of the party's log. A notice holds
nothing that the owner could not read elsewhere.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tacit.daemon.party.consent import Consents
from tacit.errors import SettingError
from tacit.federation.log import Log
from tacit.privacy.ledger import Budget, Ledger
from tacit.storage import open_database

FILE = "notices.db"
_MOST = 500  # notices that are kept

_TABLES = """
CREATE TABLE IF NOT EXISTS wish (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notice (
    id   INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    text TEXT NOT NULL,
    read INTEGER NOT NULL
);
"""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the owner wants to be told of.

    Attributes:
        studies: a study was announced.
        runs: a run began.
        refusals: the guard refused something.
        members: somebody was revoked, or has new keys.
        budget_left: less than this is left of the budget in all studies; 0 tells never.
    """

    studies: bool = True
    runs: bool = False
    refusals: bool = True
    members: bool = True
    budget_left: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.budget_left) and self.budget_left >= 0):
            raise SettingError(f"the epsilon below which you are told, {self.budget_left}, must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One thing to tell, and whether its owner has seen it."""

    time: float
    text: str
    is_read: bool


class Notices:
    """The party's notices, in a file of their own."""

    def __init__(self, folder: Path) -> None:
        self._database = open_database(folder / FILE, _TABLES, use="for notices")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def wishes(self) -> Wishes:
        """What the owner wants to be told of."""
        kept = dict(self._database.execute("SELECT name, value FROM wish").fetchall())
        names = {name: value for name, value in kept.items() if name in asdict(Wishes())}
        budget = float(names.pop("budget_left", 0.0))
        return Wishes(**{name: bool(value) for name, value in names.items()}, budget_left=budget)

    def wish(self, wishes: Wishes) -> None:
        """Keep what the owner wants."""
        with self._database.transaction() as database:
            for name, value in asdict(wishes).items():
                database.execute("INSERT OR REPLACE INTO wish VALUES (?, ?)", (name, float(value)))

    def all(self) -> list[Notice]:
        """Every notice, the last first."""
        rows = self._database.execute("SELECT time, text, read FROM notice ORDER BY id DESC")
        return [Notice(time=t, text=text, is_read=bool(read)) for t, text, read in rows]

    @property
    def n_unread(self) -> int:
        """How many the owner has not seen yet."""
        (count,) = self._database.execute("SELECT COUNT(*) FROM notice WHERE read = 0").fetchone()
        return int(count)

    def mark_read(self) -> None:
        """The owner has seen them all."""
        self._database.execute("UPDATE notice SET read = 1 WHERE read = 0")

    # --- what the daemon does ----------------------------------------------------------------------------------------

    def look(self, consents: Consents, log: Log, ledger: Ledger, budget: Budget) -> list[str]:
        """Find what is new and wished for, keep it, and return its texts."""
        wishes = self.wishes
        texts = self._of_studies(consents, wishes) + self._of_log(log, wishes)
        texts += self._of_budget(log, ledger, budget, wishes)
        with self._database.transaction() as database:
            for text in texts:
                database.execute("INSERT INTO notice (time, text, read) VALUES (?, ?, 0)", (time.time(), text))
            if texts:
                database.execute(
                    "DELETE FROM notice WHERE id NOT IN (SELECT id FROM notice ORDER BY id DESC LIMIT ?)", (_MOST,)
                )
        return texts

    def _of_studies(self, consents: Consents, wishes: Wishes) -> list[str]:
        last = self._seen("study")
        new = consents.seen_since(last)
        if new:
            self._see("study", max(seen for _, seen in new))
        return [f"The study {name!r} was announced: read it and decide." for name, _ in new] if wishes.studies else []

    def _of_log(self, log: Log, wishes: Wishes) -> list[str]:
        last, (end, _) = int(self._seen("log")), log.tail()
        if end <= last:
            return []
        self._see("log", end)
        texts = []
        for line in log.lines(after=last):
            match line.decision:
                case {"decision": "began", "study": str(study)} if wishes.runs:
                    texts.append(f"A run of {study!r} began.")
                case {"decision": "refused", "why": str(why)} if wishes.refusals:
                    texts.append(f"A question was refused: {why}")
                case {"decision": "revoked", "member": str(member)} if wishes.members:
                    texts.append(f"{member} was revoked and is in no sum any more.")
                case {"decision": "key-rotated", "member": str(member)} if wishes.members:
                    texts.append(f"{member} has new keys, signed with its old ones.")
        return texts[-20:]  # a flood is told in part; the log has all of it

    def _of_budget(self, log: Log, ledger: Ledger, budget: Budget, wishes: Wishes) -> list[str]:
        end, _ = log.tail()
        if not wishes.budget_left or math.isinf(budget.epsilon_in_all) or end == int(self._seen("budget line")):
            return []
        self._see("budget line", end)
        account = ledger.sole_account("")
        left = budget.epsilon_in_all - ledger.epsilon(account, delta=budget.delta, relation=budget.relation)
        was_low, is_low = bool(self._seen("budget low")), left < wishes.budget_left
        self._see("budget low", is_low)
        return [f"Of your budget {left:.3g} is left."] if is_low and not was_low else []

    def _seen(self, name: str) -> float:
        row = self._database.execute("SELECT value FROM seen WHERE name = ?", (name,)).fetchone()
        return 0.0 if row is None else float(row[0])

    def _see(self, name: str, value: float) -> None:
        self._database.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (name, float(value)))
