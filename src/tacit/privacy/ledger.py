"""The ledger: what each record of a party has cost, on disk before anything leaves.

One SQLite file holds a party's releases (event and stored answer in the same row) and its log. A release is one
transaction: the row is either wholly there, and the answer may leave, or not there at all, and nothing has left. So
a process that is killed at any point leaves no release uncounted, and the same question asked again after the
restart gets the stored answer and is not charged twice.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tacit.errors import BudgetExceeded
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Composed, Event, Repeated, from_json, to_json
from tacit.privacy.guarantee import Relation, check_delta, check_epsilon
from tacit.storage import Database, open_database

_ROUNDING = 1 + 1e-9  # the accountant rounds up by less than this; a budget can be spent to its end

_TABLES = """
CREATE TABLE IF NOT EXISTS release (
    party    TEXT NOT NULL,
    study    TEXT NOT NULL,
    question TEXT NOT NULL,
    event    TEXT NOT NULL,
    answer   BLOB NOT NULL,
    time     REAL NOT NULL,
    run      TEXT NOT NULL DEFAULT '',
    step     TEXT NOT NULL DEFAULT '',
    turn     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (party, question)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS release_by_study ON release (party, study);
CREATE INDEX IF NOT EXISTS release_by_run ON release (party, run, step, turn);
CREATE TABLE IF NOT EXISTS run (
    party     TEXT NOT NULL,
    run       TEXT NOT NULL,
    study     TEXT NOT NULL,
    agreement TEXT NOT NULL,
    sum_group TEXT NOT NULL,
    time      REAL NOT NULL,
    PRIMARY KEY (party, run)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pinned (
    party  TEXT NOT NULL,
    run    TEXT NOT NULL,
    field  TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (party, run, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sum_group (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL
) WITHOUT ROWID;
"""

VERSION = 2
"""Of the ledger's format. A ledger of any earlier version is read for ever."""

_UPGRADES = {
    1: """
ALTER TABLE release ADD COLUMN run  TEXT NOT NULL DEFAULT '';
ALTER TABLE release ADD COLUMN step TEXT NOT NULL DEFAULT '';
ALTER TABLE release ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
"""
}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that a party's records may cost, at probability `delta`, in one study and in all studies.

    A release that no epsilon bounds needs budgets without a limit. It then stands beside the others and is not counted
    against a limit on those: whoever allowed it has allowed it by name (`Policy.not_private`).

    `relation` is the one under which the party counts sampled events, whose cost the accountant tells under either;
    replace-one, the default, is the stricter. Other events are stated for the relation of their method.
    """

    epsilon_per_study: float = math.inf
    epsilon_in_all: float = math.inf
    delta: float = 1e-6
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon_per_study, "the budget's epsilon_per_study")
        check_epsilon(self.epsilon_in_all, "the budget's epsilon_in_all")
        check_delta(self.delta, "the budget's delta")


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One answer about to leave: who gives it, in which study and run, to which question, at what cost."""

    party: str
    study: str
    run: str
    step: str
    turn: int
    question: str
    event: Event
    answer: bytes


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run that a party agreed to: of which study, under which agreement (a digest), with which group (a digest)."""

    party: str
    run: str
    study: str
    agreement: str
    group: str


class Ledger:
    """What has been spent, by party and study.

    Guarantees:
        When `spend` has returned, the release is on disk. When it has raised, nothing is. Rows are never changed or
        removed: there is no refund.
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        """Open the ledger at `path`, or make it; the default lives and dies with the process (a simulation)."""
        self.path = str(path)
        self.database = open_database(self.path, _TABLES, use="as a ledger", version=VERSION, upgrades=_UPGRADES)

    def transaction(self) -> AbstractContextManager[Database]:
        """All or nothing; a transaction within a transaction joins it."""
        return self.database.transaction()

    def spend(self, release: LedgerEntry, budget: Budget) -> None:
        """Charge the release, or raise `BudgetExceeded` and charge nothing."""
        text = json.dumps(to_json(release.event), sort_keys=True)
        with self.transaction() as database:
            self._check(release, text, budget)
            database.execute(
                "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    release.party, release.study, release.question, text, release.answer, time.time(), release.run,
                    release.step, release.turn,
                ),
            )  # fmt: skip

    def begin_run(self, entry: RunEntry, group: bytes) -> None:
        """Write down that a run begins, and with which group."""
        with self.transaction() as database:
            known = database.execute("SELECT 1 FROM sum_group WHERE digest = ?", (entry.group,)).fetchone()
            if known is None:
                database.execute("INSERT INTO sum_group VALUES (?, ?)", (entry.group, group))
            database.execute(
                "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?)",
                (entry.party, entry.run, entry.study, entry.agreement, entry.group, time.time()),
            )

    def run(self, party: str, run: str) -> RunEntry | None:
        """The run of that name, if the party agreed to it."""
        row = self.database.execute(
            "SELECT study, agreement, sum_group FROM run WHERE party = ? AND run = ?", (party, run)
        ).fetchone()
        if row is None:
            return None
        study, agreement, group = map(str, row)
        return RunEntry(party=party, run=run, study=study, agreement=agreement, group=group)

    def group_of_run(self, party: str, run: str) -> bytes | None:
        """The group with which the party agreed to a run, as it was sent."""
        row = self.database.execute(
            "SELECT body FROM sum_group JOIN run ON sum_group = digest WHERE party = ? AND run = ?", (party, run)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def pin(self, party: str, run: str, field: str, digest: str) -> str:
        """The digest of what the party was first told for this field in a run: this one, if nothing was told before."""
        with self.transaction() as database:
            database.execute("INSERT OR IGNORE INTO pinned VALUES (?, ?, ?, ?)", (party, run, field, digest))
            row = database.execute(
                "SELECT digest FROM pinned WHERE party = ? AND run = ? AND field = ?", (party, run, field)
            ).fetchone()
        return str(row[0])

    def n_runs(self, party: str, agreement: str) -> int:
        """How many runs have begun under one agreement."""
        row = self.database.execute(
            "SELECT COUNT(*) FROM run WHERE party = ? AND agreement = ?", (party, agreement)
        ).fetchone()
        return int(row[0])

    def answered(self, party: str, run: str) -> list[tuple[str, int, int]]:
        """Of each step that the party answered in a run: its name, how often, and the last turn."""
        rows = self.database.execute(
            "SELECT step, COUNT(*), MAX(turn) FROM release WHERE party = ? AND run = ? GROUP BY step", (party, run)
        )
        return [(str(step), int(count), int(last_turn)) for step, count, last_turn in rows]

    def answer(self, party: str, question: str) -> bytes | None:
        """The stored answer to a question that this party has answered before."""
        row = self.database.execute(
            "SELECT answer FROM release WHERE party = ? AND question = ?", (party, question)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def event(self, party: str, study: str | None = None) -> Event:
        """Everything that the party's records have been through, in one study or in all."""
        return _event(self._history(party, study))

    def epsilon(
        self, party: str, *, delta: float, study: str | None = None, relation: Relation = "replace-one"
    ) -> float:
        """What that costs at `delta`."""
        return _epsilon(self._history(party, study), delta, relation)

    def n_releases(self, party: str, study: str | None = None) -> int:
        """How many answers the party has given."""
        return sum(count for _, count in self._history(party, study))

    def studies(self, party: str) -> list[str]:
        """The studies that the party has answered, in order of their names."""
        rows = self.database.execute("SELECT DISTINCT study FROM release WHERE party = ? ORDER BY study", (party,))
        return [str(study) for (study,) in rows]

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def _history(self, party: str, study: str | None) -> tuple[tuple[str, int], ...]:
        where, values = ("", (party,)) if study is None else (" AND study = ?", (party, study))
        rows = self.database.execute(
            f"SELECT event, COUNT(*) FROM release WHERE party = ?{where} GROUP BY event ORDER BY event", values
        )
        return tuple((str(event), int(count)) for event, count in rows)

    def _check(self, release: LedgerEntry, text: str, budget: Budget) -> None:
        limits = [("in this study", budget.epsilon_per_study, release.study), ("in all", budget.epsilon_in_all, None)]
        for where, limit, study in limits:
            if math.isinf(limit):
                continue
            history = self._history(release.party, study)
            if _is_bounded(text, budget):
                history = tuple(row for row in history if _is_bounded(row[0], budget))
            after = _epsilon((*history, (text, 1)), budget.delta, budget.relation)
            if after > limit * _ROUNDING:
                spent = _epsilon(history, budget.delta, budget.relation)
                raise BudgetExceeded(
                    f"party {release.party!r}: this answer would bring epsilon {where} to {after:.4g} "
                    f"(at delta = {budget.delta:g}), over the limit of {limit:g}; {spent:.4g} is spent already. "
                    f"Ask for less, or let the party raise its limit"
                )


def _is_bounded(text: str, budget: Budget) -> bool:
    return math.isfinite(_epsilon(((text, 1),), budget.delta, budget.relation))


def _event(history: tuple[tuple[str, int], ...]) -> Event:
    return Composed(events=tuple(Repeated(event=from_json(json.loads(text)), count=n) for text, n in history))


@lru_cache(maxsize=4096)
def _epsilon(history: tuple[tuple[str, int], ...], delta: float, relation: Relation) -> float:
    return epsilon_of(_event(history), delta, relation=relation)
