"""The studies that the coordinator has announced, for members that were not there then, and who approved them."""

from __future__ import annotations

import time
from pathlib import Path

from tacit.errors import SettingError
from tacit.federation.member.approval import MOST_APPROVALS, Approval
from tacit.record import decode_record, encode_record
from tacit.storage import open_database

_DAYS = 365

_TABLES = """
CREATE TABLE IF NOT EXISTS announced (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL,
    time   REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS approval (
    study       TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (study, fingerprint)
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

    def approve(self, approval: Approval) -> None:
        """Keep an approval, to be announced with its study; a second one by the same person replaces the first.

        Raises:
            SettingError: if its signature does not hold, or too many have approved the study.
        """
        if not approval.is_signed:
            raise SettingError(f"the signature of {approval.approver!r} does not hold; let it be signed again")
        others = [one for one in self.approvals(approval.study) if one.fingerprint != approval.fingerprint]
        if len(others) >= MOST_APPROVALS:
            raise SettingError(f"{len(others)} people have approved this study, which is the most")
        row = (approval.study, approval.fingerprint, encode_record(approval))
        self._database.execute("INSERT OR REPLACE INTO approval VALUES (?, ?, ?)", row)

    def approvals(self, study: str) -> tuple[Approval, ...]:
        """Who approved the study with this digest."""
        rows = self._database.execute("SELECT body FROM approval WHERE study = ? ORDER BY fingerprint", (study,))
        return tuple(decode_record(Approval, bytes(body)) for (body,) in rows)

    def all(self) -> dict[str, bytes]:
        """Every study by its digest, the one announced last at the end."""
        rows = self._database.execute("SELECT digest, body FROM announced ORDER BY time")
        return {str(digest): bytes(body) for digest, body in rows}

    def close(self) -> None:
        """Close the file."""
        self._database.close()
