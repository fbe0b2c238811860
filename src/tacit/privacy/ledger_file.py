"""The tables of a ledger's file, and how a file of an earlier version becomes one of this."""

from __future__ import annotations

# Releases lie in the order in which they were made, each with its answer at the end, and one index finds them. If the
# table itself were sorted, each answer would change twice as many pages, and a look-up would read other answers.
# A process of the release before may still be open while the file is brought up to date. It writes its columns in
# another order: the check on `turn` stops it, so that nothing leaves.
_RELEASE = """(
    party    TEXT NOT NULL,
    study    TEXT NOT NULL,
    question TEXT NOT NULL,
    event    TEXT NOT NULL,
    time     REAL NOT NULL,
    run      TEXT NOT NULL,
    step     TEXT NOT NULL,
    turn     INTEGER NOT NULL CHECK (typeof(turn) = 'integer'),
    answer   BLOB NOT NULL,
    UNIQUE (party, run, step, turn, question)
)"""

TABLES = f"""
CREATE TABLE IF NOT EXISTS release {_RELEASE};
CREATE TABLE IF NOT EXISTS run (
    party     TEXT NOT NULL,
    run       TEXT NOT NULL,
    study     TEXT NOT NULL,
    agreement TEXT NOT NULL,
    sum_group TEXT NOT NULL,
    time      REAL NOT NULL,
    reserved  TEXT NOT NULL,
    event     TEXT NOT NULL,
    delta     REAL NOT NULL,
    PRIMARY KEY (party, run)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_by_cost ON run (party, event, delta);
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

VERSION = 4
"""Of the ledger's format. A ledger of any earlier version is read for ever."""

_EITHER = '\'{"kind": "under", "relations": ["replace-one", "add-remove"], "event": \''
UPGRADES = {
    1: """
ALTER TABLE release ADD COLUMN run  TEXT NOT NULL DEFAULT '';
ALTER TABLE release ADD COLUMN step TEXT NOT NULL DEFAULT '';
ALTER TABLE release ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS run (
    party     TEXT NOT NULL,
    run       TEXT NOT NULL,
    study     TEXT NOT NULL,
    agreement TEXT NOT NULL,
    sum_group TEXT NOT NULL,
    time      REAL NOT NULL,
    PRIMARY KEY (party, run)
) WITHOUT ROWID;
""",
    # Earlier versions reserved nothing. What they released counts as it stands, a run at a time; releases without a run
    # count one by one. A delta of 1 is that of the budget, whichever it has.
    2: f"""
ALTER TABLE run ADD COLUMN reserved  TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN event     TEXT NOT NULL DEFAULT '{{"kind": "free"}}';
ALTER TABLE run ADD COLUMN delta     REAL NOT NULL DEFAULT 1;
UPDATE run SET event = {_EITHER} || '{{"kind": "composed", "events": [' || (
    SELECT group_concat(event, ', ') FROM release WHERE release.party = run.party AND release.run = run.run
) || ']}}' || '}}' WHERE EXISTS (SELECT 1 FROM release WHERE release.party = run.party AND release.run = run.run);
INSERT INTO run SELECT party, 'release ' || question, study, '', '', time, '', {_EITHER} || event || '}}', 1
    FROM release WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.party = release.party AND run.run = release.run);
""",
    3: f"""
CREATE TABLE sorted_release {_RELEASE};
INSERT INTO sorted_release SELECT party, study, question, event, time, run, step, turn, answer
    FROM release ORDER BY time;
DROP TABLE release;
ALTER TABLE sorted_release RENAME TO release;
""",
}
