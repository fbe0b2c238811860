"""Runs of studies as the coordinator remembers them: what a restart needs to go on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tacit.rand import Rng
from tacit.storage import Database, open_database
from tacit.studies.looking import LookOutcome

FILE = "runs.db"

_TABLES = """
CREATE TABLE IF NOT EXISTS run (
    id      TEXT PRIMARY KEY,
    study   TEXT NOT NULL,
    name    TEXT NOT NULL,
    state   TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    parties TEXT NOT NULL,
    left    TEXT NOT NULL,
    why     TEXT NOT NULL,
    started REAL NOT NULL,
    changed REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS presence (
    run      TEXT NOT NULL,
    question TEXT NOT NULL,
    parties  TEXT NOT NULL,
    PRIMARY KEY (run, question)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS look (
    study   TEXT NOT NULL,
    number  INTEGER NOT NULL,
    run     TEXT NOT NULL,
    outcome TEXT NOT NULL,
    time    REAL NOT NULL,
    PRIMARY KEY (study, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS enrolled (
    study     TEXT NOT NULL,
    party     TEXT NOT NULL,
    n_records INTEGER NOT NULL,
    time      REAL NOT NULL,
    PRIMARY KEY (study, party)
) WITHOUT ROWID;
"""

RUNNING, FINISHED, STOPPED = "running", "finished", "stopped"


@dataclass(kw_only=True)
class Run:
    """One run of a study.

    Attributes:
        id: its name in letters and questions.
        study: the study's digest; of a look that was planned, the digest and " look " and its number.
        name: the study's name.
        state: "running" (perhaps by a process that died since), "finished", or "stopped" with a reason; all but
            finished ones can be resumed.
        attempt: a run that loses a party begins again with the rest, as its next attempt.
        parties: who takes part in this attempt; empty until they are gathered.
        left: who took part in an earlier attempt and no longer does, and why.
        why: why it stopped.
    """

    id: str
    study: str
    name: str
    state: str = RUNNING
    attempt: int = 1
    parties: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    why: str = ""
    started: float = field(default_factory=time.time)

    @property
    def question_run(self) -> str:
        """The run as its questions name it: an attempt's questions are its own."""
        return f"{self.id}.{self.attempt}"


class Runs:
    """The coordinator's runs, in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, _TABLES, use="for runs")

    def begin(self, study: str, name: str) -> Run:
        """A new run."""
        run = Run(id=Rng.system().bytes(8).hex(), study=study, name=name)
        self.save(run)
        return run

    def unfinished(self, study: str) -> Run | None:
        """The last run of this very study, if it did not finish."""
        found = self.find_last(study)
        return None if found is None or found.state == FINISHED else found

    def last(self, study: str) -> Run:
        """The last run of this very study, which has one."""
        found = self.find_last(study)
        assert found is not None
        return found

    def find_last(self, study: str) -> Run | None:
        """The last run of this very study, if there is one."""
        row = self._database.execute(
            "SELECT id, study, name, state, attempt, parties, left, why, started FROM run "
            "WHERE study = ? ORDER BY started DESC LIMIT 1",
            (study,),
        ).fetchone()
        if row is None:
            return None
        id_, study, name, state, attempt, parties, left, why, started = row
        return Run(
            id=id_, study=study, name=name, state=state, attempt=attempt, parties=json.loads(parties),
            left=json.loads(left), why=why, started=started,
        )  # fmt: skip

    def save(self, run: Run) -> None:
        """Write the run down as it is now."""
        row = (
            run.id, run.study, run.name, run.state, run.attempt, json.dumps(run.parties), json.dumps(run.left), run.why,
            run.started, time.time(),
        )  # fmt: skip
        self._database.execute("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def is_first(self, run: Run) -> bool:
        """Whether no other run of a study of this name began before: its report counts all that ledgers do."""
        row = self._database.execute("SELECT COUNT(*) FROM run WHERE name = ? AND id != ?", (run.name, run.id))
        return int(row.fetchone()[0]) == 0

    def presence(self, run: Run) -> Attendance:
        """Who was in each round of the run's present attempt."""
        return Attendance(self._database, run.question_run)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class LookRecord:
    """What the looks of one study came to, and who is enrolled in it, in the coordinator's file of runs.

    Guarantees:
        A look that was kept stays as it was: `keep` of the same look changes nothing.
    """

    def __init__(self, path: Path, study: str) -> None:
        self._database = open_database(path, _TABLES, use="for runs")
        self._study = study

    def keep(self, run: Run, outcome: LookOutcome) -> None:
        """Write down what a look came to, before its run counts as finished."""
        row = (self._study, outcome.look.number, run.id, json.dumps(outcome.as_dict()), time.time())
        self._database.execute("INSERT OR IGNORE INTO look VALUES (?, ?, ?, ?, ?)", row)

    def outcomes(self) -> tuple[LookOutcome, ...]:
        """The looks that are over, in order."""
        rows = self._database.execute("SELECT outcome FROM look WHERE study = ? ORDER BY number", (self._study,))
        return tuple(LookOutcome.from_dict(json.loads(text)) for (text,) in rows)

    def enrol(self, sizes: Mapping[str, int]) -> None:
        """Write down who takes part now, with how many records."""
        with self._database.transaction() as database:
            database.execute("DELETE FROM enrolled WHERE study = ?", (self._study,))
            for party, n_records in sizes.items():
                row = (self._study, party, n_records, time.time())
                database.execute("INSERT INTO enrolled VALUES (?, ?, ?, ?)", row)

    def enrolled(self) -> dict[str, int]:
        """Who took part when parties were last gathered, with how many records."""
        rows = self._database.execute(
            "SELECT party, n_records FROM enrolled WHERE study = ? ORDER BY party", (self._study,)
        )
        return {str(party): int(n_records) for party, n_records in rows}

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class Attendance:
    """Who was in the answers to each question of one attempt.

    Guarantees:
        What `keep` wrote is what `find` reads, after a crash too; what is written first stays.
    """

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run

    def find(self, question: str) -> tuple[str, ...] | None:
        """Those who were in the answers; None if nothing was written down."""
        row = self._database.execute(
            "SELECT parties FROM presence WHERE run = ? AND question = ?", (self._run, question)
        ).fetchone()
        return None if row is None else tuple(json.loads(row[0]))

    def keep(self, question: str, parties: Sequence[str]) -> None:
        """Write them down."""
        row = (self._run, question, json.dumps(list(parties)))
        self._database.execute("INSERT OR IGNORE INTO presence VALUES (?, ?, ?)", row)
