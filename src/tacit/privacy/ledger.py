"""The ledger: what each record of a party has cost, on disk before anything leaves.

One SQLite file holds a party's runs (what each may cost), its releases (event and stored answer in one row) and its
log. A run *reserves* its whole cost when it begins, or does not begin. So no run stops half-way for lack of budget,
and whether a budget is left is known before a record is read.

A release is one transaction: the row is either wholly there, and the answer may leave, or not there at all, and nothing
has left. So a process that is killed at any point leaves no release uncounted, and the same question asked again after
the restart gets the stored answer.

A run that is abandoned before its first answer gives its reservation back. One that has answered keeps all of it for
ever. Why that is safe:
1. Whether a run fits, and so whether it begins, follows from the costs of runs and from the budget. It depends on no
   record.
2. A run without an answer has told nothing that depends on a record. Its part of the transcript has the same law on
   neighbouring tables: it costs nothing in any currency, so the runs that are counted bound what was told.
3. Giving back removes the run's row, in one transaction that finds no answer. Answering needs the row, in one
   transaction. So an abandoned run answers no more, unless it begins again, that is, pays again.

What fits a budget, and what that promises, stands in `filter`. An *account* is what a budget belongs to: the records,
whatever their owner is called. A party's own file is one account (`sole_account`). In a simulation a table keeps the
account under which it was first seen, by whatever name it takes part later.
"""

from __future__ import annotations

import json
import math
import time
import weakref
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any

from tacit.errors import BudgetExceeded, NotAgreed, SettingError
from tacit.privacy.budget import Budget as Budget  # at home there, and known here to those who keep ledgers
from tacit.privacy.event import Composed, Event, Repeated, from_json, to_json, why_not_private
from tacit.privacy.filter import Charge, fits, least_limit
from tacit.privacy.guarantee import Relation
from tacit.privacy.known_run import ASKED as ASKED
from tacit.privacy.known_run import FAILED as FAILED
from tacit.privacy.known_run import KnownRuns, Tally
from tacit.privacy.ledger_entry import Beginning as Beginning  # these too
from tacit.privacy.ledger_entry import LedgerEntry as LedgerEntry
from tacit.privacy.ledger_entry import Reservation as Reservation
from tacit.privacy.ledger_entry import RunEntry as RunEntry
from tacit.privacy.ledger_entry import Stage as Stage
from tacit.privacy.ledger_file import TABLES, UPGRADES, VERSION
from tacit.storage import Database, open_database


class Ledger:
    """What has been reserved and released, by account and study.

    Guarantees:
        When `spend` has returned, the release is on disk, and its cost was counted before. When it has raised, nothing
        is. Releases are never changed or removed, nor is the cost of a run that has answered.

    Example:
        >>> import tacit
        >>> ledger = tacit.Ledger()  # in memory; with a path it is kept
        >>> parties = tacit.Federation.from_tables(tacit.datasets.load("readmission").tables, ledger=ledger)
        >>> model = tacit.PrivateNewton(epsilon=1.0).fit(parties)
        >>> bool(0 < ledger.epsilon("north", delta=1e-6) <= 1)
        True
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        """Open the ledger at `path`, or make it; the default lives and dies with the process (a simulation)."""
        self.path = str(path)
        self.database = open_database(self.path, TABLES, use="as a ledger", version=VERSION, upgrades=UPGRADES)
        self._known = KnownRuns(self.database)
        self._seen: dict[int, tuple[weakref.ref[object], str]] = {}  # tables, and the account of each
        self._added: set[str] = set()  # tables of the database that others keep here

    def transaction(self) -> AbstractContextManager[Database]:
        """All or nothing; a transaction within a transaction joins it."""
        return self.database.transaction()

    def add_table(self, statement: str) -> None:
        """Make a table that somebody else keeps in this file, if it is not there."""
        if statement not in self._added:
            with self.transaction() as database:
                database.execute(statement)
            self._added.add(statement)

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    # --- accounts ----------------------------------------------------------------------------------------------------

    def sole_account(self, name: str) -> str:
        """The account of a party's own file, whatever its owner is called now: the first name that it was written by.

        Raises:
            SettingError: if the file holds several accounts.
        """
        rows = self.database.execute("SELECT party FROM run UNION SELECT party FROM release").fetchall()
        names = sorted(str(found) for (found,) in rows)
        if len(names) > 1:
            raise SettingError(
                f"{self.path} holds the accounts of {', '.join(names)}, and a party has one; use the ledger of its own"
            )
        return names[0] if names else name

    def account_of(self, records: object, name: str) -> str:
        """The account of a table in a simulation: the name under which this ledger first saw it."""
        found = self._seen.get(id(records))
        if found is None or found[0]() is not records:
            found = self._seen[id(records)] = weakref.ref(records), name
        return found[1]

    # --- runs --------------------------------------------------------------------------------------------------------

    def begin_runs(self, runs: Sequence[Beginning], group: bytes) -> None:
        """Write down that a run begins at these accounts and with which group, and reserve what it costs each of them.

        Args:
            runs: one for each account, all of one run and group.
            group: who is in it, encoded.

        Raises:
            BudgetExceeded: if it does not fit an account's budget; nothing is then written of any of them.
        """
        now = time.time()
        with self.transaction() as database:
            for one in runs:
                if one.budget is not None:
                    self._check(one.entry, one.reservation, one.budget)
            self._known.forget([one.entry.account for one in runs], runs[0].entry.run)
            digest = runs[0].entry.group
            if database.execute("SELECT 1 FROM sum_group WHERE digest = ?", (digest,)).fetchone() is None:
                database.execute("INSERT INTO sum_group VALUES (?, ?)", (digest, group))
            database.executemany(
                "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        one.entry.account, one.entry.run, one.entry.study, one.entry.agreement, one.entry.group, now,
                        *_texts(one.reservation), one.reservation.delta,
                    )
                    for one in runs
                ),
            )  # fmt: skip

    def abandon(self, account: str, run: str) -> bool:
        """Give a run's reservation back if none of its steps has run; True if it did. Such a run answers no more."""
        with self.transaction() as database:
            self._known.forget((account,), run)
            found = database.execute("SELECT sum_group FROM run WHERE party = ? AND run = ?", (account, run)).fetchone()
            done = database.execute(
                "DELETE FROM run WHERE party = ?1 AND run = ?2 AND reserved != '' "
                "AND NOT EXISTS (SELECT 1 FROM release WHERE party = ?1 AND run = ?2) "
                "AND NOT EXISTS (SELECT 1 FROM pinned WHERE party = ?1 AND run = ?2 AND field = ?3)",
                (account, run, ASKED),
            )
            if done.rowcount:
                database.execute("DELETE FROM pinned WHERE party = ? AND run = ?", (account, run))
                database.execute(
                    "DELETE FROM sum_group WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM run WHERE sum_group = ?1)",
                    found,
                )
        return done.rowcount > 0

    def abandon_all(self, account: str, agreement: str) -> None:
        """Abandon every run under an agreement that was taken back, those of its looks included."""
        runs = "SELECT run FROM run WHERE party = ? AND agreement GLOB ? || '*'"
        for (run,) in self.database.execute(runs, (account, agreement)).fetchall():
            self.abandon(account, str(run))

    def runs(self, accounts: Sequence[str], run: str) -> dict[str, RunEntry]:
        """The run of that name, of the accounts that agreed to it."""
        select = "SELECT party, study, agreement, sum_group FROM {} run USING (party) WHERE run = ?"
        return {
            str(account): RunEntry(account=account, run=run, study=study, agreement=agreement, group=group)
            for account, study, agreement, group in self.look_up(select, accounts, run)
        }

    def group_of_run(self, account: str, run: str) -> bytes | None:
        """The group with which the party agreed to a run, as it was sent."""
        row = self.database.execute(
            "SELECT body FROM sum_group JOIN run ON sum_group = digest WHERE party = ? AND run = ?",
            (account, run),
        ).fetchone()
        return None if row is None else bytes(row[0])

    def pin(self, account: str, run: str, field: str, digest: str) -> str:
        """The digest of what the party was first told for this field in a run: this one, if nothing was told before."""
        return self.pin_all((account,), run, field, digest)[account]

    def pin_all(self, accounts: Sequence[str], run: str, field: str, digest: str) -> dict[str, str]:
        """The same for several accounts."""
        with self.transaction() as database:
            self._known.forget(accounts, run)
            database.executemany(
                "INSERT OR IGNORE INTO pinned VALUES (?, ?, ?, ?)", ((one, run, field, digest) for one in accounts)
            )
            select = "SELECT party, digest FROM {} pinned USING (party) WHERE run = ? AND field = ?"
            return dict(self.look_up(select, accounts, run, field))

    def failed(self, accounts: Sequence[str], run: str) -> set[str]:
        """The accounts at which a step of a run failed."""
        if len(accounts) == 1:
            return set(accounts) if self._known.has_failed(accounts[0], run) else set()
        select = "SELECT party FROM {} pinned USING (party) WHERE run = ? AND field = ?"
        return {str(account) for (account,) in self.look_up(select, accounts, run, FAILED)}

    def n_runs(self, account: str, agreement: str) -> int:
        """How many runs have begun under one agreement, without those that were abandoned."""
        row = self.database.execute(
            "SELECT COUNT(*) FROM run WHERE party = ? AND agreement = ?", (account, agreement)
        ).fetchone()
        return int(row[0])

    # --- releases ----------------------------------------------------------------------------------------------------

    def spend(self, releases: Sequence[LedgerEntry]) -> None:
        """Write down answers of a run, one of each account, to one question; or raise `NotAgreed` and write nothing.

        The cost of each must be reserved.
        """
        now = time.time()
        with self.transaction() as database:
            self._check_reserved(releases)
            database.executemany(
                "INSERT INTO release (party, study, question, event, time, run, step, turn, answer) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        one.account, one.study, one.question, event_text(one.event), now, one.run, one.step, one.turn,
                        one.answer,
                    )
                    for one in releases
                ),
            )  # fmt: skip
            self._known.count(releases)

    def answered(self, accounts: Sequence[str], run: str) -> dict[str, Tally]:
        """Of each step that these accounts answered in a run: how often, and the last turn."""
        if len(accounts) == 1:
            tally = self._known.tally(accounts[0], run)
            return {accounts[0]: tally} if tally else {}
        found: dict[str, Tally] = {}
        select = (
            "SELECT party, step, COUNT(*), MAX(turn) FROM {} release USING (party) WHERE run = ? GROUP BY party, step"
        )
        for account, step, count, last_turn in self.look_up(select, accounts, run):
            found.setdefault(account, {})[step] = count, last_turn
        return found

    def answers(
        self, accounts: Sequence[str], question: str, where: tuple[str, str, int] | None = None
    ) -> dict[str, bytes]:
        """The stored answers to a question; by its run, step and turn (`where`) they are found faster."""
        known, by = ("", ()) if where is None else ("run = ? AND step = ? AND turn = ? AND ", where)
        select = f"SELECT party, answer FROM {{}} release USING (party) WHERE {known}question = ?"
        return {str(account): bytes(answer) for account, answer in self.look_up(select, accounts, *by, question)}

    def look_up(self, select: str, accounts: Collection[str], *values: str | int) -> list[tuple[Any, ...]]:
        """The rows of a table at these accounts: `select` has {} where they are joined, each as `each.party`."""
        if len(accounts) == 1:
            each, names = "(SELECT ? AS party) AS each CROSS JOIN", next(iter(accounts))
        else:  # a cross join keeps this order of the two
            each, names = "(SELECT value AS party FROM json_each(?)) AS each CROSS JOIN", json.dumps(list(accounts))
        return self.database.execute(select.format(each), (names, *values)).fetchall()

    def event(self, account: str, study: str | None = None) -> Event:
        """All that was released, in one study or in all."""
        where, values = _within(account, study)
        rows = self.database.execute(
            f"SELECT event, COUNT(*) FROM release WHERE {where} GROUP BY event ORDER BY event", values
        )
        return Composed(events=tuple(Repeated(event=_event(text), count=n) for text, n in rows))

    def n_releases(self, account: str, study: str | None = None) -> int:
        """How many answers were given."""
        where, values = _within(account, study)
        (count,) = self.database.execute(f"SELECT COUNT(*) FROM release WHERE {where}", values).fetchone()
        return int(count)

    def studies(self, account: str) -> list[str]:
        """The studies in which something was reserved, in order of their names."""
        rows = self.database.execute("SELECT DISTINCT study FROM run WHERE party = ? ORDER BY study", (account,))
        return [str(study) for (study,) in rows]

    # --- what it costs -----------------------------------------------------------------------------------------------

    def epsilon(
        self,
        account: str,
        *,
        delta: float,
        study: str | None = None,
        relation: Relation = "replace-one",
        more: Sequence[Charge] = (),
    ) -> float:
        """The least limit that all runs fit at `delta`, with `more` of them; infinity if no epsilon bounds one."""
        charges = self._charges(account, study)
        if any(why_not_private(charge.event) for charge in (*charges, *more)):
            return math.inf
        return least_limit((*charges, *more), delta, relation)

    def _charges(self, account: str, study: str | None) -> tuple[Charge, ...]:
        """Every run that counts, runs of one kind together."""
        where, values = _within(account, study)
        rows = self.database.execute(
            f"SELECT event, delta, COUNT(*) FROM run WHERE {where} GROUP BY event, delta", values
        )
        return tuple(Charge(event=_event(text), delta=float(delta), count=int(count)) for text, delta, count in rows)

    def _check(self, entry: RunEntry, reservation: Reservation, budget: Budget) -> None:
        limits = [("in this study", budget.epsilon_per_study, entry.study), ("in all", budget.epsilon_in_all, None)]
        for where, limit, study in limits:
            if math.isinf(limit):
                continue
            charges = tuple(one for one in self._charges(entry.account, study) if not why_not_private(one.event))
            after = (*charges, reservation.charge())
            if not fits(after, limit, budget.delta, budget.relation):
                then, now = (least_limit(one, budget.delta, budget.relation) for one in (after, charges))
                raise BudgetExceeded(
                    f"account {entry.account!r}: this run would bring epsilon {where} to {then:.4g} "
                    f"(at delta = {budget.delta:g}, {budget.relation}), over the limit of {limit:g}; {now:.4g} is "
                    f"spent already. Ask for less, or let the party raise its limit",
                    account=entry.account,
                )

    def _check_reserved(self, releases: Sequence[LedgerEntry]) -> None:
        run, step, accounts = releases[0].run, releases[0].step, [one.account for one in releases]
        if any((one.run, one.step) != (run, step) for one in releases) or len(set(accounts)) < len(accounts):
            raise NotAgreed(
                "answers that are written down together must be to one question, one of each account; "
                "two parties cannot share one table, so give each its own"
            )
        reserved = self._reserved(accounts, run)
        given = self._given(accounts, run, step)
        for one in releases:
            if not reserved.get(one.account):
                raise NotAgreed(f"run {run!r} has reserved nothing here; begin a new run", account=one.account)
            stages = _stages(str(reserved[one.account]))
            if step not in stages or not _is_same(stages[step][0], one.event):
                raise NotAgreed(f"step {step!r} would release what run {run!r} has not reserved", account=one.account)
            if given.get(one.account, 0) >= stages[step][1]:
                raise NotAgreed(
                    f"run {run!r} has reserved {stages[step][1]} answers to step {step!r}, and gave them",
                    account=one.account,
                )

    def _reserved(self, accounts: Sequence[str], run: str) -> dict[str, str]:
        """What a run has reserved at these accounts."""
        if len(accounts) == 1:
            return {accounts[0]: self._known.reserved(accounts[0], run)}
        return dict(self.look_up("SELECT party, reserved FROM {} run USING (party) WHERE run = ?", accounts, run))

    def _given(self, accounts: Sequence[str], run: str, step: str) -> dict[str, int]:
        """How many answers to a step these accounts gave in a run."""
        if len(accounts) == 1:
            return {accounts[0]: self._known.tally(accounts[0], run).get(step, (0, -1))[0]}
        select = "SELECT party, COUNT(*) FROM {} release USING (party) WHERE run = ? AND step = ? GROUP BY party"
        return dict(self.look_up(select, accounts, run, step))


@lru_cache(maxsize=256)  # every answer to a step costs the same
def event_text(event: Event) -> str:
    """An event as the ledger holds it."""
    return json.dumps(to_json(event), sort_keys=True)


@lru_cache(maxsize=4096)
def _event(text: str) -> Event:
    return from_json(json.loads(text))


@lru_cache(maxsize=256)
def _texts(reservation: Reservation) -> tuple[str, str]:
    """What a run's row holds; worked out once for all parties of a simulation."""
    stages = [[stage.step, to_json(stage.event), stage.times] for stage in reservation.stages]
    return json.dumps(stages, sort_keys=True), event_text(reservation.event)


@lru_cache(maxsize=256)
def _stages(text: str) -> dict[str, tuple[object, int]]:
    return {step: (event, times) for step, event, times in json.loads(text)}


def _is_same(reserved: object, event: Event) -> bool:
    """Whether this is what was reserved; what no epsilon bounds is as good as anything else of that kind."""
    return reserved == _json(event) or (bool(why_not_private(event)) and bool(why_not_private(from_json(reserved))))


@lru_cache(maxsize=256)
def _json(event: Event) -> object:
    return to_json(event)


def _within(account: str, study: str | None) -> tuple[str, tuple[str, ...]]:
    return ("party = ?", (account,)) if study is None else ("party = ? AND study = ?", (account, study))
