"""A site's own database: accounts, sessions, tokens, attempts to log in, and the audit trail."""

from __future__ import annotations

from pathlib import Path

from tacit.rand import Rng
from tacit.storage import Database, open_database

FILE = "web.db"

_VERSION = 2  # 2: one-time passwords expire
_UPGRADES = {
    1: "ALTER TABLE account ADD COLUMN expires REAL NOT NULL DEFAULT 0; "
    "UPDATE account SET expires = created + 604800 WHERE must_change = 1;"
}

_TABLES = """
CREATE TABLE IF NOT EXISTS secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS account (
    name        TEXT PRIMARY KEY,
    role        TEXT NOT NULL,
    password    TEXT NOT NULL,
    must_change INTEGER NOT NULL,
    disabled    INTEGER NOT NULL,
    email       TEXT NOT NULL,
    subject     TEXT NOT NULL,
    created     REAL NOT NULL,
    expires     REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
    id      BLOB PRIMARY KEY,
    account TEXT NOT NULL,
    created REAL NOT NULL,
    seen    REAL NOT NULL,
    flashes TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempt (
    key  TEXT NOT NULL,
    time REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS attempt_key ON attempt (key, time);
CREATE TABLE IF NOT EXISTS sent_form (
    nonce BLOB PRIMARY KEY,
    place TEXT NOT NULL,
    time  REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS token (
    id      TEXT PRIMARY KEY,
    hash    BLOB NOT NULL,
    account TEXT NOT NULL,
    role    TEXT NOT NULL,
    label   TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL NOT NULL,
    used    REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS audit (
    time   REAL NOT NULL,
    who    TEXT NOT NULL,
    what   TEXT NOT NULL,
    object TEXT NOT NULL,
    client TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_time ON audit (time);
"""


def open_store(path: Path | None) -> Database:
    """Open the site's database, or make it; None lives and dies with the process."""
    return open_database(path, _TABLES, use="for the web site", version=_VERSION, upgrades=_UPGRADES)


def site_secret(database: Database) -> bytes:
    """The key that only this site has; drawn when it is first asked for."""
    database.execute("INSERT OR IGNORE INTO secret VALUES ('site', ?)", (Rng.system().bytes(32),))
    (value,) = database.execute("SELECT value FROM secret WHERE name = 'site'").fetchone()
    return bytes(value)
