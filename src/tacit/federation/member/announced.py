"""The studies that the coordinator has announced, for members that were not there then."""

from __future__ import annotations

import time
from pathlib import Path

from tacit.storage import open_database

_DAYS = 365

_TABLES = """
CREATE TABLE IF NOT EXISTS announced (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL,
    time   REAL NOT NULL
) WITHOUT ROWID;
"""


class Announced:
    """Studies as they are sent, in one SQLite file; each is forgotten a year after it was last announced."""

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, _TABLES, use="for announced studies")

    def keep(self, digest: str, body: bytes) -> None:
        """Remember a study as announced now."""
        with self._database.transaction() as database:
            database.execute("INSERT OR REPLACE INTO announced VALUES (?, ?, ?)", (digest, body, time.time()))
            database.execute("DELETE FROM announced WHERE time < ?", (time.time() - _DAYS * 86400,))

    def all(self) -> dict[str, bytes]:
        """Every study by its digest, the one announced last at the end."""
        rows = self._database.execute("SELECT digest, body FROM announced ORDER BY time")
        return {str(digest): bytes(body) for digest, body in rows}

    def close(self) -> None:
        """Close the file."""
        self._database.close()
