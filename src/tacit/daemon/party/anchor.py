"""The anchor: a small file beside the ledger that says how far it had come, so that a loss is noticed at the start.

It is written after every release and every run that begins, and before the answer leaves. So the ledger is never behind
its anchor, unless it was lost or exchanged for an older copy. A party then refuses to start: what it answered since is
forgotten, and it would answer the same again with fresh noise. Nodes notice the same by the marks that a party signs
(`secure/center/ledger_watch.py`), also when the whole folder was taken back.

It is written over in place, as one sector of a disk: a process that is killed, and a power cut, leave the line that was
there or the new one. A new file under the same name would cost more than all else that a party does for a question.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tacit.daemon.party.settings import LEDGER
from tacit.errors import SettingError
from tacit.federation.ledger_mark import LedgerMarks
from tacit.federation.log import Log
from tacit.federation.member.folder import read_json
from tacit.privacy.ledger import Ledger
from tacit.secure.envelope import LedgerMark
from tacit.storage import OWNER_ONLY, write_whole

FILE = "anchor.json"
_SECTOR = 512  # bytes


class AnchoredLedger:
    """A party's ledger and log, opened if they are where the anchor says; close it at the end.

    Guarantees:
        When `anchor` has returned, no ledger that is older than this one is opened from this folder.
    """

    def __init__(self, folder: Path, party: str) -> None:
        """Open the ledger that `make_ledger` made.

        Raises:
            SettingError: if it is missing, is another one, or lacks lines that it had.
        """
        self._path = folder / FILE
        self._descriptor: int | None = None
        if not (folder / LEDGER).exists():
            raise _lost(folder, "is missing")
        self.ledger = Ledger(folder / LEDGER)
        self.log = Log(self.ledger, party)
        self._marks = LedgerMarks(self.ledger, self.log, party)
        try:
            self._check(folder)
        except SettingError:
            self.ledger.close()
            raise

    def anchor(self) -> None:
        """Write down how far the ledger has come."""
        now = self._marks.now()
        form = f'{{"epoch": "{now.epoch}", "number": {now.number}, "line": {now.line}, "head": "{now.head}"}}'
        text = form.ljust(_SECTOR - 1).encode() + b"\n"
        # Not waited for: after a power cut the ledger may be ahead of its anchor, never behind it.
        if self._descriptor is None:
            if not self._path.exists() or self._path.stat().st_size != _SECTOR:  # of an earlier release
                write_whole(self._path, text, mode=OWNER_ONLY, flush=False)
            self._descriptor = os.open(self._path, os.O_WRONLY)
        os.pwrite(self._descriptor, text, 0)

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _check(self, folder: Path) -> None:
        anchored = self._read()
        if anchored is None:  # a ledger of an earlier release
            return
        now = self._marks.now()
        if now.epoch != anchored.epoch:
            raise _lost(folder, "is another one than it was")
        if now.line < anchored.line or now.number < anchored.number:
            raise _lost(folder, f"has {now.line} lines in its log, and had {anchored.line} before")
        if anchored.line and self.log.hash_at(anchored.line) != anchored.head:
            raise _lost(folder, f"has another line {anchored.line} in its log than it had")

    def _read(self) -> LedgerMark | None:
        if not self._path.exists():
            return None
        match read_json(self._path):
            case {"epoch": str(epoch), "number": int(number), "line": int(line), "head": str(head)}:
                return LedgerMark(epoch=epoch, number=number, line=line, head=head)
        raise SettingError(f"{self._path} is damaged; restore it from your backup together with {LEDGER}")


def open_ledger(folder: Path, party: str) -> Ledger:
    """The ledger for its owner's eyes; one that was lost is not made anew, but refused as at the party's start."""
    return AnchoredLedger(folder, party).ledger


def make_ledger(folder: Path, party: str) -> None:
    """A new ledger with its anchor, for a party that joins; one that is there stays."""
    if not (folder / LEDGER).exists():
        Ledger(folder / LEDGER).close()
    made = AnchoredLedger(folder, party)
    made.anchor()
    made.close()


def abandon_ledger(folder: Path, party: str) -> Path | None:
    """Put the ledger and its anchor aside and begin a new one, which knows of no release; returns where the old one is.

    Its owner decides that: from now on the party no longer knows what its records have cost.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    aside = folder / f"{LEDGER}.abandoned-{stamp}"
    found = (folder / LEDGER).exists()
    for ending in ("", "-wal", "-shm"):
        path = folder / f"{LEDGER}{ending}"
        if path.exists():
            path.rename(f"{aside}{ending}")
    (folder / FILE).unlink(missing_ok=True)
    make_ledger(folder, party)
    return aside if found else None


def _lost(folder: Path, what: str) -> SettingError:
    return SettingError(
        f"{folder / LEDGER} {what}. Nothing is answered, since old questions would get fresh noise. Restore the newest "
        f"copy of it from your backup. If none is left: `tacit party abandon-ledger`, which forgets what your records "
        f"have cost, and which each center node's operator must accept"
    )
